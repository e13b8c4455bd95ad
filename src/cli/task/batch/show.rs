//! The dry run of a batch: everything that it would do, before anything is started.

use super::preflight::Checked;
use crate::cli::task::args::TaskRunArgs;
use crate::report::{Paint, batch_plan, quoted};
use crate::source::counted;
use crate::world::World;
use serde_json::{Value, json};

/// The dry run as JSON.
pub(super) fn json(checked: &Checked) -> Value {
    let Checked { facts, workspaces, engine, .. } = checked;
    let tasks = facts.tasks.iter().map(|task| json!({ "task": task.id, "title": task.title, "after": task.after }));
    let mut told = json!({
        "tasks": tasks.collect::<Vec<_>>(),
        "jobs": facts.jobs,
        "chain": facts.chain,
        "base": facts.line,
        "verification": facts.verification,
        "together": facts.together,
        "tries": facts.tries,
        "judge": facts.judge,
        "workspaces": {
            "root": workspaces.folder.display().to_string(),
            "setup": workspaces.setup,
            "copy": workspaces.copy,
            "share": workspaces.share,
            "ports": workspaces.ports,
            "keep": workspaces.keep,
            "needs": workspaces.needs,
        },
    });
    if let Some(engine) = engine {
        told["engine"] =
            json!({ "name": engine.name, "hub": engine.hub, "submit": engine.submit, "work": engine.work });
    }
    told
}

/// The dry run in words.
pub(super) fn text(world: &World, checked: &Checked, args: &TaskRunArgs) -> String {
    let Checked { facts, workspaces, engine, .. } = checked;
    let mut rows = Vec::new();
    let mut row = |name: &'static str, value: String| rows.push((name, value));
    let commit = facts.line.get(..8).unwrap_or(&facts.line);
    let base = facts.branch.as_ref().map_or_else(|| commit.to_string(), |branch| format!("{branch} ({commit})"));
    let changes = if args.with_changes { ", with uncommitted changes" } else { "" };
    row("begin with", base + changes);
    if let Some(engine) = engine {
        let submit = match engine.submit.as_slice() {
            [] => format!("nothing; the workers are your own: {} --next --all", engine.work),
            words => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
        };
        row("engine", engine.name.clone());
        row("hub", engine.hub.clone());
        row("submit", submit);
    } else {
        row("workspaces", format!("{}/BATCH-TASK", workspaces.folder.display()));
    }
    let setup = match workspaces.setup.as_slice() {
        [shell, option, line] if shell == "sh" && option == "-c" => line.clone(),
        words => words.join(" "),
    };
    let settings = [
        ("setup", setup),
        ("copies", workspaces.copy.join(", ")),
        ("links", workspaces.share.join(", ")),
        (
            "needs",
            [&workspaces.needs.programs[..], &workspaces.needs.variables, &workspaces.needs.labels].concat().join(", "),
        ),
        ("ports", if workspaces.ports > 0 { format!("{} each", workspaces.ports) } else { String::new() }),
    ];
    for (name, value) in settings.into_iter().filter(|(_, value)| !value.is_empty()) {
        row(name, value);
    }
    if let Some(judge) = &facts.judge {
        let names: Vec<&str> = facts.tries.iter().flatten().map(String::as_str).collect();
        let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        row("tries", format!("{} at each task{names}; {judge} chooses one", facts.tries.len()));
    }
    let together = facts.together.map_or_else(String::new, |most| format!(", at most {most} at once"));
    row("verified by", facts.verification.clone().unwrap_or_else(|| "nothing (--unverified)".into()) + &together);
    let limits = |limits: &[String]| limits.join(", ");
    for (name, value) in [("limits", limits(&args.options.bounds.limit)), ("limits each", limits(&args.limit_each))] {
        if !value.is_empty() {
            row(name, value);
        }
    }
    let title = format!("{}, {} at a time, chain {}", counted(facts.tasks.len(), "task"), facts.jobs, facts.chain);
    let first = facts.tasks.first().map_or("", |task| task.id.as_str());
    let chain = if args.chain == "task" { String::new() } else { format!(" --chain {}", args.chain) };
    let next = format!("forkhestra task run {first}{chain} --dry-run");
    batch_plan(&title, facts, &rows, &next, Paint::for_stdout(world))
}
