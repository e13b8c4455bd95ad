//! A lane: runs one worker after the other, each a process of our own program under a lifeline.

use crate::engine::{Event, Exit};
use crate::proc::{AgentPipes, Launch, LifelineHandle, LifelineReport};
use crate::runner::ReceivedSignal;
use crate::world::World;
use std::path::Path;
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, sleep_until};

/// How long the output of an ended worker is still read while another process holds its pipe open.
const DRAIN: Duration = Duration::from_secs(1);
/// How much of what a worker says about itself is kept, in bytes.
const KEPT: usize = 4 << 10;
/// How many bytes are read at once.
const PIECE: usize = 64 << 10;

/// A lane, between two workers.
#[derive(Debug, Default)]
pub(super) struct BatchLane {
    /// Its number, from 1.
    pub(super) number: u32,
    pub(super) lifeline: Option<LifelineHandle>,
}

/// What a worker has reported.
#[derive(Debug)]
pub(super) struct News {
    pub(super) unit: String,
    pub(super) kind: NewsKind,
}

/// What there is to report about a unit.
#[derive(Debug)]
pub(super) enum NewsKind {
    /// An event of its run.
    Event(Box<Event>),
    /// A worker on another machine has claimed it.
    Claimed {
        /// The name of the machine.
        machine: String,
    },
    /// Its run has ended without a result, and another worker is to continue it.
    Offered,
}

/// How a worker ended.
#[derive(Debug)]
pub(super) struct WorkerEnd {
    pub(super) unit: String,
    /// Its exit code; `None` if a signal killed it, or it could not be started; of a worker elsewhere: `None` if it
    /// handed over no result, or its job was lost or cancelled before it did.
    pub(super) exit: Option<u8>,
    /// The last that it said on standard error.
    pub(super) words: String,
}

/// A worker to run: the arguments of `forkhestra work`.
#[derive(Debug)]
pub(super) struct LaneWorker {
    pub(super) unit: String,
    pub(super) arguments: Vec<String>,
}

/// Runs a worker in a lane. Returns the lane and the worker's end, once the worker and everything below it have ended.
pub(super) async fn run(
    world: &World,
    root: &Path,
    mut lane: BatchLane,
    worker: LaneWorker,
    mut heard: UnboundedReceiver<ReceivedSignal>,
    news: UnboundedSender<News>,
) -> (BatchLane, WorkerEnd) {
    let mut end = WorkerEnd { unit: worker.unit.clone(), exit: None, words: String::new() };
    let usable = lane.lifeline.take().filter(LifelineHandle::is_ready);
    let started = usable.map_or_else(|| LifelineHandle::start(&world.lifeline(), None), Ok);
    let mut lifeline = match started {
        Ok(lifeline) => lifeline,
        Err(error) => {
            end.words = error.to_string();
            return (lane, end);
        }
    };
    let told = world.with_variables(&[("FORKHESTRA_LANE", lane.number.to_string().into())]);
    let launch = Launch {
        program: world.own_program(),
        arguments: worker.arguments.iter().map(Into::into).collect(),
        environment: told.environment().iter().map(|(name, value)| (name.into(), value.into())).collect(),
        folder: root,
        stdin: None,
    };
    match lifeline.launch(&launch) {
        Ok(pipes) => {
            let mut attended =
                Attended { lifeline: &mut lifeline, pipes, news: &news, end: &mut end, line: Vec::new() };
            attended.attend(&mut heard).await;
            lane.lifeline = Some(lifeline);
        }
        Err(error) => end.words = error.to_string(),
    }
    (lane, end)
}

/// A worker at work.
struct Attended<'a> {
    lifeline: &'a mut LifelineHandle,
    pipes: AgentPipes,
    news: &'a UnboundedSender<News>,
    end: &'a mut WorkerEnd,
    /// The beginning of a line of its standard output.
    line: Vec<u8>,
}

impl Attended<'_> {
    async fn attend(&mut self, heard: &mut UnboundedReceiver<ReceivedSignal>) {
        let (mut out, mut err, mut until, mut swept) = (true, true, None, false);
        loop {
            let is_drained = !out && !err;
            // Where nothing outlived the worker, the lifeline reports the sweep by itself.
            if swept && is_drained {
                return;
            }
            if is_drained && until.take().is_some() {
                self.lifeline.line.sweep();
            }
            tokio::select! {
                biased;
                Some(signal) = heard.recv() => self.pass_on(signal),
                report = self.lifeline.line.report(), if !swept => match report {
                    LifelineReport::Exited(exit) => {
                        self.end.exit = match exit {
                            Exit::Code(code) => u8::try_from(code).ok(),
                            Exit::Signal(_) => None,
                        };
                        until = Some(Instant::now() + DRAIN);
                    }
                    LifelineReport::Swept(_) => swept = true,
                    LifelineReport::Gone => {
                        swept = true;
                        until.get_or_insert_with(|| Instant::now() + DRAIN);
                    }
                    LifelineReport::Failed(errno) => {
                        self.end.words = std::io::Error::from_raw_os_error(errno).to_string();
                        return;
                    }
                    LifelineReport::Spawned { .. }
                    | LifelineReport::Answered
                    | LifelineReport::Stopped(_)
                    | LifelineReport::Continued => {}
                },
                _ = self.pipes.stdout.readable(), if out => out = self.read_events(),
                _ = self.pipes.stderr.readable(), if err => err = self.read_words(),
                () = over(until), if until.is_some() => (out, err) = (false, false),
            }
        }
    }

    fn pass_on(&mut self, signal: ReceivedSignal) {
        match signal {
            ReceivedSignal::End(signal) => self.lifeline.line.signal(signal),
            ReceivedSignal::Pause => self.lifeline.line.stop(),
            ReceivedSignal::Continue => self.lifeline.line.go_on(),
        }
    }

    /// Reads events, one line each. Returns whether there may be more.
    fn read_events(&mut self) -> bool {
        let Some(bytes) = read(&self.pipes.stdout) else { return false };
        self.line.extend_from_slice(&bytes);
        let Some(last) = self.line.iter().rposition(|byte| *byte == b'\n') else { return true };
        let rest = self.line.split_off(last + 1);
        for line in std::mem::replace(&mut self.line, rest).split(|byte| *byte == b'\n') {
            // What is no event comes from a program that the worker has started, by mistake.
            if let Ok(event) = serde_json::from_slice(line) {
                // The batch is gone only if it is ending.
                let _ = self.news.send(News { unit: self.end.unit.clone(), kind: NewsKind::Event(event) });
            }
        }
        true
    }

    /// Keeps the last that the worker says. Returns whether there may be more.
    fn read_words(&mut self) -> bool {
        let Some(bytes) = read(&self.pipes.stderr) else { return false };
        self.end.words.push_str(&String::from_utf8_lossy(&bytes));
        let surplus = self.end.words.len().saturating_sub(KEPT);
        let from = (surplus..self.end.words.len()).find(|at| self.end.words.is_char_boundary(*at)).unwrap_or(0);
        self.end.words.drain(..from);
        true
    }
}

/// Reads what is there; `None` at the end of the stream.
fn read(pipe: &Receiver) -> Option<Vec<u8>> {
    let mut bytes = vec![0; PIECE];
    match pipe.try_read(&mut bytes) {
        Ok(0) => None,
        Ok(read) => {
            bytes.truncate(read);
            Some(bytes)
        }
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Some(Vec::new()),
        Err(_) => None,
    }
}

async fn over(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
