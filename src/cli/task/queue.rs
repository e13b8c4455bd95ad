//! `task run --all`: works on tasks one after the other, as one queue with common limits, one table and one exit code.

use crate::agent::ErrorClass;
use crate::chain::{Limits, limit_name, show_duration};
use crate::cli::args::RunArgs;
use crate::cli::config::Project;
use crate::cli::options::Common;
use crate::cli::respond::{Answered, Stopped, broken_journal};
use crate::cli::run as driven;
use crate::cli::run::execute::{QueueRun, exit_of, lock};
use crate::cli::task::args::TaskRunArgs;
use crate::cli::task::errors;
use crate::cli::task::facts::shared_ids;
use crate::engine::{AttemptOutcome, Event, EventKind, HumanNeeded, LimitKind, RunOutcome, Sig, State, Tokens, evolve};
use crate::exit::Exit;
use crate::journal::{Journal, JournalError, QUEUE_TITLE, RunLock};
use crate::plan::{JUDGED_ATTEMPTS, limits};
use crate::proc::Interrupts;
use crate::report::{Paint, QueueRow, print_error, queue_table};
use crate::source::Diagnostic;
use crate::task::next;
use crate::world::World;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// What the runs of a queue have done and used so far.
#[derive(Debug, Default)]
struct QueueProgress {
    /// When the queue began, by the clock that includes sleep.
    begun: Duration,
    used: Tokens,
    attempts: u32,
    /// The backends whose login has worked.
    logins: BTreeSet<String>,
    rows: Vec<QueueRow>,
    worst: Exit,
    /// The errors for which the last task was refused; empty if it was not.
    refused: Vec<Diagnostic>,
}

/// Why no further task is started.
enum Stop {
    /// No task is left.
    Done,
    /// What stopped this task would stop every other one.
    SameForAll(Exit),
    /// A limit of the whole queue was reached.
    Limit(LimitKind),
    /// A signal was received between two tasks.
    Signal(Sig),
}

/// The context of a queue.
pub(in crate::cli) struct Queue<'a> {
    pub(in crate::cli) world: &'a World,
    pub(in crate::cli) common: &'a Common,
    pub(in crate::cli) project: &'a Project,
    pub(in crate::cli) args: &'a TaskRunArgs,
    pub(in crate::cli) journal: &'a Journal,
    /// Builds the command line of a task's run from its name and its limits.
    pub(in crate::cli) to_run: &'a dyn Fn(String, Vec<String>) -> RunArgs,
}

/// Works on every task that can be worked on.
pub(in crate::cli) fn all(queue: &Queue<'_>) -> Answered {
    let Queue { world, common, project, args, .. } = *queue;
    let (whole, each) = match (
        limits("--limit", &args.options.bounds.limit, &project.shell),
        limits("--limit-each", &args.limit_each, &project.shell),
    ) {
        (Ok(whole), Ok(each)) => (whole, each),
        (whole, each) => {
            let faults = whole.err().into_iter().chain(each.err()).flatten().collect::<Vec<_>>();
            return Err(faults.into());
        }
    };
    // The config's limits still apply to each run, and so does the bound on attempts of a chain with a judge.
    let mut each = each.or(project.config.limits.clone());
    if whole.attempts.is_some() {
        each.attempts.get_or_insert(JUDGED_ATTEMPTS);
    }
    // Held until the end, so that no other run begins between two tasks.
    let lock = lock(world, common, QUEUE_TITLE, &project.root, args.wait)?;
    let mut sofar = QueueProgress { begun: world.uptime(), ..QueueProgress::default() };
    let stopped = loop {
        match work_on_next(queue, &lock, (&whole, &each), &mut sofar) {
            Ok(None) => {}
            Ok(Some(stop)) => break stop,
            Err(fault) => return Err(fault.into()),
        }
    };
    if sofar.rows.is_empty() {
        return Err(errors::nothing_to_run().into());
    }
    let by_itself = matches!(stopped, Stop::Done | Stop::SameForAll(_));
    if by_itself && !sofar.refused.is_empty() && sofar.rows.iter().all(QueueRow::has_no_run) {
        return Ok(Exit::Refused);
    }
    let exit = match &stopped {
        Stop::Done | Stop::SameForAll(_) => sofar.worst,
        Stop::Limit(_) => sofar.worst.or_worse(Exit::LimitReached),
        Stop::Signal(signal) => exit_of(RunOutcome::Interrupted { signal: *signal }),
    };
    if !common.quiet {
        let words = match stopped {
            Stop::Limit(limit) => {
                Some(format!("the limit `{}` of the queue was reached; the other tasks wait", limit.key()))
            }
            Stop::Signal(signal) => Some(format!("{signal} received; the other tasks wait")),
            Stop::SameForAll(Exit::HumanNeeded | Exit::Incomplete | Exit::LimitReached) => {
                Some("what stopped this task would stop the others; they wait".into())
            }
            Stop::Done | Stop::SameForAll(_) => None,
        };
        print_error(&queue_table(&sofar.rows, words.as_deref(), Paint::for_stderr(world)));
    }
    Ok(exit)
}

/// Works on the next task; returns why the queue stops, if it does.
fn work_on_next(
    queue: &Queue<'_>,
    lock: &RunLock,
    (whole, each): (&Limits, &Limits),
    sofar: &mut QueueProgress,
) -> Result<Option<Stop>, Diagnostic> {
    let Queue { world, common, args, journal, .. } = *queue;
    let broken = |error: JournalError| broken_journal(&error);
    if let Some(signal) = Interrupts::take_signal().and_then(Sig::of_number) {
        return Ok(Some(Stop::Signal(signal)));
    }
    let tasks = journal.tasks().all().map_err(broken)?;
    let mut done: Vec<String> = sofar.rows.iter().map(|row| row.task.clone()).collect();
    done.extend(shared_ids(&queue.project.root)?);
    let Some(id) = next(&tasks, &done).map(|task| task.id.clone()) else { return Ok(Some(Stop::Done)) };
    let left = match left(whole, sofar, world.uptime().saturating_sub(sofar.begun)) {
        Ok(left) => left,
        Err(limit) => return Ok(Some(Stop::Limit(limit))),
    };
    if !common.quiet {
        print_error(&format!("task {id}\n"));
    }
    let before = journal.tasks().runs_of(&id).map_err(broken)?.last().copied();
    let limits = written(&stricter(&left, each), args);
    let is_of_the_whole = |limit: LimitKind| is_stricter(limit, &left, each);
    let to_run = (queue.to_run)(id.clone(), limits);
    let lock = lock.share().map_err(broken)?;
    let in_queue = QueueRun { logins: sofar.logins.iter().cloned().collect(), lock };
    let exit = match driven::run_of_queue(world, common, &to_run, in_queue) {
        // The errors are not those of one task, then: every other task would be refused, too.
        Err(Stopped::Refused(faults)) if faults == sofar.refused => {
            if !common.quiet {
                print_error("refused for the same reason; the other tasks wait\n");
            }
            return Ok(Some(Stop::SameForAll(Exit::Refused)));
        }
        Err(Stopped::Refused(faults)) => {
            sofar.refused.clone_from(&faults);
            Stopped::Refused(faults).exit(world)
        }
        Err(stopped) => stopped.exit(world),
        Ok(exit) => {
            sofar.refused.clear();
            exit
        }
    };
    let run = journal.tasks().runs_of(&id).map_err(broken)?.last().copied().filter(|run| before != Some(*run));
    let events = match run {
        Some(run) => journal.events().of(run).map_err(broken)?,
        None => Vec::new(),
    };
    let status = journal.tasks().get(&id).map_err(broken)?.map_or("deleted", |task| task.status.name());
    let title = tasks.iter().find(|task| task.id == id).map_or_else(String::new, |task| task.title.clone());
    sofar.rows.push(QueueRow::of(id, title, status, run, &events));
    if let Some(run) = run {
        sofar.count(&events, &journal.runs().outline(run).map_err(broken)?.unwrap_or_default());
    }
    // One task may be refused, for example because of its specification. The others are still worked on.
    let exit = if exit == Exit::Refused { Exit::Incomplete } else { exit };
    sofar.worst = sofar.worst.or_worse(exit);
    Ok(stops(exit, &events, &is_of_the_whole))
}

impl QueueProgress {
    fn count(&mut self, events: &[Event], outline: &crate::plan::Outline) {
        let mut state = State::default();
        for event in events {
            evolve(&mut state, &event.event);
            if let EventKind::AttemptFinished { at, finished, .. } = &event.event
                && finished.agent.tokens.is_some_and(|tokens| tokens.total() > 0)
            {
                let step = outline.step(at.step);
                self.logins.extend(step.and_then(|step| step.backend.clone()));
            }
        }
        self.used = self.used.plus(&state.billed());
        self.attempts = self.attempts.saturating_add(state.charged());
    }
}

/// Returns why the end of a run stops the queue, too: a signal, a service that is unavailable for too long, a refused
/// login, or a limit of the whole queue.
fn stops(exit: Exit, events: &[Event], is_of_the_whole: &dyn Fn(LimitKind) -> bool) -> Option<Stop> {
    let outcome = events.iter().rev().find_map(|event| match event.event {
        EventKind::RunFinished { outcome } => Some(outcome),
        _ => None,
    });
    let refused = events.iter().rev().find_map(|event| match &event.event {
        EventKind::AttemptFinished { outcome, finished, .. } => {
            Some(finished.agent.error_class == Some(ErrorClass::Credentials) && *outcome != AttemptOutcome::Completed)
        }
        _ => None,
    });
    match outcome {
        Some(RunOutcome::LimitReached { limit }) if is_of_the_whole(limit) => Some(Stop::Limit(limit)),
        Some(RunOutcome::LimitReached { limit: LimitKind::Wait } | RunOutcome::OutOfResources { .. }) => {
            Some(Stop::SameForAll(exit))
        }
        Some(RunOutcome::NeedsHuman { reason: HumanNeeded::Login, .. }) => Some(Stop::SameForAll(exit)),
        Some(RunOutcome::Failed { .. }) if refused == Some(true) => Some(Stop::SameForAll(exit)),
        _ if !matches!(exit, Exit::Success | Exit::Incomplete | Exit::HumanNeeded | Exit::LimitReached) => {
            Some(Stop::SameForAll(exit))
        }
        _ => None,
    }
}

/// Whether the rest of a limit of the queue is at most the limit of each run. If so, the queue's limit was reached.
fn is_stricter(limit: LimitKind, left: &Limits, each: &Limits) -> bool {
    fn within<T: PartialOrd>(left: Option<T>, each: Option<T>) -> bool {
        left.is_some_and(|left| each.is_none_or(|each| left <= each))
    }
    let cost = |limits: &Limits| limits.cost.as_ref().map(|(cost, _)| *cost);
    let tokens = |limits: &Limits| limits.tokens.as_ref().map(|(tokens, _)| *tokens);
    match limit {
        LimitKind::Time => within(left.time, each.time),
        LimitKind::Cost => within(cost(left), cost(each)),
        LimitKind::Tokens => within(tokens(left), tokens(each)),
        LimitKind::Attempts => within(left.attempts, each.attempts),
        // A limit on one wait, and never a sum.
        LimitKind::Wait => false,
    }
}

/// What is left of the limits of the whole queue, or the limit that is used up.
fn left(whole: &Limits, sofar: &QueueProgress, passed: Duration) -> Result<Limits, LimitKind> {
    let mut left = whole.clone();
    if let Some(time) = &mut left.time {
        *time = time.checked_sub(passed).filter(|time| time.as_millis() > 0).ok_or(LimitKind::Time)?;
    }
    if let Some((cost, _)) = &mut left.cost {
        *cost = Some(sofar.used.cost_left(Some(*cost))).filter(|cost| *cost > 0.0).ok_or(LimitKind::Cost)?;
    }
    if let Some((tokens, _)) = &mut left.tokens {
        let rest = tokens.checked_sub(sofar.used.total()).filter(|rest| *rest > 0);
        *tokens = rest.ok_or(LimitKind::Tokens)?;
    }
    if let Some(attempts) = &mut left.attempts {
        let rest = attempts.checked_sub(sofar.attempts).filter(|rest| *rest > 0);
        *attempts = rest.ok_or(LimitKind::Attempts)?;
    }
    Ok(left)
}

/// The smaller of both limits, for each kind.
fn stricter(left: &Limits, each: &Limits) -> Limits {
    fn least<T: Copy + PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
        match (one, other) {
            (Some(one), Some(other)) => Some(if other < one { other } else { one }),
            (one, other) => one.or(other),
        }
    }
    let cost = least(left.cost.as_ref().map(|(cost, _)| *cost), each.cost.as_ref().map(|(cost, _)| *cost));
    let tokens =
        least(left.tokens.as_ref().map(|(tokens, _)| *tokens), each.tokens.as_ref().map(|(tokens, _)| *tokens));
    let at = |limits: &Limits| limits.cost.as_ref().map(|(_, at)| at.clone());
    let of = |limits: &Limits| limits.tokens.as_ref().map(|(_, at)| at.clone());
    Limits {
        time: least(left.time, each.time),
        cost: cost.zip(at(left).or_else(|| at(each))),
        tokens: tokens.zip(of(left).or_else(|| of(each))),
        attempts: least(left.attempts, each.attempts),
        ..Limits::default()
    }
}

/// The limits as they are typed. A limit that is not a sum applies to each run as it was typed.
fn written(limits: &Limits, args: &TaskRunArgs) -> Vec<String> {
    let sums = ["time", "cost", "tokens", "attempts"];
    let others = args
        .options
        .bounds
        .limit
        .iter()
        .chain(&args.limit_each)
        .filter(|text| limit_name(text).is_none_or(|name| !sums.contains(&name)));
    let sums = [
        limits.time.map(|time| format!("time={}", show_duration(time))),
        limits.cost.as_ref().map(|(cost, _)| format!("cost={cost}")),
        limits.tokens.as_ref().map(|(tokens, _)| format!("tokens={tokens}")),
        limits.attempts.map(|attempts| format!("attempts={attempts}")),
    ];
    sums.into_iter().flatten().chain(others.cloned()).collect()
}

/// Waits until no other run works in the root.
pub(in crate::cli) fn wait_for_others(world: &World, common: &Common, root: &Path) -> Result<(), Stopped> {
    lock(world, common, "task run", root, true).map(drop)
}
