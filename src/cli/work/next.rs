//! `work --next`: which unit a worker does next, and how it waits for one.

use super::args::WorkArgs;
use super::{do_unit, obstacle};
use crate::cli::options::Common;
use crate::cli::respond::{Answered, Stopped};
use crate::cli::run;
use crate::engine::{RunOutcome, Sig};
use crate::exit::Exit;
use crate::hub::Hub;
use crate::proc::Interrupts;
use crate::report::print_error;
use crate::source::counted;
use crate::unit::UnitStage;
use crate::world::World;
use std::thread::sleep;
use std::time::Duration;

/// How often a waiting worker looks for a signal.
const LOOK: Duration = Duration::from_millis(100);
/// How long it waits before it looks for a unit again.
const WAIT: Duration = Duration::from_secs(5);
/// How often in a row a worker with `--all` waits for the next unit of a running batch: for ten minutes.
const MOST_WAITS: u32 = 120;

/// Works on the next unit of a hub, and with `--all` or `--wait` on one after the other. A signal ends it, and so does
/// a unit that was refused: this machine would refuse the others, too.
pub(super) fn next(world: &World, common: &Common, args: &WorkArgs, hub: &Hub, worker: &str) -> Answered {
    let continues = args.all || args.wait;
    let mut waits = 0;
    loop {
        let mut left = LeftUnits::default();
        let done = next_unit(world, common, args, (hub, worker), &mut left)?;
        match done {
            Some(exit) if !continues || ends_the_worker(exit) => return Ok(exit),
            Some(_) => waits = 0,
            // Verifications, and work that is sent back, become units while the batch is running.
            None if args.wait || args.all && waits < MOST_WAITS && hub.batches().is_any_open()? => {
                if waits == 0 && args.all {
                    print_error("no unit is waiting, but the batch is running: waiting for its next one\n");
                }
                waits += 1;
                if let Some(signal) = next_signal(world.shortened("NEXT", WAIT)) {
                    return Ok(run::execute::exit_of(RunOutcome::Interrupted { signal }));
                }
            }
            None => {
                print_error(&left.words());
                return Ok(if args.all { Exit::Success } else { Exit::Taken });
            }
        }
    }
}

/// The units that wait, but not for this machine.
#[derive(Default)]
struct LeftUnits {
    count: usize,
    /// Why the first of them was left.
    why: Option<String>,
}

impl LeftUnits {
    fn add(&mut self, why: impl FnOnce() -> String) {
        self.count += 1;
        self.why.get_or_insert_with(why);
    }

    fn words(&self) -> String {
        let Some(why) = &self.why else { return "no unit of the hub is waiting\n".into() };
        let (count, verb) = (counted(self.count, "unit"), if self.count == 1 { "waits" } else { "wait" });
        format!("{count} of the hub {verb}, but not for this machine: {why}\n")
    }
}

fn ends_the_worker(exit: Exit) -> bool {
    matches!(exit, Exit::HungUp | Exit::Interrupted | Exit::Terminated | Exit::OutputClosed | Exit::Refused)
}

/// Waits for a signal that ends this process. Returns it, or `None` after this time.
pub(super) fn next_signal(time: Duration) -> Option<Sig> {
    (0..time.as_millis() / LOOK.as_millis()).find_map(|_| {
        sleep(LOOK);
        Interrupts::take_signal().and_then(Sig::of_number)
    })
}

/// Works on one unit: one that a worker of the same name has left, or one that nobody has claimed. Returns `None` if
/// there is none. A unit that cannot be worked on here is left to other workers.
fn next_unit(
    world: &World,
    common: &Common,
    args: &WorkArgs,
    (hub, worker): (&Hub, &str),
    left: &mut LeftUnits,
) -> Result<Option<Exit>, Stopped> {
    match hub.units().refresh("*") {
        Err(error) if args.wait => {
            print_error(&format!("{error}\n"));
            return Ok(None);
        }
        refreshed => refreshed?,
    }
    for (unit, found) in hub.units().all()? {
        let is_own = args.name.as_ref().is_some_and(|name| found.is_claimed_by(name));
        if !is_own && found.record.stage != UnitStage::Queued {
            continue;
        }
        let bundle = hub.units().bundle(&unit)?;
        let labels = bundle.needs.missing_labels(&args.label);
        if !labels.is_empty() {
            left.add(|| format!("unit {unit} needs a worker with --label {}", labels.join(" --label ")));
            continue;
        }
        if let Some(refusal) = obstacle(world, &bundle, args) {
            left.add(|| refusal.message);
            continue;
        }
        // Another worker may have claimed it since.
        if let Some(claim) = hub.units().claim_as(&unit, found.clone(), worker)? {
            return do_unit(world, common, args, hub, (bundle, claim), Some(&found)).map(Some);
        }
    }
    Ok(None)
}
