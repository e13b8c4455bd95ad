//! The errors and warnings that only the whole plan can show.

use crate::chain::{Sandbox, show_duration};
use crate::source::{Diagnostic, Place};
use std::path::Path;
use std::time::Duration;

pub(super) fn check_with_a_count(at: &Place, name: &str) -> Diagnostic {
    Diagnostic::error("plan/check-count", format!("the check `{name}` takes no count"))
        .at(at, "a check runs once")
        .help(format!("to repeat an agent until a check passes, put both in a group: (coder -> {name}):5"))
}

pub(super) fn strict_needs(at: &Place, missing: &[&str]) -> Diagnostic {
    Diagnostic::error(
        "verify/strict",
        format!("the profile `strict` needs what this project does not have: {}", missing.join(", ")),
    )
    .at(at, "uses the profile `strict`")
    .help("name each missing command in `checks` of forge/chains.json, or choose another profile")
}

pub(super) fn no_command(at: &Place, name: &str, made: bool) -> Diagnostic {
    let found = format!("no command was found for `{name}` in the project's files");
    let help = format!(
        "set its command in `checks` of forge/chains.json: \"{name}\": {{ \"run\": \"…\" }}, or remove the step"
    );
    if made {
        let found = format!("{found}; forkhestra looks again when the check runs");
        return Diagnostic::warning("plan/no-command", found).at(at, "has nothing to run yet").help(help);
    }
    Diagnostic::error("plan/no-command", found).at(at, "has nothing to run").help(help)
}

pub(super) fn judge_before_work(name: &str, chain: &str) -> Diagnostic {
    Diagnostic::warning(
        "plan/judge-first",
        format!("no worker comes before the judge `{name}` in its group to fix what it rejects: {chain}"),
    )
    .help("a rejection restarts the group: put the worker first, as in (coder -> reviewer):5")
}

pub(super) fn judge_may_edit(name: &str, backend: &str, level: &str) -> Diagnostic {
    Diagnostic::warning(
        "plan/judge-may-edit",
        format!(
            "the judge `{name}` could edit files: the backend `{backend}` has no level `read`, so it runs at `{level}`"
        ),
    )
    .help("a judge that changes files loses its verdict; use another backend, or set the level: \"permissions\": \"…\"")
}

pub(super) fn template_cannot_render(at: &Place, why: &str) -> Diagnostic {
    Diagnostic::error("template/render", format!("the template cannot be rendered: {why}"))
        .at(at, "uses this template")
        .help("fix the template or the variable")
}

pub(super) fn only_a_judge(at: &Place, key: &str) -> Diagnostic {
    Diagnostic::error("plan/judge", format!("`{key}` is only for judges"))
        .at(at, "this agent is a worker")
        .help("remove it, or make the agent a judge: \"role\": \"judge\"")
}

pub(super) fn only_a_worker(at: &Place, key: &str) -> Diagnostic {
    Diagnostic::error("plan/worker-only", format!("`{key}` is only for an agent that works"))
        .at(at, "this key")
        .help("a judge begins a new session each time, so that it does not repeat its own opinion")
}

pub(super) fn only_an_evaluation(at: &Place) -> Diagnostic {
    Diagnostic::error("plan/score", "`minScore` is only for judges whose verdict has a score")
        .at(at, "this verdict is a decision")
        .help("remove it, or let the judge give a score: \"verdict\": \"evaluation\"")
}

pub(super) fn marker_in_prompt(origin: &str, marker: &str) -> Diagnostic {
    Diagnostic::error("plan/marker-in-prompt", format!("the prompt from {origin} has the marker alone on a line"))
        .help(format!("an agent that echoes its prompt would print the marker at once; add other words to that line, for example: print {marker} when you are done"))
}

pub(super) fn prompt_too_long(at: &Place, origin: &str, bytes: usize, most: usize) -> Diagnostic {
    Diagnostic::error(
        "plan/prompt-too-long",
        format!("the prompt from {origin} has {bytes} bytes, but an argument may have at most {most}"),
    )
    .at(at, "takes its prompt as an argument")
    .help("deliver it on standard input or as a file, if the program supports that: \"deliver\": \"stdin\" or \"deliver\": \"file\" in its entry of `agents`")
}

pub(super) fn nul_in_prompt(at: &Place, origin: &str) -> Diagnostic {
    Diagnostic::error("plan/nul", format!("the prompt from {origin} contains a NUL byte, which an argument cannot"))
        .at(at, "takes its prompt as an argument")
        .help("remove it, or deliver the prompt on standard input: \"deliver\": \"stdin\"")
}

pub(super) fn nul_in_word(at: &Place, what: &str, name: &str) -> Diagnostic {
    Diagnostic::error(
        "plan/nul",
        format!("{what} of `{name}` contains a NUL byte, which cannot be passed to a program"),
    )
    .at(at, "cannot be started")
    .help("remove it from the config, or from the variable's value")
}

pub(super) fn word_too_long(at: &Place, what: &str, name: &str, bytes: usize, most: usize) -> Diagnostic {
    Diagnostic::error("plan/too-long", format!("{what} of `{name}` has {bytes} bytes, but may have at most {most}"))
        .at(at, "cannot be started")
        .help("shorten it; Linux does not accept a longer one")
}

pub(super) fn command_and_backend(at: &Place) -> Diagnostic {
    Diagnostic::error("plan/command-and-backend", "an agent is run by its `command` or by a `backend`, not by both")
        .at(at, "there is also a `command`")
        .help("keep one of them")
}

pub(super) fn reserved_variable(at: &Place, name: &str) -> Diagnostic {
    Diagnostic::error("plan/reserved-variable", format!("`{name}` cannot be a variable of a chain"))
        .at(at, "would change how checks run")
        .help("give it another name; ${env:NAME} is the variable of the environment")
}

pub(super) fn unbalanced_command(at: &Place) -> Diagnostic {
    Diagnostic::error("plan/command", "the command has a quote that is never closed")
        .at(at, "cannot be split into arguments")
        .help("close the quote, or write the command as an array of strings")
}

pub(super) fn empty_command(at: &Place) -> Diagnostic {
    Diagnostic::error("plan/command", "the command is empty").at(at, "nothing to run").help("name a program")
}

pub(super) fn program_cannot_honour(at: &Place, key: &str, name: &str) -> Diagnostic {
    Diagnostic::error("plan/not-honoured", format!("`{name}` is a plain program, which does not support `{key}`"))
        .at(at, "would be ignored")
        .help("remove it, or run this agent on a backend: \"backend\": \"claude\" and no `command`")
}

pub(super) fn backend_cannot_honour(at: &Place, key: &str, backend: &str) -> Diagnostic {
    Diagnostic::error("plan/not-honoured", format!("the backend `{backend}` does not support `{key}`"))
        .at(at, "would be ignored")
        .help(format!("remove it; or, if its program has an option for it, set that in `backends`: \"{backend}\": {{ \"{key}\": [\"--…\", \"{{}}\"] }}"))
}

pub(super) fn template_variable(at: &Place, template: &str, name: &str, near: Option<&str>) -> Diagnostic {
    Diagnostic::error(
        "plan/template-variable",
        format!("the variable `{name}`, which {template} uses as vars.{name}, has no value"),
    )
    .at(at, "uses this template")
    .help(near.map_or_else(
        || format!("set it on the command line: {name}=value; or in the chain's `vars`"),
        |near| format!("did you mean `vars.{near}`?"),
    ))
}

/// Quotes names as they are written, as a list: `NAME`, `OTHER`.
fn written(names: impl Iterator<Item = String>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

pub(super) fn variable_stays(origin: &str, names: &[&str]) -> Diagnostic {
    let shown = written(names.iter().map(|name| format!("${{{name}}}")));
    let first = names.first().copied().unwrap_or_default();
    Diagnostic::warning(
        "prompt/unsubstituted",
        format!("{shown} in {origin} will reach the agent as written: no value was given"),
    )
    .help(format!("set it on the command line: {first}=value; or in the chain's `vars`"))
}

pub(super) fn tag_in_a_prompt(origin: &str, names: &[String]) -> Diagnostic {
    let shown = written(names.iter().map(|name| format!("{{{{{name}}}}}")));
    let first = names.first().map_or("", String::as_str);
    Diagnostic::warning("prompt/unsubstituted", format!("{shown} in {origin} will reach the agent as plain text"))
        .help(format!("in a prompt, write a variable as ${{{first}}}; {{{{name}}}} is only for templates"))
}

pub(super) fn tag_of_the_other_dialect(origin: &str, names: &[String]) -> Diagnostic {
    let shown = written(names.iter().map(|name| format!("{{{name}}}")));
    Diagnostic::warning("template/other-dialect", format!("{shown} in {origin} will reach the agent as plain text"))
        .help("write two braces, {{task_id}}; or start the file with the lines `---`, `syntax: braces`, `---` to use single braces")
}

pub(super) fn cli_without_a_prompt(at: &Place, name: &str, chain: Option<&str>) -> Diagnostic {
    let help = match chain {
        Some(chain) => {
            format!("give it a prompt: forkhestra {chain} -p \"Fix the failing test\", or set `prompt` in the chain")
        }
        None => format!("give it a prompt: forkhestra {name} -p \"Fix the failing test\", or -p - for standard input"),
    };
    Diagnostic::error("plan/no-prompt", format!("`{name}` has nothing to do: no prompt was given"))
        .at(at, "a backend without instructions of its own")
        .help(help)
}

pub(super) fn slash_command(origin: &str) -> Diagnostic {
    Diagnostic::error(
        "plan/slash-command",
        format!("the prompt from {origin} starts with a slash command, which the backend runs itself"),
    )
    .help("the model would never see the prompt, and the attempt would still succeed; put a word before the command")
}

pub(super) fn no_such_permissions(at: &Place, backend: &str, wanted: &str, known: &[&str]) -> Diagnostic {
    let known = known.join(", ");
    Diagnostic::error(
        "plan/permissions",
        format!("the backend `{backend}` does not support the permissions `{wanted}`"),
    )
    .at(at, "cannot be enforced")
    .help(if known.is_empty() {
        format!("specify in the backend how it enforces `{wanted}`: \"permissions\": {{ \"{wanted}\": {{ \"arguments\": [] }} }}")
    } else {
        format!("it supports: {known}. Set one for this agent: \"permissions\": \"…\", or for all: --permissions …")
    })
}

pub(super) fn backend_without_program(at: &Place, backend: &str) -> Diagnostic {
    Diagnostic::error("plan/backend", format!("the backend `{backend}` has no program"))
        .at(at, "cannot be started")
        .help("name it in its entry of `backends`: \"program\": \"…\"")
}

pub(super) fn named_file_missing(at: &Place, path: &Path) -> Diagnostic {
    Diagnostic::error("plan/file-missing", format!("file not found: {}", path.display()))
        .at(at, "named here")
        .help("create it, or fix the path")
}

pub(super) fn unmeasurable(at: &Place, limit: &str, name: &str) -> Diagnostic {
    let what = if limit == "cost" { "what it costs" } else { "how many tokens it uses" };
    Diagnostic::error(
        "plan/unmeasured",
        format!("the limit `{limit}` cannot be enforced: `{name}` does not report {what}"),
    )
    .at(at, "set here")
    .help("run this agent on a backend that reports it, or limit `time` or `attempts` instead")
}

pub(super) fn measured_late(at: &Place, limit: &str, name: &str) -> Diagnostic {
    let what = if limit == "cost" { "what it cost" } else { "how many tokens it used" };
    Diagnostic::warning(
        "plan/measured-late",
        format!("`{name}` reports {what} only when an attempt ends: one attempt can exceed the limit `{limit}`"),
    )
    .at(at, "set here")
    .help("`timeout` limits an attempt; `--limit time=…` limits the run")
}

pub(super) fn idle_longer_than_timeout(at: &Place, idle: Duration, timeout: Duration) -> Diagnostic {
    let (idle, timeout) = (show_duration(idle), show_duration(timeout));
    Diagnostic::error("plan/timers", format!("an idleTimeout of {idle} is longer than the timeout of {timeout}"))
        .at(at, "would never fire")
        .help("shorten `idleTimeout`, or lengthen `timeout`")
}

pub(super) fn no_bubblewrap(at: &Place, sandbox: Sandbox) -> Diagnostic {
    Diagnostic::error(
        "plan/no-bubblewrap",
        format!("the sandbox `{}` needs bubblewrap, but there is no `bwrap` on PATH", sandbox.name()),
    )
    .at(at, "requires the sandbox")
    .help("install it: apt install bubblewrap, dnf install bubblewrap, pacman -S bubblewrap")
}

pub(super) fn sandbox_is_lifted(at: &Place, sandbox: Sandbox, demanded: Sandbox) -> Diagnostic {
    let (sandbox, demanded) = (sandbox.name(), demanded.name());
    Diagnostic::error(
        "plan/sandbox-lifted",
        format!("your own config requires the sandbox `{demanded}`, but the project sets `{sandbox}`"),
    )
    .at(at, "is weaker")
    .help("a project cannot weaken your sandbox: remove the key here, or allow the exception in your own config")
}

pub(super) fn sandbox_is_opened(at: &Place, path: &str) -> Diagnostic {
    Diagnostic::error(
        "plan/sandbox-lifted",
        format!("your own config requires a sandbox, but the project would make `{path}` writable in it"),
    )
    .at(at, "opens the sandbox")
    .help("if the path should be writable, name it in `writable` of your own config")
}

pub(super) fn hook_outside_the_sandbox(at: &Place, hook: &str) -> Diagnostic {
    Diagnostic::error(
        "plan/sandbox-lifted",
        format!("your own config requires a sandbox, but the project's hook `{hook}` would run outside it"),
    )
    .at(at, "runs outside the sandbox")
    .help("remove the hook here, or move it to your own config")
}

pub(super) fn secret_would_be_kept(at: &Place, what: &str) -> Diagnostic {
    Diagnostic::error("plan/secret", format!("a secret variable is used in {what}, which is shown or stored"))
        .at(at, "would reveal it")
        .help("pass a secret through the environment: \"env\": { \"NAME\": \"${NAME}\" } of the agent; a check has it there already")
}

pub(super) fn wrap_outside_the_sandbox(at: &Place, word: &str) -> Diagnostic {
    Diagnostic::error(
        "plan/sandbox-lifted",
        format!("your own config requires a sandbox, but the project's `wrap` would run `{word}` outside it"),
    )
    .at(at, "runs outside the sandbox")
    .help("remove `wrap` here, or move it to your own config")
}

pub(super) fn loader_variable(at: &Place, name: &str) -> Diagnostic {
    Diagnostic::error(
        "plan/sandbox-environment",
        format!("`{name}` would be read by bubblewrap itself, outside the sandbox"),
    )
    .at(at, "also affects the command before the program")
    .help("set it inside the sandbox: \"command\": [\"env\", \"NAME=value\", \"program\"]")
}

pub(super) fn own_program_elsewhere(at: &Place) -> Diagnostic {
    Diagnostic::error("plan/own-program", "`{self}` is only for the built-in backends")
        .at(at, "not available here")
        .help("write the program's name: \"program\": \"forkhestra\"")
}

pub(super) fn unknown_check(at: &Place, name: &str) -> Diagnostic {
    Diagnostic::error("plan/unknown-check", format!("there is no built-in check `{name}`"))
        .at(at, "not a built-in check")
        .help("name its command in `checks` of forge/chains.json; this is a bug in forkhestra, please report it")
}

pub(super) fn link_in_the_sandbox(at: &Place, path: &Path) -> Diagnostic {
    Diagnostic::error(
        "plan/sandbox-link",
        format!("{} is a symbolic link, which a program in the sandbox could replace", path.display()),
    )
    .at(at, "runs in a sandbox")
    .help("replace the link with the directory itself")
}
