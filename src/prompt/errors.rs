//! The errors and warnings of prompts and variables.

use crate::source::{Diagnostic, Place, nearest};
use std::path::Path;

pub(super) fn prompt_not_found(at: &Place, path: &Path) -> Diagnostic {
    Diagnostic::error("prompt/not-found", format!("prompt file not found: {}", path.display()))
        .at(at, "named here")
        .help("create the file, or fix the path. A path in the project's config is relative to the project's root; a path on the command line is relative to the current directory")
}

pub(super) fn prompt_is_a_folder(at: &Place, path: &Path) -> Diagnostic {
    Diagnostic::error("prompt/folder", format!("the prompt file {} is a directory", path.display()))
        .at(at, "named here")
        .help("name a file in it")
}

pub(super) fn prompt_unreadable(at: &Place, path: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error("prompt/unreadable", format!("cannot read the prompt file {}: {error}", path.display()))
        .at(at, "named here")
        .help("make it readable")
}

pub(super) fn prompt_not_utf8(at: &Place, path: &Path, offset: usize) -> Diagnostic {
    Diagnostic::error("prompt/not-utf8", format!("the prompt file {} is not UTF-8 (byte {offset})", path.display()))
        .at(at, "named here")
        .help("save it as UTF-8; a prompt is text")
}

pub(super) fn missing_variable(at: &Place, name: &str, near: Option<&str>, of_the_environment: bool) -> Diagnostic {
    let near = near.map(|near| format!(" (is `{near}` a typo for it?)"));
    let help = if of_the_environment {
        format!("the environment has a variable with this name: ${{env:{name}}}")
    } else {
        format!("pass it on the command line: {name}=value{}", near.unwrap_or_default())
    };
    Diagnostic::error("vars/missing", format!("the variable `{name}` has no value")).at(at, "used here").help(help)
}

/// The error for a variable where the command line cannot set one.
pub(super) fn unknown_placeholder(at: &Place, name: &str, known: &[&str]) -> Diagnostic {
    let listed: Vec<String> = known.iter().map(|name| format!("${{{name}}}, ")).collect();
    let help = nearest(name, known.iter().copied()).map_or_else(
        || format!("here only {}and variables of the environment have a value: ${{env:{name}}}", listed.concat()),
        |near| format!("did you mean `${{{near}}}`?"),
    );
    Diagnostic::error("vars/missing", format!("the variable `{name}` has no value")).at(at, "used here").help(help)
}

pub(super) fn missing_environment(at: &Place, name: &str) -> Diagnostic {
    Diagnostic::error("vars/environment", format!("the environment variable `{name}` is not set"))
        .at(at, "used here")
        .help(format!("set it, or give a default: ${{env:{name}:-default}}"))
}

pub(super) fn variable_not_utf8(at: &Place, name: &str) -> Diagnostic {
    Diagnostic::error("vars/not-utf8", format!("the environment variable `{name}` is not UTF-8")).at(at, "used here")
}

pub(super) fn malformed_variable(at: &Place) -> Diagnostic {
    Diagnostic::error("vars/malformed", "this is not a valid variable")
        .at(at, "expected ${NAME}, ${NAME:-default} or ${env:NAME}")
        .help("for a literal `${`, write `$${`")
}

pub(super) fn unused_variable(at: Option<&Place>, name: &str, near: Option<&str>) -> Diagnostic {
    let warning = Diagnostic::warning("vars/unused", format!("the variable `{name}` is not used"))
        .help(near.map_or_else(|| "nothing in the chain mentions it".into(), |near| format!("did you mean `{near}`?")));
    match at {
        Some(at) => warning.at(at, "given here"),
        None => warning,
    }
}
