//! How attempts and runs end. Knows no one.

use serde::{Deserialize, Serialize};

/// A signal that we take or send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "UPPERCASE")]
pub enum Sig {
    /// The terminal went away.
    Hup,
    /// Ctrl-C.
    Int,
    /// A polite end.
    Term,
    /// The end.
    Kill,
}

impl Sig {
    /// Its number on Linux.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Self::Hup => 1,
            Self::Int => 2,
            Self::Kill => 9,
            Self::Term => 15,
        }
    }

    /// The one of this number.
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

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

/// Why an attempt is ended before its time, while the run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Cut {
    /// Its `timeout` is over.
    Timeout,
    /// Its `idleTimeout` is over.
    Idle,
    /// It printed the marker and did not exit.
    Lingering,
    /// Its `startTimeout` is over, and it has not said a word.
    Start,
}

/// A limit of a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum LimitKind {
    /// `limits.time`.
    Time,
    /// `limits.cost`.
    Cost,
    /// `limits.tokens`.
    Tokens,
    /// `limits.iterations`.
    Iterations,
    /// `limits.wait`.
    Wait,
}

impl LimitKind {
    /// Its key in `limits`.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Cost => "cost",
            Self::Tokens => "tokens",
            Self::Iterations => "iterations",
            Self::Wait => "wait",
        }
    }
}

/// What is waited for before an attempt that does not count is made again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum WaitReason {
    /// A usage limit, a rate limit or an overload of the service ends.
    #[default]
    UsageLimit,
    /// The service can be reached, and works again.
    Service,
    /// Somebody logs in again: a login that has worked before is refused. Only in a queue of tasks.
    Login,
    /// The agent's program comes to its first word.
    Start,
    /// The machine has room for another process again.
    Machine,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "is", rename_all = "camelCase")]
pub enum AttemptOutcome {
    /// The step's aim is reached: exit 0, and the marker in a loop.
    Completed,
    /// Exit 0 without the marker in a loop.
    Unfinished,
    /// An exit code other than 0.
    Failed {
        /// The code.
        code: i32,
    },
    /// Killed by a signal that we did not send.
    Crashed {
        /// Its number.
        signal: i32,
    },
    /// Exit 0, but the program reports an error.
    Errored,
    /// We ended it because its time was over.
    TimedOut,
    /// We ended it because it printed nothing and used no CPU time for too long.
    Idle,
    /// It changed what decides about its work.
    Voided,
    /// It met a usage limit of its service; the iteration does not count.
    Limited,
    /// It could not work, for a reason that time may remove; the iteration does not count.
    Unavailable {
        /// The reason.
        reason: WaitReason,
    },
    /// It never ran.
    NotStarted {
        /// What the operating system said.
        why: String,
    },
    /// We ended it because the run was to stop.
    Interrupted,
}

impl AttemptOutcome {
    /// What is waited for after an attempt that could not work and does not count; none of any other.
    #[must_use]
    pub fn waits_for(&self) -> Option<WaitReason> {
        match self {
            Self::Limited => Some(WaitReason::UsageLimit),
            Self::Unavailable { reason } => Some(*reason),
            _ => None,
        }
    }

    /// Whether it counts as an iteration. One that was interrupted or could not work is made again.
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
    /// An agent disputes what it is asked.
    Disputed,
    /// A judge was not understood, time and again.
    Unclear,
    /// No round is left after a reject.
    Rejections,
    /// An agent that is no judge rejected the work, and no judge approved it after that.
    NotAJudge,
    /// A check has nothing to run, although a worker could have made its command.
    NoCommand,
    /// The task waits for a judge, or was rejected before, and the chain has none.
    NoJudge,
    /// A login that worked before is refused.
    Login,
}

impl HumanNeeded {
    /// Whether a person's decision about the work is needed, and not something that a person does.
    #[must_use]
    pub fn is_a_decision(self) -> bool {
        !matches!(self, Self::NoCommand | Self::Login)
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "is", rename_all = "camelCase")]
pub enum RunOutcome {
    /// All steps succeeded.
    Succeeded,
    /// A step failed.
    Failed {
        /// Its number.
        step: u32,
    },
    /// A loop or a group did not reach its aim within its count.
    Exhausted {
        /// The number of the step that ended last.
        step: u32,
    },
    /// A judge rejected, and no round follows.
    Rejected {
        /// Its number.
        step: u32,
    },
    /// A human has to decide.
    NeedsHuman {
        /// The number of the step that asks for one.
        step: u32,
        /// Why.
        why: HumanNeeded,
    },
    /// A loop failed in the same way again and again, at once.
    Failing {
        /// Its step's number.
        step: u32,
    },
    /// A loop went on without changing or saying anything new.
    Stalled {
        /// Its step's number.
        step: u32,
    },
    /// An evaluation came to its end, and what it was to show did not show.
    NotMet,
    /// A limit of the run was reached.
    LimitReached {
        /// Which.
        limit: LimitKind,
    },
    /// The machine had no room for another process, for longer than is waited for.
    OutOfResources {
        /// The number of the step that could not be started.
        step: u32,
    },
    /// A signal stopped it.
    Interrupted {
        /// The first one.
        signal: Sig,
    },
    /// Our standard output was closed.
    OutputClosed,
}

impl RunOutcome {
    /// Whether a loop or a group has used up its count: the run goes on only with more of it.
    #[must_use]
    pub fn is_exhausted(self) -> bool {
        matches!(self, Self::Exhausted { .. } | Self::NeedsHuman { why: HumanNeeded::Rejections, .. })
    }

    /// Whether the run may go on as it is: only what is complete is over, and what waits for a decision or for more rounds.
    #[must_use]
    pub fn may_resume(self) -> bool {
        match self {
            Self::Succeeded | Self::NotMet | Self::Exhausted { .. } => false,
            Self::NeedsHuman { why, .. } => why == HumanNeeded::Unclear || !why.is_a_decision(),
            _ => true,
        }
    }

    /// Whether the run came to it by itself, and was not cut off.
    #[must_use]
    pub fn is_a_conclusion(self) -> bool {
        !matches!(
            self,
            Self::Interrupted { .. } | Self::OutputClosed | Self::LimitReached { .. } | Self::OutOfResources { .. }
        )
    }
}
