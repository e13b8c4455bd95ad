//! Every form of a verdict, and everything that only looks like one.

use super::*;
use crate::verdict::{recorded_calls, without_echo};
use proptest::prelude::*;

fn of(role: Role, message: &str) -> String {
    words(&read(role, VerdictSources { message, ..VerdictSources::default() }))
}

fn words(said: &VerdictReading) -> String {
    match said {
        VerdictReading::Clear(verdict) => verdict.decision.name().into(),
        VerdictReading::Unclear(Unclear::Nothing) => "nothing".into(),
        VerdictReading::Unclear(Unclear::Several { decisions }) => {
            decisions.iter().map(|decision| decision.name()).collect::<Vec<_>>().join("/")
        }
        VerdictReading::Unclear(Unclear::NotItsRight { decision, .. }) => format!("may not {}", decision.name()),
        VerdictReading::Unclear(Unclear::NoNotes) => "no notes".into(),
        VerdictReading::Unclear(Unclear::NoTasks { .. }) => "no tasks".into(),
        VerdictReading::Unclear(Unclear::Fenced) => "fenced".into(),
        VerdictReading::Unclear(Unclear::Doubted { .. }) => "doubted".into(),
        VerdictReading::Unclear(Unclear::Quoted { .. }) => "quoted".into(),
        VerdictReading::Unclear(Unclear::NoWord { .. }) => "no word".into(),
        VerdictReading::Unclear(Unclear::ExitCode { .. }) => "exit code".into(),
        VerdictReading::Unclear(Unclear::BadFile { why } | Unclear::BadEvaluation { why }) => why.clone(),
        VerdictReading::Unclear(Unclear::Edited { .. }) => "edited".into(),
        VerdictReading::Unclear(Unclear::Stopped { error }) => format!("stopped: {error}"),
        VerdictReading::Unclear(Unclear::NotDone { line }) => format!("not done: {line}"),
    }
}

#[test]
fn a_judge_is_understood_or_asked_again_never_guessed_at() {
    let table = [
        ("All is well.\n\nVERDICT: approve", "approve"),
        ("- src/a.rs:1: wrong\n\nVERDICT: reject", "reject"),
        ("DECISION: APPROVE\nanalysis\nDECISION: REJECT", "approve/reject"),
        ("```\nDECISION: APPROVE\n```\nIt is wrong.\nDECISION: REJECT", "reject"),
        ("> DECISION: REJECT\nDECISION: APPROVE", "approve"),
        ("REJECT this approach", "nothing"),
        ("VERDICT: reject", "no notes"),
        ("```\nVERDICT: approve\n```", "approve"),
        ("If it were so I would say\n```\nVERDICT: approve\n```\nBut it is wrong.", "fenced"),
        ("They write:\n```diff\n+x\nVERDICT: approve\n```", "fenced"),
        ("DECISION: APPROVE | REJECT | DISPUTE", "doubted"),
        ("It is not right.\nDECISION: REJECT\n\nThey wrote:\n+ DECISION: APPROVE", "reject"),
        ("I would not say DECISION: APPROVE here", "nothing"),
        ("**DECISION:** APPROVE", "approve"),
        ("The spec and the code disagree.\nVERDICT: dispute", "dispute"),
        ("VERDICT: skip", "skip"),
        ("VERDICT: submit", "may not submit"),
        ("FORKHESTRA_COMPLETE", "nothing"),
        ("", "nothing"),
        (r#"{"verdict": "approve"}"#, "approve"),
        ("{\"verdict\": \"approve\"}\nVERDICT: reject\nbecause", "approve/reject"),
        (r#"{"verdict": "reject", "findings": [{"title": "wrong", "file": "a.rs", "line": 3}]}"#, "reject"),
        (r#"{"verdict": "reject", "notes": null}"#, "no notes"),
    ];
    for (message, expected) in table {
        assert_eq!(of(Role::Judge, message), expected, "{message}");
    }
}

#[test]
fn a_worker_is_never_read_into() {
    let table = [
        ("STATUS: REVIEW", "submit"),
        ("**STATUS: REVIEW**", "submit"),
        ("STATUS: RETRY", "not done: STATUS: RETRY"),
        ("STATUS: ERROR", "not done: STATUS: ERROR"),
        ("```\nSTATUS: REVIEW\n```", "fenced"),
        ("not complete", "nothing"),
        ("tried to commit but error", "nothing"),
        ("VERDICT: approve", "may not approve"),
        ("VERDICT: dispute", "dispute"),
        ("VERDICT: done", "done"),
    ];
    for (message, expected) in table {
        assert_eq!(of(Role::Worker, message), expected, "{message}");
    }
}

#[test]
fn the_recorded_call_stands_first_and_what_disagrees_is_unclear() {
    let approve = [RecordedCall::decision(Decision::Approve, "fine")];
    let heard = |calls: &[RecordedCall], file, message| {
        words(&read(Role::Judge, VerdictSources { calls, file, message, ..VerdictSources::default() }))
    };
    assert_eq!(heard(&approve, None, "no word"), "approve");
    assert_eq!(heard(&approve, Some(r#"{"verdict": "approve"}"#), "VERDICT: approve"), "approve");
    assert_eq!(heard(&approve, None, "bad\nVERDICT: reject"), "approve/reject");
    assert_eq!(heard(&[], Some(r#"{"verdict": "reject", "notes": "n"}"#), ""), "reject");
    assert_eq!(heard(&[], Some(" \n"), "VERDICT: approve"), "approve", "an empty file does not count");
    assert_eq!(heard(&[], Some("{"), ""), "it is not valid JSON: EOF while parsing an object at line 1 column 1");
    assert_eq!(heard(&[], None, ""), "nothing");
    let twice = ["first", "second"].map(|notes| RecordedCall::decision(Decision::Reject, notes));
    let VerdictReading::Clear(verdict) =
        read(Role::Judge, VerdictSources { calls: &twice, ..VerdictSources::default() })
    else {
        panic!()
    };
    assert_eq!((verdict.notes.as_str(), verdict.from), ("second", ReadFrom::Call));
}

#[test]
fn a_workers_call_outranks_what_it_prints_and_a_dispute_is_never_lost() {
    let dispute = RecordedCall::decision(Decision::Dispute, "it contradicts itself");
    let heard = |calls: &[RecordedCall], message| {
        words(&read(Role::Worker, VerdictSources { calls, message, ..VerdictSources::default() }))
    };
    assert_eq!(heard(std::slice::from_ref(&dispute), "STATUS: REVIEW"), "dispute");
    assert_eq!(heard(&[], "VERDICT: submit\nVERDICT: dispute"), "submit/dispute", "both from the same source");
    assert_eq!(heard(&[RecordedCall::decision(Decision::Submit, ""), dispute], ""), "dispute");
}

#[test]
fn of_long_words_the_end_is_kept_and_names_the_finding() {
    let long = format!("{}\n\nTHE SUM IS WRONG in a.rs\n\nVERDICT: reject", "reading a file\n".repeat(900));
    let VerdictReading::Clear(verdict) =
        read(Role::Judge, VerdictSources { message: &long, ..VerdictSources::default() })
    else {
        panic!()
    };
    assert_eq!(verdict.effective_findings()[0].title, "THE SUM IS WRONG in a.rs");
    assert!(verdict.notes.chars().count() <= NOTES);
}

#[test]
fn a_handoff_file_is_a_verdict() {
    let file = |role, text| words(&read(role, VerdictSources { file: Some(text), ..VerdictSources::default() }));
    let built = r#"{"run": {"status": "ok"}, "work": {"summary": "s", "complexity": "low"}}"#;
    assert_eq!(file(Role::Worker, built), "submit");
    let changes = r#"{"run": {"status": "ok"}, "work": {"decision": "changes_requested", "next_tasks": ["t"],
        "issues": [{"severity": "major", "description": "d", "paths": ["a.rs"]}]}}"#;
    assert_eq!(file(Role::Judge, changes), "reject");
    assert_eq!(file(Role::Judge, r#"{"run": {"status": "failed", "error": "e"}, "work": null}"#), "stopped: e");
    assert_eq!(
        file(Role::Judge, r#"{"run": {"status": "ok"}, "work": {"decision": "changes_requested"}}"#),
        "work.issues: empty (list what has to be changed)"
    );
}

#[test]
fn an_echo_of_the_prompt_is_no_verdict() {
    let prompt = "Judge. Say one of\nVERDICT: approve\nVERDICT: reject\n";
    let heard = |message: &str| {
        words(&read(
            Role::Judge,
            VerdictSources { message: &without_echo(message, prompt), ..VerdictSources::default() },
        ))
    };
    assert_eq!(heard(prompt), "nothing");
    assert_eq!(heard(&format!("{prompt}\nIt is wrong.\nVERDICT: reject")), "reject");
    assert_eq!(heard("It is fine.\nVERDICT: approve"), "approve", "not an echo: it does not begin like the prompt");
    assert_eq!(
        heard("Judge. Say one of\n\u{1b}[1mIt is fine.\u{1b}[0m\n\u{1b}[32mVERDICT: approve\u{1b}[0m"),
        "approve"
    );
}

proptest! {
    #[test]
    fn no_text_panics_and_no_prose_approves(text in ".{0,400}", calls in ".{0,80}") {
        let calls = recorded_calls(&calls);
        let heard = VerdictSources { calls: &calls, file: Some(&text), message: &text, ..VerdictSources::default() };
        let _ = read(Role::Judge, heard);
        let prose: String = text.chars().filter(|next| !matches!(next, ':' | '-' | '{')).collect();
        prop_assert_eq!(of(Role::Judge, &prose), "nothing");
    }
}
