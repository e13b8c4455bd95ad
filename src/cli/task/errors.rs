//! The diagnostics of commands about tasks and disputes.

use crate::journal::Refused;
use crate::source::{Diagnostic, Place};
use crate::task::{BadId, Status};

pub(in crate::cli) fn only_a_human() -> Diagnostic {
    Diagnostic::error("task/human", "this is only for humans, and an agent of a run has called it")
        .help("an agent decides with submit, approve, reject, dispute or skip")
}

pub(in crate::cli) fn bad_title() -> Diagnostic {
    Diagnostic::error("task/title", "a title must be one line, and not empty")
        .help("put a longer text in a file: --spec FILE")
}

pub(in crate::cli) fn bad_id(id: &str, fault: BadId) -> Diagnostic {
    Diagnostic::error("task/id", format!("`{id}` cannot be the ID of a task: {fault}"))
        .help("use up to 64 letters, digits, `.`, `_` and `-`")
}

pub(in crate::cli) fn import_unreadable(file: &str, why: &str) -> Diagnostic {
    Diagnostic::error("task/import", format!("cannot read tasks from {file}: {why}"))
        .help("write one JSON object per line: {\"title\": \"Log in\", \"spec\": \"docs/login.md\", \"after\": [\"1\"], \"id\": \"login\"}")
}

pub(in crate::cli) fn import_line(at: &Place, why: &str) -> Diagnostic {
    Diagnostic::error("task/import", format!("this line is not a task: {why}"))
        .at(at, "here")
        .help("write a JSON object with `title`, and optionally `spec`, `tests`, `after` and `id`. Nothing was added")
}

pub(in crate::cli) fn import_syntax(at: &Place, why: &str) -> Diagnostic {
    Diagnostic::error("task/import", "this line is not valid JSON")
        .at(at, why)
        .help("write a JSON object with `title`, and optionally `spec`, `tests`, `after` and `id`. Nothing was added")
}

pub(in crate::cli) fn import_after(at: &Place, before: &str) -> Diagnostic {
    Diagnostic::error("task/import", format!("there is no task {before}, which has to come first"))
        .at(at, "this task comes after it")
        .help("name an existing task, or one above this line with an `id`. Nothing was added")
}

pub(in crate::cli) fn import_twice(at: &Place, id: &str) -> Diagnostic {
    Diagnostic::error("task/import", format!("there is already a task {id}"))
        .at(at, "the second")
        .help("give it another `id`, or none. Nothing was added")
}

pub(in crate::cli) fn no_spec(spec: &str) -> Diagnostic {
    Diagnostic::error("task/spec", format!("the specification {spec} is not a readable file"))
        .help("write it first, then add the task")
}

pub(in crate::cli) fn spec_gone(id: &str, spec: &str) -> Diagnostic {
    Diagnostic::error(
        "task/spec",
        format!("the specification of task {id}, {spec}, is no longer a file of the project"),
    )
    .help("restore it, or skip the task: `forkhestra task skip`")
}

pub(in crate::cli) fn spec_outside(spec: &str) -> Diagnostic {
    Diagnostic::error("task/spec-outside", format!("the specification {spec} is outside the project"))
        .help("agents work in the project; put it there")
}

pub(in crate::cli) fn no_shared_hub(name: &str) -> Diagnostic {
    Diagnostic::error(
        "hub/unknown",
        format!("`{name}` is not a hub: no URL, no git repository, and no remote of this one"),
    )
    .help("create one where everybody reaches it: git init --bare DIR; or name a remote that `git remote` lists")
}

pub(in crate::cli) fn not_a_ref(id: &str) -> Diagnostic {
    Diagnostic::error("task/id", format!("`{id}` cannot be the ID of a shared task: git allows no ref of this name"))
        .help("do not begin it with `.` or `-`, nor end it with `.` or `.lock`")
}

pub(in crate::cli) fn shared_at_work(id: &str, holder: &str) -> Diagnostic {
    Diagnostic::error("task/running", format!("{holder} is working on task {id}"))
        .help("stop that batch first, or wait until it has ended its work on the task")
}

pub(in crate::cli) fn of_a_hub(ids: &[&str]) -> Diagnostic {
    let which = if ids.len() == 1 { "belongs" } else { "belong" };
    Diagnostic::error(
        "task/shared",
        format!("task {} {which} to a hub, where another batch may work on it", ids.join(", ")),
    )
    .help("add --jobs N --hub HUB")
}

pub(in crate::cli) fn busy(hub: &str) -> Diagnostic {
    Diagnostic::error("hub/busy", format!("others change the same tasks of the hub {hub} again and again"))
        .help("try again; nothing was changed")
}

pub(in crate::cli) fn unknown(id: &str, near: Option<&str>) -> Diagnostic {
    let help = match near {
        Some(near) => format!("did you mean `{near}`? `forkhestra task list` shows all tasks"),
        None => "`forkhestra task list` shows all tasks".into(),
    };
    Diagnostic::error("task/unknown", format!("there is no task `{id}`")).help(help)
}

pub(in crate::cli) fn no_dispute(id: &str) -> Diagnostic {
    Diagnostic::error("dispute/unknown", format!("there is no dispute {id}"))
        .help("`forkhestra dispute list` shows all disputes")
}

pub(in crate::cli) fn custom_without_notes(id: i64) -> Diagnostic {
    Diagnostic::error(
        "dispute/no-notes",
        "`custom` means that the work continues as your notes say, and there are none",
    )
    .help(format!(
        "add them: forkhestra dispute resolve {id} custom --notes \"…\"; or decide for the coder or the reviewer"
    ))
}

pub(in crate::cli) fn reject_without_notes() -> Diagnostic {
    Diagnostic::error("task/notes", "a rejection must say what has to be fixed").help("add --notes \"…\"")
}

pub(in crate::cli) fn already(id: &str, status: Status) -> Diagnostic {
    Diagnostic::error("task/already", format!("task {id} is already {}", status.name()))
        .help(format!("`forkhestra task show {id}` shows how this came about"))
}

pub(in crate::cli) fn at_work(id: &str, run: i64) -> Diagnostic {
    Diagnostic::error("task/running", format!("run {run} is working on task {id}"))
        .help("stop the run first, or wait for it")
}

pub(in crate::cli) fn refused(refused: &Refused, id: &str) -> Diagnostic {
    match refused {
        Refused::Exists => Diagnostic::error("task/exists", format!("there is already a task `{id}`"))
            .help("give it another ID, or leave out --id"),
        Refused::Unknown(id) => unknown(id, None),
        Refused::Moved(status) => {
            Diagnostic::error("task/moved", format!("the status of task {id} has become {} in the meantime", status.name()))
                .help("look at it again, then decide")
        }
        Refused::Resolved => Diagnostic::error("dispute/resolved", format!("dispute {id} is already resolved"))
            .help("a decision is final; to change the status of the task, use forkhestra task approve | reject | skip | reset ID"),
    }
}

pub(in crate::cli) fn moved_since(id: &str, run: i64, actor: &str) -> Diagnostic {
    Diagnostic::error("task/moved", format!("task {id} has been changed since run {run} (by: {actor})"))
        .help(format!("start a new run of it: forkhestra task run {id}"))
}

pub(in crate::cli) fn terminal(id: &str, status: Status) -> Diagnostic {
    let help = match status {
        Status::Disputed | Status::Failed => {
            format!("`forkhestra dispute list` shows why; resolve it there, or start again: forkhestra task reset {id}")
        }
        _ => format!("to start it again: forkhestra task reset {id}"),
    };
    Diagnostic::error("task/over", format!("task {id} is {}: there is nothing left to run", status.name())).help(help)
}

pub(in crate::cli) fn waits(id: &str, before: &[&str]) -> Diagnostic {
    Diagnostic::error("task/waits", format!("task {id} waits for: {}", before.join(", ")))
        .help("complete the tasks that it waits for; a skipped or disputed task does not count as completed")
}

pub(in crate::cli) fn nothing_to_run() -> Diagnostic {
    Diagnostic::error("task/none", "there is no task that can be worked on")
        .help("`forkhestra task list` shows the status of all tasks; `forkhestra task add` adds a task")
}

pub(in crate::cli) fn two_tasks() -> Diagnostic {
    Diagnostic::error("usage/task", "name one task, or use --all").help("forkhestra task run ID")
}

pub(in crate::cli) fn import_no_list(name: &str) -> Diagnostic {
    Diagnostic::error("task/import-list", format!("{name} has no open task"))
        .help("a task is a line such as `- [ ] T012 [P] What is to be done`; for other files, write lines of JSON")
}
