//! The commands that an agent calls: its decision is recorded, and the host applies it when the attempt has ended.

use crate::chain::Role;
use crate::cli::respond::{Answered, answer};
use crate::cli::task::args::DisputeVerb;
use crate::journal::{Recorded, record_call, role_of_call};
use crate::source::{Diagnostic, Env};
use crate::verdict::{Decision, call_line};
use crate::world::World;
use std::path::PathBuf;

/// Whether the caller is an agent that forkhestra runs.
pub(super) fn in_an_iteration(world: &World) -> bool {
    world.var("FORKHESTRA_TOKEN").is_some_and(|token| !token.is_empty())
}

/// Records a decision of an agent.
pub(super) fn record(world: &World, decision: Decision, notes: &str) -> Answered {
    let typed = if notes == "-" { world.read_stdin().unwrap_or_default() } else { notes.as_bytes().to_vec() };
    match recorded(world, decision, &String::from_utf8_lossy(&typed)) {
        Ok(()) => Ok(answer(&format!(
            "recorded: {}. It takes effect when you have finished; say in your final message what you did.\n",
            decision.name()
        ))),
        Err(fault) => Err(fault.into()),
    }
}

/// Records a decision about a task that the agent names.
pub(super) fn record_for(world: &World, id: &str, decision: Decision, notes: &str) -> Answered {
    let task = world.var("FORKHESTRA_TASK").and_then(|task| task.into_string().ok()).filter(|task| !task.is_empty());
    match task {
        Some(task) if task != id => Err(other_task(id, &task).into()),
        _ => record(world, decision, notes),
    }
}

/// Records `dispute create` of an agent; `None` for other commands.
pub(super) fn dispute(world: &World, verb: &DisputeVerb) -> Option<Answered> {
    match verb {
        DisputeVerb::Create { id, reason, .. } => Some(record_for(world, id, Decision::Dispute, reason)),
        _ => None,
    }
}

fn recorded(world: &World, decision: Decision, notes: &str) -> Result<(), Diagnostic> {
    let variable = |name: &str| world.var(name).filter(|value| !value.is_empty());
    let token = variable("FORKHESTRA_TOKEN").and_then(|token| token.into_string().ok());
    let result = variable("FORKHESTRA_RESULT").map(PathBuf::from);
    let (Some(token), Some(result)) = (token, result) else { return Err(outside(decision)) };
    let role = role_of_call(&result, &token).and_then(|role| Role::named(&role));
    let Some(role) = role else { return Err(stale(decision)) };
    if !decision.is_open_to(role) {
        return Err(not_its_right(decision, role));
    }
    if matches!(decision, Decision::Reject | Decision::Dispute) && notes.trim().is_empty() {
        return Err(no_notes(decision));
    }
    match record_call(&result, &token, &call_line(decision, notes)) {
        Ok(Recorded::Yes) => Ok(()),
        Ok(Recorded::Stale) => Err(stale(decision)),
        Err(error) => Err(Diagnostic::error("verdict/write", format!("the verdict cannot be recorded: {error}"))
            .help(format!("write it instead: end your final message with the line VERDICT: {}", decision.name()))),
    }
}

fn outside(decision: Decision) -> Diagnostic {
    let help = match decision {
        Decision::Dispute => "`forkhestra dispute list` shows the disputes; `forkhestra dispute resolve` decides one",
        Decision::Submit | Decision::Done => {
            "`forkhestra task run` works on a task; `forkhestra task approve` marks it as completed"
        }
        _ => "to decide about a task yourself: forkhestra task approve | reject | skip ID",
    };
    Diagnostic::error("verdict/outside", format!("`{}` is only for an agent that forkhestra runs", decision.name()))
        .help(help)
}

fn stale(decision: Decision) -> Diagnostic {
    Diagnostic::error("verdict/stale", format!("the attempt that this `{}` belongs to has ended", decision.name()))
        .help("its verdict was read when it ended; a later one does not count")
}

fn not_its_right(decision: Decision, role: Role) -> Diagnostic {
    let may = match role {
        Role::Worker => "submit, dispute or skip",
        Role::Judge => "approve, reject, dispute or skip",
    };
    Diagnostic::error("verdict/right", format!("a {} may not {}", role.name(), decision.name()))
        .help(format!("it may {may}"))
}

fn no_notes(decision: Decision) -> Diagnostic {
    Diagnostic::error("verdict/notes", format!("a {} needs a reason", decision.name()))
        .help("write one line per finding: `- FILE:LINE: what happens, and what would fix it`")
}

fn other_task(id: &str, task: &str) -> Diagnostic {
    Diagnostic::error("verdict/task", format!("this attempt works on task {task}, not on {id}"))
        .help(format!("name {task}, or leave the name out: forkhestra submit | approve | reject | dispute | skip"))
}
