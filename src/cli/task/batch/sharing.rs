//! A thread that shares what a batch does with its hub, because the network may be slow.

use super::backlog::Backlog;
use super::errors;
use crate::cli::respond::Stopped;
use crate::hub::Hub;
use crate::journal::Journal;
use crate::proc::{Interrupts, end_ourselves};
use crate::report::print_error;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How often the journal is looked at for news.
const LOOK: Duration = Duration::from_secs(1);
/// How often a batch tries again to share its end.
const LAST_TRIES: u32 = 3;

/// A thread that shares what a batch does.
pub(super) struct Sharing {
    end: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Sharing {
    /// Shares the work of a batch from now on. `own` is the hub of its project; `say` gets what people have to know
    /// meanwhile.
    pub(super) fn start(
        mut backlog: Backlog,
        own: Hub,
        run: i64,
        say: impl Fn(String) + Send + 'static,
    ) -> Result<Self, Stopped> {
        backlog.push_from(&own);
        backlog.claim.with(|claim| claim.begin(run));
        let (end, ends) = channel();
        // A journal belongs to one thread.
        let share =
            move || Sharer { backlog, own, run, journal: None, told: None, is_silent: false }.share(&ends, &say);
        let thread = Builder::new().name("backlog".into()).spawn(share);
        Ok(Self { end, thread: thread.map_err(|error| errors::no_thread(&error))? })
    }

    /// Shares the rest, and gives the claim back. Returns whether the hub has everything; otherwise, why it has not was
    /// reported.
    pub(super) fn finish(self) -> bool {
        drop(self.end);
        self.thread.join().unwrap_or(false)
    }
}

/// What has to be shared: the number of the last change of a task, and the line.
type News = (Option<i64>, Option<String>);

/// What the thread works with.
struct Sharer {
    backlog: Backlog,
    own: Hub,
    run: i64,
    journal: Option<Journal>,
    /// What was shared last.
    told: Option<News>,
    /// Whether the hub could not be reached the last time.
    is_silent: bool,
}

impl Sharer {
    /// Shares until the other end is dropped. Returns whether the hub has everything.
    fn share(&mut self, ends: &Receiver<()>, say: &impl Fn(String)) -> bool {
        let (beat, name, mut since) = (self.backlog.claim.beat, self.backlog.name.clone(), None::<Duration>);
        let mut last_tries = 0;
        let look = LOOK.min(beat);
        loop {
            let is_last = !matches!(ends.recv_timeout(look), Err(RecvTimeoutError::Timeout));
            if is_last {
                // A signal that has ended the batch must not end this, too.
                let _ = Interrupts::take_signal();
            }
            let news = self.news();
            since = since.map(|since| since + look);
            let is_due = since.is_none_or(|since| since >= beat);
            if !is_last && !is_due && self.told.as_ref() == Some(&news) {
                continue;
            }
            since = Some(Duration::ZERO);
            match self.exchange(is_last) {
                Ok(true) => (self.told, self.is_silent) = (Some(news), false),
                Ok(false) => {
                    say(format!("another batch has taken over the tasks of the hub {name}; this one ends\n"));
                    end_ourselves();
                    return false;
                }
                // The hub may just be busy with a push whose answer was lost.
                Err(_) if is_last && last_tries < LAST_TRIES => {
                    last_tries += 1;
                    std::thread::sleep(look);
                    continue;
                }
                Err(stopped) if is_last => {
                    let why = in_brief(&stopped);
                    print_error(&format!(
                        "the hub {name} does not have everything of this batch: {why}\n  \
                         next: forkhestra task run --jobs N --hub {name}\n"
                    ));
                    return false;
                }
                // Said once, until it works again.
                Err(stopped) if !self.is_silent => {
                    self.is_silent = true;
                    say(format!("{}; trying again every {} s\n", in_brief(&stopped), beat.as_secs()));
                }
                Err(_) => {}
            }
            if is_last {
                return true;
            }
        }
    }

    fn news(&mut self) -> News {
        if self.journal.is_none() {
            self.journal = Journal::open(self.backlog.root()).ok();
        }
        let last = self.journal.as_ref().and_then(|journal| journal.tasks().last_change().ok());
        (last, self.own.line())
    }

    /// Brings both sides to the same state. Returns whether the claim still holds.
    fn exchange(&mut self, is_last: bool) -> Result<bool, Stopped> {
        // First the line: a task has landed only if its commit has.
        let line = self.backlog.push_line(&self.own);
        if matches!(line, Ok(false)) {
            return Ok(false);
        }
        let journal = match &mut self.journal {
            Some(journal) => journal,
            none => none.insert(Journal::open(self.backlog.root())?),
        };
        // If the line cannot be pushed, people still learn what happens.
        let holds = self.backlog.sync(journal, Some((self.run, is_last)))?;
        line.map(|_| holds)
    }
}

/// Why something was refused, in one line.
fn in_brief(stopped: &Stopped) -> String {
    match stopped {
        Stopped::Refused(faults) => faults.iter().map(|fault| fault.message.as_str()).collect::<Vec<_>>().join("; "),
        Stopped::Ended(exit) => format!("exit code {}", exit.code()),
    }
}
