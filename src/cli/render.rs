//! `render`: the exact prompt of an agent, and where every piece of it comes from. Starts nothing and writes nothing.

use crate::chain::parse;
use crate::cli::args::RenderArgs;
use crate::cli::config::project;
use crate::cli::options::Common;
use crate::cli::respond::{Answered, answer, json_line};
use crate::cli::run::chain::split;
use crate::cli::run::{Typed, planned, said_by, said_of, task_of};
use crate::context::{OF_WORK, TreeChanges};
use crate::engine::At;
use crate::journal::Journal;
use crate::plan::{Kind, Overrides, PlannedPrompt, SystemPart, TaskFacts};
use crate::prompt::{Piece, Rendered};
use crate::report::{Paint, explained, explained_json};
use crate::runner::{AttemptContext, fill, uncommitted};
use crate::source::{Diagnostic, Source};
use crate::world::World;
use std::path::Path;

/// Renders and prints the prompt.
pub(super) fn render(world: &World, common: &Common, args: &RenderArgs) -> Answered {
    match rendered(world, common, args) {
        Err(faults) => Err(faults.into()),
        Ok((rendered, system)) if args.json => Ok(answer(&json_line(explained_json(&rendered, &system)))),
        Ok((rendered, system)) if args.explain => Ok(answer(&explained(&rendered, &system, Paint::for_stdout(world)))),
        Ok((rendered, _)) => Ok(answer(&rendered.text())),
    }
}

/// The prompt, and the parts of the system prompt if that is passed apart.
type Prompts = (Rendered, Vec<SystemPart>);

fn rendered(world: &World, common: &Common, args: &RenderArgs) -> Result<Prompts, Vec<Diagnostic>> {
    let project = project(world, common);
    let (given, rest) = split(&args.words, &project.shell)?;
    if let [word, ..] = rest.as_slice() {
        return Err(vec![not_a_variable(word)]);
    }
    let chain = parse(&Source::new("command line", args.agent.as_str(), &project.shell))?;
    let prompt = said_of(world, args.prompt.as_deref(), args.prompt_file.as_deref(), &project)?;
    let task = args.task.as_ref().map(|id| task_of(world, &project, id)).transpose().map_err(|fault| vec![fault])?;
    let prompt = if prompt.is_silent() { task.as_ref().map_or(prompt, |task| said_by(task, &project)) } else { prompt };
    let typed = Typed { prompt, overrides: Overrides::default(), task };
    let plan = planned(world, &project, &chain, &given, &typed)?;
    let Some(step) = plan.steps.first().filter(|_| plan.steps.len() == 1) else {
        return Err(vec![one_agent(&args.agent)]);
    };
    let Some(prompt) = &step.prompt else { return Err(vec![no_prompt(&args.agent, step.is_check())]) };
    let at = At { step: 1, name: step.name.clone(), round: 1, iteration: 1, attempt: 1, lane: 1 };
    let scratch = world.scratch_folder().map_err(|error| vec![not_rendered(&error.to_string())])?;
    let begun =
        plan.task.as_ref().and_then(|task| Journal::existing(&project.root).ok()??.tasks().tree_of(&task.id).ok()?);
    let wanted = prompt.around.iter().flat_map(|around| around.template.variables());
    let tells = wanted.into_iter().any(|name| OF_WORK.contains(&name.as_str()));
    let changed = tells.then(|| uncommitted(&project.root, scratch.path(), begun.as_deref())).flatten();
    let rendered = of(prompt, plan.task.as_ref(), &project.root, &at, changed.as_ref());
    let rendered = rendered.map_err(|why| vec![not_rendered(&why)])?;
    let system = match &step.kind {
        Kind::Agent { system, .. } => system.clone(),
        Kind::Check { .. } => Vec::new(),
    };
    Ok((rendered, system))
}

fn of(
    prompt: &PlannedPrompt,
    work: Option<&TaskFacts>,
    root: &Path,
    at: &At,
    changed: Option<&TreeChanges>,
) -> Result<Rendered, String> {
    let task = prompt.task(&|_| String::new());
    let Some(around) = &prompt.around else {
        return Ok(Rendered { pieces: vec![Piece::of(&format!("the prompt, from {}", prompt.origin), &task)] });
    };
    let moment = AttemptContext {
        run: 0,
        at,
        task: &task,
        feedback: "",
        reviewer_notes: "",
        rejected: false,
        work,
        issues: "",
        next_tasks: "",
        rejections: work.map_or(0, |task| task.rejections),
        diagnostics: "",
        changed,
        folder: Path::new(".forkhestra/runs/0"),
        artifacts: Path::new(".forkhestra/runs/0/artifacts"),
    };
    fill(around, root, &moment).map(|(rendered, _)| rendered).map_err(|error| error.to_string())
}

fn not_a_variable(word: &str) -> Diagnostic {
    Diagnostic::error("usage/render", format!("`{word}` is not a variable"))
        .help("only variables may follow the agent: NAME=value")
}

fn one_agent(name: &str) -> Diagnostic {
    Diagnostic::error("usage/render", format!("`{name}` is not a single agent"))
        .help("name one agent, without arrows or groups")
}

fn no_prompt(name: &str, is_check: bool) -> Diagnostic {
    if is_check {
        return Diagnostic::error("render/no-prompt", format!("`{name}` is a check, and a check has no prompt"))
            .help("name an agent; `forkhestra list` shows which there are");
    }
    Diagnostic::error(
        "render/no-prompt",
        format!("`{name}` has no prompt: none is set on the command line, in the step, the chain or the agent"),
    )
    .help("give one with -p, or write its template")
}

fn not_rendered(why: &str) -> Diagnostic {
    Diagnostic::error("render/failed", format!("the template cannot be rendered: {why}"))
        .help("a run would fail in the same way, at this attempt")
}
