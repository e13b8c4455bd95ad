//! Carries out an evaluation to its end.

use super::ReadyEval;
use super::elsewhere::Elsewhere;
use crate::cli::config::Project;
use crate::cli::options::Common;
use crate::cli::respond::{Answered, answer};
use crate::cli::run::execute::{event_queue, exit_of, resume_line};
use crate::cli::run::output::{Output, run_hooks, wanted_hooks};
use crate::engine::{EvalLedger, Event, Observer, RunOutcome, RunSummary};
use crate::eval::{ANY_PROMPT, EvalEnd, Setting, evaluate, evaluate_in_slices, worked};
use crate::exit::Exit;
use crate::journal::Journal;
use crate::proc::SleepInhibitor;
use crate::report::{
    CaseTexts, EvalTerminal, Paint, Screen, Sinks, SummaryFacts, evaluation_json, evaluation_text, print_error,
    prompt_diff, reason, render, summary_json,
};
use crate::runner::Failure;
use crate::source::{Diagnostic, Files};
use crate::world::World;
use std::path::Path;
use std::sync::Arc;

/// Runs an evaluation to its end, prints its result, and writes the winning prompt.
pub(super) fn perform(
    world: &World,
    common: &Common,
    (project, output): (&Project, &Output),
    ready: &ReadyEval,
    (mut journal, run): (Journal, i64),
    events: &[Event],
    limits: &[String],
) -> Answered {
    let runtime = event_queue()?;
    let slices = match Elsewhere::check(world, project, ready)? {
        Some(elsewhere) => Some(elsewhere.slices(world, project, ready, (run, worked(events)))?),
        None => None,
    };
    journal.abort_after(world.abort_after());
    let (context, paint) = (ready.context(world, project), Paint::for_stderr(world));
    let _awake = (project.config.keep_awake != Some(false))
        .then(|| SleepInhibitor::take(&format!("run {run} evaluates"), &project.root));
    let sinks = Sinks { github: None, ..output.sinks(world)? };
    let (ended, summary) = runtime.block_on(async {
        let screen = match Screen::start() {
            Ok(screen) => screen,
            Err(error) => return (Err(Failure::Threads(error)), RunSummary::default()),
        };
        let mut terminal = EvalTerminal::new(screen, sinks, paint, (common.quiet, common.verbose));
        for event in events {
            terminal.earlier_event(event);
        }
        let setting = Setting {
            context: &context,
            facts: Arc::clone(&ready.facts),
            digest: &ready.digest,
            overrides: &ready.overrides,
            outline: &ready.outline,
            limits,
            attempts: journal.files().highest_attempts(run),
            journal: &journal,
            run,
            events,
            observer: &mut terminal,
        };
        let ended = match slices {
            Some(mut slices) => evaluate_in_slices(setting, &mut slices).await,
            None => evaluate(setting).await,
        };
        (ended, terminal.into_summary())
    });
    match ended {
        Ok(EvalEnd { outcome, ledger }) => {
            let written =
                if outcome == RunOutcome::Succeeded { write(world, ready, &ledger) } else { Ok(String::new()) };
            told(world, common, (ready, output), run, &ledger);
            if !common.quiet && !matches!(outcome, RunOutcome::Succeeded | RunOutcome::CasesFailed) {
                let resume = resume_line(world, common, &project.root, run);
                print_error(&paint.dim(&format!("  next: {resume}\n")));
            }
            let exit = exit_of(outcome);
            let hooks = context.executor_plan(0, ANY_PROMPT).map_or_else(|_| Vec::new(), |plan| plan.hooks);
            let wanted = wanted_hooks(&hooks, &summary);
            let why = reason(outcome, &summary.totals, &ready.outline);
            let folder = world.relative(&journal.files().run_folder(run));
            let facts = SummaryFacts {
                exit: Some(exit.code()),
                reason: Some(&why),
                transcripts: &folder,
                ..SummaryFacts::default()
            };
            let json = summary_json(&summary, &facts).to_string() + "\n";
            run_hooks(world, common, &wanted, &project.root, &json);
            match written {
                Ok(words) => {
                    print_error(if common.quiet { "" } else { &words });
                    Ok(exit)
                }
                Err(fault) => {
                    print_error(&render(&[fault], paint));
                    Ok(Exit::Incomplete)
                }
            }
        }
        Err(failure) => {
            let fault =
                Diagnostic::error("run/failed", failure.to_string()).help("no process of the run is left running");
            print_error(&render(&[fault], paint));
            Ok(Exit::Incomplete)
        }
    }
}

fn told(world: &World, common: &Common, (ready, output): (&ReadyEval, &Output), run: i64, ledger: &EvalLedger) {
    let paint = Paint::for_stdout(world);
    if output.events {
        // Standard output has the events.
    } else if ready.facts.options.json || output.json {
        let _ = answer(&(evaluation_json(ledger, run).to_string() + "\n"));
    } else if !common.quiet {
        let text = evaluation_text(ledger, run, paint, common.verbose, &CaseTexts::default())
            + &prompt_diff(ledger, common.verbose, paint);
        let _ = answer(&format!("\n{text}"));
    }
}

/// Writes the winning prompt to the file that the options name.
fn write(world: &World, ready: &ReadyEval, ledger: &EvalLedger) -> Result<String, Diagnostic> {
    let generation = ledger.winner();
    let options = &ready.facts.options;
    let prompt = ledger.prompts.get(&generation).map_or("", |known| known.prompt.as_str());
    let text = format!("{}\n", prompt.trim_end());
    let failed = |path: &Path, why: String| {
        Diagnostic::error("eval/write", not_written(path, &why)).help("`forkhestra eval show --prompt` prints it")
    };
    if let Some(out) = &options.out {
        let path = Path::new(out);
        world.disk().create(path, &text).map_err(|error| failed(path, error.to_string()))?;
        return Ok(format!("  written to {}\n", world.relative(path)));
    }
    let Some(path) = ready.suite.prompt_file.as_ref().filter(|_| options.write && generation > 0) else {
        return Ok(String::new());
    };
    if let Some(proof) = ledger.chosen.as_ref().filter(|chosen| chosen.is_unproven()).and_then(|chosen| chosen.proof) {
        let why = "it is not proven to be better than the original".to_string();
        let help = format!(
            "--repeat {} tells a gain of {:.2} from chance; `forkhestra eval show --prompt` prints the prompt",
            proof.repeat, proof.planned
        );
        return Err(Diagnostic::error("eval/unproven", not_written(path, &why)).help(help));
    }
    let now = world.read(path).map_err(|error| failed(path, error.to_string()))?;
    let text_now = String::from_utf8_lossy(&now);
    if text_now.trim_start_matches('\u{feff}').trim() != ready.suite.prompt.trim() {
        return Err(failed(path, "it was changed in the meantime".into()));
    }
    world.disk().replace(path, &text).map_err(|error| failed(path, error.to_string()))?;
    Ok(format!("  written to {}\n", world.relative(path)))
}

fn not_written(path: &Path, why: &str) -> String {
    format!("the prompt was not written to {}: {why}", path.display())
}
