//! Every fault of names, programs and agent CLIs.

use crate::source::{Diagnostic, Place};
use std::ffi::OsStr;
use std::path::Path;

pub(super) fn unknown_name(at: &Place, name: &str, near: Option<&str>, like_a_count: bool) -> Diagnostic {
    let help = match near {
        _ if like_a_count => {
            "a count is a whole number from 1 to 1,000,000: `coder:3`. As a name, nothing of this name is configured or on PATH".into()
        }
        Some(near) => format!("did you mean `{near}`?"),
        None => "configure it in `agents` of forge/chains.json, or put a program of this name on PATH".into(),
    };
    Diagnostic::error("agent/unknown", format!("nothing is called `{name}`"))
        .at(at, "no agent, no check, and no program on PATH")
        .help(help)
}

pub(super) fn chain_as_step(at: &Place, name: &str, steps: &str) -> Diagnostic {
    Diagnostic::error("agent/is-a-chain", format!("`{name}` is a chain, and a chain is no step"))
        .at(at, "not an agent or a check")
        .help(format!("run it by itself, `forkhestra {name}`, or write its steps: `({steps})`"))
}

pub(super) fn unknown_check(at: &Place, name: &str, near: Option<&str>) -> Diagnostic {
    Diagnostic::error("check/unknown", format!("no check is called `{name}`")).at(at, "unknown check").help(
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
        .help("mend the path; in the project's config it starts at the project's root")
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
        None => format!("known are {known}; add your own to `backends`, or give the agent a `command`"),
    };
    Diagnostic::error("agent/backend", format!("`{name}` is not a known backend")).at(at, "unknown backend").help(help)
}

pub(super) fn unknown_backend_variable(name: &str, known: &str) -> Diagnostic {
    Diagnostic::error("agent/backend", format!("FORKHESTRA_BACKEND is `{name}`, which is not a known backend"))
        .help(format!("known are {known}; unset the variable or mend it"))
}

pub(super) fn no_backend(at: &Place, known: &str) -> Diagnostic {
    Diagnostic::error("agent/no-backend", "no agent CLI is installed that could run this agent")
        .at(at, "needs an agent CLI")
        .help(format!("known are {known}. Install one, for example: npm install -g @anthropic-ai/claude-code. Or give the agent a `command` in `agents` of forge/chains.json. To look around without any: forkhestra --chain demo"))
}

pub(super) fn no_interpreter(at: &Place, path: &Path) -> Diagnostic {
    Diagnostic::error("agent/no-interpreter", format!("the script {} does not say what runs it", path.display()))
        .at(at, "cannot be started")
        .help("give it a first line such as #!/bin/sh")
}

pub(super) fn bad_interpreter(at: &Place, path: &Path, interpreter: &Path) -> Diagnostic {
    let what =
        format!("the script {} wants to be run by {}, which is no program here", path.display(), interpreter.display());
    Diagnostic::error("agent/bad-interpreter", what)
        .at(at, "cannot be started")
        .help("mend its first line, or install that interpreter")
}
