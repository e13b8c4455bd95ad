//! `attach`: follows the run in progress in a root, or a queue, and ends with its exit code.

use super::{ActiveRun, chosen_at_work};
use crate::cli::args::AttachArgs;
use crate::cli::options::Common;
use crate::cli::people::only_people;
use crate::cli::respond::Answered;
use crate::cli::run::execute::{exit_of, resume_line};
use crate::cli::runs::broken;
use crate::cli::runs::history::journal;
use crate::cli::runs::log::Player;
use crate::cli::runs::print::LogCut;
use crate::exit::Exit;
use crate::report::print_error;
use crate::world::World;

/// Carries out `attach`. Ctrl-C ends only this command: the run is another process, in another process group.
pub(in crate::cli) fn attach(world: &World, common: &Common, args: &AttachArgs) -> Answered {
    let (project, journal) = journal(world, common)?;
    only_people(world, &project.root)?;
    let ActiveRun { row, lease, has_ended } = chosen_at_work(&journal, args.run, "attach")?;
    let queue = Some(lease).filter(|_| args.run.is_none());
    let player = Player { world, common, journal: &journal, root: &project.root, from_now: true, queue };
    if !common.quiet {
        let whose = if has_ended { "the queue of " } else { "" };
        print_error(&format!("attached to {whose}run {}; Ctrl-C detaches, and the run continues\n", row.id));
    }
    let first = if has_ended { player.next_run(row.id)? } else { Some(row) };
    match first.map_or(Ok(Vec::new()), |first| player.runs(first, true)) {
        Ok(shown) => {
            let mut worst = Exit::Success;
            for run in shown {
                let outcome = journal.runs().get(run).map_err(broken)?.and_then(|row| row.outcome);
                if outcome.is_none() {
                    let resume = resume_line(world, common, &project.root, run);
                    print_error(&format!("the process of run {run} died; next: {resume}\n"));
                }
                worst = worst.or_worse(outcome.map_or(Exit::Incomplete, exit_of));
            }
            Ok(worst)
        }
        Err(LogCut::ReaderGone) => Ok(Exit::Success),
        Err(LogCut::Failed(error)) => Err(error.into()),
    }
}
