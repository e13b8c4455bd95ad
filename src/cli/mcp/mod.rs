//! `mcp`: a server of the Model Context Protocol on standard input and output.

mod attempt;
mod project;
mod protocol;

use crate::cli::args::Common;
use crate::cli::config::project;
use crate::cli::people::only_people;
use crate::cli::respond::Answered;
use crate::exit::Exit;
use crate::report::print_bytes;
use crate::world::World;
use attempt::AttemptTools;
use clap::Args;
use project::ProjectTools;
use protocol::{ToolBox, reply};

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
        let root = project(world, common).root;
        // An agent of a chain that starts chains would have no limit.
        only_people(world, &root)?;
        Box::new(ProjectTools::new(world, root))
    };
    loop {
        let Ok(Some(line)) = world.read_message(LONGEST) else { return Ok(Exit::Success) };
        if line.trim().is_empty() {
            continue;
        }
        if let Some(answer) = reply(&line, tools.as_mut())
            && print_bytes(answer.as_bytes()).is_err()
        {
            // The client is gone.
            return Ok(Exit::Success);
        }
    }
}
