//! How attempts and runs end. It depends on no other module.

use serde::{Deserialize, Serialize};

/// A signal that forkhestra receives or sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum Sig {
    /// The terminal was closed.
    Hup,
    /// A person interrupts (Ctrl-C).
    Int,
    /// A request to stop.
    Term,
    /// An immediate stop, which a process cannot prevent.
    Kill,
}

impl Sig {
    /// Returns the number of the signal on Linux.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Self::Hup => 1,
            Self::Int => 2,
            Self::Kill => 9,
            Self::Term => 15,
        }
    }

    /// Returns the signal with this number.
    #[must_use]
    pub fn of_number(number: i32) -> Option<Self> {
        [Self::Hup, Self::Int, Self::Kill, Self::Term].into_iter().find(|signal| signal.number() == number)
    }
}

impl std::fmt::Display for Sig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Hup => "SIGHUP",
            Self::Int => "SIGINT",
            Self::Term => "SIGTERM",
            Self::Kill => "SIGKILL",
        })
    }
}

/// How the processes of agents are found again after they have left them: daemons, for example.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Containment {
    /// Orphans come to forkhestra, however they were made (Linux).
    #[default]
    Whole,
    /// By their session, by who forked them, by the token in their environment, and by the pipes that they hold
    /// (macOS). A process can escape that.
    Lineage,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

/// Why an attempt is stopped early while the run continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Cut {
    /// Its `timeout` has expired.
    Timeout,
    /// Its `idleTimeout` has expired.
    Idle,
    /// It printed the marker but did not exit.
    Lingering,
    /// Its `startTimeout` has expired, and it has not printed anything.
    Start,
}

/// A limit of a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum LimitKind {
    /// `limits.time`: how long the run may work.
    Time,
    /// `limits.cost`: how much the run may cost.
    Cost,
    /// `limits.tokens`: how many tokens the run may use.
    Tokens,
    /// `limits.attempts`: how many attempts the run may have.
    #[serde(alias = "iterations")]
    Attempts,
    /// `limits.wait`: how long the run may wait for services without an attempt that works.
    Wait,
}

impl LimitKind {
    /// Returns its key in `limits`.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Cost => "cost",
            Self::Tokens => "tokens",
            Self::Attempts => "attempts",
            Self::Wait => "wait",
        }
    }
}

/// What a run is waiting for before it repeats an attempt that does not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum WaitReason {
    /// The end of a usage limit, a rate limit or an overload of the service.
    #[default]
    UsageLimit,
    /// The service, which could not be reached or failed.
    Service,
    /// A new login by a person, because a login that worked before is refused. Only in a queue of tasks.
    Login,
    /// The agent's program, which printed nothing after its start.
    Start,
    /// The machine, which lacked the resources for another process.
    Machine,
    /// Nothing: the session that the agent was to continue is unknown to its service, so it begins a new one.
    Session,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum AttemptOutcome {
    /// It succeeded: exit code 0, and in a loop the marker.
    Completed,
    /// Exit code 0, but without the marker of a loop or the clear verdict of a judge.
    Unfinished,
    /// It exited with a code other than 0.
    Failed {
        /// The exit code.
        code: i32,
    },
    /// It was killed by a signal that forkhestra did not send.
    Crashed {
        /// The number of the signal.
        signal: i32,
    },
    /// Exit code 0, but the program reported an error.
    Errored,
    /// forkhestra stopped it because one of its time limits had expired.
    TimedOut,
    /// forkhestra stopped it because it printed nothing and used no CPU time for too long.
    Idle,
    /// It changed protected files, such as the config.
    Voided,
    /// It hit a usage limit of its service. It does not count as an iteration.
    Limited,
    /// It could not work, for a reason that may be temporary. It does not count as an iteration.
    Unavailable {
        /// What the run is waiting for before the attempt is repeated.
        reason: WaitReason,
    },
    /// Its process could not be started.
    NotStarted {
        /// The error that the operating system reported.
        error: String,
    },
    /// It was interrupted, because the run was stopped or forkhestra died.
    Interrupted,
}

impl AttemptOutcome {
    /// Returns what the run is waiting for before it repeats the attempt; `None` if the attempt counts or was
    /// interrupted.
    #[must_use]
    pub fn waits_for(&self) -> Option<WaitReason> {
        match self {
            Self::Limited => Some(WaitReason::UsageLimit),
            Self::Unavailable { reason } => Some(*reason),
            _ => None,
        }
    }

    /// Returns whether it counts as an iteration. An attempt that was interrupted or could not work is repeated.
    #[must_use]
    pub fn counts(&self) -> bool {
        *self != Self::Interrupted && self.waits_for().is_none()
    }
}

/// Why a human is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum HumanNeeded {
    /// An agent gave the verdict `dispute`, so a person has to decide.
    Disputed,
    /// A judge was asked several times, and its verdict stayed unclear.
    Unclear,
    /// No round is left after a rejection.
    Rejections,
    /// An agent that is not a judge rejected the work, and no judge approved it after that.
    NotAJudge,
    /// A check has no command to run, although a worker had the chance to add one.
    NoCommand,
    /// The task is waiting for a judge or was rejected before, and the chain has no judge.
    NoJudge,
    /// A login that worked before is refused.
    Login,
}

impl HumanNeeded {
    /// Returns whether a person has to decide about the work, rather than do something.
    #[must_use]
    pub fn is_a_decision(self) -> bool {
        !matches!(self, Self::NoCommand | Self::Login)
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum RunOutcome {
    /// All steps succeeded.
    Succeeded,
    /// A step failed.
    Failed {
        /// The number of the step that failed.
        step: u32,
    },
    /// A loop or a group used up its count without success.
    IterationsExhausted {
        /// The number of the step that ended last.
        step: u32,
    },
    /// A judge rejected the work, and no round follows.
    Rejected {
        /// The number of the judge's step.
        step: u32,
    },
    /// A human is needed.
    NeedsHuman {
        /// The number of the step that needs a human.
        step: u32,
        /// Why a human is needed.
        reason: HumanNeeded,
    },
    /// A loop failed quickly and in the same way several times in a row.
    CrashLoop {
        /// The number of the loop's step.
        step: u32,
    },
    /// A loop or a group repeated itself without progress.
    Stalled {
        /// The number of the step that ended last.
        step: u32,
    },
    /// An evaluation ended without success: a case failed, or no better prompt was found.
    CasesFailed,
    /// A batch ended, and not every task has landed.
    TasksLeft,
    /// A limit of the run was reached.
    LimitReached {
        /// The limit that was reached.
        limit: LimitKind,
    },
    /// The machine lacked the resources for another process, for longer than forkhestra waits.
    OutOfResources {
        /// The number of the step that could not be started.
        step: u32,
    },
    /// A signal stopped the run.
    Interrupted {
        /// The first signal that forkhestra received.
        signal: Sig,
    },
    /// The standard output of forkhestra was closed.
    OutputClosed,
}

impl RunOutcome {
    /// Returns why a run did not complete its task, in a few words.
    #[must_use]
    pub fn few_words(self) -> &'static str {
        match self {
            Self::NeedsHuman { reason: HumanNeeded::Login, .. } => "its login was refused",
            Self::NeedsHuman { .. } => "it needs a human",
            Self::LimitReached { .. } => "a limit was reached",
            Self::IterationsExhausted { .. } | Self::Rejected { .. } => "its rounds are used up",
            Self::Stalled { .. } | Self::CrashLoop { .. } => "it made no progress",
            _ => "a step failed",
        }
    }

    /// Returns whether a loop or a group has used up its count. The run can then be resumed only with a
    /// higher count.
    #[must_use]
    pub fn is_exhausted(self) -> bool {
        matches!(self, Self::IterationsExhausted { .. } | Self::NeedsHuman { reason: HumanNeeded::Rejections, .. })
    }

    /// Returns whether the run can be resumed as it is. It cannot if it is complete, or needs a decision or more
    /// rounds.
    #[must_use]
    pub fn may_resume(self) -> bool {
        match self {
            Self::Succeeded | Self::CasesFailed | Self::TasksLeft | Self::IterationsExhausted { .. } => false,
            Self::NeedsHuman { reason, .. } => reason == HumanNeeded::Unclear || !reason.is_a_decision(),
            _ => true,
        }
    }

    /// Returns whether the run reached this outcome by itself, and was not stopped early.
    #[must_use]
    pub fn is_a_conclusion(self) -> bool {
        !matches!(
            self,
            Self::Interrupted { .. } | Self::OutputClosed | Self::LimitReached { .. } | Self::OutOfResources { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::LimitKind;

    #[test]
    fn journals_in_which_the_limit_on_attempts_was_called_iterations_are_read() {
        for text in ["\"iterations\"", "\"attempts\""] {
            assert_eq!(serde_json::from_str::<LimitKind>(text).ok(), Some(LimitKind::Attempts), "{text}");
        }
        assert_eq!(serde_json::to_string(&LimitKind::Attempts).ok().as_deref(), Some("\"attempts\""));
    }
}
