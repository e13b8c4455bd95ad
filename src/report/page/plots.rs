//! Plots of a run without a script: the time, the cost and the errors of its rounds, or of its attempts. A table next
//! to them has the same numbers.

use super::Document;
use super::section::section;
use crate::engine::{At, AttemptOutcome, EventKind, Finished};
use crate::report::format::{seconds, thousands};
use maud::{Markup, html};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The highest number of bars. Each bar of a longer run is several rounds or attempts.
const BARS: usize = 40;

/// A round, or an attempt of a run without rounds.
#[derive(Debug, Default)]
struct PlotPart {
    name: String,
    attempts: u32,
    took_ms: u64,
    tokens: Option<u64>,
    cost: Option<f64>,
    /// The errors of the last attempt of each check.
    errors: BTreeMap<u32, usize>,
}

/// What a plot shows.
pub(super) struct Plot {
    /// The end of its id, and the heading of its column.
    pub(super) name: &'static str,
    pub(super) title: String,
    pub(super) words: fn(f64) -> String,
    /// A value for each bar; `None` if nothing is known.
    pub(super) values: Vec<Option<f64>>,
}

impl PlotPart {
    fn add(&mut self, document: &Document<'_>, at: &At, outcome: &AttemptOutcome, finished: &Finished) {
        self.attempts += 1;
        self.took_ms = self.took_ms.saturating_add(finished.took_ms);
        if let Some(tokens) = finished.agent.tokens {
            self.tokens = Some(self.tokens.unwrap_or(0).saturating_add(tokens.total()));
            self.cost = tokens.cost_usd.map(|cost| self.cost.unwrap_or(0.0) + cost).or(self.cost);
        }
        if outcome.counts() && document.outline.step(at.step).is_some_and(|step| step.check.is_some()) {
            // The output of a failed check may have no error that a reader knows.
            let failed = usize::from(*outcome != AttemptOutcome::Completed);
            self.errors.insert(at.step, finished.check.errors.len().max(failed));
        }
    }
}

/// Returns the rounds of the outermost groups.
fn rounds(document: &Document<'_>) -> Vec<PlotPart> {
    let (mut parts, mut open, mut groups) = (Vec::<PlotPart>::new(), None, Vec::new());
    for event in document.events {
        match &event.event {
            EventKind::RoundStarted { group, round, rounds }
                if *rounds > 1 && open.is_none_or(|open| open == *group) =>
            {
                open = Some(*group);
                if !groups.contains(group) {
                    groups.push(*group);
                }
                let name = if groups.len() > 1 { format!("{round} of group {group}") } else { round.to_string() };
                parts.push(PlotPart { name, ..PlotPart::default() });
            }
            EventKind::RoundFinished { group, .. } if open == Some(*group) => open = None,
            EventKind::AttemptFinished { at, outcome, finished, .. } if open.is_some() => {
                if let Some(part) = parts.last_mut() {
                    part.add(document, at, outcome, finished);
                }
            }
            _ => {}
        }
    }
    parts
}

/// Returns the attempts, if any step has more than one.
fn attempts(document: &Document<'_>) -> Vec<PlotPart> {
    let (mut parts, mut repeats) = (Vec::new(), false);
    for event in document.events {
        if let EventKind::AttemptFinished { at, outcome, finished, .. } = &event.event {
            repeats |= at.attempt > 1;
            let mut part = PlotPart { name: format!("{}.{}", at.step, at.attempt), ..PlotPart::default() };
            part.add(document, at, outcome, finished);
            parts.push(part);
        }
    }
    if repeats { parts } else { Vec::new() }
}

/// Returns the value of each bar: the mean of its parts, as far as they are known.
#[expect(clippy::cast_precision_loss, reason = "only for a drawing")]
fn means(bars: &[&[PlotPart]], value: impl Fn(&PlotPart) -> Option<f64>) -> Vec<Option<f64>> {
    let mean = |parts: &&[PlotPart]| {
        let known: Vec<f64> = parts.iter().filter_map(&value).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    bars.iter().map(mean).collect()
}

/// Returns a rounded number that is not negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count that became a mean")]
pub(super) fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// Returns the plots that say something: with two known values, of which one is not zero as it is shown.
#[expect(clippy::cast_precision_loss, reason = "only for a drawing")]
fn plots(unit: &str, bars: &[&[PlotPart]]) -> Vec<Plot> {
    let says = |plot: &Plot| {
        let nothing = (plot.words)(0.0);
        let known = || plot.values.iter().flatten();
        known().count() > 1 && known().any(|value| (plot.words)(*value) != nothing)
    };
    let time = Plot {
        name: "time",
        title: format!("Time per {unit}"),
        words: |value| seconds(whole(value)),
        values: means(bars, |part| Some(part.took_ms as f64)),
    };
    let cost = Plot {
        name: "cost",
        title: format!("Cost per {unit}"),
        words: |value| format!("${value:.2}"),
        values: means(bars, |part| part.cost),
    };
    let tokens = Plot {
        name: "tokens",
        title: format!("Tokens per {unit}"),
        words: |value| thousands(whole(value)),
        values: means(bars, |part| part.tokens.map(|tokens| tokens as f64)),
    };
    let most = |parts: &&[PlotPart]| {
        let checked = parts.iter().filter(|part| !part.errors.is_empty());
        checked.map(|part| part.errors.values().sum::<usize>()).max().map(|errors| errors as f64)
    };
    let errors = Plot {
        name: "errors",
        title: "Errors that the checks found".into(),
        words: |value| thousands(whole(value)),
        values: bars.iter().map(most).collect(),
    };
    let used = if says(&cost) { cost } else { tokens };
    [time, used, errors].into_iter().filter(says).collect()
}

/// Returns the section with the plots; empty if they would say nothing.
pub(super) fn plotted(document: &Document<'_>, prefix: &str) -> Markup {
    let (unit, parts) = match rounds(document) {
        rounds if rounds.len() > 1 => ("round", rounds),
        _ => ("attempt", attempts(document)),
    };
    let each = parts.len().div_ceil(BARS).max(1);
    let bars: Vec<&[PlotPart]> = parts.chunks(each).collect();
    let names: Vec<String> = bars.iter().filter_map(|parts| named(parts)).collect();
    let plots = plots(unit, &bars);
    if plots.is_empty() {
        return html! {};
    }
    let heading = if unit == "round" { "Round by round" } else { "Attempt by attempt" };
    let units = if each > 1 { format!("{unit}s") } else { unit.to_string() };
    let attempts = |parts: &&[PlotPart]| parts.iter().map(|part| part.attempts).sum::<u32>();
    let counts = (unit == "round" || each > 1).then(|| bars.iter().map(attempts).collect::<Vec<_>>());
    let content = html! {
        @if each > 1 {
            p { "Each bar is " (each) " " (units) ": their mean, and the most errors of one." }
        }
        (drawn(&plots, prefix, (unit, &units), &names, counts.as_deref()))
    };
    section(prefix, "plots", heading, &content)
}

/// Returns plots with a bar for each name, and a table with the same numbers. `counts` is how many attempts each bar
/// stands for, if that is not always one.
pub(super) fn drawn(
    plots: &[Plot],
    prefix: &str,
    (unit, units): (&str, &str),
    names: &[String],
    counts: Option<&[u32]>,
) -> Markup {
    html! {
        div class="plots" {
            @for plot in plots { (figure(plot, prefix, units, names)) }
        }
        details {
            summary { "The numbers" }
            table {
                thead {
                    tr {
                        th scope="col" { (unit) }
                        @if counts.is_some() { th scope="col" { "attempts" } }
                        @for plot in plots { th scope="col" { (plot.name) } }
                    }
                }
                tbody {
                    @for (index, name) in names.iter().enumerate() {
                        tr {
                            th scope="row" { (name) }
                            @if let Some(count) = counts.and_then(|counts| counts.get(index)) { td { (count) } }
                            @for plot in plots {
                                td { (plot.values[index].map_or_else(|| "-".into(), plot.words)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the name of a bar: `3`, or `1 to 25`.
fn named(parts: &[PlotPart]) -> Option<String> {
    match parts {
        [] => None,
        [part] => Some(part.name.clone()),
        [first, .., last] => Some(format!("{} to {}", first.name, last.name)),
    }
}

/// Returns a plot. Its caption is its name for those who cannot see it.
fn figure(plot: &Plot, prefix: &str, unit: &str, names: &[String]) -> Markup {
    let known = || plot.values.iter().copied().zip(names).filter_map(|(value, name)| Some((value?, name)));
    let least = known().map(|(value, _)| value).fold(f64::INFINITY, f64::min);
    let (most, at) = known().fold((0.0, ""), |most, (value, name)| if value > most.0 { (value, name) } else { most });
    let (least, shown) = ((plot.words)(least), (plot.words)(most));
    let id = format!("{prefix}plot-{}", plot.name);
    html! {
        figure class=(plot.name) {
            figcaption id=(id) {
                strong { (plot.title) } ": "
                @if least == shown { (shown) " each" } @else { (least) " to " (shown) ", most in " (unit) " " (at) }
            }
            svg role="img" aria-labelledby=(id) viewBox={ "0 0 " (plot.values.len() * 10) " 100" } preserveAspectRatio="none" {
                path d=(path(&plot.values, most)) {}
            }
            div class="ends" aria-hidden="true" {
                @if let [first, .., last] = names { span { (first) } span { (last) } }
            }
        }
    }
}

/// Returns the bars as one path, which takes few bytes.
fn path(values: &[Option<f64>], most: f64) -> String {
    let mut path = String::new();
    for (index, value) in values.iter().enumerate() {
        let Some(value) = value.filter(|value| *value > 0.0) else { continue };
        let height = (value / most * 100.0).clamp(1.0, 100.0);
        // Writing to a String cannot fail.
        let _ = write!(path, "M{} 100v-{height:.0}h8v{height:.0}z", index * 10 + 1);
    }
    path
}
