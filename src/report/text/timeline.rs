//! A run's events as a timeline: the console's lines, each with its time of day.

use crate::engine::{At, Event, EventKind};
use crate::report::format::time_of_day;
use crate::report::terminal::console::Console;

/// The columns in front of a line that has no time of its own.
const MARGIN: &str = "          ";

/// Returns the timeline of a run. The output of agents is not part of it. `session` returns the command line that
/// continues an agent's session, by step and session id.
#[must_use]
pub fn timeline(console: &mut Console<'_>, events: &[Event], session: impl Fn(u32, &str) -> Option<String>) -> String {
    let mut text = String::new();
    let mut open: Option<&At> = None;
    for event in events {
        let mut lines = console.event(event);
        match &event.event {
            // The heading says the same.
            EventKind::RunStarted { .. } | EventKind::RunFinished { .. } => continue,
            EventKind::AttemptPlanned { at, .. } => {
                open = Some(at);
                continue;
            }
            EventKind::AttemptFinished { at, finished, .. } => {
                open = None;
                let session = finished.agent.session.as_ref().and_then(|id| session(at.step, id));
                lines.extend(session.map(|line| format!("  to continue its session: {line}\n")));
            }
            _ => {}
        }
        push(&mut text, &event.at, &lines, console);
    }
    if let (Some(at), Some(last)) = (open, events.last()) {
        let words = format!("{} {}: not ended\n", console.paint.sign("▶", ">"), console.place(at));
        push(&mut text, &last.at, &words, console);
    }
    text
}

fn push(text: &mut String, at: &str, lines: &str, console: &Console<'_>) {
    for (index, line) in lines.lines().filter(|line| !line.is_empty()).enumerate() {
        // An indented line belongs to the one above it.
        if index == 0 && !line.starts_with(' ') {
            text.push_str(&console.paint.dim(&time_of_day(at)));
            text.push_str("  ");
        } else {
            text.push_str(MARGIN);
        }
        text.push_str(line);
        text.push('\n');
    }
}
