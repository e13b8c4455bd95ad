//! Prints a log unchanged, until its reader goes away.

use crate::report::print_bytes;
use crate::source::Diagnostic;
use std::io::{Error, ErrorKind};

/// Why a log is not shown to its end.
pub(in crate::cli) enum LogCut {
    /// The reader has gone away, as `head` does.
    ReaderGone,
    /// There is an error.
    Failed(Diagnostic),
}

impl From<Diagnostic> for LogCut {
    fn from(error: Diagnostic) -> Self {
        Self::Failed(error)
    }
}

/// Prints bytes unchanged.
pub(super) fn show(bytes: &[u8]) -> Result<(), LogCut> {
    match print_bytes(bytes) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(LogCut::ReaderGone),
        Err(error) => Err(LogCut::Failed(no_output(&error))),
    }
}

fn no_output(error: &Error) -> Diagnostic {
    Diagnostic::error("runs/output", format!("cannot write to standard output: {error}"))
        .help("the log contains the rest")
}
