//! `runs log`: shows a run as the live console shows it, or what one attempt printed.

use crate::agent::Reader;
use crate::cli::options::Common;
use crate::cli::respond::{Answered, answer, json_line};
use crate::cli::run::execute::resume_line;
use crate::cli::run::output::{last_words, verbosity};
use crate::cli::runs::args::LogArgs;
use crate::cli::runs::decode::reader_of;
use crate::cli::runs::history::{is_alive, journal, meant, state};
use crate::cli::runs::place::{AttemptPlace, RunPlace};
use crate::cli::runs::print::{LogCut, show};
use crate::cli::runs::{batch, broken};
use crate::engine::{AttemptRow, EventKind, RunKind, RunRow, RunState, RunSummary};
use crate::exit::Exit;
use crate::journal::{Journal, Lease, RunLock};
use crate::plan::Outline;
use crate::report::{Console, Paint, next_of_part, print_error};
use crate::source::Diagnostic;
use crate::world::World;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much of what an attempt has printed so far is shown when it is attached to, in bytes.
const TAIL: u64 = 4 << 10;
/// The interval at which a log that is followed is read.
const LOOK: Duration = Duration::from_millis(100);

/// Carries out `runs log`.
pub(super) fn log(world: &World, common: &Common, args: &LogArgs, as_json: bool) -> Answered {
    let place = RunPlace::of(args.run.as_deref(), args.attempt.as_deref())?;
    let (project, journal) = journal(world, common)?;
    let (row, _) = meant(&journal, place.run, |_, _| true, "yet")?;
    let shown = match (args.file(), place.attempt) {
        (None, None) if !as_json => {
            let follows_queue = args.follow && place.run.is_none();
            let queue = if follows_queue { journal.lease().map_err(broken)? } else { None };
            let player = Player { world, common, journal: &journal, root: &project.root, from_now: false, queue };
            player.runs(row, args.follow).map(drop)
        }
        (file, attempt) => {
            let row = (attempt, row);
            one_attempt(world, &journal, row, args.follow, file, as_json)
        }
    };
    match shown {
        Ok(()) | Err(LogCut::ReaderGone) => Ok(Exit::Success),
        Err(LogCut::Failed(error)) => Err(error.into()),
    }
}

fn console<'a>(world: &World, common: &Common, journal: &Journal, outline: &'a Outline, run: i64) -> Console<'a> {
    let folder = world.relative(&journal.files().run_folder(run));
    Console::new(outline, None, Paint::for_stdout(world).still(), verbosity(common), Path::new(&folder))
}

/// Shows runs from the journal, as the live console showed them.
pub(in crate::cli) struct Player<'a> {
    pub(in crate::cli) world: &'a World,
    pub(in crate::cli) common: &'a Common,
    pub(in crate::cli) journal: &'a Journal,
    pub(in crate::cli) root: &'a Path,
    /// Whether the attempts that have ended are left out, and all but the end of what the current attempt has printed.
    pub(in crate::cli) from_now: bool,
    /// The process whose later runs are shown, too: a queue begins one after another.
    pub(in crate::cli) queue: Option<Lease>,
}

impl Player<'_> {
    /// Shows a run, and the runs that the queue begins after it. Returns their numbers.
    pub(in crate::cli) fn runs(&self, mut row: RunRow, follow: bool) -> Result<Vec<i64>, LogCut> {
        let mut shown = Vec::new();
        loop {
            self.run(&row, follow)?;
            shown.push(row.id);
            match self.next_run(row.id)? {
                Some(next) => row = next,
                None => return Ok(shown),
            }
        }
    }

    /// Waits for the next run of the queue; `None` if there is none.
    pub(in crate::cli) fn next_run(&self, id: i64) -> Result<Option<RunRow>, Diagnostic> {
        let Some(queue) = self.queue else { return Ok(None) };
        loop {
            // Checked before the journal is read, so that a run that was begun before the end is not missed.
            let holder = RunLock::holder(self.root).map_err(broken)?;
            let at_work = is_alive(queue) && holder.and_then(|one| one.pid) == Some(queue.pid);
            let lease = self.journal.lease().map_err(broken)?;
            let is_its = |lease: &Lease| (lease.pid, lease.start_time) == (queue.pid, queue.start_time);
            // A queue holds the lock from its first run to its last: every run between them is its own.
            match lease.filter(is_its).filter(|lease| lease.run > id) {
                Some(_) => return self.journal.runs().after(id).map_err(broken),
                None if !at_work => return Ok(None),
                None => std::thread::sleep(LOOK),
            }
        }
    }

    /// Returns the number of the event with which the last attempt of a run began; 0 if there was none.
    fn last_attempt(&self, run: i64) -> Result<u64, Diagnostic> {
        let planned = self.journal.events().last(run, &["attemptPlanned"]).map_err(broken)?;
        Ok(planned.map_or(0, |event| event.seq))
    }

    /// Shows one run; with `follow` until it has ended.
    fn run(&self, row: &RunRow, follow: bool) -> Result<(), LogCut> {
        if row.kind == RunKind::Batch {
            let is_at_work = || Ok(follow && current(self.journal, row)? == RunState::Running);
            return batch::play(self.world, self.common, self.journal, row.id, &is_at_work);
        }
        let outline = self.journal.runs().outline(row.id).map_err(broken)?.ok_or_else(|| too_old(row.id))?;
        let mut console = console(self.world, self.common, self.journal, &outline, row.id);
        let (mut open, mut seq, mut summary): (Option<LogOutput>, u64, RunSummary) = (None, 0, RunSummary::default());
        let first = if self.from_now { self.last_attempt(row.id)? } else { 0 };
        loop {
            // Checked before the last read, so that nothing written before the end is missed.
            let at_work = follow && current(self.journal, row)? == RunState::Running;
            for event in self.journal.events().after(row.id, seq).map_err(broken)? {
                seq = event.seq;
                summary.see(&event);
                let ends = matches!(event.event, EventKind::AttemptFinished { .. } | EventKind::RunResumed { .. });
                if let Some(output) = open.take_if(|_| ends) {
                    let lengths = match &event.event {
                        EventKind::AttemptFinished { finished, .. } => {
                            Some((finished.stdout_bytes, finished.stderr_bytes))
                        }
                        _ => None,
                    };
                    output.finish(self.world, self.journal, row.id, lengths)?;
                }
                let lines = console.event(&event);
                if event.seq < first && !matches!(event.event, EventKind::RunStarted { .. }) {
                    continue;
                }
                if let EventKind::AttemptPlanned { at, .. } | EventKind::AttemptPrepared { at, .. } = &event.event
                    && !self.common.quiet
                {
                    let reader = reader_of(self.journal, &outline, row.id, (at.step, at.attempt));
                    let output = LogOutput::of(self.journal, row.id, (at.step, &at.name, at.attempt), reader);
                    open = Some(if event.seq == first { output.at_its_end(self)? } else { output });
                }
                show(lines.as_bytes())?;
            }
            if let Some(output) = &mut open {
                output.print(self.journal)?;
            }
            if !at_work {
                break;
            }
            std::thread::sleep(LOOK);
        }
        if let Some(output) = open {
            output.finish(self.world, self.journal, row.id, None)?;
        }
        if !self.common.quiet {
            let resume = resume_line(self.world, self.common, self.root, row.id);
            let (store, trees) = batch::trees_of(self.journal, row, summary.trees.clone())?;
            let changes = store.files_of_run(&trees);
            let part = row.batch.map(|_| {
                next_of_part(row, current(self.journal, row).unwrap_or(RunState::Incomplete)).unwrap_or_default()
            });
            let paint = Paint::for_stdout(self.world);
            show(last_words(&summary, changes.as_deref(), &outline, (&resume, part), paint).as_bytes())?;
        }
        Ok(())
    }
}

/// What an attempt prints, as the console shows it: standard output decoded if the run decoded it, then standard error.
struct LogOutput {
    step: u32,
    name: String,
    attempt: u32,
    stdout: (PathBuf, u64),
    stderr: Option<(PathBuf, u64)>,
    reader: Option<Reader>,
}

impl LogOutput {
    fn of(journal: &Journal, run: i64, (step, name, attempt): (u32, &str, u32), reader: Option<Reader>) -> Self {
        let folder = journal.files().attempt_folder(run, step, name, attempt);
        let file = |name: &str| (folder.path().join(name), 0);
        let (stdout, stderr) = (file("stdout.log"), Some(file("stderr.log")));
        Self { step, name: name.into(), attempt, stdout, stderr, reader }
    }

    /// One file of the attempt instead, byte for byte.
    fn only(self, file: &str) -> Self {
        let path = self.stdout.0.with_file_name(file);
        Self { stdout: (path, 0), stderr: None, reader: None, ..self }
    }

    /// Leaves out all but the end of what it has printed so far, from the start of a line on.
    fn at_its_end(mut self, player: &Player<'_>) -> Result<Self, Diagnostic> {
        for (path, offset) in std::iter::once(&mut self.stdout).chain(&mut self.stderr) {
            let from = player.world.disk().size_of(path).unwrap_or(0).saturating_sub(TAIL);
            if from > 0 {
                let piece = player.journal.files().piece(path, from).map_err(broken)?;
                let line = piece.iter().position(|byte| *byte == b'\n').map_or(0, |end| end as u64 + 1);
                *offset = from + line;
            }
        }
        Ok(self)
    }

    /// Prints what is new.
    fn print(&mut self, journal: &Journal) -> Result<(), LogCut> {
        if let Some(reader) = &mut self.reader {
            loop {
                let piece = journal.files().piece(&self.stdout.0, self.stdout.1).map_err(broken)?;
                if piece.is_empty() {
                    break;
                }
                self.stdout.1 += piece.len() as u64;
                let mut decoded = String::new();
                reader.feed(&piece, &mut |text| decoded.push_str(text));
                show(decoded.as_bytes())?;
            }
        } else {
            pass_on(journal, &mut self.stdout)?;
        }
        self.stderr.as_mut().map_or(Ok(()), |stderr| pass_on(journal, stderr))
    }

    /// Prints the rest, and says what is missing of the lengths that were recorded.
    fn finish(mut self, world: &World, journal: &Journal, run: i64, lengths: Option<(u64, u64)>) -> Result<(), LogCut> {
        self.print(journal)?;
        if let Some(reader) = self.reader {
            let mut decoded = String::new();
            let _ = reader.finish(&mut |text| decoded.push_str(text));
            show(decoded.as_bytes())?;
        }
        say_missing(world, journal, run, (self.step, &self.name, self.attempt), lengths);
        Ok(())
    }
}

/// Shows one attempt: what it printed, or one of its files.
fn one_attempt(
    world: &World,
    journal: &Journal,
    (place, run): (Option<AttemptPlace>, RunRow),
    follow: bool,
    file: Option<&str>,
    as_json: bool,
) -> Result<(), LogCut> {
    let attempts = journal.runs().attempts(run.id).map_err(broken)?;
    let attempt = place.map_or_else(|| attempts.last(), |place| place.find(&attempts));
    let attempt = attempt.ok_or_else(|| no_attempt(run.id, place, &attempts))?;
    if as_json {
        let path = Path::new(&attempt.folder).join(file.unwrap_or("stdout.log"));
        let _ = answer(&json_line(json!({ "run": run.id, "attempt": attempt, "path": path })));
        return Ok(());
    }
    let outline = journal.runs().outline(run.id).map_err(broken)?;
    let at = (attempt.step, attempt.attempt);
    let reader = outline.as_ref().and_then(|outline| reader_of(journal, outline, run.id, at));
    let mut output = LogOutput::of(journal, run.id, (attempt.step, &attempt.name, attempt.attempt), reader);
    if let Some(name) = file {
        output = output.only(name);
    }
    loop {
        let over = !follow || is_over(journal, &run, attempt)?;
        output.print(journal)?;
        if over {
            break;
        }
        std::thread::sleep(LOOK);
    }
    match &output.stdout {
        (path, 0) if file.is_some() && !path.exists() => {
            Err(no_log(&format!("attempt {}.{} of run {}", attempt.step, attempt.attempt, run.id), path).into())
        }
        _ => output.finish(
            world,
            journal,
            run.id,
            journal.events().lengths(run.id, attempt.step, attempt.attempt).map_err(broken)?,
        ),
    }
}

/// Reports which part of a shown output is missing.
fn say_missing(
    world: &World,
    journal: &Journal,
    run: i64,
    (step, name, attempt): (u32, &str, u32),
    lengths: Option<(u64, u64)>,
) {
    let folder = journal.files().attempt_folder(run, step, name, attempt);
    if let Some(words) = lengths.and_then(|(stdout, stderr)| folder.missing(stdout, stderr)) {
        let words = format!("! the rest is lost: {words}");
        print_error(&format!("{}\n", Paint::for_stderr(world).warn(&words)));
    }
}

/// The state of a run now.
fn current(journal: &Journal, row: &RunRow) -> Result<RunState, Diagnostic> {
    state(journal, &journal.runs().get(row.id).map_err(broken)?.unwrap_or_else(|| row.clone()))
}

/// Whether an attempt prints nothing more: it has ended, or its run has died.
fn is_over(journal: &Journal, row: &RunRow, attempt: &AttemptRow) -> Result<bool, Diagnostic> {
    if attempt.outcome.is_some() || journal.runs().is_over(row.id, attempt.step, attempt.attempt).map_err(broken)? {
        return Ok(true);
    }
    Ok(current(journal, row)? != RunState::Running)
}

/// Prints a log from the offset on.
fn pass_on(journal: &Journal, (path, offset): &mut (PathBuf, u64)) -> Result<(), LogCut> {
    loop {
        let piece = journal.files().piece(path, *offset).map_err(broken)?;
        if piece.is_empty() {
            return Ok(());
        }
        *offset += piece.len() as u64;
        show(&piece)?;
    }
}

fn no_attempt(run: i64, place: Option<AttemptPlace>, attempts: &[AttemptRow]) -> Diagnostic {
    let last = attempts.last().map_or_else(
        || "it has no attempts".into(),
        |last| format!("its last attempt is {}.{}; `forkhestra runs show {run}` lists all", last.step, last.attempt),
    );
    let what = place.map_or_else(|| "attempt".into(), |place| place.to_string());
    Diagnostic::error("runs/no-attempt", format!("run {run} has no {what}")).help(last)
}

fn no_log(attempt: &str, path: &Path) -> Diagnostic {
    let what = match path.file_stem().and_then(|name| name.to_str()) {
        Some("prompt") => "prompt",
        Some("final") => "final message",
        _ => "such output",
    };
    Diagnostic::error("runs/no-log", format!("{attempt} has no {what}: there is no {}", path.display()))
        .help("checks and some agents have no prompt, and only backends with structured output have a final message")
}

fn too_old(run: i64) -> Diagnostic {
    Diagnostic::error("runs/too-old", format!("run {run} was recorded by a version that stored no outline"))
        .help(format!("`forkhestra runs events {run}` shows what it did store"))
}
