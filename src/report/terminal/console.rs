//! The console: our own lines about a run, derived from its events. The output of agents does not pass through it.

use crate::chain::{Role, show_duration};
use crate::engine::{
    At, AttemptOutcome, Cut, Ending, Event, EventKind, Feedback, Finished, LastAttempt, Notice, RunOutcome, RunSummary,
    Sig, Tokens, WaitReason,
};
use crate::plan::{Outline, OutlineStep, Plan};
use crate::report::closing::used_words;
use crate::report::format::{
    amount, edited_words, first_line, judge_words, leftover_names, local_time, message_words, outcome_words,
    prepared_words, refused_words, round_words, seconds, waiting_words,
};
use crate::report::paint::Paint;
use crate::report::reasons::{excess, iterations, limit_words, reason};
use crate::report::text::dry_run::{prompt_rows, prompt_text};
use crate::report::verdicts::{trend, unclear_words, verdict_lines};
use crate::source::counted;
use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// The maximum number of lines that are shown of an agent in a crash loop.
const EXCERPT: usize = 10;

/// How much is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Only failures.
    Quiet,
    /// What starts, what ends, and why.
    Normal,
    /// Also prompts and process ids.
    Verbose,
}

/// The state from which the lines about a run are derived.
#[derive(Debug)]
pub struct Console<'a> {
    pub(in crate::report) outline: &'a Outline,
    /// The plan, where it is known; it has the prompts.
    plan: Option<&'a Plan>,
    pub(in crate::report) paint: Paint,
    pub(in crate::report) verbosity: Verbosity,
    folder: String,
    /// The summary of the run so far.
    pub(in crate::report) summary: RunSummary,
    /// The attempt that is running now.
    pub(in crate::report) under_way: Option<At>,
    /// What that attempt has used so far.
    pub(in crate::report) spending: Option<Tokens>,
    /// The errors that each check found in its last attempt, by step.
    errors: HashMap<u32, Vec<String>>,
    pid: i32,
    /// The last signal with which the running attempt was asked to end.
    sent: Option<Sig>,
    /// Whether the current line of the terminal shows a countdown.
    counting: bool,
    /// How many messages came after the last agent was started.
    unread: u32,
}

impl<'a> Console<'a> {
    /// Returns the console of a run, whose transcripts are in `folder`. The plan has the prompts that `-v` shows.
    #[must_use]
    pub fn new(
        outline: &'a Outline,
        plan: Option<&'a Plan>,
        paint: Paint,
        verbosity: Verbosity,
        folder: &Path,
    ) -> Self {
        let folder = folder.display().to_string();
        Self {
            outline,
            plan,
            paint,
            verbosity,
            folder,
            summary: RunSummary::default(),
            under_way: None,
            spending: None,
            errors: HashMap::new(),
            pid: 0,
            sent: None,
            counting: false,
            unread: 0,
        }
    }

    /// Returns the prefix of each line of an agent's output, for `--prefix`.
    pub(super) fn prefix(&self, name: &str, on_terminal: bool) -> String {
        let prefix = format!("{name} {} ", self.paint.sign("│", "|"));
        if on_terminal { self.paint.dim(&prefix) } else { prefix }
    }

    /// Returns the outline of the plan.
    #[must_use]
    pub fn outline(&self) -> &Outline {
        self.outline
    }

    /// Returns the lines about an event; often empty.
    pub fn event(&mut self, event: &Event) -> String {
        self.summary.see(event);
        let text = match &event.event {
            EventKind::RunStarted { steps, task, .. } => {
                let task = task.as_ref().map(|task| format!("  task {}: {}\n", task.id, first_line(&task.title)));
                self.run_started(event.run, *steps) + &task.unwrap_or_default()
            }
            EventKind::RunResumed { .. } => self.run_resumed(event.run),
            EventKind::RoundStarted { round, rounds, .. } => self.round_started(*round, *rounds),
            EventKind::AttemptPlanned { at, iterations, retry, .. } => self.attempt_planned(at, *iterations, *retry),
            EventKind::AttemptPrepared { how, .. } => self.paint.dim(&format!("  {}\n", prepared_words(how))),
            EventKind::UsageReported { tokens, .. } => {
                self.spending = Some(*tokens);
                String::new()
            }
            EventKind::AttemptStarted { at, pid, .. } => {
                (self.pid, self.sent) = (*pid, None);
                (self.under_way, self.spending) = (Some(at.clone()), None);
                if self.step(at).is_some_and(OutlineStep::takes_messages) {
                    self.unread = 0;
                }
                if self.verbosity == Verbosity::Verbose {
                    self.paint.dim(&format!("  pid {pid}\n"))
                } else {
                    String::new()
                }
            }
            EventKind::AttemptPaused { at, signal } => self
                .warning(&format!("{} was stopped by signal {signal}; kill -CONT {} continues it", at.name, self.pid)),
            EventKind::AttemptContinued { at } => self.warning(&format!("{} continues", at.name)),
            EventKind::WaitStarted { at, reason, wait_ms, until } => {
                self.waiting(at, *reason, *wait_ms, until.as_deref())
            }
            EventKind::RunPaused => {
                // The terminal has just echoed `^Z`.
                let echo = if self.paint.terminal { "\n" } else { "" };
                format!("{echo}{}", self.warning("paused: the agent and all timers are stopped until SIGCONT (fg)"))
            }
            EventKind::RunContinued => self.warning("continued"),
            EventKind::AttemptTimedOut { at, reason: why, signal: with } => self.timed_out(at, *why, *with),
            EventKind::RunStopping { reason: why, signal: with } => self.stopping(*why, *with),
            EventKind::AttemptFinished { at, outcome, marker, finished } => {
                (self.under_way, self.spending) = (None, None);
                self.attempt_finished(at, outcome, *marker, finished)
            }
            EventKind::VerdictGiven { verdict, converged, .. } => {
                verdict_lines(verdict, *converged, self.summary.totals.rejections, self.paint)
            }
            EventKind::VerdictUnclear { at, reason: why, asked } => self.warning(&unclear_words(&at.name, why, *asked)),
            EventKind::TemplatesEdited { files, accepted: taken, error: why } => {
                self.warning(&edited_words(files, *taken, why.as_deref()))
            }
            EventKind::MessageReceived { text, .. } => {
                self.unread += 1;
                format!("{} {}\n", self.paint.sign("»", ">"), message_words(text))
            }
            EventKind::TasksProposed { tasks, unread, .. } => {
                let count = counted(tasks.len(), "task");
                let mut text = format!("  {count} proposed; `forkhestra task list` shows what is new\n");
                for line in unread {
                    text.push_str(&self.warning(&format!("left out: {line}")));
                }
                text
            }
            EventKind::WorkUnchanged { at } => self.warning(&format!("{} changed nothing; asking again", at.name)),
            EventKind::RoundFinished { round, ended_by: Some(feedback), .. } => self.round_failed(*round, feedback),
            EventKind::StepSkipped { step, name, reason: why, .. } => {
                self.warning(&format!("{step}/{} {name}: skipped, {why}", self.outline.steps.len()))
            }
            EventKind::RunFinished { outcome } => {
                let text = self.run_finished(*outcome);
                // A failure is printed even in quiet mode.
                let said = self.verbosity > Verbosity::Quiet || *outcome != RunOutcome::Succeeded;
                return if said { text } else { String::new() };
            }
            _ => String::new(),
        };
        if self.verbosity == Verbosity::Quiet || text.is_empty() {
            return String::new();
        }
        // The text replaces a countdown.
        if std::mem::take(&mut self.counting) { format!("\r\x1b[K{text}") } else { text }
    }

    fn warning(&self, words: &str) -> String {
        format!("{}\n", self.paint.warn(&format!("! {words}")))
    }

    fn waiting(&self, at: &At, reason: WaitReason, wait_ms: u64, until: Option<&str>) -> String {
        let until = until.map_or_else(String::new, |until| format!(", until {}", local_time(until)));
        let words = format!(
            "{}: {}, {}{until}, then the same iteration again",
            at.name,
            waiting_words(reason),
            seconds(wait_ms)
        );
        self.warning(&words)
    }

    /// Returns the line that counts a wait down on a terminal, and when to draw it again.
    pub(super) fn countdown(&mut self, left: Duration) -> (String, Option<Duration>) {
        if !self.paint.terminal || self.verbosity == Verbosity::Quiet {
            return (String::new(), None);
        }
        self.counting = true;
        let left = Duration::from_secs(u64::try_from(left.as_millis().div_ceil(1000)).unwrap_or(0));
        let words = format!("  continues in {}", show_duration(left));
        (format!("\r{}\x1b[K", self.paint.dim(&words)), Some(Duration::from_secs(1)))
    }

    /// Returns the lines about a notice, which is not an event.
    pub(super) fn notice(&self, notice: &Notice<'_>) -> String {
        match notice {
            // It may be an attack, so it is printed even in quiet mode.
            Notice::PutAside { name, aside } => self.warning(&format!(
                "the directory of this attempt of {name} existed before it started; nothing in it counts, and it was \
                 moved to {aside}"
            )),
            _ if self.verbosity == Verbosity::Quiet => String::new(),
            Notice::MarkerInPrompt { name, lines } => {
                let (marker, lines) = (&self.outline.marker, counted(*lines, "line"));
                self.warning(&format!(
                    "the prompt of {name} has {marker} alone on {lines}; that many in its output are ignored as an echo"
                ))
            }
            Notice::Prompt(text) if self.verbosity == Verbosity::Verbose => prompt_text(text, self.paint),
            Notice::Uncommitted(files) => self.uncommitted(files),
            Notice::Prompt(_) | Notice::NoProposal(_) | Notice::Claimed { .. } => String::new(),
        }
    }

    fn uncommitted(&self, files: &[String]) -> String {
        const NAMED: usize = 3;
        let named = files.iter().take(NAMED).map(|file| first_line(file)).collect::<Vec<_>>().join(", ");
        let more = if files.len() > NAMED { ", …" } else { "" };
        let count = counted(files.len(), "file");
        self.warning(&format!(
            "{count} had uncommitted changes when this work began; those changes are not part of it: {named}{more}"
        ))
    }

    /// Returns the end of what an agent in a crash loop printed.
    pub(super) fn excerpt(&self, stream: &str, text: &str) -> String {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        if lines.is_empty() {
            return String::new();
        }
        let last = lines.iter().skip(lines.len().saturating_sub(EXCERPT));
        let heading = self.paint.dim(&format!("the end of its {stream}:"));
        last.fold(format!("  {heading}\n"), |text, line| text + "    " + &first_line(line) + "\n")
    }

    fn title(&self) -> &str {
        self.outline.name.as_deref().unwrap_or(&self.outline.chain)
    }

    fn run_started(&self, run: i64, steps: u32) -> String {
        let steps = counted(steps, "step");
        let about = format!("(run {run}, {steps})");
        let chain = match self.outline.name {
            Some(_) => format!("  {}\n", self.paint.dim(&self.outline.chain)),
            None => String::new(),
        };
        format!("{} {} {}\n{chain}", self.paint.sign("●", "*"), self.paint.bold(self.title()), self.paint.dim(&about))
    }

    fn run_resumed(&self, run: i64) -> String {
        let before = counted(self.summary.totals.planned, "attempt");
        let about = format!("(run {run} resumed, after {before} and {})", seconds(self.summary.watch.milliseconds()));
        format!("{} {} {}\n", self.paint.sign("●", "*"), self.paint.bold(self.title()), self.paint.dim(&about))
    }

    fn round_started(&self, round: u32, rounds: u32) -> String {
        if rounds == 1 {
            return String::new();
        }
        let sign = self.paint.sign("↻", "~");
        format!("{}\n", self.paint.bold(&format!("{sign} round {round} of {rounds}")))
    }

    /// Returns the label of an attempt: `2.4 coder, iteration 1 of 3` for the fourth attempt of step 2.
    fn label(&self, at: &At, iterations: Option<u32>) -> String {
        let iteration = iterations.map_or_else(String::new, |count| format!(", iteration {} of {count}", at.iteration));
        format!("{} {}{iteration}", self.paint.dim(&format!("{}.{}", at.step, at.attempt)), self.paint.bold(&at.name))
    }

    /// Returns the label of an attempt, with its place in its loop.
    pub(in crate::report) fn place(&self, at: &At) -> String {
        self.label(at, self.iterations(at))
    }

    fn step(&self, at: &At) -> Option<&OutlineStep> {
        self.outline.step(at.step)
    }

    /// Returns the maximum number of iterations of an attempt's loop; `None` outside of loops.
    pub(in crate::report) fn iterations(&self, at: &At) -> Option<u32> {
        iterations(at, &self.summary.totals, self.outline)
    }

    /// Returns whether a check is optional; `None` for an agent.
    fn is_check(&self, at: &At) -> Option<bool> {
        let step = self.step(at)?;
        step.check.as_ref().map(|_| step.optional)
    }

    fn attempt_planned(&self, at: &At, iterations: Option<u32>, retry: u32) -> String {
        let again = if retry > 0 { format!(", retry {retry} of 3") } else { String::new() };
        let line = match self.step(at).and_then(|step| step.check.as_deref()) {
            Some(line) => self.paint.dim(&format!("  $ {}", first_line(line))),
            None => String::new(),
        };
        let step = self.plan.and_then(|plan| plan.step(at.step));
        let prompt = match step {
            Some(step) if self.verbosity == Verbosity::Verbose && !step.is_check() => prompt_rows(step, self.paint),
            _ => String::new(),
        };
        format!("{} {}{again}{line}\n{prompt}", self.paint.sign("▶", ">"), self.label(at, iterations))
    }

    fn timed_out(&mut self, at: &At, why: Cut, with: Sig) -> String {
        if self.sent.replace(with).is_some() {
            return self.still_running(&at.name, with);
        }
        let step = self.step(at);
        let time = |time: Option<&String>| time.cloned().unwrap_or_default();
        let what = match why {
            Cut::Timeout => format!("timeout of {} has expired", time(step.and_then(|step| step.timeout.as_ref()))),
            Cut::Idle => format!(
                "idle timeout of {} has expired: no output and no CPU time",
                time(step.and_then(|step| step.idle_timeout.as_ref()))
            ),
            Cut::Start => format!(
                "start timeout of {} has expired: no output yet",
                time(step.and_then(|step| step.start_timeout.as_ref()))
            ),
            Cut::Lingering => "marker was printed, but it does not exit".into(),
        };
        self.warning(&format!("{}: the {what}; sending {with}", at.name))
    }

    /// Returns the line about a stronger signal, after an earlier one did not end the attempt.
    fn still_running(&self, name: &str, with: Sig) -> String {
        let what = if with == Sig::Kill { "killing it".into() } else { format!("sending {with}") };
        self.warning(&format!("{name} is still running; {what}"))
    }

    fn stopping(&mut self, why: Ending, with: Option<Sig>) -> String {
        let before = self.sent;
        self.sent = with.or(before);
        if let (Some(before), Some(with), Some(at)) = (before, with, &self.under_way)
            // After SIGINT or SIGHUP only a second signal kills at once.
            && (with == Sig::Term || before == Sig::Term)
        {
            return self.still_running(&at.name, with);
        }
        let once_more = if before.is_some() { " again" } else { "" };
        let asked = matches!(why, Ending::Signal { .. });
        let why_is_ctrl_c = why == Ending::Signal { signal: Sig::Int };
        let why = match why {
            Ending::Signal { signal } => format!("{signal} received{once_more}"),
            Ending::OutputClosed => "standard output was closed".into(),
            Ending::Limit { limit } => limit_words(limit, &self.summary.totals, self.outline),
        };
        let again = match (self.paint.terminal, asked) {
            (true, true) => "press Ctrl-C again to kill it at once",
            (true, false) => "press Ctrl-C to kill it at once",
            (false, true) => "a second signal kills it",
            (false, false) => "a signal kills it",
        };
        let what = match with {
            Some(Sig::Kill) => "; killing the agent".into(),
            Some(signal) => format!("; sending {signal} to the agent ({again})"),
            None => String::new(),
        };
        // The terminal has just echoed `^C`.
        let echo = if self.paint.terminal && why_is_ctrl_c { "\n" } else { "" };
        format!("{echo}{}\n", self.paint.warn(&format!("! {why}{what}")))
    }

    fn attempt_finished(&mut self, at: &At, outcome: &AttemptOutcome, marker: bool, finished: &Finished) -> String {
        let label = self.label(at, self.iterations(at));
        let check = self.is_check(at);
        let judge = self.step(at).is_some_and(|step| step.role == Some(Role::Judge));
        let how =
            if judge { judge_words(outcome) } else { outcome_words(outcome, marker, self.iterations(at).is_some()) };
        let mut facts = vec![how];
        if check == Some(true) && *outcome != AttemptOutcome::Completed {
            facts.push("optional".into());
        }
        facts.push(seconds(finished.took_ms));
        if let Some(tokens) = &finished.agent.tokens {
            facts.push(amount(tokens.total(), "token"));
            facts.extend(tokens.cost_usd.map(|cost| format!("${cost:.2}")));
        }
        let (sign, paint): (_, fn(Paint, &str) -> String) = match outcome {
            AttemptOutcome::Completed => (self.paint.sign("✓", "+"), Paint::good),
            AttemptOutcome::Unfinished | AttemptOutcome::Limited | AttemptOutcome::Unavailable { .. } => {
                (self.paint.sign("○", "o"), Paint::warn)
            }
            _ if check == Some(true) => (self.paint.sign("○", "o"), Paint::warn),
            _ => (self.paint.sign("✗", "x"), Paint::bad),
        };
        if check.is_some() {
            let before = self.errors.insert(at.step, finished.check.errors.clone());
            facts.extend(before.and_then(|before| trend(&before, &finished.check.errors)));
        }
        let mut text = format!("{} {label}: {}\n", paint(self.paint, sign), facts.join(", "));
        let mut note = |words: String| {
            let _ = writeln!(text, "  {}", self.paint.warn(&words));
        };
        if let Some(error) = &finished.error {
            // A program that was not started has reported nothing.
            let is_ours = *outcome == (AttemptOutcome::Unavailable { reason: WaitReason::Machine });
            let who = if is_ours { "" } else { "its program reports: " };
            note(format!("{who}{}", first_line(error)));
        }
        if !finished.agent.denials.is_empty() {
            let step = self.outline.step(at.step);
            note(refused_words(&finished.agent.denials, step.and_then(|step| step.allows.as_deref())));
        }
        if let Some(line) = finished.agent.near_miss.as_deref().filter(|_| !marker && check.is_none()) {
            note(format!("the marker counts only on a line of its own, not in: {}", first_line(line)));
        }
        if !finished.agent.voided.is_empty() {
            note(format!("it changed: {}", first_line(&finished.agent.voided.join(", "))));
        }
        for words in finished.agent.weakened.iter().chain(&finished.agent.touched) {
            note(first_line(words));
        }
        if let Some(words) = &finished.lifeline {
            note(words.clone());
        }
        if !finished.leftovers.is_empty() {
            let (running, ended): (Vec<_>, Vec<_>) = finished.leftovers.iter().partition(|left| left.running);
            for (words, left) in [
                ("left running by the agent, and then stopped", ended),
                ("left running by the agent; could not be stopped", running),
            ] {
                if !left.is_empty() {
                    note(format!("{words}: {}", leftover_names(&left)));
                }
            }
        }
        text
    }

    fn round_failed(&self, round: u32, feedback: &Feedback) -> String {
        let why = round_words(feedback, &self.summary.totals);
        format!("  {}\n", self.paint.dim(&format!("round {round} ends: {why}")))
    }

    fn run_finished(&self, outcome: RunOutcome) -> String {
        let mut facts = vec![counted(self.summary.totals.planned, "attempt")];
        facts.push(seconds(self.summary.watch.milliseconds()));
        facts.extend(used_words(&self.summary.totals.all));
        if outcome == RunOutcome::Succeeded {
            facts.extend(excess(&self.summary.totals, self.outline));
        }
        let facts = self.paint.dim(&format!("({})", facts.join(", ")));
        let words = format!("{}: {}", self.title(), reason(outcome, &self.summary.totals, self.outline));
        let first = if outcome == RunOutcome::Succeeded {
            self.paint.good(&format!("{} {words}", self.paint.sign("✓", "+")))
        } else {
            self.paint.bad(&format!("{} {words}", self.paint.sign("✗", "x")))
        };
        let where_to = match (&outcome, &self.summary.totals.last) {
            (
                RunOutcome::Succeeded
                | RunOutcome::OutOfResources { .. }
                | RunOutcome::Interrupted { .. }
                | RunOutcome::LimitReached { .. }
                | RunOutcome::OutputClosed,
                _,
            )
            | (_, None) => self.folder.clone(),
            (_, Some(LastAttempt { at, .. })) => format!("{}/{}-{}/{}", self.folder, at.step, at.name, at.attempt),
        };
        let late = match self.unread {
            0 => String::new(),
            1 => self.warning("your last message came too late: no agent got it"),
            count => self.warning(&format!("your last {count} messages came too late: no agent got them")),
        };
        format!("{late}{first} {facts}\n  {}\n", self.paint.dim(&format!("transcripts: {where_to}")))
    }
}

#[cfg(test)]
#[path = "console_tests.rs"]
mod tests;
