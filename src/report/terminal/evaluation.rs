//! The console of an evaluation: a line for each case as it is judged.

use crate::engine::{EvalLedger, Event, Evidence, Notice, Observer};
use crate::report::paint::Paint;
use crate::report::terminal::screen::Screen;
use crate::report::text::evaluation::evaluation_line;
use std::io;
use std::task::{Context, Poll};

/// Shows an evaluation while it is running.
#[derive(Debug)]
pub struct EvalTerminal {
    screen: Screen,
    ledger: EvalLedger,
    paint: Paint,
    quiet: bool,
    verbose: bool,
}

impl EvalTerminal {
    /// Returns the console of an evaluation, which prints on this screen.
    #[must_use]
    pub fn new(screen: Screen, paint: Paint, quiet: bool, verbose: bool) -> Self {
        Self { screen, ledger: EvalLedger::default(), paint, quiet, verbose }
    }
}

impl Observer for EvalTerminal {
    fn event(&mut self, event: &Event, _evidence: &dyn Evidence) -> io::Result<()> {
        self.ledger.evolve(&event.event);
        if !self.quiet {
            self.screen.say(&evaluation_line(event, &self.ledger, self.paint, self.verbose));
        }
        Ok(())
    }

    fn earlier_event(&mut self, event: &Event) {
        self.ledger.evolve(&event.event);
    }

    fn notice(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::NoProposal(why) => {
                self.screen.say(&format!("  ! the improver proposed no prompt: {why}\n"));
            }
            Notice::Claimed { unit, machine } => self.screen.say(&format!("  → {unit} is at work on {machine}\n")),
            _ => {}
        }
    }

    fn is_idle(&self) -> bool {
        self.screen.is_idle()
    }

    fn poll_written(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.screen.poll_written(context)
    }
}
