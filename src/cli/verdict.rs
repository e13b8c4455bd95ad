//! The commands that an agent calls: its decision is recorded, and the host applies it when the attempt has ended.

use crate::chain::Role;
use crate::cli::respond::{Answered, answer};
use crate::cli::task::args::DisputeVerb;
use crate::journal::{Caller, Recorded, caller, record_call};
use crate::source::{Diagnostic, Env};
use crate::verdict::{Decision, RecordedCall};
use crate::world::World;
use std::path::PathBuf;

/// Whether the caller is an agent that forkhestra runs.
pub(super) fn in_an_iteration(world: &World) -> bool {
    world.var("FORKHESTRA_TOKEN").is_some_and(|token| !token.is_empty())
}

/// Records a decision of an agent.
pub(super) fn record(world: &World, decision: Decision, notes: &str) -> Answered {
    let typed = if notes == "-" { world.stdin().read_all().unwrap_or_default() } else { notes.as_bytes().to_vec() };
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

/// The attempt that a process of an agent belongs to.
pub(super) struct CallingAttempt {
    token: String,
    result: PathBuf,
    /// The agent.
    pub(super) caller: Caller,
}

/// Returns the attempt that this process belongs to. `what` names the call.
///
/// # Errors
/// Outside an attempt, or after its end.
pub(super) fn attempt_of(world: &World, what: &str) -> Result<CallingAttempt, Diagnostic> {
    let variable = |name: &str| world.var(name).filter(|value| !value.is_empty());
    let token = variable("FORKHESTRA_TOKEN").and_then(|token| token.into_string().ok());
    let result = variable("FORKHESTRA_RESULT").map(PathBuf::from);
    let (Some(token), Some(result)) = (token, result) else { return Err(outside(what)) };
    let caller = caller(&result, &token).ok_or_else(|| stale(what))?;
    Ok(CallingAttempt { token, result, caller })
}

/// Records a call. `what` names it.
///
/// # Errors
/// When the attempt has ended, or the call cannot be written.
pub(super) fn record_in(attempt: &CallingAttempt, what: &str, call: &RecordedCall) -> Result<(), Diagnostic> {
    match record_call(&attempt.result, &attempt.token, &call.line()) {
        Ok(Recorded::Yes) => Ok(()),
        Ok(Recorded::Stale) => Err(stale(what)),
        Err(error) => {
            let instead = match Decision::named(what) {
                Some(decision) => format!("the line VERDICT: {}", decision.name()),
                None => "what you wanted to record".into(),
            };
            Err(Diagnostic::error("verdict/write", format!("`{what}` cannot be recorded: {error}"))
                .help(format!("write it instead: end your final message with {instead}")))
        }
    }
}

fn recorded(world: &World, decision: Decision, notes: &str) -> Result<(), Diagnostic> {
    let attempt = attempt_of(world, decision.name())?;
    if !decision.is_open_to(attempt.caller.role) {
        return Err(not_its_right(decision, attempt.caller.role));
    }
    if matches!(decision, Decision::Reject | Decision::Dispute) && notes.trim().is_empty() {
        return Err(no_notes(decision));
    }
    record_in(&attempt, decision.name(), &RecordedCall::decision(decision, notes))
}

fn outside(what: &str) -> Diagnostic {
    let help = match Decision::named(what) {
        Some(Decision::Dispute) => {
            "`forkhestra dispute list` shows the disputes; `forkhestra dispute resolve` decides one"
        }
        Some(Decision::Submit | Decision::Done) => {
            "`forkhestra task run` works on a task; `forkhestra task approve` marks it as completed"
        }
        None => "leave --attempt out: `forkhestra mcp` is the server for your own session",
        _ => "to decide about a task yourself: forkhestra task approve | reject | skip ID",
    };
    Diagnostic::error("verdict/outside", format!("`{what}` is only for an agent that forkhestra runs")).help(help)
}

fn stale(what: &str) -> Diagnostic {
    Diagnostic::error("verdict/stale", format!("the attempt that this `{what}` belongs to has ended"))
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
