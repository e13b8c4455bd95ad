//! How a verb answers: with text, in JSON, or by refusing.

use crate::exit::Exit;
use crate::journal::JournalError;
use crate::report::{Paint, print, print_error, render};
use crate::source::Diagnostic;
use crate::world::World;
use serde_json::Value;

/// Shows faults; nothing was run.
pub(super) fn refuse(world: &World, faults: &[Diagnostic]) -> Exit {
    print_error(&render(faults, Paint::for_stderr(world)));
    Exit::Refused
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
