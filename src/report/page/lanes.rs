//! A batch as a part of the report: its tasks, its lanes over time, and what happened.

use super::section::section;
use crate::engine::{BatchEvent, BatchState, Event, EventKind, RunState, TaskPlace};
use crate::report::format::{first_line, seconds, time_of_day};
use crate::report::paint::{Paint, printable};
use crate::report::text::batch::BatchLines;
use crate::report::text::history::state_label;
use maud::{Markup, html};
use std::fmt::Write;

/// The width of the drawing, in its own units.
const WIDTH: u64 = 1000;
/// The height of a lane, in its own units.
const HEIGHT: u64 = 10;

/// A batch for the report.
#[derive(Debug)]
pub struct BatchPage<'a> {
    /// Its number.
    pub run: i64,
    /// Its state.
    pub state: RunState,
    /// Its events, in order.
    pub events: &'a [Event],
}

/// A unit of work in a lane. The times are milliseconds since the batch began.
struct Bar {
    unit: String,
    task: Option<String>,
    try_number: Option<u32>,
    is_choice: bool,
    lane: u32,
    run: i64,
    from: u64,
    to: Option<u64>,
}

impl BatchPage<'_> {
    pub(super) fn title(&self) -> String {
        let tasks = BatchState::of_events(self.events).map_or(0, |state| state.tasks.len());
        format!("Run {}: {}", self.run, crate::source::counted(tasks, "task"))
    }

    pub(super) fn state(&self) -> Markup {
        let class = match self.state {
            RunState::Complete => "good",
            RunState::Running => "open",
            _ => "bad",
        };
        html! { p class={ "state " (class) } { (state_label(self.state)) } }
    }

    /// Its sections.
    pub(super) fn parts(&self) -> Markup {
        let state = BatchState::of_events(self.events).unwrap_or_default();
        html! {
            (section("", "tasks", "Tasks", &tasks(&state)))
            (section("", "lanes", "Lanes over time", &self.lanes()))
            (section("", "happened", "What happened", &self.happened()))
        }
    }

    /// The batch in Markdown: what happened, line by line.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut lines = BatchLines::new(self.run, Paint::plain());
        let mut text = format!("# {}\n\n{}\n\n", self.title(), state_label(self.state));
        for event in self.events {
            for line in lines.event(&event.event).lines() {
                let _ = writeln!(text, "    {} {}", time_of_day(&event.at), printable(line.trim()));
            }
        }
        text + "\n"
    }

    /// Milliseconds from the first event to this time.
    fn since(&self, at: &str) -> u64 {
        let parse = |text: &str| text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond);
        let first = self.events.first().and_then(|event| parse(&event.at));
        first.zip(parse(at)).and_then(|(first, at)| u64::try_from(at - first).ok()).unwrap_or(0)
    }

    fn bars(&self) -> (Vec<Bar>, Vec<u64>) {
        let (mut bars, mut landings) = (Vec::<Bar>::new(), Vec::new());
        for Event { at, event, .. } in self.events {
            let EventKind::Batch { event } = event else { continue };
            match event {
                BatchEvent::UnitStarted { unit, task, try_number, choice, lane, run, .. } => bars.push(Bar {
                    unit: unit.clone(),
                    task: task.clone(),
                    try_number: *try_number,
                    is_choice: *choice,
                    lane: *lane,
                    run: *run,
                    from: self.since(at),
                    to: None,
                }),
                BatchEvent::UnitEnded { unit, .. } => {
                    let open = bars.iter_mut().rev().find(|bar| bar.unit == *unit && bar.to.is_none());
                    if let Some(bar) = open {
                        bar.to = Some(self.since(at));
                    }
                }
                BatchEvent::Landed { .. } => landings.push(self.since(at)),
                _ => {}
            }
        }
        (bars, landings)
    }

    /// The lanes over time: a bar for each unit, and a line for each landing.
    fn lanes(&self) -> Markup {
        let (bars, landings) = self.bars();
        let whole = self.events.last().map_or(0, |event| self.since(&event.at)).max(1);
        let lanes = bars.iter().map(|bar| bar.lane).max().unwrap_or(1);
        let x = |time: u64| time * WIDTH / whole;
        let mut ticks = String::new();
        for landing in &landings {
            // Writing to a String cannot fail.
            let _ = write!(ticks, "M{} 0h2v{}h-2z", x(*landing), u64::from(lanes) * HEIGHT);
        }
        let shape = |bar: &Bar| {
            let (from, to) = (x(bar.from), x(bar.to.unwrap_or(whole)));
            let top = u64::from(bar.lane.saturating_sub(1)) * HEIGHT + 1;
            format!("M{from} {top}h{}v{}h-{0}z", to.saturating_sub(from).max(2), HEIGHT - 2)
        };
        html! {
            figure class="lanes" {
                figcaption id="lanes-caption" {
                    strong { (crate::source::counted(lanes, "lane")) } " in " (seconds(whole))
                    ": work on tasks, " span class="verify" { "verifications" } ", and "
                    span class="landed" { (crate::source::counted(landings.len(), "landing")) }
                }
                svg role="img" aria-labelledby="lanes-caption" viewBox={ "0 0 " (WIDTH) " " (u64::from(lanes) * HEIGHT) }
                    preserveAspectRatio="none" style={ "height:" (lanes * 2) "rem" } {
                    @for bar in &bars {
                        path class=[bar.task.is_none().then_some("verify")] d=(shape(bar)) { title { (words(bar)) } }
                    }
                    @if !ticks.is_empty() { path class="landed" d=(ticks) {} }
                }
                div class="ends" aria-hidden="true" { span { "0 s" } span { (seconds(whole)) } }
            }
            details {
                summary { "The numbers" }
                table {
                    thead { tr { @for name in ["lane", "task", "run", "began", "took"] { th scope="col" { (name) } } } }
                    tbody {
                        @for bar in &bars {
                            tr {
                                td { (bar.lane) }
                                td { (label(bar)) }
                                td { a href={ "#run-" (bar.run) } { (bar.run) } }
                                td { (seconds(bar.from)) }
                                td { (bar.to.map_or_else(|| "not ended".into(), |to| seconds(to.saturating_sub(bar.from)))) }
                            }
                        }
                    }
                }
            }
        }
    }

    fn happened(&self) -> Markup {
        let mut lines = BatchLines::new(self.run, Paint::plain());
        let mut told: Vec<(String, String)> = Vec::new();
        for event in self.events {
            let text = lines.event(&event.event);
            told.extend(text.lines().map(|line| (time_of_day(&event.at), line.trim().to_string())));
        }
        html! {
            ol class="timeline" {
                @for (time, line) in &told { li { span class="folder" { (time) } " " (printable(line)) } }
            }
        }
    }
}

/// What a unit works on, in a few words.
fn label(bar: &Bar) -> String {
    let task = bar.task.as_deref().map_or_else(|| "verification".into(), printable);
    match bar.try_number {
        _ if bar.is_choice => format!("{task}, choice"),
        Some(number) => format!("{task}, try {number}"),
        None => task,
    }
}

fn words(bar: &Bar) -> String {
    let task = if bar.task.is_some() { "task " } else { "" };
    format!("{task}{}, run {}", label(bar), bar.run)
}

/// What became of each task.
fn tasks(state: &BatchState) -> Markup {
    let place = |place: &TaskPlace| match place {
        TaskPlace::Landed(commit) => ("good", format!("landed as {}", commit.get(..8).unwrap_or(commit))),
        TaskPlace::Stopped(reason) => ("bad", format!("stopped: {reason}")),
        TaskPlace::AtWork | TaskPlace::Trying => ("open", "running".into()),
        TaskPlace::Ready | TaskPlace::OnTrial => ("open", "waiting to land".into()),
        _ => ("open", "not landed".into()),
    };
    html! {
        table {
            thead { tr { @for name in ["task", "title", "status", "runs", "sent back"] { th scope="col" { (name) } } } }
            tbody {
                @for (id, task) in &state.tasks {
                    @let (class, words) = place(&task.place);
                    tr {
                        th scope="row" { (printable(id)) }
                        td { (printable(&first_line(&task.facts.title))) }
                        td class=(class) { (words) }
                        td { @for run in &task.runs { a href={ "#run-" (run) } { (run) } " " } }
                        td { @if task.sent_back > 0 { (task.sent_back) } @else { "-" } }
                    }
                }
            }
        }
    }
}
