//! The work on one unit: its process is followed until it ends, while the server is told how far it is. If the server
//! does not answer in time, the unit is ended before the server may give it to another worker.

use crate::child::{Events, Program, UnitProcess};
use crate::lease::{Lease, LeaseState};
use crate::unit::{UnitDone, UnitTask, Watched};
use std::fmt;
use std::time::{Duration, Instant};
use temporalio_client::errors::AsyncActivityError;
use temporalio_client::{ActivityIdentifier, RpcOptions};
use temporalio_sdk::activities::ActivityContext;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// How long a unit that was stopped may take to bring its work to the hub.
const GRACE: Duration = Duration::from_mins(1);
/// The lease of a unit that was submitted without one.
const LEASE: Duration = Duration::from_mins(1);
/// The exit code of `forkhestra work` when a limit was reached.
pub(crate) const LIMIT_REACHED: i32 = 4;
/// The exit codes after which a unit continues later: a limit that can be raised, and signals.
const CONTINUES: [i32; 5] = [LIMIT_REACHED, 129, 130, 141, 143];
/// The exit codes of `forkhestra work` after which the hub has a result of the unit: that of its run, or 75 if another
/// worker has it or has done it.
const HANDED_OVER: [i32; 5] = [0, 1, 2, 3, 75];
/// How long the last lines of a process that has ended are waited for. What it has left running may hold its output.
const DRAIN: Duration = Duration::from_secs(2);

/// How the work on a unit has ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WorkEnd {
    /// The hub has its result.
    HandedOver(UnitDone),
    /// It was stopped because somebody has cancelled it.
    Cancelled(Leftover),
    /// It was ended because it may belong to another worker by now.
    Lost,
    /// It was stopped because the worker ends.
    Stopped(Leftover),
    /// It has stopped by itself, and can continue: the exit code, and its last words.
    Interrupted(Option<i32>, String),
    /// It could not be done here, and the hub has no result: the exit code, and its last words.
    Failed(i32, String),
}

/// Where the work of a unit is that was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leftover {
    /// All of it is in the hub.
    InHub,
    /// Its process did not end in time and was killed. The hub has what it had kept before.
    Killed,
}

impl fmt::Display for Leftover {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InHub => write!(formatter, "what was done is in the hub"),
            Self::Killed => write!(
                formatter,
                "it was killed, because it had not ended {} seconds later; the hub has what was done until its last checkpoint",
                GRACE.as_secs()
            ),
        }
    }
}

impl fmt::Display for WorkEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HandedOver(done) if done.exit == 75 => write!(formatter, "another worker has done it, or has it"),
            Self::HandedOver(done) => write!(formatter, "handed over with exit code {}", done.exit),
            Self::Cancelled(leftover) => write!(formatter, "cancelled; {leftover}"),
            Self::Lost => {
                write!(formatter, "ended, because the server did not answer and may give it to another worker")
            }
            Self::Stopped(leftover) => write!(formatter, "stopped with its worker; {leftover}"),
            Self::Interrupted(Some(LIMIT_REACHED), _) => {
                write!(formatter, "a limit was reached; it continues when the limit is raised")
            }
            Self::Interrupted(Some(code), words) => write!(formatter, "interrupted with exit code {code}. {words}"),
            Self::Interrupted(None, words) => write!(formatter, "its process was killed. {words}"),
            Self::Failed(code, words) => {
                write!(formatter, "this worker failed with exit code {code}, and the hub has no result. {words}")
            }
        }
    }
}

/// Why the process of a unit is being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Cancelled,
    Lost,
    Stopped,
}

/// What the server says to a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// The unit is ours; whether it has to be held.
    Ours { is_held: bool },
    /// Somebody has cancelled it.
    Cancelled,
    /// It is not ours any more.
    NotOurs,
    /// There was no answer: the network or the server is down.
    Unknown,
}

/// What became of a report.
struct Answer {
    sent: Instant,
    verdict: Verdict,
    /// What `forkhestra status --json` has said about the run.
    status: String,
}

/// The work on one unit.
pub(crate) struct UnitWork {
    context: ActivityContext,
    program: Program,
    unit: String,
    beat: Duration,
    lease: Lease,
    watched: Watched,
    /// Becomes true when the worker has to end.
    ends: watch::Receiver<bool>,
    /// Why its process is being stopped, and when it is killed.
    stopping: Option<(Reason, Instant)>,
}

impl UnitWork {
    /// Prepares the work on a unit.
    pub(crate) fn new(
        context: ActivityContext,
        program: Program,
        task: &UnitTask,
        ends: watch::Receiver<bool>,
    ) -> Self {
        let length = context.info().heartbeat_timeout.unwrap_or(LEASE);
        Self {
            context,
            program,
            unit: task.unit.clone(),
            beat: Duration::from_millis(task.beat_ms.max(1)),
            lease: Lease::new(length, Instant::now()),
            watched: Watched::default(),
            ends,
            stopping: None,
        }
    }

    /// Follows the process of the unit to its end.
    pub(crate) async fn follow(mut self, mut process: UnitProcess, mut events: Events) -> WorkEnd {
        let mut ticks = interval(self.beat);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // More often than reports, because the lease ends between two of them.
        let mut looks = interval((self.beat / 4).max(Duration::from_millis(1)));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut report, mut reads): (Option<JoinHandle<Answer>>, bool) = (None, true);
        let code = loop {
            if *self.ends.borrow() {
                self.stop(&process, Reason::Stopped);
            }
            self.keep_lease(&process);
            if self.stopping.is_some_and(|(_, deadline)| Instant::now() >= deadline) {
                process.kill();
            }
            tokio::select! {
                code = process.wait() => break code,
                line = events.next_line(), if reads => match line {
                    Ok(Some(line)) => self.watched.event(&line),
                    _ => reads = false,
                },
                answer = finished(&mut report) => {
                    report = None;
                    if let Some(answer) = answer {
                        self.take(&process, &answer);
                    }
                }
                _ = ticks.tick(), if report.is_none() => report = Some(self.report()),
                _ = looks.tick() => {}
            }
        };
        if let Some(report) = report {
            report.abort();
        }
        let rest = async {
            while let Ok(Some(line)) = events.next_line().await {
                self.watched.event(&line);
            }
        };
        let _ = timeout(DRAIN, rest).await;
        if let Some(root) = self.watched.root.clone() {
            self.watched.status(&status(&self.program, &root, self.beat).await);
        }
        let words = timeout(DRAIN, process.last_words()).await.unwrap_or_default();
        self.end(code, &words)
    }

    /// Stops or kills the process if the server has not answered for long.
    fn keep_lease(&mut self, process: &UnitProcess) {
        match self.lease.state(Instant::now()) {
            LeaseState::Held => {}
            LeaseState::Expiring => self.stop(process, Reason::Lost),
            LeaseState::Expired => {
                self.stop(process, Reason::Lost);
                process.kill();
            }
        }
    }

    /// Stops the process. The loss of the unit comes before any other reason.
    fn stop(&mut self, process: &UnitProcess, reason: Reason) {
        match &mut self.stopping {
            None => {
                self.stopping = Some((reason, Instant::now() + GRACE));
                process.stop();
            }
            Some((known, _)) if reason == Reason::Lost => *known = reason,
            Some(_) => {}
        }
    }

    /// Sends a report to the server, in a task of its own: an answer may take long.
    fn report(&self) -> JoinHandle<Answer> {
        let (context, program, beat) = (self.context.clone(), self.program.clone(), self.beat);
        let mut watched = self.watched.clone();
        tokio::spawn(async move {
            let status = match &watched.root {
                Some(root) => status(&program, root, beat / 2).await,
                None => String::new(),
            };
            watched.status(&status);
            // The SDK ends activities that send none through it.
            let _ = context.record_heartbeat(watched.progress.clone()).await;
            let identifier = ActivityIdentifier::from_task_token(context.info().task_token.clone().into());
            let handle = context.client().get_async_activity_handle(identifier);
            let sent = Instant::now();
            let options = RpcOptions::builder().timeout(beat).build();
            let asked = timeout(beat, handle.heartbeat(Some(watched.progress), options)).await;
            let verdict = match asked {
                Ok(Ok(answer)) if answer.cancel_requested => Verdict::Cancelled,
                Ok(Ok(answer)) if answer.activity_reset => Verdict::NotOurs,
                Ok(Ok(answer)) => Verdict::Ours { is_held: answer.activity_paused },
                Ok(Err(AsyncActivityError::NotFound(_))) => Verdict::NotOurs,
                Ok(Err(_)) | Err(_) => Verdict::Unknown,
            };
            Answer { sent, verdict, status }
        })
    }

    fn take(&mut self, process: &UnitProcess, answer: &Answer) {
        self.watched.status(&answer.status);
        match answer.verdict {
            Verdict::Ours { is_held } => {
                self.lease.acknowledge(answer.sent);
                if is_held != self.watched.progress.is_held && self.stopping.is_none() {
                    crate::say(&format!("unit {}: {}", self.unit, if is_held { "held" } else { "continues" }));
                    process.hold(is_held);
                    self.watched.progress.is_held = is_held;
                }
            }
            Verdict::Cancelled => {
                self.lease.acknowledge(answer.sent);
                self.stop(process, Reason::Cancelled);
            }
            Verdict::NotOurs => {
                self.stop(process, Reason::Lost);
                process.kill();
            }
            Verdict::Unknown => {}
        }
    }

    fn end(self, code: Option<i32>, words: &str) -> WorkEnd {
        let reason = self.stopping.map(|(reason, _)| reason);
        let leftover = if code.is_some() { Leftover::InHub } else { Leftover::Killed };
        match (reason, code) {
            (Some(Reason::Lost), _) => WorkEnd::Lost,
            (_, Some(exit)) if HANDED_OVER.contains(&exit) => {
                WorkEnd::HandedOver(UnitDone { unit: self.unit, exit, progress: self.watched.progress })
            }
            (_, Some(code)) if !CONTINUES.contains(&code) => WorkEnd::Failed(code, in_words(words)),
            (Some(Reason::Cancelled), _) => WorkEnd::Cancelled(leftover),
            (Some(Reason::Stopped), _) => WorkEnd::Stopped(leftover),
            (None, code) => WorkEnd::Interrupted(code, last_line(words).to_string()),
        }
    }
}

/// The error that a program has printed, in one line: what begins with `×`, without the lines of help after it.
fn in_words(printed: &str) -> String {
    let lines = printed.lines().map(str::trim).skip_while(|line| !line.starts_with('×'));
    let error = lines.take_while(|line| !line.is_empty() && !line.starts_with("help:"));
    let words: Vec<&str> = error.map(|line| line.trim_start_matches(['×', '│', ' '])).collect();
    if words.is_empty() { last_line(printed).to_string() } else { words.join(" ") }
}

fn last_line(printed: &str) -> &str {
    printed.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim()
}

/// What `forkhestra status --json` says about the run in a root; empty if it does not answer in time.
async fn status(program: &Program, root: &str, patience: Duration) -> String {
    program.ask(&["status", "--json", "--cwd", root], patience).await.unwrap_or_default()
}

/// Waits for the answer to a report; for ever if none was sent. `None` if its task has failed.
async fn finished(report: &mut Option<JoinHandle<Answer>>) -> Option<Answer> {
    match report {
        Some(report) => report.await.ok(),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_program_that_has_failed_is_one_line() {
        let printed = "hub/failed\n\n  × cannot reach the hub file:///x: '/x' does not\n  │ appear to be a git repository\n  \
                       help: look at it\n";
        assert_eq!(in_words(printed), "cannot reach the hub file:///x: '/x' does not appear to be a git repository");
        assert_eq!(in_words("thread 'main' panicked\nat the disco\n\n"), "at the disco");
        assert_eq!(in_words(""), "");
    }
}
