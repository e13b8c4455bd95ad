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
use tokio::time::{MissedTickBehavior, interval};

/// How long a unit that was stopped may take to bring its work to the hub.
const GRACE: Duration = Duration::from_mins(1);
/// The lease of a unit that was submitted without one.
const LEASE: Duration = Duration::from_mins(1);
/// The exit code of `forkhestra work` when a limit was reached.
pub(crate) const LIMIT_REACHED: i32 = 4;
/// The exit codes after which a unit continues later: a limit that can be raised, and signals.
const CONTINUES: [i32; 5] = [LIMIT_REACHED, 129, 130, 141, 143];

/// How the work on a unit has ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WorkEnd {
    /// The hub has its result.
    HandedOver(UnitDone),
    /// It was stopped because somebody has cancelled it. What was done is in the hub.
    Cancelled,
    /// It was ended because it may belong to another worker by now.
    Lost,
    /// It was stopped because the worker ends. What was done is in the hub.
    Stopped,
    /// It has stopped by itself, and can continue: the exit code, and its last words.
    Interrupted(Option<i32>, String),
}

impl fmt::Display for WorkEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HandedOver(done) if done.exit == 75 => write!(formatter, "another worker has done it, or has it"),
            Self::HandedOver(done) => write!(formatter, "handed over with exit code {}", done.exit),
            Self::Cancelled => write!(formatter, "cancelled; what was done is in the hub"),
            Self::Lost => {
                write!(formatter, "ended, because the server did not answer and may give it to another worker")
            }
            Self::Stopped => write!(formatter, "stopped with its worker; what was done is in the hub"),
            Self::Interrupted(Some(LIMIT_REACHED), _) => {
                write!(formatter, "a limit was reached; it continues when the limit is raised")
            }
            Self::Interrupted(Some(code), words) => write!(formatter, "interrupted with exit code {code}. {words}"),
            Self::Interrupted(None, words) => write!(formatter, "its process was killed. {words}"),
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
        while let Ok(Some(line)) = events.next_line().await {
            self.watched.event(&line);
        }
        if let Some(root) = self.watched.root.clone() {
            self.watched.status(&status(&self.program, &root, self.beat).await);
        }
        let words = process.last_words().await;
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
            let asked = tokio::time::timeout(beat, handle.heartbeat(Some(watched.progress), options)).await;
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
        let last = words.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_string();
        match (reason, code) {
            (Some(Reason::Lost), _) => WorkEnd::Lost,
            (_, Some(exit)) if !CONTINUES.contains(&exit) => {
                WorkEnd::HandedOver(UnitDone { unit: self.unit, exit, progress: self.watched.progress })
            }
            (Some(Reason::Cancelled), _) => WorkEnd::Cancelled,
            (Some(Reason::Stopped), _) => WorkEnd::Stopped,
            (None, code) => WorkEnd::Interrupted(code, last),
        }
    }
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
