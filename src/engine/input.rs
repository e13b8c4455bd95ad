//! The inputs of the machine, and the effects that it requests.

use super::event::{At, Feedback, HighestAttempt, Preparation};
use super::finished::{Finished, Leftover, Tokens, UsageLimit};
use super::outcome::{Exit, RunOutcome, Sig};
use crate::verdict::{Verdict, VerdictReading};
use std::time::Duration;

/// What a timer measures. All timers are halted while the run is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// The attempt's `timeout`.
    Timeout,
    /// The attempt's `idleTimeout`.
    Idle,
    /// The attempt's `startTimeout`.
    Start,
    /// The time from the marker to the exit.
    Linger,
    /// The time from one signal to the next, stronger one.
    Grace,
    /// The wait before an attempt is repeated.
    Wait,
    /// The run's `limits.time`.
    Run,
}

/// An input from outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Starts the run.
    Begin,
    /// Resumes the run where an earlier process stopped.
    Resume {
        /// How long the run had been running before, in milliseconds.
        elapsed_ms: u64,
        /// The processes that had outlived the earlier process and were terminated.
        leftovers: Vec<Leftover>,
        /// The highest attempt of each step that has left a directory.
        attempts: Vec<HighestAttempt>,
        /// The limits that were given on the command line.
        limits: Vec<String>,
        /// A person's decision about the work, if the run is waiting for one.
        decided: Option<Verdict>,
        /// How many iterations or rounds are added, if they were used up.
        more: Option<u32>,
        /// The tree with which the run resumes.
        tree: Option<String>,
    },
    /// The attempt is started in another way than the one before.
    Prepared(Preparation),
    /// The agent's process has started.
    Spawned {
        /// The agent's process id.
        pid: i32,
        /// The start time of the process, in clock ticks since boot.
        start_time: u64,
    },
    /// The process could not be started.
    NotStarted {
        /// The error that the operating system reported.
        error: String,
        /// Whether the system lacked the resources for it, which may change with time.
        busy: bool,
    },
    /// The attempt does not start, because another run has reached a usage limit of its service.
    Parked {
        /// That limit.
        limit: UsageLimit,
    },
    /// A later final message has no marker, so the earlier marker does not count.
    MarkerGone,
    /// The marker was seen.
    Marker,
    /// The attempt has reported what it has used so far.
    Used {
        /// All tokens of the attempt so far.
        tokens: Tokens,
        /// Whether it has printed its final message. It is then complete and counts, even if a limit is reached.
        said_all: bool,
    },
    /// The agent was paused by this signal, which forkhestra did not send.
    AgentPaused(i32),
    /// The paused agent continues.
    AgentContinued,
    /// A timer has expired.
    TimeOver(Timer),
    /// forkhestra received a signal.
    Signal(Sig),
    /// forkhestra was asked to pause (SIGTSTP).
    Pause,
    /// forkhestra continues (SIGCONT).
    Continue,
    /// The standard output of forkhestra was closed.
    OutputClosed,
    /// Templates were edited.
    TemplatesEdited {
        /// The edited files, as paths relative to the workspace.
        files: Vec<String>,
        /// Whether later attempts use the new text.
        accepted: bool,
        /// What is wrong with the new text, if anything.
        error: Option<String>,
    },
    /// A person sent a message to the run.
    Message {
        /// The number of the message.
        id: i64,
        /// What it says.
        text: String,
    },
    /// The process has exited, and its process tree is gone.
    Exited {
        /// How the process ended.
        exit: Exit,
        /// What else is known about the attempt.
        finished: Box<Finished>,
        /// The verdict that was read, clear or unclear; `None` for a check.
        verdict: Option<VerdictReading>,
    },
}

/// Something that the machine requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Starts an attempt.
    Spawn {
        /// The attempt to start.
        at: At,
        /// What its prompt reports about the previous round.
        feedback: Option<Feedback>,
    },
    /// Sends this signal to the agent's process tree.
    Signal(Sig),
    /// Starts a timer with this duration.
    Arm(Timer, Duration),
    /// Pauses the agent's process tree.
    PauseAgent,
    /// Lets the agent's process tree continue.
    ContinueAgent,
    /// Pauses forkhestra itself.
    StandStill,
    /// Ends the run with this outcome.
    Finish(RunOutcome),
}
