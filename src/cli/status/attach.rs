//! `attach`: follows the run that is at work in a root, and ends with its exit code.

use super::chosen_at_work;
use crate::cli::args::{AttachArgs, Common};
use crate::cli::people::only_people;
use crate::cli::respond::Answered;
use crate::cli::run::execute::{exit_of, resume_line};
use crate::cli::runs::broken;
use crate::cli::runs::history::journal;
use crate::cli::runs::log::{Cut, Player};
use crate::exit::Exit;
use crate::report::print_error;
use crate::world::World;

/// Carries out `attach`. Ctrl-C ends only this command: the run is another process, in another process group.
pub(in crate::cli) fn attach(world: &World, common: &Common, args: &AttachArgs) -> Answered {
    let (project, journal) = journal(world, common)?;
    only_people(world, &project.root)?;
    let (row, _) = chosen_at_work(&journal, args.run, "attach")?;
    if !common.quiet {
        print_error(&format!("attached to run {}; Ctrl-C detaches, and the run continues\n", row.id));
    }
    let player = Player { world, common, journal: &journal, root: &project.root, from_now: true };
    match player.runs(row, true, args.run.is_none()) {
        Ok(last) => {
            let outcome = journal.run(last).map_err(broken)?.and_then(|row| row.outcome);
            if outcome.is_none() {
                let resume = resume_line(world, common, &project.root, last);
                print_error(&format!("the process of run {last} died; next: {resume}\n"));
            }
            Ok(outcome.map_or(Exit::Incomplete, exit_of))
        }
        Err(Cut::ReaderGone) => Ok(Exit::Success),
        Err(Cut::Failed(error)) => Err(error.into()),
    }
}
