//! The errors of names, programs and backends.

use crate::source::{Diagnostic, Place};
use std::ffi::OsStr;
use std::path::Path;

pub(super) fn unknown_name(at: &Place, name: &str, near: Option<&str>, like_a_count: bool) -> Diagnostic {
    let mut help = match near {
        _ if like_a_count => {
            format!(
                "a count is a whole number from 1 to 1,000,000: `coder:3`. As a name, `{name}` is neither configured nor \
                 on PATH"
            )
        }
        Some(near) => format!("did you mean `{near}`?"),
        None => "configure it in `agents` of forge/chains.json, or put a program of this name on PATH".into(),
    };
    if !like_a_count
        && near.is_none_or(|near| !near.contains(':'))
        && let Some((step, _)) = name.rsplit_once(':')
    {
        let count = format!(" count is a whole number: `{step}:3`");
        help = format!("{help}{}{count}", if help.ends_with('?') { " A" } else { ". A" });
    }
    Diagnostic::error("agent/unknown", format!("nothing is named `{name}`"))
        .at(at, "not an agent, a check or a program on PATH")
        .help(help)
}

pub(super) fn no_count(at: &Place, name: &str, step: &str, count: &str) -> Diagnostic {
    Diagnostic::error("agent/unknown", format!("nothing is named `{name}`"))
        .at(at, "not an agent, a check or a program on PATH")
        .help(format!("`{count}` is not a count; a count is a whole number: `{step}:3`"))
}

pub(super) fn chain_as_step(at: &Place, name: &str, steps: &str) -> Diagnostic {
    Diagnostic::error("agent/is-a-chain", format!("`{name}` is a chain, and a chain cannot be a step"))
        .at(at, "not an agent or a check")
        .help(format!("run it by itself, `forkhestra {name}`, or write its steps: `({steps})`"))
}

pub(super) fn unknown_check(at: &Place, name: &str, near: Option<&str>) -> Diagnostic {
    Diagnostic::error("check/unknown", format!("no check is named `{name}`")).at(at, "unknown check").help(
        near.map_or_else(
            || format!("configure it: \"checks\": {{ \"{name}\": {{ \"run\": \"…\" }} }}"),
            |near| format!("did you mean `{near}`?"),
        ),
    )
}

pub(super) fn check_named_as_agent(at: &Place, name: &str) -> Diagnostic {
    Diagnostic::error("agent/is-a-check", format!("`{name}` is a check, not an agent"))
        .at(at, "not an agent")
        .help(format!("write {{ \"check\": \"{name}\" }}"))
}

pub(super) fn not_on_path(at: &Place, program: &str, path: &OsStr) -> Diagnostic {
    Diagnostic::error("agent/not-on-path", format!("the program `{program}` is not on PATH"))
        .at(at, "needed here")
        .help(format!("install it, or name its path in `command`. PATH is {}", path.to_string_lossy()))
}

pub(super) fn program_missing(at: &Place, path: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error("agent/missing", format!("the program {} cannot be found: {error}", path.display()))
        .at(at, "named here")
        .help("correct the path; in the project's config it starts at the project's root")
}

pub(super) fn not_executable(at: &Place, path: &Path) -> Diagnostic {
    Diagnostic::error("agent/not-executable", format!("{} is not executable", path.display()))
        .at(at, "named here")
        .help(format!("chmod +x {}", path.display()))
}

pub(super) fn not_a_program(at: &Place, path: &Path) -> Diagnostic {
    Diagnostic::error("agent/not-a-program", format!("{} is not a file", path.display()))
        .at(at, "named here")
        .help("name a program")
}

pub(super) fn unknown_backend(at: &Place, name: &str, known: &str, near: Option<&str>) -> Diagnostic {
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "known backends: {known}. Add your own to `backends` of forge/chains.json, or give the agent a `command`"
        ),
    };
    Diagnostic::error("agent/backend", format!("`{name}` is not a known backend")).at(at, "unknown backend").help(help)
}

pub(super) fn unknown_backend_variable(name: &str, known: &str) -> Diagnostic {
    Diagnostic::error("agent/backend", format!("FORKHESTRA_BACKEND is `{name}`, which is not a known backend"))
        .help(format!("known backends: {known}. Correct the variable or unset it"))
}

pub(super) fn no_backend(at: &Place, known: &str) -> Diagnostic {
    Diagnostic::error("agent/no-backend", "no backend is installed that could run this agent")
        .at(at, "needs a backend")
        .help(format!("known backends: {known}. Install one, for example with `npm install -g @anthropic-ai/claude-code`. Or give the agent a `command` in `agents` of forge/chains.json. To try forkhestra without a backend, run `forkhestra --chain demo`"))
}

pub(super) fn no_interpreter(at: &Place, path: &Path) -> Diagnostic {
    Diagnostic::error("agent/no-interpreter", format!("the script {} does not name its interpreter", path.display()))
        .at(at, "cannot be started")
        .help("give it a first line such as #!/bin/sh")
}

pub(super) fn bad_interpreter(at: &Place, path: &Path, interpreter: &Path) -> Diagnostic {
    let name = interpreter.display().to_string();
    let what =
        format!("the script {} needs the interpreter {}, which does not exist", path.display(), name.escape_debug());
    let help = if name.ends_with('\r') {
        "its lines end in CRLF, and the carriage return counts as part of the name: save it with LF line ends"
    } else {
        "correct its first line, or install that interpreter"
    };
    Diagnostic::error("agent/bad-interpreter", what).at(at, "cannot be started").help(help)
}
