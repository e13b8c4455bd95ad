//! `tell`: sends a message to the agents of the run in progress in a root.

use super::lanes::{batch_of, journal_of};
use super::{ActiveRun, at_work, chosen_at_work};
use crate::cli::args::TellArgs;
use crate::cli::options::Common;
use crate::cli::people::only_people;
use crate::cli::respond::{Answered, Stopped, answer};
use crate::cli::run::execute::resume_line;
use crate::cli::runs::broken;
use crate::cli::runs::history::journal;
use crate::engine::{EventKind, RunKind, RunOutcome};
use crate::journal::Journal;
use crate::plan::OutlineStep;
use crate::report::print_error;
use crate::source::Diagnostic;
use crate::world::World;
use std::time::Duration;

/// The interval at which the journal is looked at, and how often: the run reads its messages once a second.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: u32 = 100;
/// The longest message, in bytes: it is part of every later prompt.
const LONGEST: usize = 16 << 10;
/// The most of all messages to a run, in bytes: a prompt that is an argument has to fit into 128 KiB (execve(2)).
const MOST: usize = 48 << 10;

/// Carries out `tell`.
pub(in crate::cli) fn tell(world: &World, common: &Common, args: &TellArgs) -> Answered {
    let (wanted, message) = match args.words.as_slice() {
        [run, message] => (Some(number(run)?), message.as_str()),
        [run] if run.parse::<i64>().is_ok() => return Err(no_message(run).into()),
        words => (None, words.first().map_or("", String::as_str)),
    };
    let (project, journal) = journal(world, common)?;
    only_people(world, &project.root)?;
    // A run of a batch has the journal of its workspace.
    let named = wanted;
    let row = wanted.map(|run| journal.runs().get(run).map_err(broken)).transpose()?.flatten();
    let (journal, wanted) = match row.map(|row| journal_of(&journal, &row)).transpose()?.flatten() {
        Some(theirs) => (theirs, None),
        None => (journal, wanted),
    };
    let ActiveRun { row, has_ended, .. } = chosen_at_work(&journal, wanted, "tell")?;
    let run = row.id;
    let named = named.unwrap_or(run);
    if has_ended {
        return Err(Diagnostic::error(
            "tell/ended",
            format!("run {named} has ended, and its queue has not begun the next"),
        )
        .help("send it again when the next run has begun; `forkhestra status` shows it")
        .into());
    }
    if row.kind == RunKind::Batch {
        return Err(to_one_of(&journal, run)?.into());
    }
    if row.kind == RunKind::Evaluation {
        return Err(Diagnostic::error(
            "tell/evaluation",
            format!("run {named} is an evaluation, which takes no messages"),
        )
        .help("its prompts are what it measures; `forkhestra stop` ends it")
        .into());
    }
    let text = text_of(world, message)?;
    let (deaf, takers) = agents(&journal, run)?;
    if takers == 0 {
        return Err(Diagnostic::error("tell/no-prompt", format!("no agent of run {named} has a prompt"))
            .help("a message is added to the prompt of an agent; stop the run, and start it with a prompt: -p \"…\"")
            .into());
    }
    let sent: usize = journal.messages().after(run, 0).map_err(broken)?.iter().map(|earlier| earlier.text.len()).sum();
    if sent + text.len() > MOST {
        let what = format!("run {named} has {sent} bytes of messages, and at most {MOST} are allowed in all");
        return Err(Diagnostic::error("tell/message", what)
            .help("stop the run, and start one with a better prompt")
            .into());
    }
    let id = journal.messages().send(run, &text, &world.timestamp()).map_err(broken)?;
    for _ in 0..LOOKS {
        // Checked before the journal is read, so that nothing read before the end is missed.
        let over = at_work(&journal)?.is_none_or(|active| active.row.id != run || active.has_ended);
        if is_received(&journal, run, id)? {
            let except = if deaf.is_empty() {
                String::new()
            } else {
                format!(", except {}, which has no prompt", deaf.join(" and "))
            };
            return Ok(answer(&format!(
                "run {named} has your message: every attempt that an agent begins now gets it{except}\n"
            )));
        }
        if over {
            let complete =
                journal.runs().get(run).map_err(broken)?.and_then(|row| row.outcome) == Some(RunOutcome::Succeeded);
            let help = if complete {
                "it is complete, so nobody gets the message; start a new run".into()
            } else {
                let resume = resume_line(world, common, &project.root, run);
                format!("if it is resumed, its agents get the message: {resume}")
            };
            return Err(Diagnostic::error("tell/ended", format!("run {named} ended before it read your message"))
                .help(help)
                .into());
        }
        std::thread::sleep(LOOK);
    }
    print_error(&format!("run {named} has not read your message yet: it is paused, or very busy\n"));
    Ok(answer(&format!("run {named} reads your message when it continues\n")))
}

/// Returns the names of the agents of a run that have no prompt, and how many agents have one.
fn agents(journal: &Journal, run: i64) -> Result<(Vec<String>, usize), Diagnostic> {
    let steps = journal.runs().outline(run).map_err(broken)?.unwrap_or_default().steps;
    let (takers, others): (Vec<_>, Vec<_>) = steps.into_iter().partition(OutlineStep::takes_messages);
    let mut deaf: Vec<String> = others.into_iter().filter(|step| step.check.is_none()).map(|step| step.name).collect();
    deaf.dedup();
    Ok((deaf, takers.len()))
}

fn is_received(journal: &Journal, run: i64, id: i64) -> Result<bool, Stopped> {
    let last = journal.events().last(run, &["messageReceived"]).map_err(broken)?;
    Ok(last.is_some_and(|event| matches!(event.event, EventKind::MessageReceived { id: known, .. } if known >= id)))
}

fn number(word: &str) -> Result<i64, Diagnostic> {
    word.parse().map_err(|_| {
        Diagnostic::error("usage/value", format!("`{word}` is not the number of a run"))
            .help("put the message into quotes: forkhestra tell 12 \"use the new API\"")
    })
}

fn no_message(run: &str) -> Diagnostic {
    Diagnostic::error("tell/message", format!("`{run}` is the number of a run, and there is no message"))
        .help(format!("forkhestra tell {run} \"use the new API\""))
}

/// Returns the message.
///
/// # Errors
/// When there is none, or it is too long.
fn text_of(world: &World, message: &str) -> Result<String, Diagnostic> {
    let text = if message == "-" {
        let bytes = world.stdin().read_all().map_err(|error| unreadable(&error.to_string()))?;
        String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8"))?
    } else {
        message.to_string()
    };
    match text.trim() {
        "" => {
            Err(Diagnostic::error("tell/message", "the message is empty").help("forkhestra tell \"use the new API\""))
        }
        text if text.contains('\0') => Err(Diagnostic::error("tell/message", "the message contains a NUL byte")
            .help("a prompt that is an argument cannot contain one")),
        text if text.len() > LONGEST => {
            let what = format!("the message is too long: {} bytes, and at most {LONGEST} are allowed", text.len());
            Err(Diagnostic::error("tell/message", what).help("put it into a file, and tell the agents to read it"))
        }
        text => Ok(text.to_string()),
    }
}

fn unreadable(why: &str) -> Diagnostic {
    Diagnostic::error("usage/stdin", format!("cannot read the message from standard input: {why}"))
}

/// Refuses a message to a whole batch, and names its runs.
fn to_one_of(journal: &Journal, run: i64) -> Result<Diagnostic, Diagnostic> {
    let state = batch_of(journal, run)?.unwrap_or_default();
    let units = state.units.values().filter(|unit| unit.at_work);
    let runs: Vec<String> =
        units.filter(|unit| unit.task.is_some()).map(|unit| format!("{} (task {})", unit.run, unit.label())).collect();
    let runs = if runs.is_empty() { "none at the moment".into() } else { runs.join(", ") };
    Ok(Diagnostic::error("tell/batch", format!("run {run} is a batch; a message goes to one of its runs"))
        .help(format!("name the run, such as forkhestra tell 12 \"…\". Running: {runs}")))
}
