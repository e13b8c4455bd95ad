//! The arguments of a command, as tables that are built only when the command is used.

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Id};
use std::ops::Deref;

/// The arguments `A` of one command. Building the tables of all commands would cost more than the rest of a start.
///
/// Until clap builds it, the command has no arguments and no commands of its own: whoever walks through the tables
/// calls [`Command::build`] first.
#[derive(Debug)]
pub(in crate::cli) struct Deferred<A>(A);

impl<A: Args> Deferred<A> {
    /// Adds the arguments to a command now.
    pub(in crate::cli) fn expand(command: Command) -> Command {
        fill::<A>(command.defer(|command| command))
    }
}

impl<A> Deref for Deferred<A> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.0
    }
}

impl<A: FromArgMatches> FromArgMatches for Deferred<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        A::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<A: Args> Args for Deferred<A> {
    fn augment_args(command: Command) -> Command {
        command.defer(fill::<A>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(A::augment_args_for_update)
    }
}

/// Adds the arguments `A` as clap does without a delay: the description of the command stays, and the global options,
/// which the command has by now, are shown last.
fn fill<A: Args>(command: Command) -> Command {
    let about = command.get_about().cloned();
    let long_about = command.get_long_about().cloned();
    let global: Vec<Id> = command.get_arguments().map(|argument| argument.get_id().clone()).collect();
    let filled = A::augment_args(command).about(Resettable::from(about)).long_about(Resettable::from(long_about));
    global.into_iter().fold(filled, |command, id| command.mut_arg(id, |argument| argument))
}
