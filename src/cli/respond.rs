//! How a verb answers: with text, in JSON, or by refusing.

use crate::exit::Exit;
use crate::journal::JournalError;
use crate::report::{Paint, print, print_error, render};
use crate::source::Diagnostic;
use crate::world::World;
use serde_json::Value;

/// How a verb ends.
pub(super) type Answered = Result<Exit, Stopped>;

/// Why a verb does not come to its end.
#[derive(Debug)]
pub(super) enum Stopped {
    /// It is refused: everything that is wrong. Nothing was run.
    Refused(Vec<Diagnostic>),
    /// It was ended meanwhile, and that was said.
    Ended(Exit),
}

impl Stopped {
    /// Shows what is wrong, the one place that does; and how the program ends.
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

/// An answer for machines, in one line: an object says the version of its form first (schemas/cli.schema.json).
pub(super) fn json_line(mut value: Value) -> String {
    if let Value::Object(object) = &mut value {
        object.shift_remove("version");
        object.shift_insert(0, "version".into(), 1.into());
    }
    value.to_string() + "\n"
}

/// Prints an answer; what keeps it from being printed is said.
pub(super) fn answer(text: &str) -> Exit {
    match print(text) {
        Ok(()) => Exit::Success,
        Err(error) => {
            print_error(&format!("forkhestra: cannot write the answer: {error}\n"));
            Exit::Incomplete
        }
    }
}

/// A journal that cannot be used, and what to do.
pub(super) fn broken_journal(error: &JournalError) -> Diagnostic {
    Diagnostic::error("journal/open", error.to_string()).help(error.help())
}
