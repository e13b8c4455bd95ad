//! What a run reports in addition to its console: events, a summary, a table, hooks, the log of GitHub Actions.

use crate::chain::HookKind;
use crate::cli::config::shell;
use crate::cli::options::{Common, OutputArgs};
use crate::engine::{FileChange, RunOutcome, RunState, RunSummary};
use crate::exit::Exit;
use crate::plan::{Hook, Limits, Outline};
use crate::proc::{ByHand, Interrupts};
use crate::report::{
    Document, GithubLog, Ndjson, Paint, Sinks, SummaryFacts, Verbosity, closing_changes, closing_table, go_on, print,
    print_error, reason, step_summary, summary_json, with_twice,
};
use crate::runner::TreeStore;
use crate::source::{Diagnostic, Env, Files, Kind};
use crate::world::World;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time after which a hook is stopped.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where a run writes its output for other programs.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "one per flag")]
pub(in crate::cli) struct Output {
    /// Whether events go to standard output.
    pub(in crate::cli) events: bool,
    /// The file that events are appended to.
    pub(in crate::cli) file: Option<PathBuf>,
    /// Whether the summary goes to standard output.
    pub(in crate::cli) json: bool,
    /// Whether each line of an agent's output begins with its name.
    pub(in crate::cli) prefix: bool,
    /// Whether only failures are printed.
    quiet: bool,
}

impl Output {
    /// Reads the options of the command line.
    ///
    /// # Errors
    /// When the file cannot be written, or two outputs would go to standard output.
    pub(in crate::cli) fn of(world: &World, common: &Common, args: &OutputArgs) -> Result<Self, Diagnostic> {
        let shell = shell(world, common);
        let json = args.output.as_deref() == Some("json");
        let (events, file) = match args.events.as_deref() {
            None => (false, None),
            Some("ndjson") => (true, None),
            Some(other) => match other.strip_prefix("ndjson=").filter(|file| !file.is_empty()) {
                Some(file) => (false, Some(shell.join(file))),
                None => return Err(bad_events(other)),
            },
        };
        if events && json {
            return Err(both());
        }
        if let Some(file) = &file {
            match world.kind(file) {
                Ok(Kind::Folder) => return Err(no_file(file, "it is a directory")),
                // A pipe that nothing reads would block the run forever.
                Ok(Kind::Other) if file != Path::new("/dev/null") => {
                    return Err(no_file(file, "it is not an ordinary file; for a pipe use --events ndjson"));
                }
                _ => world.disk().append(file, "").map_err(|error| no_file(file, &error.to_string()))?,
            }
        }
        Ok(Self { events, file, json, prefix: args.prefix, quiet: common.quiet })
    }

    /// Whether standard output is for other programs, and agents' output goes to the transcripts only.
    pub(in crate::cli) fn owns_stdout(&self) -> bool {
        self.events || self.json
    }

    /// Opens the destinations of the events.
    ///
    /// # Errors
    /// When the file can no longer be opened.
    pub(in crate::cli) fn sinks(&self, world: &World) -> Result<Sinks, Diagnostic> {
        let ndjson = match &self.file {
            Some(path) => {
                let file = world.disk().appender(path).map_err(|error| no_file(path, &error.to_string()))?;
                Ndjson::File(Box::new(file), path.display().to_string())
            }
            None if self.events => Ndjson::Stdout,
            None => Ndjson::Off,
        };
        let github =
            Some(()).filter(|()| !self.quiet && in_github(world)).and_then(|()| world.token().ok()).map(GithubLog::new);
        Ok(Sinks { ndjson, github, keeper: None })
    }
}

/// A run that has ended.
pub(in crate::cli) struct Over<'a> {
    /// Its outcome and totals.
    pub(in crate::cli) summary: &'a RunSummary,
    /// Its plan in brief.
    pub(in crate::cli) outline: &'a Outline,
    /// The directory in which it worked.
    pub(in crate::cli) root: &'a Path,
    pub(in crate::cli) transcripts: String,
    pub(in crate::cli) resume: String,
    pub(in crate::cli) exit: Exit,
    /// The current status of its task.
    pub(in crate::cli) task_status: Option<&'static str>,
    /// The commit of its task's changes.
    pub(in crate::cli) commit: Option<String>,
    /// Whether hooks run after it, which read the summary.
    pub(in crate::cli) has_hooks: bool,
}

/// Prints the closing table, and the JSON summary if wanted. Returns the summary's JSON, which is empty if nobody reads
/// it, and the result of printing.
pub(in crate::cli) fn close(
    world: &World,
    common: &Common,
    output: &Output,
    over: &Over<'_>,
) -> (String, io::Result<()>) {
    let (summary, outline) = (over.summary, over.outline);
    let Some(outcome) = summary.totals.outcome else { return (String::new(), Ok(())) };
    let why = reason(outcome, &summary.totals, outline);
    let next = match outcome {
        // The words of the console: what a person can decide depends on why it is needed.
        RunOutcome::NeedsHuman { .. } => go_on(outcome, &summary.totals, outline, &over.resume),
        _ => None,
    }
    .unwrap_or_else(|| next(outcome, summary, &over.resume, &outline.limits));
    let changes = TreeStore::of(over.root).files_of_run(&summary.trees);
    let paint = Paint::for_stderr(world);
    if !common.quiet {
        print_error(&last_words(summary, changes.as_deref(), outline, (&over.resume, None), paint));
    } else if outcome != RunOutcome::Succeeded {
        print_error(&next_line(outcome, summary, outline, &over.resume, paint));
    }
    let facts = SummaryFacts {
        exit: Some(over.exit.code()),
        reason: Some(&why),
        transcripts: &over.transcripts,
        next: Some(&next),
        changes: changes.as_deref(),
    };
    let mut json = String::new();
    if output.json || over.has_hooks {
        let mut value = summary_json(summary, &facts);
        value["taskStatus"] = over.task_status.into();
        value["commit"] = over.commit.clone().into();
        json = value.to_string() + "\n";
    }
    let printed = if output.json { print(&json) } else { Ok(()) };
    let job = world.var("GITHUB_STEP_SUMMARY").filter(|_| in_github(world));
    if let Some(file) = job {
        let document = Document {
            summary,
            outline,
            events: &[],
            reason: &why,
            at_work: false,
            resume: &over.resume,
            part: None,
            changes: changes.as_deref(),
            patch: "",
            papers: &[],
        };
        // If it cannot be written, the run is not affected.
        let _ = world.disk().append(Path::new(&file), &step_summary(&document));
    }
    (json, printed)
}

fn in_github(world: &World) -> bool {
    world.var("GITHUB_ACTIONS").is_some_and(|value| value == "true")
}

/// Returns the hooks that run after a run with this outcome.
pub(in crate::cli) fn wanted_hooks<'a>(hooks: &'a [Hook], summary: &RunSummary) -> Vec<&'a Hook> {
    if summary.totals.outcome.is_none() {
        return Vec::new();
    }
    let human = summary.needs_human();
    let good = summary.totals.outcome == Some(RunOutcome::Succeeded);
    let wanted = |hook: &&Hook| match hook.kind {
        HookKind::Finish => true,
        HookKind::Fail => !good && !human,
        HookKind::Human => human,
        HookKind::Task => summary.task.is_some(),
        // This hook runs during the run.
        HookKind::Wait => false,
    };
    hooks.iter().filter(wanted).collect()
}

/// Runs hooks, one after another, with the summary on their standard input. A signal stops them.
pub(in crate::cli) fn run_hooks(world: &World, common: &Common, hooks: &[&Hook], root: &Path, json: &str) {
    if hooks.is_empty() {
        return;
    }
    let Ok(interrupts) = Interrupts::listen(|signal| world.ignores(signal)) else { return };
    for hook in hooks {
        run_hook(world, hook, root, json, common, &interrupts);
        if interrupts.ended() {
            return;
        }
    }
}

/// The last lines of a run for people: the outcome of each step, and what to type next. Of a run of a batch, `part` is
/// what to do about it, or empty.
pub(in crate::cli) fn last_words(
    summary: &RunSummary,
    changes: Option<&[FileChange]>,
    outline: &Outline,
    (resume, part): (&str, Option<String>),
    paint: Paint,
) -> String {
    let Some(outcome) = summary.totals.outcome else { return String::new() };
    let next = match part {
        Some(next) if next.is_empty() => String::new(),
        Some(next) => paint.dim(&format!("  next: {next}\n")),
        None => next_line(outcome, summary, outline, resume, paint),
    };
    let diff = format!("forkhestra diff {}{}", summary.run, cwd_of(resume));
    closing_table(summary, paint) + &closing_changes(summary, changes, &diff, paint) + &next
}

/// The line that says what to type next. After a failure, what was printed comes first.
fn next_line(outcome: RunOutcome, summary: &RunSummary, outline: &Outline, resume: &str, paint: Paint) -> String {
    let look = next(outcome, summary, resume, &outline.limits);
    let has_failed = matches!(RunState::of(Some(outcome), false), RunState::Incomplete | RunState::IterationsExhausted);
    let words = match go_on(outcome, &summary.totals, outline, resume) {
        Some(go_on) if has_failed => format!("{look}, then {go_on}"),
        Some(go_on) => go_on,
        None => look,
    };
    paint.dim(&format!("  next: {words}\n"))
}

/// The option `--cwd` of a command line that resumes a run; empty if it has none.
fn cwd_of(resume: &str) -> String {
    resume.split_once(" --cwd ").map_or_else(String::new, |(_, folder)| format!(" --cwd {folder}"))
}

/// The one command to type next.
pub(in crate::cli) fn next(outcome: RunOutcome, summary: &RunSummary, resume: &str, limits: &Limits) -> String {
    let (cwd, run) = (cwd_of(resume), summary.run);
    match (outcome, &summary.totals.last) {
        (RunOutcome::LimitReached { limit }, _) => with_twice(limit, &summary.totals, limits, resume),
        (RunOutcome::Interrupted { .. } | RunOutcome::OutputClosed, _) => resume.to_string(),
        (RunOutcome::NeedsHuman { .. }, _) if summary.task.is_some() => format!("forkhestra dispute list{cwd}"),
        (RunOutcome::Succeeded, _) | (_, None) => format!("forkhestra report {run}{cwd}"),
        (_, Some(last)) => format!("forkhestra runs log {run}.{}.{}{cwd}", last.at.step, last.at.attempt),
    }
}

/// Runs a hook. Its result does not change the outcome of the run.
fn run_hook(world: &World, hook: &Hook, root: &Path, json: &str, common: &Common, interrupts: &Interrupts) {
    let mut show = |bytes: &[u8]| {
        if !common.quiet {
            print_error(&String::from_utf8_lossy(bytes));
        }
    };
    let by_hand = ByHand {
        lifeline: &world.lifeline(),
        program: &hook.program,
        arguments: &hook.arguments,
        folder: root,
        timeout: PATIENCE,
        input: json.as_bytes(),
        interrupts,
        without: &[],
    };
    let answer = by_hand.run(&mut show);
    let why = match answer {
        Some(_) if interrupts.ended() => "was stopped by a signal".to_string(),
        Some(answer) if answer.timed_out => "took more than 30 s and was stopped".to_string(),
        Some(answer) => match answer.code {
            Some(0) => return,
            Some(code) => format!("failed with exit code {code}"),
            None => "was killed".into(),
        },
        None => "could not be started".into(),
    };
    print_error(&format!(
        "{}\n",
        Paint::for_stderr(world)
            .warn(&format!("! the hook {} {why}; the outcome of the run does not change", hook.kind.name()))
    ));
}

/// How much is printed.
pub(in crate::cli) fn verbosity(common: &Common) -> Verbosity {
    match (common.quiet, common.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Normal,
    }
}

fn bad_events(typed: &str) -> Diagnostic {
    Diagnostic::error("usage/events", format!("`{typed}` is not a format for events"))
        .help("write --events ndjson for standard output, or --events ndjson=FILE")
}

fn both() -> Diagnostic {
    Diagnostic::error("usage/output", "events and the summary would both go to standard output")
        .help("write the events to a file: --events ndjson=FILE")
}

fn no_file(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("usage/events", format!("cannot write events to {}: {why}", path.display()))
        .help("name a file in a directory that exists")
}
