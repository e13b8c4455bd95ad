//! How a command answers: with text, with JSON, or with a refusal.

use crate::exit::Exit;
use crate::journal::JournalError;
use crate::report::{Paint, print, print_error, render};
use crate::source::Diagnostic;
use crate::world::World;
use serde_json::Value;

/// The result of a command: its exit code, or why it stopped early.
pub(super) type Answered = Result<Exit, Stopped>;

/// Why a command stopped early.
#[derive(Debug)]
pub(super) enum Stopped {
    /// It was refused, with all errors. Nothing has run.
    Refused(Vec<Diagnostic>),
    /// It ended with this exit code, and has already reported why.
    Ended(Exit),
}

impl Stopped {
    /// The errors as plain text; `None` if they were reported already.
    pub(super) fn words(&self) -> Option<String> {
        match self {
            Self::Refused(faults) => Some(render(faults, Paint::plain())),
            Self::Ended(_) => None,
        }
    }

    /// Prints the errors and returns the exit code. No other code prints them.
    pub(super) fn exit(self, world: &World) -> Exit {
        match self {
            Self::Refused(faults) => {
                print_error(&render(&faults, Paint::for_stderr(world)));
                Exit::Refused
            }
            Self::Ended(exit) => exit,
        }
    }
}

impl From<Diagnostic> for Stopped {
    fn from(fault: Diagnostic) -> Self {
        Self::Refused(vec![fault])
    }
}

impl From<Vec<Diagnostic>> for Stopped {
    fn from(faults: Vec<Diagnostic>) -> Self {
        Self::Refused(faults)
    }
}

impl From<JournalError> for Stopped {
    fn from(error: JournalError) -> Self {
        broken_journal(&error).into()
    }
}

/// Returns a JSON answer as one line. An object begins with the version of its format (schemas/cli.schema.json).
pub(super) fn json_line(mut value: Value) -> String {
    if let Value::Object(object) = &mut value {
        object.shift_remove("version");
        object.shift_insert(0, "version".into(), 1.into());
    }
    value.to_string() + "\n"
}

/// Prints an answer, or reports why it cannot be printed.
pub(super) fn answer(text: &str) -> Exit {
    match print(text) {
        Ok(()) => Exit::Success,
        Err(error) => {
            print_error(&format!("forkhestra: cannot write the answer: {error}\n"));
            Exit::Incomplete
        }
    }
}

/// The diagnostic for a journal that cannot be used.
pub(super) fn broken_journal(error: &JournalError) -> Diagnostic {
    Diagnostic::error("journal/open", error.to_string()).help(error.help())
}
