//! `forkhestra-temporal`: a team's queue of units, on Temporal. Its workers run `forkhestra work`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own, with little to say")]
#![expect(clippy::disallowed_methods, reason = "the rules about who owns what are those of the package forkhestra")]

mod args;
mod child;
mod commands;
mod lease;
mod queue;
mod server;
mod unit;
mod work;
mod worker;

use args::{Arguments, Command};
use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

/// Prints a line about the work. A reader that has gone away does not matter.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(contradiction) = arguments.contradiction() {
        eprintln!("error: {contradiction}");
        return ExitCode::from(2);
    }
    let done = match arguments.command {
        Command::Worker(args) => worker::work(args).await,
        Command::Submit(args) => commands::submit(args).await,
        Command::List(args) => commands::list(args).await,
        Command::Cancel(args) => commands::cancel(args).await,
        Command::Status(args) => commands::status(args).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
