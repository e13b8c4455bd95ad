//! The signals that end or stop what runs beside a run: a question to git, a check by hand.
#![expect(clippy::disallowed_methods, reason = "the spawner")]

use super::ourselves::StopRequests;
use super::tree::Tree;
use rustix::process::Signal;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The signals that came meanwhile, where somebody listens to them in our place and would take no notice.
#[derive(Debug, Clone, Default)]
pub struct Interrupts {
    /// The numbers of the signals by which we are to end; 0 for none.
    ends: [Arc<AtomicUsize>; ENDING.len()],
    stop: Option<Arc<StopRequests>>,
    /// When a question first met the signal, where it is given a moment.
    met: Option<Arc<Mutex<Option<Instant>>>>,
}

/// What a run that is under way was told while it asked a question.
pub(super) static OF_THE_RUN: LazyLock<Interrupts> =
    LazyLock::new(|| Interrupts { met: Some(Arc::default()), ..Interrupts::default() });
/// The signals that end what we do.
const ENDING: [i32; 3] = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP];
/// How long the questions of a run go on after a signal, all together: what answers as usual is not cut off.
const MOMENT: Duration = Duration::from_secs(1);

impl Interrupts {
    /// Listens from now on, but for what was ignored when we were started (nohup).
    ///
    /// # Errors
    /// When the operating system does not let us.
    pub fn listen(ignored: impl Fn(i32) -> bool) -> io::Result<Self> {
        let stop = if ignored(signal_hook::consts::SIGTSTP) { None } else { Some(Arc::new(StopRequests::listen()?)) };
        let heard = Self { stop, ..Self::default() };
        heard.register(ignored)?;
        Ok(heard)
    }

    /// From now on a signal ends the questions of the run, whoever else listens to it: the one that is under way and all others, until
    /// [`Self::heard`].
    ///
    /// # Errors
    /// When the operating system does not let us.
    pub fn end_questions(ignored: impl Fn(i32) -> bool) -> io::Result<()> {
        static LISTENS: AtomicBool = AtomicBool::new(false);
        if LISTENS.swap(true, Ordering::Relaxed) { Ok(()) } else { OF_THE_RUN.register(ignored) }
    }

    /// The next signal that has come to the run, once. What comes while nobody waits for it, before a run or between two of a queue, is
    /// there later.
    #[must_use]
    pub fn heard() -> Option<i32> {
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

    /// From now on whoever looks here is to end.
    pub fn end_all(&self) {
        self.ends[0].store(usize::try_from(Signal::TERM.as_raw()).unwrap_or_default(), Ordering::Relaxed);
    }

    /// Whether we were asked to end.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.signal().is_some()
            && self.first_met(|met| met.get_or_insert_with(Instant::now).elapsed() >= MOMENT).unwrap_or(true)
    }

    /// The number of the signal by which we were asked to end.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        self.ends.iter().find_map(|end| number(end.load(Ordering::Relaxed)))
    }

    /// Stops a program and ourselves, if we were asked to stand still; both go on together.
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
