//! Scripts of events, and the lines that people see.

use super::*;
use crate::chain::PromptSource;
use crate::engine::FeedbackCause;
use crate::engine::{FinishedAgent, Leftover};
use crate::plan::tests::{planned, world};

const CONFIG: &str = r#"{"checks": {"t": {"run": "cargo test"}}, "chains": {}}"#;

fn lines(chain: &str, verbosity: Verbosity, paint: Paint, events: Vec<EventKind>) -> String {
    let plan = planned(&world(&[]), CONFIG, chain, &PromptSource::default(), &[]).unwrap();
    let outline = crate::plan::outline(&plan);
    let folder = Path::new(".forkhestra/runs/7");
    let mut console = Console::new(&outline, Some(&plan), paint, verbosity, folder);
    let stamp = |seq: usize| format!("2026-01-01T00:00:{seq:02}.500Z");
    let event = |(seq, event)| Event {
        version: 1,
        run: 7,
        seq: seq as u64,
        at: stamp(seq),
        worked_ms: None,
        unit: None,
        event,
    };
    events.into_iter().enumerate().map(event).map(|event| console.event(&event)).collect()
}

fn at(step: u32, name: &str, round: u32, iteration: u32) -> At {
    At { step, name: name.into(), round, iteration, attempt: round, lane: 1 }
}

fn started() -> EventKind {
    EventKind::RunStarted {
        containment: crate::engine::Containment::Whole,
        queue: None,
        found: None,
        tree: None,
        rules: None,
        chain: String::new(),
        name: None,
        prompt: None,
        vars: indexmap::IndexMap::new(),
        digest: String::new(),
        root: String::new(),
        forkhestra: String::new(),
        base: None,
        task: None,
        steps: 2,
        overrides: crate::plan::Overrides::default(),
    }
}

fn finished(at: At, outcome: AttemptOutcome, marker: bool, finished: Finished) -> EventKind {
    EventKind::AttemptFinished { at, outcome, marker, finished }
}

fn a_stopped_run() -> Vec<EventKind> {
    let leftovers = vec![Leftover { pid: 42, name: "node".into(), running: false }];
    let near = Some("I will print FORKHESTRA_COMPLETE".to_string());
    let tokens = Some(crate::engine::Tokens { input: 12_000, output: 345, cost_usd: Some(0.12), ..Default::default() });
    let check = FeedbackCause::CheckFailed { outcome: AttemptOutcome::Failed { code: 101 } };
    vec![
        started(),
        EventKind::RoundStarted { group: 1, round: 1, rounds: 2 },
        EventKind::AttemptPlanned { at: at(1, "coder", 1, 1), iterations: Some(2), retry: 0, feedback: None },
        finished(
            at(1, "coder", 1, 1),
            AttemptOutcome::Unfinished,
            false,
            Finished {
                took_ms: 61_000,
                agent: FinishedAgent { near_miss: near, tokens, ..FinishedAgent::default() },
                ..Finished::default()
            },
        ),
        EventKind::AttemptPlanned { at: at(1, "coder", 1, 2), iterations: Some(2), retry: 0, feedback: None },
        finished(
            at(1, "coder", 1, 2),
            AttemptOutcome::Completed,
            true,
            Finished { took_ms: 340, leftovers, ..Finished::default() },
        ),
        EventKind::AttemptPlanned { at: at(2, "t", 1, 1), iterations: None, retry: 0, feedback: None },
        finished(at(2, "t", 1, 1), AttemptOutcome::Failed { code: 101 }, false, Finished::default()),
        EventKind::RoundFinished {
            group: 1,
            round: 1,
            ended_by: Some(Feedback { from: at(2, "t", 1, 1), cause: check }),
        },
        EventKind::RunFinished { outcome: RunOutcome::IterationsExhausted { step: 2 } },
    ]
}

#[test]
fn a_run_is_told_line_by_line() {
    insta::assert_snapshot!(lines("(coder:2 -> t):2", Verbosity::Normal, Paint::plain(), a_stopped_run()));
}

#[test]
fn signs_have_ascii_stand_ins_and_colour_only_where_it_is_wanted() {
    let ascii =
        lines("(coder:2 -> t):2", Verbosity::Normal, Paint { unicode: false, ..Paint::plain() }, a_stopped_run());
    assert!(ascii.is_ascii(), "{ascii}");
    let colour = lines("(coder:2 -> t):2", Verbosity::Normal, Paint { color: true, ..Paint::plain() }, a_stopped_run());
    assert!(colour.contains("\x1b[31m✗"));
}

#[test]
fn quiet_says_only_how_a_failed_run_ended() {
    let quiet = lines("(coder:2 -> t):2", Verbosity::Quiet, Paint::plain(), a_stopped_run());
    assert_eq!(
        quiet,
        "✗ (coder:2 -> t):2: stopped at step 2 of 2: t still fails in the last round (3 attempts, 9.0 s, 12,345 \
         tokens, $0.12)\n  transcripts: .forkhestra/runs/7/2-t/1\n"
    );
    let ended = vec![started(), EventKind::RunFinished { outcome: RunOutcome::Succeeded }];
    assert_eq!(lines("coder", Verbosity::Quiet, Paint::plain(), ended), "");
}

#[test]
fn durations_are_told_in_the_unit_that_matters() {
    assert_eq!(
        [0, 999, 59_999, 60_000, 3_599_999, 3_600_000].map(seconds),
        ["0.0 s", "0.9 s", "59.9 s", "1 min 0 s", "59 min 59 s", "1 h 0 min"]
    );
    assert_eq!([7, 1_000, 1_234_567].map(crate::report::format::thousands), ["7", "1,000", "1,234,567"]);
}
