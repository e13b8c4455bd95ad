//! From the words of a command line to a command and its arguments.

pub(super) mod argv;
pub(super) mod deferred;
mod usage;

use crate::cli::args::Cli;
use crate::cli::respond::Stopped;
use crate::exit::Exit;
use crate::world::World;
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;

/// Reads the words after the program's name.
///
/// # Errors
/// For requests for help, which it prints, and for errors, which it reports: the exit code.
pub(super) fn parse(world: &World, arguments: &[OsString]) -> Result<Cli, Exit> {
    let words = std::iter::once("forkhestra".into()).chain(arguments.iter().cloned());
    let mut command = Cli::command();
    let parsed = command
        .try_get_matches_from_mut(words)
        .and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command)));
    parsed.map_err(|error| {
        let exit = not_parsed(world, &error, arguments);
        // The process ends now, which frees the tables of all commands sooner than piece by piece.
        std::mem::forget(command);
        exit
    })
}

/// Prints help and versions to standard output with exit code 0, errors to standard error with 2.
fn not_parsed(world: &World, error: &clap::Error, arguments: &[OsString]) -> Exit {
    if error.use_stderr() && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let mut command = Cli::command();
        command.build();
        return Stopped::from(usage::fault(error, &command, arguments)).exit(world);
    }
    // A closed stream is not an error.
    let _ = error.print();
    if error.use_stderr() { Exit::Refused } else { Exit::Success }
}
