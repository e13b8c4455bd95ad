//! The signals that end or stop what runs outside of the attempts of a run: a query to git, a check by hand.
#![expect(clippy::disallowed_methods, reason = "this module handles signals")]

use super::ourselves::StopRequests;
use super::tree::Tree;
use rustix::process::Signal;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The signals that came while a query or a check by hand was running. Nothing else reacts to them during that time.
#[derive(Debug, Clone, Default)]
pub struct Interrupts {
    /// The numbers of the signals that ask us to stop; 0 for none.
    ends: [Arc<AtomicUsize>; ENDING.len()],
    stop: Option<Arc<StopRequests>>,
    /// When a query first saw the signal, if queries have a moment left to finish.
    met: Option<Arc<Mutex<Option<Instant>>>>,
}

/// The signals that came to a run while it was waiting for a query.
pub(super) static OF_THE_RUN: LazyLock<Interrupts> =
    LazyLock::new(|| Interrupts { met: Some(Arc::default()), ..Interrupts::default() });
/// The signals that ask us to stop.
const ENDING: [i32; 3] = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP];
/// How long all queries of a run together may continue after a signal: one that answers as usual is not interrupted.
const MOMENT: Duration = Duration::from_secs(1);

impl Interrupts {
    /// Listens from now on, except for signals that were ignored when we were started (nohup).
    ///
    /// # Errors
    /// When a signal handler cannot be registered.
    pub fn listen(ignored: impl Fn(i32) -> bool) -> io::Result<Self> {
        let stop = if ignored(signal_hook::consts::SIGTSTP) { None } else { Some(Arc::new(StopRequests::listen()?)) };
        let heard = Self { stop, ..Self::default() };
        heard.register(ignored)?;
        Ok(heard)
    }

    /// Makes a signal end the queries of the run, whatever else listens to it: the current one and all others, until
    /// [`Self::take_signal`].
    ///
    /// # Errors
    /// When a signal handler cannot be registered.
    pub fn end_questions(ignored: impl Fn(i32) -> bool) -> io::Result<()> {
        static LISTENS: AtomicBool = AtomicBool::new(false);
        if !LISTENS.load(Ordering::Relaxed) {
            OF_THE_RUN.register(ignored)?;
            LISTENS.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the next signal that has come to the run, once. A signal that comes while nothing waits for it, before a
    /// run or between two runs of a queue, is kept.
    #[must_use]
    pub fn take_signal() -> Option<i32> {
        OF_THE_RUN.first_met(|met| *met = None);
        OF_THE_RUN.ends.iter().find_map(|end| number(end.swap(0, Ordering::Relaxed)))
    }

    fn first_met<T>(&self, use_it: impl FnOnce(&mut Option<Instant>) -> T) -> Option<T> {
        self.met.as_ref().map(|met| use_it(&mut met.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn register(&self, ignored: impl Fn(i32) -> bool) -> io::Result<()> {
        for (signal, end) in ENDING.into_iter().zip(&self.ends).filter(|(signal, _)| !ignored(*signal)) {
            let number = usize::try_from(signal).unwrap_or_default();
            signal_hook::flag::register_usize(signal, Arc::clone(end), number)?;
        }
        Ok(())
    }

    /// Asks everything that checks these interrupts to stop.
    pub fn end_all(&self) {
        self.ends[0].store(usize::try_from(Signal::TERM.as_raw()).unwrap_or_default(), Ordering::Relaxed);
    }

    /// Returns whether we were asked to stop, and the moment for queries has expired.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.signal().is_some()
            && self.first_met(|met| met.get_or_insert_with(Instant::now).elapsed() >= MOMENT).unwrap_or(true)
    }

    /// Returns the number of the signal that asked us to stop.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        self.ends.iter().find_map(|end| number(end.load(Ordering::Relaxed)))
    }

    /// Stops a program and ourselves if a stop is pending. Both continue together.
    pub(super) fn stand_still_with(&self, tree: &mut Tree) {
        if let Some(stop) = self.stop.as_ref().filter(|stop| stop.is_pending()) {
            tree.stop();
            stop.obey();
            tree.go_on();
        }
    }
}

fn number(signal: usize) -> Option<i32> {
    i32::try_from(signal).ok().filter(|signal| *signal != 0)
}
