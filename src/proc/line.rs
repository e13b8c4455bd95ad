//! The host's end of the socket to a lifeline. Every order is answered at once; a lifeline that does not answer is given up, so that
//! nobody who stops it stops us.

use super::table::process;
use super::wire::{LifelineReport, Order};
use crate::engine::Sig;
use rustix::fd::BorrowedFd;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdStream;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep_until};

/// How often a lifeline is looked at that has not answered yet.
const LOOK: Duration = Duration::from_secs(1);
/// A look that comes so much too late says nothing: we ourselves were stopped, or the machine was asleep.
const LATE: Duration = Duration::from_millis(500);
/// How many looks one that runs may leave without an answer, and without an end of its sweep. One that is stopped has a single one.
const ANSWERS_WITHIN: u32 = 10;
const SWEEPS_WITHIN: u32 = 20;
/// How many files come with an order at most.
pub(super) const MOST_FILES: usize = 3;

/// The socket between a lifeline and us.
#[derive(Debug)]
pub struct Line {
    control: UnixStream,
    /// The lifeline's.
    pid: i32,
    pending: Vec<u8>,
    reports: VecDeque<LifelineReport>,
    /// Orders without an answer.
    unanswered: u32,
    /// Whether the sweep was ordered, whose end is awaited.
    sweeps: bool,
    /// When it is looked at next, where something is awaited, and how often it was looked at in vain.
    look: Option<Instant>,
    looks: u32,
    /// Whether it holds a program, or something of one.
    holds: bool,
    gone: bool,
    /// Why it is given up, if it is.
    given_up: Option<GivenUp>,
}

/// Why a lifeline is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUp {
    /// It is stopped or traced, or too slow.
    Silent,
    /// It takes no orders.
    Deaf,
}

impl Line {
    pub(super) fn new(control: StdStream, pid: u32) -> io::Result<Self> {
        Ok(Self {
            control: UnixStream::from_std(control)?,
            pid: i32::try_from(pid).unwrap_or(0),
            pending: Vec::new(),
            reports: VecDeque::new(),
            unanswered: 0,
            sweeps: false,
            look: None,
            looks: 0,
            holds: false,
            gone: false,
            given_up: None,
        })
    }

    /// The next report. Cancel-safe; after [`LifelineReport::Gone`] there is no other.
    pub async fn report(&mut self) -> LifelineReport {
        loop {
            if let Some(report) = self.reports.pop_front() {
                return report;
            }
            if self.given_up.is_some() {
                match self.read() {
                    Some(1..) => continue,
                    _ => return LifelineReport::Gone,
                }
            }
            let readable = tokio::select! {
                biased;
                readable = self.control.readable() => readable,
                () = until(self.look) => {
                    self.look_at_it();
                    continue;
                }
            };
            if readable.is_err() || self.read().is_none() {
                return LifelineReport::Gone;
            }
        }
    }

    /// Reads what is there: how many bytes, none when the lifeline is gone.
    fn read(&mut self) -> Option<usize> {
        let mut bytes = [0; 1024];
        let read = match self.control.try_read(&mut bytes) {
            Ok(0) => {
                self.gone = true;
                return None;
            }
            Ok(read) => read,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Err(_) => {
                self.gone = true;
                return None;
            }
        };
        self.pending.extend_from_slice(&bytes[..read]);
        while let Some(end) = self.pending.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            if let Some(report) = LifelineReport::parse(String::from_utf8_lossy(&line).trim_end()) {
                self.hear(report);
            }
        }
        Some(read)
    }

    /// Why it was given up, if it was.
    #[must_use]
    pub fn given_up(&self) -> Option<GivenUp> {
        self.given_up
    }

    /// Whether it can be given another program.
    #[must_use]
    pub(super) fn is_free(&self) -> bool {
        !self.holds && !self.gone && self.given_up.is_none()
    }

    /// Something was said: the waiting begins anew, or is over.
    fn hear(&mut self, report: LifelineReport) {
        self.looks = 0;
        match &report {
            LifelineReport::Answered | LifelineReport::Spawned { .. } => self.answered(),
            LifelineReport::Swept(leftovers) => {
                (self.sweeps, self.holds) = (false, leftovers.iter().any(|left| left.running));
            }
            LifelineReport::Failed(_) => {
                self.answered();
                self.holds = false;
            }
            _ => {}
        }
        if report != LifelineReport::Answered {
            self.reports.push_back(report);
        }
        self.look = (self.unanswered > 0 || self.sweeps).then(|| Instant::now() + LOOK);
    }

    fn answered(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
    }

    fn look_at_it(&mut self) {
        let (now, due) = (Instant::now(), self.look.take());
        self.look = Some(now + LOOK);
        if due.is_some_and(|due| now > due + LATE) {
            return;
        }
        self.looks += 1;
        let most = if self.unanswered > 0 { ANSWERS_WITHIN } else { SWEEPS_WITHIN };
        if self.looks >= most || process(self.pid).is_some_and(|lifeline| lifeline.stopped) {
            self.given_up = Some(GivenUp::Silent);
        }
    }

    /// Sends a signal to the agent's group; KILL to its whole tree.
    pub fn signal(&mut self, signal: Sig) {
        self.order(Order::Signal(signal.number()));
    }

    /// Stops the agent's whole tree, until [`Line::go_on`].
    pub fn stop(&mut self) {
        self.order(Order::Stop);
    }

    /// Lets the agent's tree go on.
    pub fn go_on(&mut self) {
        self.order(Order::Continue);
    }

    /// Asks for nothing but an answer.
    pub fn ask(&mut self) {
        if self.unanswered == 0 {
            self.order(Order::Answer);
        }
    }

    /// The output is drained: end what is left.
    pub fn sweep(&mut self) {
        self.sweeps = true;
        self.order(Order::Sweep);
    }

    /// Has it start a program: the file that says which, and the writing ends of its pipes.
    pub(super) fn launch(&mut self, files: [BorrowedFd<'_>; 3]) {
        self.holds = true;
        self.order_with(Order::Launch, &files);
    }

    fn order(&mut self, order: Order) {
        self.order_with(order, &[]);
    }

    /// A few bytes into a socket that is nearly always empty: it takes them, or the lifeline is gone or stopped for long.
    fn order_with(&mut self, order: Order, files: &[BorrowedFd<'_>]) {
        match send(&self.control, order, files) {
            Ok(sent) if sent == order.line().len() => {
                self.unanswered += 1;
                self.look.get_or_insert_with(|| Instant::now() + LOOK);
            }
            _ => self.given_up = Some(GivenUp::Deaf),
        }
    }
}

/// Sends an order, and files with it (unix(7), `SCM_RIGHTS`): how many bytes were taken.
pub(super) fn send(control: impl AsFd, order: Order, files: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(files));
    }
    let line = order.line();
    Ok(sendmsg(control, &[IoSlice::new(line.as_bytes())], &mut ancillary, SendFlags::NOSIGNAL)?)
}

async fn until(look: Option<Instant>) {
    match look {
        Some(look) => sleep_until(look).await,
        None => std::future::pending().await,
    }
}
