//! How an evaluation ended: which prompt won, and how sure that is.

use super::{name_of, refusal, shortened};
use crate::engine::{
    Calibration, ChosenPrompt, ColumnComparison, ColumnPreference, Comparison, EvalLedger, JudgedBy, RunOutcome, Score,
};
use crate::report::format::{amount, first_line};
use crate::report::paint::{Paint, printable};
use crate::source::counted;
use crate::verdict::issue_words;
use std::fmt::Write;

/// At most this many cases are named in a line.
const NAMED: usize = 10;

fn stopped(why: &str) -> String {
    match why {
        "pass" => "all training cases pass".into(),
        "no_improvement" => "the last candidates were no better".into(),
        "max_iterations" => "all generations have been tried".into(),
        "budget" => "the budget allows no further candidate".into(),
        "leakage" => "the last candidate revealed a case".into(),
        other => match other.strip_prefix("sanity_check:") {
            Some(_) => format!("the last candidate was refused: {}", refusal(other)),
            None => printable(&first_line(other)),
        },
    }
}

/// Returns how an evaluation ended.
pub(super) fn came_out(ledger: &EvalLedger, run: i64, paint: Paint) -> String {
    let mut text = String::new();
    let good = |words: String| paint.good(&format!("{} {words}", paint.sign("✓", "+")));
    let bad = |words: String| paint.bad(&format!("{} {words}", paint.sign("✗", "x")));
    let improves = ledger.facts.as_ref().is_some_and(|facts| facts.options.improves);
    let halted = match ledger.totals.outcome {
        Some(RunOutcome::LimitReached { limit }) => Some(format!("the limit `{}` was reached", limit.key())),
        Some(RunOutcome::Interrupted { signal }) => Some(format!("interrupted by {signal}")),
        Some(RunOutcome::NeedsHuman { .. }) if improves => {
            Some("an agent failed, or its answer could not be read".into())
        }
        _ => None,
    };
    let all: u32 = ledger.facts.iter().flat_map(|facts| &facts.cases).map(|case| case.repeat).sum();
    let columns = ledger.facts.as_ref().map_or(1, |facts| facts.columns.len().max(1));
    let all = all as usize * columns;
    let line = match &ledger.chosen {
        _ if halted.is_some() => {
            let judged = ledger.results.values().filter(|result| result.remarks.error.is_none()).count();
            let of = if improves { String::new() } else { format!(" of {all}") };
            bad(format!("{}; {judged}{of} results are available", halted.as_deref().unwrap_or_default()))
        }
        Some(ChosenPrompt { generation: 0, reason, .. }) => {
            let whole = [false, true].iter().all(|part| ledger.score(0, *part).is_none_or(|score| score.is_perfect()));
            let tried = ledger
                .prompts
                .keys()
                .rev()
                .find(|generation| **generation > 0 && ledger.score(**generation, true).is_some());
            let why = match tried {
                Some(generation) => {
                    format!("generation {generation} is better on the training cases, but not on the held-out cases")
                }
                None => stopped(reason),
            };
            let words = format!("the original prompt is kept: {why}");
            if whole { good(words) } else { bad(words) }
        }
        Some(chosen @ ChosenPrompt { generation, reason, .. }) => {
            let words = format!("generation {generation} is better: {}", stopped(reason));
            if chosen.is_unproven() {
                paint.warn(&format!("? generation {generation} did better, but that is not proven"))
            } else {
                good(words)
            }
        }
        None if improves => bad("not finished yet".into()),
        None => {
            let words = measured(ledger);
            let least = ledger.facts.as_ref().and_then(|facts| facts.options.min_pass);
            let least = least.map(|least| format!("; --min-pass {least} is the least")).unwrap_or_default();
            let succeeded = ledger.totals.outcome == Some(RunOutcome::Succeeded);
            if succeeded { good(words + &least) } else { bad(words + &least) }
        }
    };
    let mut facts = vec![counted(ledger.totals.planned, "attempt")];
    let spent = ledger.totals.all.tokens().unwrap_or(0);
    if spent > 0 {
        facts.push(amount(spent, "token"));
        facts.push(ledger.totals.all.cost_usd().map_or_else(|| "cost unknown".into(), |cost| format!("${cost:.2}")));
    }
    let _ = writeln!(text, "{line} {}", paint.dim(&format!("({})", facts.join(", "))));
    if halted.is_none() {
        for words in ledger.chosen.iter().flat_map(evidence) {
            let _ = writeln!(text, "  {}", paint.dim(&words));
        }
        if let Some(calibration) = Calibration::of(ledger).filter(|_| !is_labelled(ledger)) {
            let _ = writeln!(text, "  {}", agreement(&calibration));
        }
        let columns = ledger.columns.iter().map(|comparison| side_by_side(ledger, comparison));
        for words in columns.chain(ledger.preferences.iter().map(|preference| preferred(ledger, preference))) {
            let _ = writeln!(text, "  {words}");
        }
        for words in ledger.comparison.iter().flat_map(compared) {
            let _ = writeln!(text, "  {words}");
        }
        let saved: u32 = ledger.stopped.values().sum();
        if saved > 0 {
            let words = format!("{} saved: candidates that were no better stopped early", counted(saved, "result"));
            let _ = writeln!(text, "  {}", paint.dim(&words));
        }
        let asked = || ledger.results.values().filter(|result| result.judged_by != JudgedBy::Nobody);
        if asked().count() > 0 && asked().all(|result| result.cached) && ledger.compared.is_empty() {
            let words = "every answer is from an earlier evaluation; --fresh requests new ones";
            let _ = writeln!(text, "  {}", paint.dim(words));
        }
    }
    let unseen = ledger.prompts.iter().filter_map(|(generation, known)| Some((generation, known.refused.as_ref()?)));
    for (generation, why) in unseen {
        let _ = writeln!(
            text,
            "  {}",
            paint.dim(&format!("{} was not tried: {}", name_of(ledger, *generation), refusal(why)))
        );
    }
    if ledger.winner() > 0 {
        let _ = writeln!(text, "  {}", paint.dim(&format!("the prompt: forkhestra eval show {run} --prompt")));
    }
    let _ = writeln!(text, "  {}", paint.dim(&format!("transcripts: .forkhestra/runs/{run}")));
    text
}

/// Returns how the best column compares to another one.
pub(super) fn side_by_side(ledger: &EvalLedger, comparison: &ColumnComparison) -> String {
    let (best, other) = (name_of(ledger, comparison.best), name_of(ledger, comparison.other));
    let ColumnComparison { gain, chance, level, .. } = *comparison;
    if gain <= 0.0 {
        return format!("{best} and {other} do not differ");
    }
    let proof = if chance <= level { "" } else { ", so that is not proven" };
    let chance = share(chance);
    format!("{best} is better than {other} by {gain:.2}; by chance, it looks as good in {chance} of evaluations{proof}")
}

/// Returns which of two columns the agent of `selectBest` prefers.
fn preferred(ledger: &EvalLedger, preference: &ColumnPreference) -> String {
    let ColumnPreference { first, second, wins, losses, ties, failed, chance, level } = *preference;
    let (better, worse) = if wins >= losses { (first, second) } else { (second, first) };
    let (better, worse) = (name_of(ledger, better), name_of(ledger, worse));
    let (most, cases) = (wins.max(losses), counted(wins + losses + ties, "case"));
    let reason = ledger.compared.values().find_map(|comparison| comparison.error.as_deref()).map(issue_words);
    let reason = reason.map(|reason| format!(": {}", printable(&first_line(&reason)))).unwrap_or_default();
    let failed = if failed > 0 { format!("; {} failed{reason}", counted(failed, "comparison")) } else { String::new() };
    if wins == losses {
        return format!("neither {better} nor {worse} is preferred: {wins} to {losses} of {cases}{failed}");
    }
    let proof = if chance <= level { "" } else { ", so that is not proven" };
    let (fewest, chance) = (wins.min(losses), share(chance));
    format!(
        "{better} is preferred to {worse} in {most} of {cases}, and {worse} in {fewest}; by chance, it looks as clear in {chance} of evaluations{proof}{failed}"
    )
}

/// Returns the result of measuring prompts, or of measuring judges.
fn measured(ledger: &EvalLedger) -> String {
    let calibration = Calibration::of(ledger).filter(|_| is_labelled(ledger)).map(|found| agreement(&found));
    let of_one = || ledger.score(0, false).map(|score| passed(ledger, score));
    let words = calibration.or_else(|| passed_in_columns(ledger)).or_else(of_one);
    words.unwrap_or_else(|| "no case was judged".into())
}

/// Returns whether every case is a recorded output with a label, so that only the judges are measured.
fn is_labelled(ledger: &EvalLedger) -> bool {
    ledger.facts.iter().flat_map(|facts| &facts.cases).all(|case| case.label.is_some())
}

/// Returns how far the judges agree with the labels.
fn agreement(calibration: &Calibration) -> String {
    let Calibration { labels, passed_wrongly, failed_wrongly, kappa, .. } = *calibration;
    let kappa = kappa.map_or_else(|| "; labels of one kind only".into(), |kappa| format!(" (kappa {kappa:.2})"));
    let wrong: Vec<String> = [(passed_wrongly, "passed", "fail"), (failed_wrongly, "failed", "pass")]
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, did, should)| format!("{count} {did} and should {should}"))
        .collect();
    let wrong = if wrong.is_empty() { String::new() } else { format!(": {}", wrong.join(", ")) };
    format!("the judges agree with {} of {}{kappa}{wrong}", calibration.agreed(), counted(labels, "label"))
}

/// Returns how many results passed in all columns.
fn passed_in_columns(ledger: &EvalLedger) -> Option<String> {
    let columns = ledger.facts.as_ref().map(|facts| facts.columns.len()).filter(|columns| *columns > 1)?;
    let passed = ledger.results.values().filter(|result| result.pass).count();
    let results = counted(ledger.results.values().count(), "result");
    Some(format!("{passed} of {results} passed in {columns} columns"))
}

/// Returns how many cases passed.
fn passed(ledger: &EvalLedger, score: Score) -> String {
    let facts = ledger.facts.iter().flat_map(|facts| &facts.cases);
    if facts.clone().any(|case| case.repeat > 1) {
        let scores: Vec<Score> = facts.filter_map(|case| ledger.case_score(0, &case.id)).collect();
        let always = scores.iter().filter(|score| score.is_perfect()).count();
        let never = scores.iter().filter(|score| score.passed == 0).count();
        return format!(
            "{} of {} passed: {} always, {} sometimes, {never} never",
            score.passed,
            counted(score.cases, "result"),
            counted(always, "case"),
            scores.len() - always - never
        );
    }
    match (score.passed, score.cases, score.unjudged) {
        (1, 1, _) => "the case passed".into(),
        (passed, cases, _) if passed == cases => format!("all {cases} cases passed"),
        (passed, cases, 0) => format!("{passed} of {} passed", counted(cases, "case")),
        (passed, cases, unjudged) => {
            format!("{passed} of {} passed, {unjudged} could not be judged", counted(cases, "case"))
        }
    }
}

/// Returns how an evaluation compares to an earlier one, in lines.
fn compared(comparison: &Comparison) -> Vec<String> {
    let Comparison { run, cases, gain, chance, worse, lower, .. } = comparison;
    if *cases == 0 {
        return vec![format!("not compared with run {run}: no case was judged in both")];
    }
    let cases = counted(*cases, "case");
    let whole = if *gain < 0.0 {
        let by_chance = format!("by chance, it looks as bad in {} of evaluations", share(*chance));
        format!("compared with run {run} ({cases}): worse by {:.2}; {by_chance}", -gain)
    } else if *gain > 0.0 {
        format!("compared with run {run} ({cases}): better by {gain:.2}")
    } else {
        format!("compared with run {run} ({cases}): no difference")
    };
    let named = |ids: &[String]| {
        let shown: Vec<String> = ids.iter().take(NAMED).map(|id| shortened(id)).collect();
        let left = ids.len().saturating_sub(NAMED);
        shown.join(", ") + &if left > 0 { format!(" and {left} more") } else { String::new() }
    };
    let mut lines = vec![whole];
    if !worse.is_empty() {
        lines.push(format!("worse beyond chance: {}", named(worse)));
    }
    if !lower.is_empty() {
        let more = format!("--repeat {} in both evaluations would tell", comparison.repeat);
        lines.push(format!("worse, which can be chance: {} ({more})", named(lower)));
    }
    lines
}

/// Returns how sure the choice is, in lines.
fn evidence(chosen: &ChosenPrompt) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(proof) = &chosen.proof {
        lines.push(format!(
            "better by {:.2}; by chance, prompts that change nothing look as good in {} of evaluations ({} at most is a proof)",
            proof.gain,
            share(proof.chance),
            share(proof.level)
        ));
        if !proof.proven {
            lines.push(format!("--repeat {} tells a gain of {:.2} from chance", proof.repeat, proof.planned));
        }
    }
    if let Some(sensitivity) = chosen.sensitivity.filter(|_| chosen.generation == 0) {
        let more = format!("--repeat {} finds a gain of {:.2}", sensitivity.repeat, sensitivity.planned);
        lines.push(if sensitivity.gain >= 1.0 {
            format!("so few results cannot tell any gain from chance; {more}")
        } else if sensitivity.gain > sensitivity.planned {
            format!("a gain of {:.2} is found in four of five evaluations; {more}", sensitivity.gain)
        } else {
            format!("a gain of {:.2} is found in four of five evaluations", sensitivity.gain)
        });
    }
    lines
}

/// Returns a probability in percent: `4 %`, `0.3 %`, `< 0.1 %`.
fn share(probability: f64) -> String {
    let percent = probability * 100.0;
    if percent < 0.1 {
        return "< 0.1 %".into();
    }
    if percent < 1.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}
