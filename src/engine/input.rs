//! What the machine is told, and what it wants done.

use super::event::{At, Feedback, HighestAttempt};
use super::finished::{Finished, Leftover, Tokens};
use super::outcome::{Exit, RunOutcome, Sig};
use crate::verdict::{Said, Verdict};
use std::time::Duration;

/// What is timed. All of them stand still while the run is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// The attempt's `timeout`.
    Timeout,
    /// The attempt's `idleTimeout`.
    Idle,
    /// The attempt's `startTimeout`.
    Start,
    /// From the marker to the exit.
    Linger,
    /// From one signal of the ladder to the next.
    Grace,
    /// A usage limit.
    Wait,
    /// The run's `limits.time`.
    Run,
}

/// Something from outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Go.
    Begin,
    /// Go on where an earlier process left off.
    Resume {
        /// How long the run was at work before, in milliseconds.
        elapsed_ms: u64,
        /// What had outlived it, and was ended.
        leftovers: Vec<Leftover>,
        /// Attempts that have left a folder.
        attempts: Vec<HighestAttempt>,
        /// Limits of the command line.
        limits: Vec<String>,
        /// What a person decides about the work, where one is waited for.
        decided: Option<Verdict>,
        /// How many more iterations or rounds there are, where they were used up.
        more: Option<u32>,
        /// The tree that it goes on with.
        tree: Option<String>,
    },
    /// The process runs.
    Spawned {
        /// The agent's.
        pid: i32,
        /// Its start time.
        start_time: u64,
    },
    /// The process could not be started.
    NotStarted {
        /// What the operating system said.
        why: String,
        /// Whether it had no room for it, which time may change.
        busy: bool,
    },
    /// A later final message has no marker: the earlier one does not count.
    MarkerGone,
    /// The marker was seen.
    Marker,
    /// The attempt has used so much by now.
    Used {
        /// In all.
        tokens: Tokens,
        /// Whether it has said its last message: then it is over, and counts.
        said_all: bool,
    },
    /// The agent was stopped by this signal, not by us.
    AgentStopped(i32),
    /// It goes on.
    AgentContinued,
    /// A time is over.
    TimeOver(Timer),
    /// We were sent a signal.
    Signal(Sig),
    /// We were asked to stand still (SIGTSTP).
    Pause,
    /// We go on (SIGCONT).
    Continue,
    /// Our standard output is closed.
    OutputClosed,
    /// Templates were edited.
    TemplatesEdited {
        /// Which, from the root.
        files: Vec<String>,
        /// Whether the attempts from here on are told by the new text.
        taken: bool,
        /// What is wrong with it, if something is.
        why: Option<String>,
    },
    /// The process exited and its tree is gone.
    Exited {
        /// How.
        exit: Exit,
        /// What else is known.
        finished: Box<Finished>,
        /// What it decided; none for a check.
        said: Option<Said>,
    },
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start this attempt.
    Spawn {
        /// Which.
        at: At,
        /// What its prompt is told about the last round.
        feedback: Option<Feedback>,
    },
    /// Send this to the agent's tree.
    Signal(Sig),
    /// Give so much time, then say so.
    Arm(Timer, Duration),
    /// Stop the agent's tree.
    StopAgent,
    /// Let it go on.
    ContinueAgent,
    /// Stop ourselves.
    StandStill,
    /// The run is over.
    Finish(RunOutcome),
}
