//! The claim of a batch on the tasks of a shared hub, renewed by a thread of its own, whatever else takes long.

use super::errors;
use crate::cli::config::no_folder;
use crate::cli::options::Common;
use crate::cli::respond::Stopped;
use crate::exit::Exit;
use crate::hub::{FoundIntegrator, Hub, IntegratorClaim, Person};
use crate::report::{Paint, print_error, render};
use crate::source::{Diagnostic, sha256};
use crate::world::World;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

/// How often the claim is renewed.
const BEAT: Duration = Duration::from_secs(20);
/// How long a batch may be silent until another one takes over.
const TAKE_OVER: Duration = Duration::from_mins(2);
/// How often one that waits looks at the claim.
const WAIT: Duration = Duration::from_secs(5);

/// A claim that is renewed until this is dropped; then it is given back.
pub(super) struct Claim {
    /// How often it is renewed.
    pub(super) beat: Duration,
    inner: Arc<Mutex<IntegratorClaim>>,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Claim {
    fn start(claim: IntegratorClaim, beat: Duration) -> Result<Self, Diagnostic> {
        let inner = Arc::new(Mutex::new(claim));
        let (end, ends) = channel::<()>();
        let shared = Arc::clone(&inner);
        let renew = move || {
            while ends.recv_timeout(beat) == Err(RecvTimeoutError::Timeout) {
                // If the hub cannot be reached, the next one counts. A lost claim is noticed by whoever uses it.
                let _ = shared.lock().unwrap_or_else(PoisonError::into_inner).push(&[]);
            }
        };
        let thread = Builder::new().name("claim".into()).spawn(renew).map_err(|error| errors::no_thread(&error))?;
        Ok(Self { beat, inner, end: Some(end), thread: Some(thread) })
    }

    /// Uses the claim, while it is not renewed.
    pub(super) fn with<T>(&self, use_it: impl FnOnce(&mut IntegratorClaim) -> T) -> T {
        use_it(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Claims the tasks of a hub. With `waits`, until whoever has them gives them back or is silent for long.
pub(super) fn claim(
    world: &World,
    common: &Common,
    (hub, name): (&Hub, &str),
    root: &Path,
    person: &Person,
    waits: bool,
) -> Result<Claim, Stopped> {
    let own = own_name(world, root);
    let mut waiting = Waiting::default();
    loop {
        if let Some(removed) = no_folder(world, common).filter(|_| waiting.has_seen) {
            return Err(removed.into());
        }
        let found = match hub.shared().integrator() {
            // One that waits at night outlives a network that is away for a moment.
            Err(error) if waiting.has_seen => {
                waiting.lose_sight(&format!("{error}\n"));
                sleep(world.shortened("NEXT", WAIT));
                continue;
            }
            found => found?,
        };
        match found {
            Some(found) if !found.is_free() && found.name != own && !waiting.is_silent(world, &found) => {
                if !waits {
                    print_error(&render(&[errors::taken(name, &found.holder())], Paint::for_stderr(world)));
                    return Err(Stopped::Ended(Exit::Taken));
                }
                if !waiting.has_seen && !common.quiet {
                    print_error(&format!("waiting: {} works on the tasks of the hub {name}\n", found.holder()));
                }
                waiting.see(world, found);
                sleep(world.shortened("NEXT", WAIT));
            }
            found => match hub.shared().integrate(found.as_ref(), &own, person) {
                Ok(Some(claim)) => return Ok(Claim::start(claim, world.shortened("BEAT", BEAT))?),
                Err(error) if waiting.has_seen => waiting.lose_sight(&format!("{error}\n")),
                claimed => drop(claimed?),
            },
        }
    }
}

/// What one that waits has seen of the claim.
#[derive(Default)]
struct Waiting {
    has_seen: bool,
    /// The last renewal, and when it was seen first; `None` while the hub cannot be reached.
    last: Option<(String, Duration)>,
    is_blind: bool,
}

impl Waiting {
    fn see(&mut self, world: &World, found: FoundIntegrator) {
        (self.has_seen, self.is_blind) = (true, false);
        if self.last.as_ref().is_none_or(|(commit, _)| *commit != found.commit) {
            self.last = Some((found.commit, world.uptime()));
        }
    }

    /// Time in which the hub cannot be reached is not time in which the other one is silent.
    fn lose_sight(&mut self, why: &str) {
        self.last = None;
        if !self.is_blind {
            self.is_blind = true;
            print_error(why);
        }
    }

    fn is_silent(&self, world: &World, found: &FoundIntegrator) -> bool {
        let same = self.last.as_ref().filter(|(commit, _)| *commit == found.commit);
        let time = world.shortened("TAKE_OVER", TAKE_OVER);
        same.is_some_and(|(_, since)| world.uptime().saturating_sub(*since) >= time)
    }
}

/// The name of the batches of a root, which only one process at a time works in. A batch that was killed can continue
/// at once.
fn own_name(world: &World, root: &Path) -> String {
    let inode = std::fs::metadata(root.join(".forkhestra")).map_or(0, |metadata| metadata.ino());
    let digest = sha256(format!("{} {inode}", root.display()).as_bytes());
    format!("{}@{}", digest.get(..8).unwrap_or(&digest), world.machine())
}
