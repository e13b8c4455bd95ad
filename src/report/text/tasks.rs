//! Tasks and disputes for people.

use crate::report::format::{first_line, local_time, padded, width};
use crate::report::paint::Paint;
use crate::source::counted;
use crate::task::{AuditRow, Dispute, Status, Task, waits_for};
use std::fmt::Write;

fn painted(status: Status, paint: Paint, words: &str) -> String {
    match status {
        Status::Completed => paint.good(words),
        Status::Disputed | Status::Failed => paint.bad(words),
        Status::InProgress | Status::Review => paint.bold(words),
        Status::Pending | Status::Skipped => paint.dim(words),
    }
}

/// Returns a table of all tasks, in the order in which they were added. `place` returns where the work on a task is.
#[must_use]
pub fn tasks_text(tasks: &[Task], place: &dyn Fn(&str) -> Option<String>, paint: Paint) -> String {
    if tasks.is_empty() {
        return "no tasks yet; `forkhestra task add \"…\"` adds one\n".into();
    }
    let widest = tasks.iter().map(|task| width(&task.id)).max().unwrap_or(0).max(4);
    let mut text = format!("{}\n", paint.dim(&format!("{}  {:11}  title", padded("task", widest), "status")));
    for task in tasks {
        let mut notes = Vec::new();
        if task.rejections > 0 {
            let count = counted(task.rejections, "rejection");
            notes.push(count);
        }
        notes.extend(place(&task.id));
        let waits = waits_for(task, tasks);
        if !waits.is_empty() && !task.status.is_terminal() {
            notes.push(format!("waits for {}", waits.join(", ")));
        }
        let notes = if notes.is_empty() { String::new() } else { paint.dim(&format!("  ({})", notes.join("; "))) };
        let status = painted(task.status, paint, &format!("{:11}", task.status.name()));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}  {status}  {}{notes}", padded(&task.id, widest), first_line(&task.title));
    }
    text
}

/// Returns one task, and everything that has happened to it.
#[must_use]
pub fn task_text(
    task: &Task,
    waits: &[&str],
    place: &[(&str, String)],
    runs: &[i64],
    trail: &[AuditRow],
    disputes: &[Dispute],
    paint: Paint,
) -> String {
    let mut text = format!("{} {}\n", paint.bold(&format!("task {}", task.id)), paint.bold(&first_line(&task.title)));
    let mut line = |name: &str, words: &str| {
        let _ = writeln!(text, "   {} {words}", paint.dim(&format!("{name:<10}")));
    };
    line("status", &painted(task.status, paint, task.status.name()));
    line("rejections", &task.rejections.to_string());
    if let Some(spec) = &task.spec {
        line("spec", spec);
    }
    if let Some(tests) = &task.tests {
        line("tests", tests);
    }
    if !waits.is_empty() {
        line("waits for", &waits.join(", "));
    }
    for (name, words) in place {
        line(name, words);
    }
    if !runs.is_empty() {
        line("runs", &runs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    }
    for dispute in disputes {
        let open = if dispute.is_open() { "open" } else { dispute.decision.as_deref().unwrap_or("noted") };
        line("dispute", &format!("{} ({}, {open}): {}", dispute.id, dispute.kind.name(), first_line(&dispute.reason)));
    }
    text.push('\n');
    for row in trail {
        let notes = first_line(&row.change.notes);
        let notes = if notes.is_empty() { notes } else { format!(": {notes}") };
        let run = row.run.map_or_else(String::new, |run| format!(", run {run}"));
        let _ = writeln!(
            text,
            "{}  {} → {}  {}{notes}",
            paint.dim(&local_time(&row.at)),
            row.change.from.name(),
            row.change.to.name(),
            paint.dim(&format!("by {}{run}", by_whom(&row.change.actor))),
        );
    }
    text
}

/// Who has changed the status of a task: an agent by its name, or in words.
fn by_whom(actor: &str) -> &str {
    match actor {
        "host" => "forkhestra",
        "human" => "a human",
        agent => agent,
    }
}

/// Returns all disputes. `is_stale` returns whether a dispute that was opened at this time is old.
#[must_use]
pub fn disputes_text(disputes: &[Dispute], is_stale: &dyn Fn(&str) -> bool, paint: Paint) -> String {
    if disputes.is_empty() {
        return "no disputes\n".into();
    }
    let mut text = String::new();
    for dispute in disputes {
        let state = match &dispute.decision {
            Some(decision) => paint.dim(&format!("resolved: {decision}")),
            None if !dispute.is_open() => paint.dim("noted"),
            None if is_stale(&dispute.opened) => paint.warn("open for more than 7 days"),
            None => paint.bold("open"),
        };
        let kind = dispute.kind.name();
        let _ = writeln!(
            text,
            "{:>4}  task {}  {kind:8}  {state}  {}",
            dispute.id,
            dispute.task,
            first_line(&dispute.reason)
        );
    }
    if disputes.iter().any(Dispute::is_open) {
        let _ = writeln!(
            text,
            "\n{}",
            paint.dim("to decide: forkhestra dispute resolve ID coder|reviewer|custom --notes \"…\"")
        );
    }
    text
}

/// Returns one dispute in full.
#[must_use]
pub fn dispute_text(dispute: &Dispute, paint: Paint) -> String {
    let mut text =
        format!("{}  task {}, {}\n", paint.bold(&format!("dispute {}", dispute.id)), dispute.task, dispute.kind.name());
    let _ = writeln!(text, "   {} {}", paint.dim("opened  "), dispute.opened);
    if let (Some(decision), Some(resolved)) = (&dispute.decision, &dispute.resolved) {
        let notes = dispute.notes.as_deref().filter(|notes| !notes.is_empty());
        let notes = notes.map_or_else(String::new, |notes| format!(": {notes}"));
        let _ = writeln!(text, "   {} {resolved}, decision: {decision}{notes}", paint.dim("resolved"));
    }
    let _ = writeln!(text, "\n{}", dispute.reason);
    text
}
