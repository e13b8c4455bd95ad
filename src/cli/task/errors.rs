//! What is said when a command about tasks cannot be carried out.

use crate::journal::Refused;
use crate::source::{Diagnostic, Place};
use crate::task::{BadId, Status};

pub(in crate::cli) fn only_a_human() -> Diagnostic {
    Diagnostic::error("task/human", "this is for a human, and an agent of a run has typed it")
        .help("an agent decides by submit, approve, reject, dispute or skip")
}

pub(in crate::cli) fn bad_title() -> Diagnostic {
    Diagnostic::error("task/title", "a title is one line with something in it")
        .help("a longer text goes into a file: --spec FILE")
}

pub(in crate::cli) fn bad_id(id: &str, fault: BadId) -> Diagnostic {
    Diagnostic::error("task/id", format!("`{id}` cannot be the name of a task: {fault}"))
        .help("up to 64 letters, digits, `.`, `_` and `-`")
}

pub(in crate::cli) fn import_unreadable(file: &str, why: &str) -> Diagnostic {
    Diagnostic::error("task/import", format!("cannot read tasks from {file}: {why}"))
        .help("a JSON object a line: {\"title\": \"Log in\", \"spec\": \"docs/login.md\", \"after\": [\"1\"], \"id\": \"login\"}")
}

pub(in crate::cli) fn import_line(at: &Place, why: &str) -> Diagnostic {
    Diagnostic::error("task/import", format!("this line is no task: {why}"))
        .at(at, "here")
        .help("a JSON object with `title`, and `spec`, `tests`, `after` and `id` if you like. Nothing was added")
}

pub(in crate::cli) fn import_after(at: &Place, before: &str) -> Diagnostic {
    Diagnostic::error("task/import", format!("there is no task {before}, which is to come first"))
        .at(at, "comes after it")
        .help("name a task that is there, or that stands above this one with an `id`. Nothing was added")
}

pub(in crate::cli) fn import_twice(at: &Place, id: &str) -> Diagnostic {
    Diagnostic::error("task/import", format!("there is a task {id} already"))
        .at(at, "the second")
        .help("give it another `id`, or none. Nothing was added")
}

pub(in crate::cli) fn no_spec(spec: &str) -> Diagnostic {
    Diagnostic::error("task/spec", format!("the specification {spec} is no file that can be read"))
        .help("write it first, then add the task")
}

pub(in crate::cli) fn spec_gone(id: &str, spec: &str) -> Diagnostic {
    Diagnostic::error(
        "task/spec",
        format!("the specification of task {id}, {spec}, is no longer a file of the project"),
    )
    .help("bring it back, or leave the task out: `forkhestra task skip`")
}

pub(in crate::cli) fn spec_outside(spec: &str) -> Diagnostic {
    Diagnostic::error("task/spec-outside", format!("the specification {spec} is outside the project"))
        .help("agents work in the project; put it there")
}

pub(in crate::cli) fn unknown(id: &str, near: Option<&str>) -> Diagnostic {
    let help = match near {
        Some(near) => format!("did you mean `{near}`? `forkhestra task list` shows them all"),
        None => "`forkhestra task list` shows them all".into(),
    };
    Diagnostic::error("task/unknown", format!("there is no task {id}")).help(help)
}

pub(in crate::cli) fn no_dispute(id: &str) -> Diagnostic {
    Diagnostic::error("dispute/unknown", format!("there is no dispute {id}"))
        .help("`forkhestra dispute list` shows them all")
}

pub(in crate::cli) fn reject_without_notes() -> Diagnostic {
    Diagnostic::error("task/notes", "a reject says what is to be mended").help("--notes \"…\"")
}

pub(in crate::cli) fn already(id: &str, status: Status) -> Diagnostic {
    Diagnostic::error("task/already", format!("task {id} is {} already", status.name()))
        .help(format!("`forkhestra task show {id}` tells how it came to that"))
}

pub(in crate::cli) fn at_work(id: &str, run: i64) -> Diagnostic {
    Diagnostic::error("task/at-work", format!("run {run} works on task {id} right now"))
        .help("end the run first, or wait for it")
}

pub(in crate::cli) fn refused(refused: &Refused, id: &str) -> Diagnostic {
    match refused {
        Refused::Exists => Diagnostic::error("task/exists", format!("there is a task {id} already"))
            .help("give it another name, or leave --id out"),
        Refused::Unknown(id) => unknown(id, None),
        Refused::Moved(status) => {
            Diagnostic::error("task/moved", format!("task {id} has become {} meanwhile", status.name()))
                .help("look at it again, then decide")
        }
        Refused::Resolved => Diagnostic::error("dispute/resolved", format!("dispute {id} is resolved already"))
            .help("a decision stands; `forkhestra task` moves the task itself"),
    }
}

pub(in crate::cli) fn moved_since(id: &str, run: i64, actor: &str) -> Diagnostic {
    Diagnostic::error("task/moved", format!("task {id} was moved since run {run}, by {actor}"))
        .help(format!("begin a new run of it: forkhestra task run {id}"))
}

pub(in crate::cli) fn terminal(id: &str, status: Status) -> Diagnostic {
    let help = match status {
        Status::Disputed | Status::Failed => {
            format!("`forkhestra dispute list` shows why; resolve it there, or begin anew: forkhestra task reset {id}")
        }
        _ => format!("to begin it anew: forkhestra task reset {id}"),
    };
    Diagnostic::error("task/over", format!("task {id} is {}: nothing is left to be run", status.name())).help(help)
}

pub(in crate::cli) fn waits(id: &str, before: &[&str]) -> Diagnostic {
    Diagnostic::error("task/waits", format!("task {id} waits for: {}", before.join(", ")))
        .help("what comes first has to be completed, not only skipped or disputed")
}

pub(in crate::cli) fn nothing_to_run() -> Diagnostic {
    Diagnostic::error("task/none", "there is no task that can be worked on")
        .help("`forkhestra task list` shows how far they are, `forkhestra task add` adds one")
}

pub(in crate::cli) fn two_tasks() -> Diagnostic {
    Diagnostic::error("usage/task", "one task at a time, or --all").help("forkhestra task run ID")
}
