//! The live line: the one line on a terminal that changes while an agent works. It shows where the run is, for how
//! long, how long the agent has been silent, and what it has used. It is always the last line, and gives way to lines
//! that stay.

use crate::report::format::{amount, fitted, seconds};
use crate::report::terminal::console::{Console, Verbosity};
use std::time::Duration;

/// The time between two drawings of the line.
pub(super) const FRAME: Duration = Duration::from_millis(250);
/// The line shows a silence from this length on.
const SILENT: Duration = Duration::from_secs(5);
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const PLAIN_SPINNER: [&str; 4] = ["|", "/", "-", "\\"];

/// The current state of the running attempt, for the live line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    /// How long it has been running.
    pub(super) elapsed: Duration,
    /// How long it has printed nothing.
    pub(super) silent: Duration,
    /// The width of the terminal, in columns.
    pub(super) columns: usize,
}

/// Returns the current line; `None` if no attempt is running or the line is not wanted.
pub(super) fn live_line(console: &Console<'_>, now: Now) -> Option<String> {
    if !console.paint.terminal || console.verbosity == Verbosity::Quiet {
        return None;
    }
    let at = console.under_way.as_ref()?;
    let frame = usize::try_from(now.elapsed.as_millis() / FRAME.as_millis()).unwrap_or(0);
    let spinner =
        if console.paint.unicode { SPINNER[frame % SPINNER.len()] } else { PLAIN_SPINNER[frame % PLAIN_SPINNER.len()] };
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let mut words = vec![format!("{}.{} {}", at.step, at.attempt, at.name)];
    if console.outline.steps.len() > 1 {
        words.push(format!("step {}/{}", at.step, console.outline.steps.len()));
    }
    if let Some(most) = console.iterations(at) {
        words.push(format!("iteration {}/{most}", at.iteration));
    }
    if at.round > 1 {
        words.push(format!("round {}", at.round));
    }
    // Tenths of a second would only flicker.
    let whole = |time: Duration| seconds(millis(time) / 1000 * 1000).replace(".0 s", " s");
    words.push(whole(now.elapsed));
    if now.silent >= SILENT {
        words.push(format!("silent for {}", whole(now.silent)));
    }
    let tokens = console.summary.totals.all.tokens().unwrap_or(0) + console.spending.map_or(0, |tokens| tokens.total());
    if tokens > 0 {
        words.push(amount(tokens, "token"));
    }
    let cost = match (console.summary.totals.all.cost_usd(), console.spending.and_then(|tokens| tokens.cost_usd)) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0.0) + other.unwrap_or(0.0)),
    };
    words.extend(cost.map(|cost| format!("${cost:.2}")));
    let line = format!("{spinner} {}", words.join(" · "));
    // One column stays free, so that no terminal wraps the line.
    let most = now.columns.saturating_sub(1);
    let line = fitted(&line, most);
    Some(console.paint.dim(&if console.paint.unicode { line } else { line.replace('·', "-").replace('…', "~") }))
}
