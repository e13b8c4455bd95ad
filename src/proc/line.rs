//! The host's end of the socket to a lifeline. Every order is answered at once. A lifeline that does not answer is
//! given up, so that a stopped lifeline does not stop us.

use super::system::{SEND_QUIETLY, process};
use super::wire::{LifelineReport, MOST_FILES, Order};
use crate::engine::Sig;
use rustix::fd::BorrowedFd;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, sendmsg};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdStream;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep_until};

/// How often a lifeline that has not answered yet is checked.
const LOOK: Duration = Duration::from_secs(1);
/// A check that is this late does not count: we were stopped ourselves, or the machine was asleep.
const LATE: Duration = Duration::from_millis(500);
/// How many checks a running lifeline may take to answer. A stopped one has only one.
const ANSWERS_WITHIN: u32 = 10;
/// How many checks a running lifeline may take to finish a sweep. A stopped one has only one.
const SWEEPS_WITHIN: u32 = 20;

/// The socket between a lifeline and us.
#[derive(Debug)]
pub struct Line {
    control: UnixStream,
    /// The lifeline's process id.
    pid: i32,
    pending: Vec<u8>,
    reports: VecDeque<LifelineReport>,
    /// How many orders have no answer yet.
    unanswered: u32,
    /// Whether a sweep was ordered and has not ended yet.
    sweeps: bool,
    /// When the lifeline is checked next, if something is awaited.
    look: Option<Instant>,
    /// How many checks in a row found no report.
    looks: u32,
    /// Whether the lifeline holds a program, or what is left of one.
    holds: bool,
    gone: bool,
    /// Why the lifeline was given up, if it was.
    given_up: Option<GivenUp>,
}

/// Why a lifeline is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUp {
    /// It is stopped, traced or too slow.
    Silent,
    /// It accepts no orders.
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

    /// Returns the next report. Cancel-safe. After [`LifelineReport::Gone`] there is no other.
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

    /// Reads what is there, and returns how many bytes; `None` if the lifeline is gone.
    fn read(&mut self) -> Option<usize> {
        let mut bytes = [0; 1024];
        let read = match self.control.try_read(&mut bytes) {
            Ok(read @ 1..) => read,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Ok(_) | Err(_) => {
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

    /// Returns why the lifeline was given up, if it was.
    #[must_use]
    pub fn given_up(&self) -> Option<GivenUp> {
        self.given_up
    }

    /// Returns whether it can start another program.
    #[must_use]
    pub(super) fn is_free(&self) -> bool {
        !self.holds && !self.gone && self.given_up.is_none()
    }

    /// Handles a report: the wait for the next one starts again, or ends.
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

    /// Sends a signal to the agent's group. KILL goes to its whole tree.
    pub fn signal(&mut self, signal: Sig) {
        self.order(Order::Signal(signal.number()));
    }

    /// Stops the agent's whole tree, until [`Line::go_on`].
    pub fn stop(&mut self) {
        self.order(Order::Stop);
    }

    /// Continues the agent's tree.
    pub fn go_on(&mut self) {
        self.order(Order::Continue);
    }

    /// Requests only an answer, unless one is already awaited.
    pub fn ask(&mut self) {
        if self.unanswered == 0 {
            self.order(Order::Answer);
        }
    }

    /// Orders a sweep: the output is drained, and what is left is killed. A lifeline that has reported that nothing is
    /// left is not asked again.
    pub fn sweep(&mut self) {
        if !self.holds {
            return;
        }
        self.sweeps = true;
        self.order(Order::Sweep);
    }

    /// Orders the start of a program. `files` are the file that describes it, and the writing ends of its pipes; the
    /// reading ends, too, where the lifeline finds processes by their pipes.
    pub(super) fn launch(&mut self, files: &[BorrowedFd<'_>]) {
        self.holds = true;
        self.order_with(Order::Launch, files);
    }

    fn order(&mut self, order: Order) {
        self.order_with(order, &[]);
    }

    /// Sends a few bytes into a socket that is nearly always empty. If it does not accept them, the lifeline has been
    /// stopped for long.
    fn order_with(&mut self, order: Order, files: &[BorrowedFd<'_>]) {
        match send(&self.control, order, files) {
            Ok(sent) if sent == order.line().len() => self.expect_answer(),
            // It is gone, which the end of its reports says. One that was killed is replaced.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                self.expect_answer();
            }
            _ => self.given_up = Some(GivenUp::Deaf),
        }
    }

    /// Waits for an answer, but not for ever.
    fn expect_answer(&mut self) {
        self.unanswered += 1;
        self.look.get_or_insert_with(|| Instant::now() + LOOK);
    }
}

/// Sends an order, and files with it (unix(7), `SCM_RIGHTS`). Returns how many bytes were accepted.
pub(super) fn send(control: impl AsFd, order: Order, files: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(files));
    }
    let line = order.line();
    Ok(sendmsg(control, &[IoSlice::new(line.as_bytes())], &mut ancillary, SEND_QUIETLY)?)
}

async fn until(look: Option<Instant>) {
    match look {
        Some(look) => sleep_until(look).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lifeline_that_is_gone_before_its_first_order_was_killed_and_has_not_refused_the_order() {
        let (ours, theirs) = StdStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut line = Line::new(ours, std::process::id()).unwrap();
        drop(theirs);
        line.launch(&[]);
        assert_eq!((line.report().await, line.given_up()), (LifelineReport::Gone, None));
    }

    #[tokio::test]
    async fn a_lifeline_that_reads_no_orders_is_given_up() {
        let (ours, _theirs) = StdStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut line = Line::new(ours, std::process::id()).unwrap();
        while line.given_up().is_none() {
            line.launch(&[]);
        }
        assert_eq!((line.report().await, line.given_up()), (LifelineReport::Gone, Some(GivenUp::Deaf)));
    }
}
