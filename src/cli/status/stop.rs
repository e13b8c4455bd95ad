//! `stop`: ends the run in progress in a root, as Ctrl-C in its terminal would.

use super::{ActiveRun, chosen_at_work};
use crate::cli::args::StopArgs;
use crate::cli::options::Common;
use crate::cli::people::only_people;
use crate::cli::respond::{Answered, answer};
use crate::cli::run::execute::{command_line, resume_line};
use crate::cli::runs::broken;
use crate::cli::runs::history::{is_alive, journal};
use crate::journal::RunLock;
use crate::proc::end_process;
use crate::report::print_error;
use crate::world::World;
use std::time::Duration;

/// The interval at which the lock is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Carries out `stop`.
pub(in crate::cli) fn stop(world: &World, common: &Common, args: &StopArgs) -> Answered {
    let (project, journal) = journal(world, common)?;
    only_people(world, &project.root)?;
    let ActiveRun { row, lease, has_ended } = chosen_at_work(&journal, args.run, "stop")?;
    print_error(&if has_ended {
        format!("stopping the queue of run {}: its hooks get time to end\n", row.id)
    } else {
        format!("stopping run {}: its agent gets time to end\n", row.id)
    });
    end_process(lease.pid, lease.start_time);
    // The process ends after its agents; nothing else of it is running then.
    while is_alive(lease) && RunLock::is_held(&project.root).map_err(broken)? {
        std::thread::sleep(LOOK);
    }
    Ok(answer(&if has_ended {
        let next = command_line(world, common, &project.root, "task run --all");
        format!("the queue has ended after run {}; next: {next}\n", row.id)
    } else {
        format!("run {} has ended; next: {}\n", row.id, resume_line(world, common, &project.root, row.id))
    }))
}
