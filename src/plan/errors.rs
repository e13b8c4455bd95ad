//! Every fault that only the whole plan can show.

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
    .at(at, "verifies strictly")
    .help("name its command in `checks` of forge/chains.json, or choose another profile")
}

pub(super) fn no_command(at: &Place, name: &str, made: bool) -> Diagnostic {
    let found = format!("no command was found for `{name}` in the files of the project");
    let help =
        format!("name it in `checks` of forge/chains.json: \"{name}\": {{ \"run\": \"…\" }}, or leave the step out");
    if made {
        let found = format!("{found}; it is looked for again when it is its turn");
        return Diagnostic::warning("plan/no-command", found).at(at, "has nothing to run yet").help(help);
    }
    Diagnostic::error("plan/no-command", found).at(at, "has nothing to run").help(help)
}

pub(super) fn judge_before_work(name: &str, chain: &str) -> Diagnostic {
    Diagnostic::warning(
        "plan/judge-first",
        format!("nothing stands before the judge `{name}` in its group that could mend what it rejects: {chain}"),
    )
    .help("a reject begins the group again: put the worker first, (coder -> reviewer):5")
}

pub(super) fn judge_may_edit(name: &str, backend: &str, level: &str) -> Diagnostic {
    Diagnostic::warning(
        "plan/judge-may-edit",
        format!(
            "the judge `{name}` could edit files: the backend `{backend}` has no level `read`, so it runs at `{level}`"
        ),
    )
    .help("a judge that changes files loses its verdict; let another backend judge, or say so: \"permissions\": \"…\"")
}

pub(super) fn template_cannot_render(at: &Place, why: &str) -> Diagnostic {
    Diagnostic::error("template/render", format!("the template cannot be rendered: {why}"))
        .at(at, "has this template")
        .help("mend the template, or the variable")
}

pub(super) fn only_a_judge(at: &Place, key: &str) -> Diagnostic {
    Diagnostic::error("plan/judge", format!("`{key}` is for a judge"))
        .at(at, "of a worker")
        .help("\"role\": \"judge\" makes the agent one")
}

pub(super) fn only_an_evaluation(at: &Place) -> Diagnostic {
    Diagnostic::error("plan/score", "`minScore` is for a judge whose verdict has a score")
        .at(at, "of a decision")
        .help("\"verdict\": \"evaluation\" gives it one")
}

pub(super) fn marker_in_prompt(origin: &str, marker: &str) -> Diagnostic {
    Diagnostic::error("plan/marker-in-prompt", format!("the prompt from {origin} has the marker alone on a line"))
        .help(format!("an agent that echoes its prompt would end the loop at once; put other words on that line, for example: print {marker} when you are done"))
}

pub(super) fn prompt_too_long(at: &Place, origin: &str, bytes: usize, most: usize) -> Diagnostic {
    Diagnostic::error(
        "plan/prompt-too-long",
        format!("the prompt from {origin} has {bytes} bytes, and an argument here may have {most}"),
    )
    .at(at, "takes its prompt as an argument")
    .help("deliver it on standard input or as a file, if the program can read it so: \"deliver\": \"stdin\" or \"deliver\": \"file\" in its entry of `agents`")
}

pub(super) fn nul_in_prompt(at: &Place, origin: &str) -> Diagnostic {
    Diagnostic::error("plan/nul", format!("the prompt from {origin} holds a NUL byte, which no argument can"))
        .at(at, "takes its prompt as an argument")
        .help("remove it, or deliver the prompt on standard input: \"deliver\": \"stdin\"")
}

pub(super) fn nul_in_word(at: &Place, what: &str, name: &str) -> Diagnostic {
    Diagnostic::error("plan/nul", format!("{what} of `{name}` holds a NUL byte, which no program can be given"))
        .at(at, "cannot be started")
        .help("remove it from the config, or from the variable's value")
}

pub(super) fn word_too_long(at: &Place, what: &str, name: &str, bytes: usize, most: usize) -> Diagnostic {
    Diagnostic::error("plan/too-long", format!("{what} of `{name}` has {bytes} bytes, and may have {most}"))
        .at(at, "cannot be started")
        .help("shorten it; Linux takes no longer one")
}

pub(super) fn command_and_backend(at: &Place) -> Diagnostic {
    Diagnostic::error("plan/command-and-backend", "an agent is run by its `command` or by a `backend`, not by both")
        .at(at, "there is also a `command`")
        .help("keep one of them")
}

pub(super) fn reserved_variable(at: &Place, name: &str) -> Diagnostic {
    Diagnostic::error("plan/reserved-variable", format!("`{name}` cannot be a variable of a chain"))
        .at(at, "would change how checks run")
        .help("give it another name; the environment's own is reached as ${env:NAME}")
}

pub(super) fn unbalanced_command(at: &Place) -> Diagnostic {
    Diagnostic::error("plan/command", "the command has a quote that is never closed")
        .at(at, "cannot be split into words")
        .help("close the quote, or write the command as an array of words")
}

pub(super) fn empty_command(at: &Place) -> Diagnostic {
    Diagnostic::error("plan/command", "the command is empty").at(at, "nothing to run").help("name a program")
}

pub(super) fn program_cannot_honour(at: &Place, key: &str, name: &str) -> Diagnostic {
    Diagnostic::error("plan/not-honoured", format!("`{name}` is a program, which cannot honour `{key}`"))
        .at(at, "would be ignored")
        .help("remove it, or let an agent CLI run this agent: \"backend\": \"claude\" and no `command`")
}

pub(super) fn backend_cannot_honour(at: &Place, key: &str, backend: &str) -> Diagnostic {
    Diagnostic::error("plan/not-honoured", format!("the backend `{backend}` cannot honour `{key}`"))
        .at(at, "would be ignored")
        .help(format!("remove it; or, if its program can do that, say how in `backends`: \"{backend}\": {{ \"{key}\": [\"--…\", \"{{}}\"] }}"))
}

pub(super) fn template_variable(at: &Place, template: &str, name: &str, near: Option<&str>) -> Diagnostic {
    Diagnostic::error(
        "plan/template-variable",
        format!("the variable `{name}`, which {template} names as vars.{name}, has no value"),
    )
    .at(at, "has this template")
    .help(near.map_or_else(
        || format!("give it: {name}=value on the command line, or in the chain's `vars`"),
        |near| format!("did you mean `vars.{near}`?"),
    ))
}

/// `NAME`, `OTHER` as they are written, in a list.
fn written(names: impl Iterator<Item = String>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

pub(super) fn variable_stays(origin: &str, names: &[&str]) -> Diagnostic {
    let shown = written(names.iter().map(|name| format!("${{{name}}}")));
    let first = names.first().copied().unwrap_or_default();
    Diagnostic::warning(
        "prompt/unsubstituted",
        format!("{shown} in {origin} has no value, and reaches the agent as it is written"),
    )
    .help(format!("give it a value on the command line: {first}=value; or in the chain's `vars`"))
}

pub(super) fn tag_in_a_prompt(origin: &str, names: &[String]) -> Diagnostic {
    let shown = written(names.iter().map(|name| format!("{{{{{name}}}}}")));
    let first = names.first().map_or("", String::as_str);
    Diagnostic::warning(
        "prompt/unsubstituted",
        format!("{shown} in {origin} is text, and reaches the agent as it is written"),
    )
    .help(format!("in a prompt a variable is written ${{{first}}}; {{{{name}}}} is for templates"))
}

pub(super) fn tag_of_the_other_dialect(origin: &str, names: &[String]) -> Diagnostic {
    let shown = written(names.iter().map(|name| format!("{{{name}}}")));
    Diagnostic::warning("template/other-dialect", format!("{shown} in {origin} is text, and reaches the agent as it is written"))
        .help("write two braces, {{task_id}}; or begin the file with the lines `---`, `syntax: braces`, `---`, which make one brace a tag")
}

pub(super) fn cli_without_a_prompt(at: &Place, name: &str) -> Diagnostic {
    Diagnostic::error("plan/no-prompt", format!("`{name}` has nothing to do: no level has a prompt"))
        .at(at, "an agent CLI without instructions of its own")
        .help(format!("give it one: forkhestra {name} -p \"Fix the failing test\", or -p - for standard input"))
}

pub(super) fn slash_command(origin: &str) -> Diagnostic {
    Diagnostic::error(
        "plan/slash-command",
        format!("the prompt from {origin} begins as a command of the agent CLI's own"),
    )
    .help("its model would never see it, and it would end with success; put a word before it")
}

pub(super) fn no_such_permissions(at: &Place, backend: &str, wanted: &str, known: &[&str]) -> Diagnostic {
    let known = known.join(", ");
    Diagnostic::error(
        "plan/permissions",
        format!("the backend `{backend}` cannot be held to the permissions `{wanted}`"),
    )
    .at(at, "cannot be honoured")
    .help(if known.is_empty() {
        format!("say how it is held to `{wanted}` in the backend: \"permissions\": {{ \"{wanted}\": {{ \"arguments\": [] }} }}")
    } else {
        format!("it can be run with: {known}. Say so for this agent: \"permissions\": \"…\", or for all: --permissions …")
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
        .help("create it, or mend the path")
}

pub(super) fn unmeasurable(at: &Place, limit: &str, name: &str) -> Diagnostic {
    let what = if limit == "cost" { "what it costs" } else { "how many tokens it uses" };
    Diagnostic::error("plan/unmeasured", format!("the limit `{limit}` cannot be kept: `{name}` does not say {what}"))
        .at(at, "set here")
        .help("let an agent CLI that reports it run this agent, or limit `time` or `iterations` instead")
}

pub(super) fn measured_late(at: &Place, limit: &str, name: &str) -> Diagnostic {
    let what = if limit == "cost" { "what it cost" } else { "how many tokens it used" };
    Diagnostic::warning(
        "plan/measured-late",
        format!(
            "`{name}` says {what} only when an attempt is over: the limit `{limit}` can be exceeded by one attempt"
        ),
    )
    .at(at, "set here")
    .help("`timeout` bounds an attempt; `--limit time=…` bounds the run")
}

pub(super) fn idle_longer_than_timeout(at: &Place, idle: Duration, timeout: Duration) -> Diagnostic {
    let (idle, timeout) = (show_duration(idle), show_duration(timeout));
    Diagnostic::error("plan/timers", format!("an idleTimeout of {idle} is longer than the timeout of {timeout}"))
        .at(at, "would never strike")
        .help("shorten `idleTimeout`, or lengthen `timeout`")
}

pub(super) fn no_bubblewrap(at: &Place, sandbox: Sandbox) -> Diagnostic {
    Diagnostic::error(
        "plan/no-bubblewrap",
        format!("the sandbox `{}` needs bubblewrap, and there is no `bwrap` on PATH", sandbox.name()),
    )
    .at(at, "asks for the sandbox")
    .help("install it: apt install bubblewrap, dnf install bubblewrap, pacman -S bubblewrap")
}

pub(super) fn sandbox_is_lifted(at: &Place, sandbox: Sandbox, demanded: Sandbox) -> Diagnostic {
    let (sandbox, demanded) = (sandbox.name(), demanded.name());
    Diagnostic::error("plan/sandbox-lifted", format!("your own config asks for the sandbox `{demanded}`, and the project for `{sandbox}`"))
        .at(at, "is weaker")
        .help("a project cannot lift a sandbox of yours: take the key out here, or let an entry of your own config say otherwise")
}

pub(super) fn sandbox_is_opened(at: &Place, path: &str) -> Diagnostic {
    Diagnostic::error(
        "plan/sandbox-lifted",
        format!("your own config asks for a sandbox, and the project would open `{path}` in it"),
    )
    .at(at, "opens the sandbox")
    .help("name the path in `writable` of your own config, if it should be written")
}

pub(super) fn hook_outside_the_sandbox(at: &Place, hook: &str) -> Diagnostic {
    Diagnostic::error(
        "plan/sandbox-lifted",
        format!("your own config asks for a sandbox, and the project's hook `{hook}` would run outside of it"),
    )
    .at(at, "runs outside")
    .help("take the hook out here, or move it into your own config")
}

pub(super) fn secret_would_be_kept(at: &Place, what: &str) -> Diagnostic {
    Diagnostic::error("plan/secret", format!("a secret variable stands in {what}, which is shown or kept"))
        .at(at, "would tell it")
        .help("a secret reaches a program through its environment only: \"env\": { \"NAME\": \"${NAME}\" } of the agent; a check has it there anyway")
}

pub(super) fn wrap_outside_the_sandbox(at: &Place, word: &str) -> Diagnostic {
    Diagnostic::error(
        "plan/sandbox-lifted",
        format!("your own config asks for a sandbox, and the project's `wrap` would run `{word}` outside of it"),
    )
    .at(at, "runs outside")
    .help("take `wrap` out here, or move it into your own config")
}

pub(super) fn loader_variable(at: &Place, name: &str) -> Diagnostic {
    Diagnostic::error(
        "plan/sandbox-environment",
        format!("`{name}` would be read by bubblewrap itself, outside of the sandbox"),
    )
    .at(at, "reaches what stands before the program")
    .help("set it inside: \"command\": [\"env\", \"NAME=value\", \"program\"]")
}

pub(super) fn own_program_elsewhere(at: &Place) -> Diagnostic {
    Diagnostic::error("plan/own-program", "`{self}` is for the backends that forkhestra brings")
        .at(at, "not a program of yours")
        .help("name the program: \"program\": \"forkhestra\"")
}

pub(super) fn unknown_check(at: &Place, name: &str) -> Diagnostic {
    Diagnostic::error("plan/unknown-check", format!("forkhestra has no check `{name}`"))
        .at(at, "not a check of ours")
        .help("name its command in `checks` of forge/chains.json; please report this, it should have been found before")
}

pub(super) fn link_in_the_sandbox(at: &Place, path: &Path) -> Diagnostic {
    Diagnostic::error(
        "plan/sandbox-link",
        format!("{} is a symbolic link, which a program in the sandbox could replace", path.display()),
    )
    .at(at, "runs in a sandbox")
    .help("put the folder itself there")
}
