//! The console of an evaluation: a line for each case as it is judged.

use crate::engine::{
    CaseResults, EvalEvent, EvalLedger, Event, EventKind, Evidence, Notice, Observer, RunSummary, RunTrees,
};
use crate::report::paint::Paint;
use crate::report::sinks::Sinks;
use crate::report::terminal::screen::Screen;
use crate::report::text::evaluation::evaluation_line;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::task::{Context, Poll};

/// Shows an evaluation while it is running.
#[derive(Debug)]
pub struct EvalTerminal {
    screen: Screen,
    sinks: Sinks,
    /// The state of the evaluation, without its results.
    ledger: EvalLedger,
    summary: RunSummary,
    /// The generation of the last result, and for each generation the results that there are.
    generation: u32,
    done: HashMap<u32, HashSet<u64>>,
    paint: Paint,
    quiet: bool,
    verbose: bool,
}

impl EvalTerminal {
    /// Returns the console of an evaluation, which prints on this screen, and writes its events to `sinks`.
    #[must_use]
    pub fn new(screen: Screen, sinks: Sinks, paint: Paint, (quiet, verbose): (bool, bool)) -> Self {
        let (ledger, summary) = (EvalLedger::default(), RunSummary::default());
        Self { screen, sinks, ledger, summary, generation: 0, done: HashMap::new(), paint, quiet, verbose }
    }

    /// Returns the summary of the run so far.
    #[must_use]
    pub fn into_summary(self) -> RunSummary {
        self.summary
    }

    /// Keeps what the lines need. Of the results, of which there may be many, only a digest is kept.
    fn see(&mut self, event: &Event) {
        self.summary.see(event);
        // No tree of the run is shown, and there may be many attempts.
        self.summary.trees = RunTrees::default();
        if let EventKind::Evaluation { event: EvalEvent::CaseJudged { result } } = &event.event {
            let mut digest = DefaultHasher::new();
            (&result.case, result.repetition).hash(&mut digest);
            self.generation = result.generation;
            self.done.entry(result.generation).or_default().insert(digest.finish());
        } else {
            self.ledger.evolve(&event.event);
            self.ledger.results = CaseResults::default();
        }
    }
}

impl Observer for EvalTerminal {
    fn event(&mut self, event: &Event, _evidence: &dyn Evidence) -> io::Result<()> {
        self.see(event);
        if !self.quiet {
            let done = self.done.get(&self.generation).map_or(0, HashSet::len);
            self.screen.say(&evaluation_line(event, &self.ledger, done, self.paint, self.verbose));
        }
        self.screen.out(self.sinks.event(event)?);
        Ok(())
    }

    fn earlier_event(&mut self, event: &Event) {
        self.see(event);
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
