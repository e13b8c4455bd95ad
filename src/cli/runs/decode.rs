//! Decodes the output of an attempt as the console did when it ran.

use crate::agent::Reader;
use crate::engine::EventKind;
use crate::journal::Journal;
use crate::plan::Outline;

/// Returns the reader of an attempt's output; `None` if that is text.
pub(in crate::cli) fn reader_of(
    journal: &Journal,
    outline: &Outline,
    run: i64,
    (step, attempt): (u32, u32),
) -> Option<Reader> {
    let planned = outline.step(step)?;
    // Only a step that can be run in several ways has more than one format.
    let variant = if planned.variants.is_empty() { 0 } else { variant_of(journal, run, (step, attempt)) };
    let (format, rules) = planned.output_of(variant);
    Reader::new(format, rules)
}

/// Returns the way in which an attempt was run; 0 if nothing is known.
fn variant_of(journal: &Journal, run: i64, (step, attempt): (u32, u32)) -> u32 {
    let events = journal.events().of(run).unwrap_or_default();
    let prepared = events.iter().rev().find_map(|event| match &event.event {
        EventKind::AttemptPrepared { at, how } if at.step == step && at.attempt <= attempt => Some(how.variant),
        _ => None,
    });
    prepared.unwrap_or(0)
}
