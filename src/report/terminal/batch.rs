//! The console of a batch: lines that stay for what happens to its tasks, and below them one moving line for each lane.

use crate::engine::{BatchState, Event, EventKind, Evidence, Observer, Totals, UnitOfBatch};
use crate::report::format::{fitted, seconds};
use crate::report::paint::{Paint, columns};
use crate::report::sinks::Sinks;
use crate::report::terminal::live::FRAME;
use crate::report::terminal::screen::Screen;
use crate::report::text::batch::batch_line;
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::Receiver;
use std::task::{Context, Poll};
use std::time::Duration;

/// What a lane does, for its moving line.
#[derive(Debug, Default)]
struct LaneLine {
    task: String,
    /// When the unit began, as the time since the batch began.
    since: Duration,
    /// With an engine: the machine on which it is worked on, or what it waits for.
    machine: String,
    /// The attempt at work.
    place: String,
    totals: Totals,
}

/// Shows a batch while it is running.
#[derive(Debug)]
pub struct BatchTerminal {
    screen: Screen,
    sinks: Sinks,
    run: i64,
    state: BatchState,
    paint: Paint,
    quiet: bool,
    now: Duration,
    /// The lanes at work, by the run that each works on.
    lanes: BTreeMap<i64, (u32, LaneLine)>,
    /// What others have to say meanwhile, above the live lines.
    messages: Option<Receiver<String>>,
}

impl BatchTerminal {
    /// Returns the console of a batch, which prints on this screen.
    #[must_use]
    pub fn new(screen: Screen, sinks: Sinks, run: i64, paint: Paint, quiet: bool) -> Self {
        let (state, lanes) = (BatchState::default(), BTreeMap::new());
        Self { screen, sinks, run, state, paint, quiet, now: Duration::ZERO, lanes, messages: None }
    }

    /// Shows what comes through this channel above the live lines, a line or several each.
    pub fn hear(&mut self, messages: Receiver<String>) {
        self.messages = Some(messages);
    }

    fn see(&mut self, event: &EventKind) {
        self.state.evolve(event);
        let engine = self.state.facts.as_ref().and_then(|facts| facts.engine.as_ref());
        let machine = |unit: &UnitOfBatch| match (engine, &unit.machine) {
            (None, _) => String::new(),
            (Some(engine), None) => format!("waits for {engine}"),
            (Some(_), Some(machine)) => format!("on {machine}"),
        };
        let units = self.state.units.values().filter(|unit| unit.at_work);
        let at_work: Vec<(i64, u32, String, String)> =
            units.map(|unit| (unit.run, unit.lane, unit.label(), machine(unit))).collect();
        self.lanes.retain(|run, _| at_work.iter().any(|(known, ..)| known == run));
        for (run, lane, task, machine) in at_work {
            let since = self.now;
            let line = self.lanes.entry(run);
            line.or_insert_with(|| (lane, LaneLine { task, since, ..LaneLine::default() })).1.machine = machine;
        }
    }

    /// The moving lines, the first lane first.
    fn lines(&self) -> String {
        let mut lanes: Vec<&(u32, LaneLine)> = self.lanes.values().collect();
        lanes.sort_by_key(|(number, _)| *number);
        let whole = |time: Duration| seconds(time.as_secs() * 1000).replace(".0 s", " s");
        let most = columns().saturating_sub(1);
        let line = |(number, lane): &&(u32, LaneLine)| {
            let cost = lane.totals.all.cost_usd().map(|cost| format!("${cost:.2}"));
            let elapsed = whole(self.now.saturating_sub(lane.since));
            let words: Vec<String> = [Some(lane.machine.clone()), Some(lane.place.clone()), Some(elapsed), cost]
                .into_iter()
                .flatten()
                .filter(|word| !word.is_empty())
                .collect();
            let line = format!("  {number} {} {}  {}", self.paint.sign("▸", ">"), lane.task, words.join(" · "));
            let line = fitted(&line, most);
            self.paint.dim(&if self.paint.unicode { line } else { line.replace('·', "-").replace('…', "~") })
        };
        lanes.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Observer for BatchTerminal {
    fn event(&mut self, event: &Event, _evidence: &dyn Evidence) -> io::Result<()> {
        let line = self.sinks.event(event)?;
        self.screen.out(line);
        if event.run == self.run {
            let line = batch_line(self.run, &event.event, &self.state, self.paint);
            self.see(&event.event);
            if !self.quiet {
                self.screen.say(&line);
            }
        } else if let Some((_, lane)) = self.lanes.get_mut(&event.run) {
            lane.totals.evolve(&event.event);
            if let EventKind::AttemptPlanned { at, .. } = &event.event {
                let round = if at.round > 1 { format!(", round {}", at.round) } else { String::new() };
                lane.place = format!("{}{round}", at.name);
            }
        }
        Ok(())
    }

    fn earlier_event(&mut self, event: &Event) {
        if event.run == self.run {
            self.state.evolve(&event.event);
        }
    }

    fn frame(&self) -> Option<Duration> {
        (self.paint.terminal && !self.quiet).then_some(FRAME)
    }

    fn draw(&mut self, elapsed: Duration, _silent: Duration) {
        self.now = elapsed;
        for message in self.messages.iter().flat_map(Receiver::try_iter) {
            self.screen.say(&message);
        }
        if self.paint.terminal && !self.quiet {
            let lines = self.lines();
            if lines.is_empty() {
                self.screen.clear_live();
            } else {
                self.screen.live(&lines);
            }
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
