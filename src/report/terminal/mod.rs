//! What a terminal shows while a run is in progress.

pub(super) mod batch;
pub(super) mod console;
pub(super) mod evaluation;
pub(super) mod live;
pub(super) mod screen;

use crate::engine::{
    AttemptOutcome, Event, EventKind, Evidence, Notice, Observer, Pace, RunOutcome, RunSummary, Stream,
};
use crate::report::paint::columns;
use crate::report::sinks::Sinks;
use crate::report::terminal::console::Console;
use crate::report::terminal::live::{FRAME, Now, live_line};
use crate::report::terminal::screen::Screen;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

/// How a terminal shows a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalOptions {
    /// How the output of agents is shown.
    pub pace: Pace,
    /// Whether standard output is a terminal.
    pub on_terminal: bool,
    /// Whether the live line is drawn.
    pub live: bool,
    /// Whether each line of an agent's output begins with the agent's name.
    pub prefix: bool,
}

/// Our own lines, the output of agents, and events for programs, in one order.
#[derive(Debug)]
pub struct Terminal<'a> {
    screen: Screen,
    console: Console<'a>,
    sinks: Sinks,
    options: TerminalOptions,
}

impl<'a> Terminal<'a> {
    /// Returns a terminal that prints on this screen.
    #[must_use]
    pub fn new(mut screen: Screen, console: Console<'a>, sinks: Sinks, options: TerminalOptions) -> Self {
        if sinks.listens_for_errors() {
            screen.use_one_stream();
        }
        Self { screen, console, sinks, options }
    }

    /// Returns the summary of the run so far, with the events of earlier processes.
    #[must_use]
    pub fn into_summary(self) -> RunSummary {
        self.console.summary
    }

    fn say(&mut self, lines: String) {
        let lines = self.sinks.harmless(lines);
        self.screen.say(&lines);
    }
}

impl Observer for Terminal<'_> {
    fn event(&mut self, event: &Event, evidence: &dyn Evidence) -> io::Result<()> {
        let mut errors = Vec::new();
        match &event.event {
            EventKind::AttemptPlanned { at, .. } => {
                self.sinks.renew(|| evidence.secret());
                if self.options.prefix {
                    let prefix = self.console.prefix(&at.name, self.options.on_terminal);
                    self.screen.set_prefix(prefix);
                }
            }
            EventKind::AttemptFinished { at, outcome, .. }
                if self.sinks.listens_for_errors() && *outcome != AttemptOutcome::Completed =>
            {
                errors = evidence.errors(at);
            }
            EventKind::RunFinished { outcome: RunOutcome::CrashLoop { .. } } => {
                if let Some(last) = &self.console.summary.totals.last {
                    let (stream, words) = evidence.last_words(&last.at);
                    let excerpt = self.console.excerpt(stream, &words);
                    self.say(excerpt);
                }
            }
            _ => {}
        }
        let (before, after) = self.sinks.around(event, self.console.outline(), &errors);
        let lines = self.console.event(event);
        let lines = self.sinks.harmless(lines);
        self.screen.say(&(before + &lines + &after));
        self.screen.out(self.sinks.event(event)?);
        Ok(())
    }

    fn earlier_event(&mut self, event: &Event) {
        let _ = self.console.event(event);
    }

    fn notice(&mut self, notice: &Notice<'_>) {
        let lines = self.console.notice(notice);
        self.say(lines);
    }

    fn pace(&self) -> Pace {
        self.options.pace
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.screen.buffer()
    }

    fn give_back(&mut self, buffer: Vec<u8>) {
        self.screen.give_back(buffer);
    }

    fn is_ready(&self) -> bool {
        self.screen.is_ready()
    }

    fn output(&mut self, stream: Stream, bytes: Vec<u8>) {
        self.screen.piece(stream, bytes);
    }

    fn output_over(&mut self) {
        self.screen.end_pieces();
    }

    fn countdown(&mut self, left: Duration) -> Option<Duration> {
        let (line, next) = self.console.countdown(left);
        self.screen.say(&line);
        next
    }

    fn frame(&self) -> Option<Duration> {
        self.options.live.then_some(FRAME)
    }

    fn draw(&mut self, elapsed: Duration, silent: Duration) {
        if let Some(line) = live_line(&self.console, Now { elapsed, silent, columns: columns() }) {
            self.screen.live(&line);
        }
    }

    fn is_idle(&self) -> bool {
        self.screen.is_idle()
    }

    fn poll_written(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.screen.poll_written(context)
    }

    fn stop_pacing(&mut self) {
        self.screen.stop_pacing();
    }
}
