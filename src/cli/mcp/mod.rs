//! `mcp`: a server of the Model Context Protocol on standard input and output.

mod attempt;
mod project;
mod protocol;

use crate::cli::config::project;
use crate::cli::options::Common;
use crate::cli::people::only_people;
use crate::cli::respond::Answered;
use crate::cli::task::errors::only_a_human;
use crate::exit::Exit;
use crate::proc::inherited;
use crate::report::print_bytes;
use crate::world::World;
use attempt::AttemptTools;
use clap::Args;
use project::ProjectTools;
use protocol::{ToolBox, reply, too_long};
use std::io::ErrorKind;

/// The longest message, in bytes.
const LONGEST: u64 = 4 << 20;

#[derive(Debug, Args)]
pub(in crate::cli) struct McpArgs {
    /// For an agent of a chain: the tools of its attempt
    #[arg(long, hide = true)]
    pub(in crate::cli) attempt: bool,
}

/// Serves until standard input ends.
pub(super) fn mcp(world: &World, common: &Common, args: &McpArgs) -> Answered {
    let mut tools: Box<dyn ToolBox + '_> = if args.attempt {
        Box::new(AttemptTools::new(world)?)
    } else {
        let project = project(world, common);
        // An agent of a chain that starts chains, here or elsewhere, would have no limit.
        only_people(world, &project.root)?;
        if !inherited("FORKHESTRA_RESULT").is_empty() {
            return Err(only_a_human().into());
        }
        Box::new(ProjectTools::new(world, project))
    };
    loop {
        let answered = match world.stdin().read_message(LONGEST) {
            Ok(Some(line)) if line.trim().is_empty() => continue,
            Ok(Some(line)) => reply(&line, tools.as_mut()),
            Err(error) if error.kind() == ErrorKind::InvalidData => Some(too_long(LONGEST)),
            Ok(None) | Err(_) => return Ok(Exit::Success),
        };
        if let Some(answer) = answered
            && print_bytes(answer.as_bytes()).is_err()
        {
            // The client is gone.
            return Ok(Exit::Success);
        }
    }
}
