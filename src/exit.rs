//! Every exit code, in one place.

use std::process::{ExitCode, Termination};

/// How the program ends, as an exit code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Exit {
    /// 0: all steps succeeded, or the requested information was printed.
    #[default]
    Success,
    /// 1: a step did not complete.
    Incomplete,
    /// 2: usage, configuration, preflight or journal error; nothing was run.
    Refused,
    /// 3: a human has to decide: a dispute, an unclear verdict, or too many rejections.
    HumanNeeded,
    /// 4: a limit of the run was reached.
    LimitReached,
    /// 69: a worker failed, and the hub has no result of its unit (`EX_UNAVAILABLE` in sysexits(3)).
    WorkerFailed,
    /// 75: the unit is done, or another process has it (`EX_TEMPFAIL` in sysexits(3)).
    Taken,
    /// 129: the terminal was closed (SIGHUP).
    HungUp,
    /// 130: interrupted by Ctrl-C (SIGINT).
    Interrupted,
    /// 143: terminated by SIGTERM.
    Terminated,
    /// 141: standard output was closed.
    OutputClosed,
}

impl Exit {
    const ALL: [Self; 11] = [
        Self::Success,
        Self::Incomplete,
        Self::Refused,
        Self::HumanNeeded,
        Self::LimitReached,
        Self::WorkerFailed,
        Self::Taken,
        Self::HungUp,
        Self::Interrupted,
        Self::Terminated,
        Self::OutputClosed,
    ];

    /// The exit with this code, of a process of this program; any other code, such as that of a crash, is 1.
    #[must_use]
    pub fn of_code(code: i32) -> Self {
        Self::ALL.into_iter().find(|exit| i32::from(exit.code()) == code).unwrap_or(Self::Incomplete)
    }

    /// The worse of two. From worst to best: a signal, a limit, a human decision, a step that did not complete.
    #[must_use]
    pub fn or_worse(self, other: Self) -> Self {
        let weight = |exit: Self| match exit {
            Self::Success => 0,
            Self::Incomplete | Self::Refused | Self::WorkerFailed | Self::Taken => 1,
            Self::HumanNeeded => 2,
            Self::LimitReached => 3,
            _ => 4,
        };
        if weight(other) > weight(self) { other } else { self }
    }

    /// The exit code as a number.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Incomplete => 1,
            Self::Refused => 2,
            Self::HumanNeeded => 3,
            Self::LimitReached => 4,
            Self::WorkerFailed => 69,
            Self::Taken => 75,
            Self::HungUp => 129,
            Self::Interrupted => 130,
            Self::OutputClosed => 141,
            Self::Terminated => 143,
        }
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self.code())
    }
}
