//! What the backends and models of a run have done, and what continued sessions have read from the cache.

use super::Document;
use crate::engine::{EventKind, Preparation};
use crate::report::format::{amount, thousands};
use crate::source::counted;
use std::collections::HashMap;

/// Returns a line for each fact; nothing for a run whose agents were always started in the same way.
pub(in crate::report) fn backend_facts(document: &Document<'_>) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let by = by_backend(document);
    if by.len() > 1 && varies(document) {
        let words =
            by.iter().map(|(by, sum)| format!("{by}: {}, {}", counted(sum.attempts, "attempt"), sum.cost_words()));
        facts.push(("run by", words.collect::<Vec<_>>().join("; ")));
    }
    facts.extend(continued(document).map(|words| ("sessions", words)));
    facts
}

#[derive(Default)]
struct BackendSum {
    attempts: u32,
    tokens: u64,
    cost: Option<f64>,
    /// Whether the cost of one attempt or more is not known.
    is_partial: bool,
}

impl BackendSum {
    fn cost_words(&self) -> String {
        let tokens = amount(self.tokens, "token");
        match (self.cost, self.is_partial) {
            (Some(cost), false) => format!("{tokens}, ${cost:.2}"),
            (Some(cost), true) => format!("{tokens}, ${cost:.2} and more"),
            (None, _) => format!("{tokens}, cost unknown"),
        }
    }
}

/// Whether an attempt was run by another backend or model than the usual one.
fn varies(document: &Document<'_>) -> bool {
    document
        .events
        .iter()
        .any(|event| matches!(&event.event, EventKind::AttemptPrepared { how, .. } if how.variant > 0))
}

/// Returns the sums of each backend with its model, in the order in which they began.
fn by_backend(document: &Document<'_>) -> Vec<(String, BackendSum)> {
    let words = |parts: &[Option<String>]| parts.iter().flatten().cloned().collect::<Vec<_>>().join(", ");
    let (mut now, mut sums): (HashMap<u32, String>, Vec<(String, BackendSum)>) = (HashMap::new(), Vec::new());
    for event in document.events {
        match &event.event {
            EventKind::AttemptPrepared { at, how } => {
                now.insert(at.step, words(&[how.backend.clone(), how.model.clone()]));
            }
            EventKind::AttemptFinished { at, finished, .. } => {
                let planned = document.outline.step(at.step);
                let usual =
                    || planned.map(|step| words(&[step.backend.clone(), step.model.clone()])).unwrap_or_default();
                let by = now.get(&at.step).cloned().unwrap_or_else(usual);
                if by.is_empty() {
                    continue;
                }
                let index = sums.iter().position(|(known, _)| *known == by).unwrap_or_else(|| {
                    sums.push((by, BackendSum::default()));
                    sums.len() - 1
                });
                let sum = &mut sums[index].1;
                let tokens = finished.agent.tokens.unwrap_or_default();
                sum.attempts += 1;
                sum.tokens = sum.tokens.saturating_add(tokens.total());
                sum.is_partial |= tokens.cost_usd.is_none();
                sum.cost = tokens.cost_usd.map(|cost| sum.cost.unwrap_or(0.0) + cost).or(sum.cost);
            }
            _ => {}
        }
    }
    sums
}

/// Returns how many attempts have continued a session, and how much of their input came from the cache.
fn continued(document: &Document<'_>) -> Option<String> {
    let mut open: HashMap<u32, &Preparation> = HashMap::new();
    let (mut attempts, mut input, mut cached, mut lost) = (0_u32, 0_u64, 0_u64, 0_u32);
    for event in document.events {
        match &event.event {
            EventKind::AttemptPrepared { at, how } if how.session.is_some() => drop(open.insert(at.step, how)),
            EventKind::AttemptFinished { at, finished, .. } if open.remove(&at.step).is_some() => {
                let tokens = finished.agent.tokens.unwrap_or_default();
                if tokens.total() == 0 {
                    lost += 1;
                    continue;
                }
                attempts += 1;
                cached = cached.saturating_add(tokens.cache_read);
                input = input.saturating_add(tokens.input + tokens.cache_read + tokens.cache_write);
            }
            _ => {}
        }
    }
    let lost = if lost == 0 { String::new() } else { format!("; {lost} could not be continued") };
    (attempts > 0 || !lost.is_empty()).then(|| {
        let share = cached.saturating_mul(100).checked_div(input).unwrap_or(0);
        let input = thousands(input);
        format!(
            "{} continued one; {share} % of their {input} input tokens came from the cache{lost}",
            counted(attempts, "attempt")
        )
    })
}
