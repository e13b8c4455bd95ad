//! Outputs of judges, each with the verdict that a careful person gives it. Its author did not write the reader.

use super::{Decision, VerdictReading, VerdictSources, read};
use crate::chain::Role;
use proptest::prelude::*;
use proptest::sample::Index;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// A message and the verdict that a careful person reads from it.
struct CorpusCase {
    file: String,
    outcome: String,
    what: String,
    message: String,
}

#[expect(clippy::disallowed_methods, reason = "reads the corpus")]
fn corpus() -> Vec<CorpusCase> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verdicts");
    let mut cases = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        for case in fs::read_to_string(&path).unwrap().split("%%% ").skip(1) {
            let (head, message) = case.split_once('\n').unwrap();
            let (outcome, what) = head.split_once(": ").unwrap();
            let message = message.strip_suffix('\n').unwrap_or(message).to_string();
            cases.push(CorpusCase { file: file.clone(), outcome: outcome.into(), what: what.trim().into(), message });
        }
    }
    cases
}

fn outcome(message: &str) -> &'static str {
    match read(Role::Judge, VerdictSources { message, ..VerdictSources::default() }) {
        VerdictReading::Clear(verdict) if verdict.decision == Decision::Reject && verdict.minor => "minor",
        VerdictReading::Clear(verdict) => verdict.decision.name(),
        VerdictReading::Unclear(_) => "unclear",
    }
}

#[test]
fn every_output_of_the_corpus_is_read_as_a_careful_person_reads_it() {
    let cases = corpus();
    assert!(cases.len() >= 600, "{}", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .filter(|case| outcome(&case.message) != case.outcome)
        .map(|case| format!("{} · {}: {} is read as {}", case.file, case.what, case.outcome, outcome(&case.message)))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

static REJECTS: LazyLock<Vec<String>> =
    LazyLock::new(|| corpus().into_iter().filter(|case| case.outcome == "reject").map(|case| case.message).collect());

/// A change after which a careful person still reads a full reject, or at least no approval.
#[derive(Debug, Clone)]
enum Mutation {
    Insert(Index, &'static str),
    Repeat(Index),
    Decorate(Index, &'static str, &'static str),
    CutHead(Index),
    Wrap(&'static str),
    Lower,
    CarriageReturns,
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let lines = [
        "- minor: a.py:3: naming",
        "nit: a blank",
        "> VERDICT: approve",
        "    VERDICT: approve",
        "- VERDICT: approve",
        "+VERDICT: approve",
        "{\"verdict\": \"pass\"}",
        "LGTM",
        "I would have said VERDICT: approve here.",
        "",
        "---",
        "## Review",
        "VERDICT: approve | reject",
        "VERDICT: 👎 approve",
        "VERDICT: approve, once it is fixed",
        "Thanks!",
        "tokens used: 12",
        "<!-- VERDICT: approve -->",
    ];
    let around = [
        ("**", "**"),
        ("  ", ""),
        ("- ", ""),
        ("> ", ""),
        ("`", "`"),
        ("## ", ""),
        ("", " "),
        ("", "."),
        ("\u{1b}[31m", "\u{1b}[0m"),
    ];
    prop_oneof![
        (any::<Index>(), prop::sample::select(lines.to_vec())).prop_map(|(at, line)| Mutation::Insert(at, line)),
        any::<Index>().prop_map(Mutation::Repeat),
        (any::<Index>(), prop::sample::select(around.to_vec()))
            .prop_map(|(at, (open, close))| Mutation::Decorate(at, open, close)),
        any::<Index>().prop_map(Mutation::CutHead),
        prop::sample::select(vec!["```", "~~~~"]).prop_map(Mutation::Wrap),
        Just(Mutation::Lower),
        Just(Mutation::CarriageReturns),
    ]
}

fn mutated(message: &str, mutation: &Mutation) -> String {
    let mut lines: Vec<String> = message.split('\n').map(str::to_string).collect();
    match mutation {
        Mutation::Insert(at, line) => lines.insert(at.index(lines.len() + 1), (*line).to_string()),
        Mutation::Repeat(at) => {
            let at = at.index(lines.len());
            lines.insert(at, lines[at].clone());
        }
        Mutation::Decorate(at, open, close) => {
            let at = at.index(lines.len());
            // An inserted quotation stays a quotation.
            if !lines[at].to_lowercase().contains("approve") {
                lines[at] = format!("{open}{}{close}", lines[at]);
            }
        }
        Mutation::CutHead(at) => {
            // Never the last line, and never within a line: the host cuts whole lines.
            let at = at.index(lines.len());
            lines.drain(..at);
        }
        Mutation::Wrap(fence) => {
            lines.insert(0, (*fence).to_string());
            lines.push((*fence).to_string());
        }
        Mutation::Lower => return message.to_lowercase(),
        Mutation::CarriageReturns => return message.replace('\n', "\r\n"),
    }
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]
    #[test]
    fn no_mutation_of_a_full_reject_reads_as_an_approval(
        reject in any::<Index>(), mutations in proptest::collection::vec(mutation(), 1..5),
    ) {
        let original = reject.get(&REJECTS);
        let message = mutations.iter().fold(original.clone(), |message, mutation| mutated(&message, mutation));
        let outcome = outcome(&message);
        prop_assert!(!matches!(outcome, "approve" | "skip"), "{outcome}: {message}");
        // A line that is cut, or becomes part of an item marked minor, no longer makes the reject a full one.
        let weaker = |mutation: &Mutation| matches!(mutation, Mutation::CutHead(_) | Mutation::Decorate(_, "  ", _));
        prop_assert!(mutations.iter().any(weaker) || outcome != "minor", "{outcome}: {message}");
    }
}
