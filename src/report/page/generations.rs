//! Plots of an evaluation: the score, the cost and the length of the prompt over its generations, or its columns.

use super::Document;
use super::plots::{Plot, drawn, whole};
use super::section::section;
use crate::engine::EvalLedger;
use crate::report::format::{seconds, thousands};
use crate::report::text::evaluation::name_of;
use maud::Markup;

/// Returns the section with the plots; `None` for another run, or with results of one prompt only.
#[expect(clippy::cast_precision_loss, reason = "only for a drawing")]
pub(super) fn plotted(document: &Document<'_>, prefix: &str) -> Option<Markup> {
    let ledger = EvalLedger::of_events(document.events);
    let facts = ledger.facts.as_ref()?;
    let tried = ledger.prompts.keys().copied().filter(|generation| ledger.of(*generation).next().is_some());
    let tried: Vec<u32> = tried.collect();
    let values = |value: &dyn Fn(u32) -> Option<f64>| tried.iter().map(|one| value(*one)).collect::<Vec<_>>();
    let plot = |name, title: &str, words, values| Plot { name, title: title.into(), words, values };
    let score: fn(f64) -> String = |value| format!("{value:.2}");
    let all = [
        plot("score", "Score", score, values(&|one| ledger.score(one, false).map(|score| score.mean))),
        plot(
            "held-out",
            "Score on held-out cases",
            score,
            values(&|one| ledger.score(one, true).map(|score| score.mean)),
        ),
        plot("cost", "Cost per answer", |value| format!("${value:.4}"), values(&|one| ledger.mean_cost(one))),
        plot("time", "Time per answer", |value| seconds(whole(value)), values(&|one| ledger.mean_time(one))),
        plot(
            "length",
            "Length of the prompt in tokens",
            |value| thousands(whole(value)),
            values(&|one| ledger.prompts.get(&one).map(|known| known.tokens as f64)),
        ),
    ];
    let says = |plot: &Plot| plot.values.iter().flatten().filter(|value| **value > 0.0).count() > 1;
    let plots: Vec<Plot> = all.into_iter().filter(says).collect();
    if tried.len() < 2 || plots.is_empty() {
        return None;
    }
    let names: Vec<String> = tried.iter().map(|one| name_of(&ledger, *one)).collect();
    let (unit, heading) =
        if facts.columns.is_empty() { ("generation", "Generation by generation") } else { ("column", "Side by side") };
    Some(section(prefix, "plots", heading, &drawn(&plots, prefix, (unit, unit), &names, None)))
}
