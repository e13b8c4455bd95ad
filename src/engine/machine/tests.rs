//! Scripted tests of the machine, without any process.

use super::ended::RETRIES;
use super::verdicts::ASKED;
use super::*;
use crate::chain::{PromptSource, Role};
use crate::engine::{
    AttemptOutcome, Exit, Finished, FinishedAgent, FinishedCheck, LimitKind, RunOutcome, Tokens, UsageLimit,
};
use crate::plan::tests::{planned, world};
use crate::verdict::{Decision as Decided, Finding, ReadFrom, Severity, Unclear, Verdict, VerdictReading};
use proptest::prelude::*;
use std::collections::{HashSet, VecDeque};

const CONFIG: &str = r#"{"agents": {"j": {"command": "x", "role": "judge"}}, "checks": {"t": {"run": "true"}, "o": {"run": "true", "optional": true}}, "chains": {}}"#;

fn plan(chain: &str) -> Plan {
    planned(&world(&[]), CONFIG, chain, &PromptSource::default(), &[]).unwrap()
}

const UP: Input = Input::Spawned { pid: 7, start_time: 1 };

fn exit(code: i32) -> Input {
    Input::Exited { exit: Exit::Code(code), finished: Box::default(), verdict: None }
}

fn ended(finished: Finished) -> Input {
    Input::Exited { exit: Exit::Code(0), finished: Box::new(finished), verdict: None }
}

fn says(verdict: VerdictReading) -> Input {
    Input::Exited { exit: Exit::Code(0), finished: Box::default(), verdict: Some(verdict) }
}

fn verdict(decision: Decided) -> VerdictReading {
    let notes = if decision == Decided::Reject { "it is wrong" } else { "" };
    VerdictReading::Clear(Verdict::new(decision, notes.into(), Vec::new(), ReadFrom::Line))
}

/// Returns the inputs of a script, one letter for each attempt: `.` exit 0, `m` marker and exit 0, `x` exit 1, `M`
/// marker and exit 1, `k` killed by SIGKILL. With exit 0: `a` approve, `r` reject, `d` dispute, `s` skip, `u` no clear
/// verdict, `n` nothing changed.
fn inputs(script: &str) -> Vec<Input> {
    let mut inputs = vec![Input::Begin];
    for letter in script.chars() {
        inputs.push(UP);
        if matches!(letter, 'm' | 'M') {
            inputs.push(Input::Marker);
        }
        inputs.push(match letter {
            '.' | 'm' => exit(0),
            'k' => Input::Exited { exit: Exit::Signal(9), finished: Box::default(), verdict: None },
            'a' => says(verdict(Decided::Approve)),
            'r' => says(verdict(Decided::Reject)),
            'd' => says(verdict(Decided::Dispute)),
            's' => Input::Exited {
                exit: Exit::Code(0),
                finished: Box::new(FinishedAgent { untouched: true, ..FinishedAgent::default() }.into()),
                verdict: Some(verdict(Decided::Skip)),
            },
            'u' => says(VerdictReading::Unclear(Unclear::Nothing)),
            'n' => ended(FinishedAgent { unchanged: Some(true), ..FinishedAgent::default() }.into()),
            _ => exit(1),
        });
    }
    inputs
}

struct Ran {
    state: State,
    events: Vec<EventKind>,
    effects: Vec<Effect>,
}

fn run(plan: &Plan, inputs: impl IntoIterator<Item = Input>) -> Ran {
    let mut ran = Ran { state: State::default(), events: Vec::new(), effects: Vec::new() };
    for input in inputs {
        let Transition { state, events, effects } = decide(ran.state, plan, input);
        ran.state = state;
        ran.events.extend(events);
        ran.effects.extend(effects);
    }
    ran
}

/// Returns the attempts as `step.iteration`, with `/round` and `+retry` if they are not the first, and the outcome.
fn story(chain: &str, script: &str) -> String {
    let ran = run(&plan(chain), inputs(script));
    let words = ran.events.iter().filter_map(|event| match event {
        EventKind::AttemptPlanned { at, retry, .. } => {
            let round = if at.round > 1 { format!("/{}", at.round) } else { String::new() };
            let retry = if *retry > 0 { format!("+{retry}") } else { String::new() };
            Some(format!("{}.{}{round}{retry}", at.name, at.iteration))
        }
        EventKind::RunFinished { outcome } => Some(format!("{outcome:?}")),
        _ => None,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn steps_run_in_sequence_and_the_first_failure_stops_the_chain() {
    assert_eq!(story("coder -> reviewer", ".."), "coder.1 reviewer.1 Succeeded");
    assert_eq!(story("coder -> reviewer", "x"), "coder.1 Failed { step: 1 }");
    assert_eq!(story("coder -> reviewer", ".k"), "coder.1 reviewer.1 Failed { step: 2 }");
    assert_eq!(story("coder -> t -> x", ".x"), "coder.1 t.1 Failed { step: 2 }");
    assert_eq!(story("o -> x", "x."), "o.1 x.1 Succeeded");
}

#[test]
fn a_loop_ends_by_its_marker_or_its_count() {
    assert_eq!(story("coder:3 -> x", ".xm."), "coder.1 coder.2 coder.3 x.1 Succeeded");
    assert_eq!(story("coder:2 -> x", ".."), "coder.1 coder.2 IterationsExhausted { step: 1 }");
    assert_eq!(story("coder:1", "."), "coder.1 IterationsExhausted { step: 1 }", "a:1 is a loop and needs the marker");
    assert_eq!(story("coder:2", "Mm"), "coder.1 coder.2 Succeeded", "a marker with exit 1 is not complete");
    assert_eq!(story("coder:2", "kk"), "coder.1 coder.2 IterationsExhausted { step: 1 }");
}

#[test]
fn a_marker_that_overtakes_the_word_of_the_spawn_counts() {
    let ran = run(&plan("coder:2"), [Input::Begin, Input::Marker, UP, exit(0)]);
    assert_eq!(ran.events.last(), Some(&EventKind::RunFinished { outcome: RunOutcome::Succeeded }));
}

#[test]
fn a_round_of_a_group_ends_by_a_failed_check_or_an_exhausted_loop_and_starts_at_the_first_step() {
    assert_eq!(story("(coder -> t):3 -> x", ".x..."), "coder.1 t.1 coder.1/2 t.1/2 x.1 Succeeded");
    assert_eq!(
        story("(coder:2 -> t):2", ".....x"),
        "coder.1 coder.2 coder.1/2 coder.2/2 IterationsExhausted { step: 1 }"
    );
    assert_eq!(story("(coder -> t):2", ".x.x"), "coder.1 t.1 coder.1/2 t.1/2 IterationsExhausted { step: 2 }");
    assert_eq!(story("(coder)", "."), "coder.1 Succeeded");
}

#[test]
fn an_inner_group_that_is_exhausted_ends_the_round_around_it_and_counts_anew() {
    assert_eq!(
        story("((coder -> t):2 -> x):2", ".x.x.x..."),
        "coder.1 t.1 coder.1/2 t.1/2 coder.1 t.1 coder.1/2 t.1/2 x.1/2 Succeeded"
    );
}

#[test]
fn an_agent_that_fails_in_a_group_is_tried_again_in_place_three_times() {
    assert_eq!(story("(coder -> t):9", "xxxx"), "coder.1 coder.1+1 coder.1+2 coder.1+3 Failed { step: 1 }");
    assert_eq!(story("(coder -> t):9", "x.."), "coder.1 coder.1+1 t.1 Succeeded");
}

#[test]
fn feedback_comes_from_the_attempt_that_ended_the_round_and_goes_to_every_step_of_the_next() {
    let ran = run(&plan("(coder -> x -> t):2 -> reviewer"), inputs("..x...."));
    let heard: Vec<(String, Option<String>)> = ran
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Spawn { at, feedback } => {
                Some((at.name.clone(), feedback.as_ref().map(|told| told.from.name.clone())))
            }
            _ => None,
        })
        .collect();
    let t = Some("t".to_string());
    let expected = [
        ("coder", None),
        ("x", None),
        ("t", None),
        ("coder", t.clone()),
        ("x", t.clone()),
        ("t", t),
        ("reviewer", None),
    ];
    assert_eq!(heard, expected.map(|(name, told)| (name.to_string(), told)));
}

#[test]
fn a_judge_approves_or_is_asked_again_and_its_reject_begins_another_round() {
    assert_eq!(story("coder -> j", ".a"), "coder.1 j.1 Succeeded");
    assert_eq!(story("coder -> j:1", ".mua"), "coder.1 j.1 Succeeded", "a count alone keeps the marker");
    assert_eq!(story("(coder -> j:1):2", ".mua"), "coder.1 j.1 j.2 j.3 Succeeded", "in a group its marker is unclear");
    assert_eq!(story("coder -> j", ".uuu"), "coder.1 j.1 j.2 j.3 NeedsHuman { step: 2, reason: Unclear }");
    assert_eq!(story("coder -> j", ".r"), "coder.1 j.1 Rejected { step: 2 }");
    assert_eq!(story("(coder -> j):3 -> x", ".r.a."), "coder.1 j.1 coder.1/2 j.1/2 x.1 Succeeded");
    assert_eq!(
        story("(coder -> j):2", ".r.r"),
        "coder.1 j.1 coder.1/2 j.1/2 NeedsHuman { step: 2, reason: Rejections }"
    );
    assert_eq!(story("(coder -> j -> j):3", ".ar.aa"), "coder.1 j.1 j.1 coder.1/2 j.1/2 j.1/2 Succeeded");
    assert_eq!(story("(coder -> j):3", ".xa"), "coder.1 j.1 j.1+1 Succeeded", "a judge that fails is tried again");
}

#[test]
fn a_dispute_is_for_a_human_and_a_skip_ends_the_group_well() {
    assert_eq!(story("(coder -> j):3 -> x", "d"), "coder.1 NeedsHuman { step: 1, reason: Disputed }");
    assert_eq!(story("(coder -> j):3 -> x", ".d"), "coder.1 j.1 NeedsHuman { step: 2, reason: Disputed }");
    assert_eq!(story("(coder -> j):3 -> x", "s."), "coder.1 x.1 Succeeded");
    assert_eq!(story("coder -> x", "s."), "coder.1 x.1 Succeeded");
}

#[test]
fn a_count_is_of_all_rounds_and_five_in_a_row_that_a_check_ends_are_the_end() {
    assert_eq!(story("(coder -> t -> j):1", ".x"), "coder.1 t.1 IterationsExhausted { step: 2 }");
    assert_eq!(story("(coder -> t -> j):2", ".x.x"), "coder.1 t.1 coder.1/2 t.1/2 IterationsExhausted { step: 2 }");
    assert_eq!(story("(coder -> t -> j):3", ".x.x..a"), "coder.1 t.1 coder.1/2 t.1/2 coder.1/3 t.1/3 j.1/3 Succeeded");
    let five =
        "coder.1 t.1 coder.1/2 t.1/2 coder.1/3 t.1/3 coder.1/4 t.1/4 coder.1/5 t.1/5 IterationsExhausted { step: 2 }";
    assert_eq!(story("(coder -> t -> j):9", ".x.x.x.x.x"), five);
    assert_eq!(
        story("(coder -> t -> j):9", &".x.x.x.x..r".repeat(2))[..20],
        *"coder.1 t.1 coder.1/",
        "a judged round ends the row"
    );
}

#[test]
fn a_worker_that_changes_nothing_is_asked_once_more_and_then_judged() {
    assert_eq!(story("(coder -> j):3", "nna"), "coder.1 coder.1+1 j.1 Succeeded");
    assert_eq!(story("(coder -> j):3", "n.a"), "coder.1 coder.1+1 j.1 Succeeded");
}

#[test]
fn a_check_that_fails_on_a_tree_and_with_errors_seen_before_stops_the_group() {
    let failure_digest = |mark: &str| {
        let check = FinishedCheck { failure_digest: Some(mark.into()), ..FinishedCheck::default() };
        Input::Exited { exit: Exit::Code(1), finished: Box::new(check.into()), verdict: None }
    };
    let after = |marks: &[&str]| {
        let inputs = marks.iter().flat_map(|mark| [UP, exit(0), UP, failure_digest(mark)]);
        run(&plan("(coder -> t):9"), std::iter::once(Input::Begin).chain(inputs)).events.pop()
    };
    let stalled = Some(EventKind::RunFinished { outcome: RunOutcome::Stalled { step: 2 } });
    assert_eq!(after(&["a", "a"]), stalled);
    assert_eq!(after(&["a", "b", "a"]), stalled, "to and fro");
    assert_ne!(after(&["a", "b", "c"]), stalled);
}

#[test]
fn a_reject_that_names_only_what_is_minor_ends_the_round_well() {
    let minor = Finding { title: "a name".into(), severity: Severity::Minor, ..Finding::default() };
    let said = VerdictReading::Clear(Verdict::new(Decided::Reject, String::new(), vec![minor], ReadFrom::Object));
    assert_eq!(end(&plan("(coder -> j):2"), [Input::Begin, UP, exit(0), UP, says(said)]), RunOutcome::Succeeded);
}

/// The fifteenth rejection fails the task, even if it comes in a later run.
#[test]
fn the_fifteenth_reject_of_a_task_is_its_last() {
    let mut plan = plan("(coder -> j):99");
    plan.limits.attempts = None;
    let rejects = |plan: &Plan| run(plan, inputs(&".r".repeat(40))).state.rejections();
    assert_eq!(rejects(&plan), 40, "a chain without a task has its own count");
    plan.task = Some(crate::plan::TaskFacts::default());
    assert_eq!(rejects(&plan), 15);
    plan.task = Some(crate::plan::TaskFacts { rejections: 14, ..Default::default() });
    assert_eq!(rejects(&plan), 1);
}

/// Returns a plan with every limit set.
fn limited_plan(chain: &str) -> Plan {
    let mut plan = plan(chain);
    plan.limits.time = Some(Duration::from_hours(1));
    plan.limits.tokens = Some(40);
    plan.limits.cost = Some(1.0);
    plan.limits.attempts = Some(9);
    plan
}

fn end(plan: &Plan, inputs: impl IntoIterator<Item = Input>) -> RunOutcome {
    match run(plan, inputs).events.last() {
        Some(EventKind::RunFinished { outcome }) => *outcome,
        other => panic!("not over: {other:?}"),
    }
}

fn left(fingerprint: &str) -> Input {
    let finished = Finished { fingerprint: Some(fingerprint.into()), ..Finished::default() };
    ended(finished)
}

#[test]
fn a_loop_that_fails_three_times_in_the_same_quick_way_is_given_up_at_once() {
    assert_eq!(story("coder:9", "xxx"), "coder.1 coder.2 coder.3 CrashLoop { step: 1 }");
    assert_eq!(
        story("coder:9", "xx.xxkxx")[..],
        *"coder.1 coder.2 coder.3 coder.4 coder.5 coder.6 coder.7 coder.8 coder.9"
    );
    assert_eq!(story("(coder:2 -> t):9", "xxx"), "coder.1 coder.2 coder.1/2 CrashLoop { step: 1 }");
    let slow = || {
        let finished = Finished { took_ms: 5_000, ..Finished::default() };
        Input::Exited { exit: Exit::Code(1), finished: Box::new(finished), verdict: None }
    };
    assert_eq!(
        end(&plan("coder:3"), [Input::Begin, UP, slow(), UP, slow(), UP, slow()]),
        RunOutcome::IterationsExhausted { step: 1 }
    );
}

#[test]
fn a_loop_that_changes_nothing_and_says_the_same_is_given_up() {
    let after = |marks: &[&str]| {
        let inputs = marks.iter().flat_map(|mark| [UP, left(mark)]);
        run(&plan("coder:9"), std::iter::once(Input::Begin).chain(inputs)).events.pop()
    };
    let stalled = Some(EventKind::RunFinished { outcome: RunOutcome::Stalled { step: 1 } });
    assert_eq!(after(&["a", "a", "a"]), stalled);
    assert_ne!(after(&["a", "a", "b", "a", "a"]), stalled);
    assert_eq!(after(&["a", "a", "b", "b", "b"]), stalled);
    assert_eq!(
        end(&plan("coder:3"), [Input::Begin, UP, left("a"), UP, left("a"), UP, left("a")]),
        RunOutcome::IterationsExhausted { step: 1 },
        "the last iteration ends the loop anyway"
    );
}

#[test]
fn a_usage_limit_is_waited_out_and_no_iteration_is_charged() {
    let mut plan = plan("coder:1");
    plan.limits.attempts = Some(1);
    let again = Input::TimeOver(Timer::Wait);
    let inputs =
        [Input::Begin, UP, limited(Some(90_000)), again.clone(), UP, limited(None), again, UP, Input::Marker, exit(0)];
    let ran = run(&plan, inputs);
    assert_eq!(waits(&ran), [Duration::from_secs(90), Duration::from_secs(2)]);
    assert_eq!(ran.events.last(), Some(&EventKind::RunFinished { outcome: RunOutcome::Succeeded }));
}

#[test]
fn a_wait_longer_than_its_limit_is_not_begun_and_a_signal_ends_one() {
    let wait = RunOutcome::LimitReached { limit: LimitKind::Wait };
    assert_eq!(end(&plan("coder"), [Input::Begin, UP, limited(Some(7 * 3_600_000))]), wait);
    let again = || [UP, limited(None), Input::TimeOver(Timer::Wait)];
    let for_ever = std::iter::once(Input::Begin).chain((0..200).flat_map(|_| again()));
    assert_eq!(end(&plan("coder"), for_ever), wait);
    assert_eq!(
        end(&plan("coder"), [Input::Begin, UP, limited(None), Input::Signal(Sig::Int)]),
        RunOutcome::Interrupted { signal: Sig::Int }
    );
}

#[test]
fn an_outage_of_the_service_is_waited_out_with_growing_pauses_and_charges_nothing() {
    let mut plan = plan("coder:1");
    plan.limits.attempts = Some(1);
    let again = || [UP, failed(ErrorClass::Network), Input::TimeOver(Timer::Wait)];
    let outage = (0..4).flat_map(|_| again());
    let inputs = std::iter::once(Input::Begin).chain(outage).chain([UP, Input::Marker, exit(0)]);
    let ran = run(&plan, inputs);
    assert_eq!(waits(&ran), [1, 2, 4, 8].map(Duration::from_secs));
    assert_eq!(ran.events.last(), Some(&EventKind::RunFinished { outcome: RunOutcome::Succeeded }));
    let for_ever = std::iter::once(Input::Begin).chain((0..200).flat_map(|_| again()));
    assert_eq!(end(&plan, for_ever), RunOutcome::LimitReached { limit: LimitKind::Wait });
}

/// An agent that uses tokens each time and fails in the same way does not have a temporary problem, whatever its error
/// message says.
#[test]
fn attempts_that_use_tokens_again_and_again_and_meet_the_same_error_count() {
    let paid = || {
        let (error, error_class) = (Some("x".into()), Some(ErrorClass::Network));
        let agent = FinishedAgent { error_class, tokens: Some(tokens(9)), ..FinishedAgent::default() };
        let finished = Finished { error, agent, ..Finished::default() };
        [
            UP,
            Input::Exited { exit: Exit::Code(1), finished: Box::new(finished), verdict: None },
            Input::TimeOver(Timer::Wait),
        ]
    };
    let times = |count: usize| std::iter::once(Input::Begin).chain((0..count).flat_map(|_| paid()));
    assert_eq!(end(&plan("coder"), times(3).chain([UP, exit(0)])), RunOutcome::Succeeded);
    assert_eq!(end(&plan("coder"), times(4)), RunOutcome::Failed { step: 1 });
}

/// For an attempt that was stopped before it reported its cost.
#[test]
fn what_nobody_has_told_of_the_cost_is_estimated_for_the_limit() {
    let plan = {
        let config = r#"{"agents": {"c": {"backend": "claude"}}, "chains": {}}"#;
        let mut plan = planned(&world(&[("/bin/claude*", "")]), config, "c:9", &PromptSource::default(), &[]).unwrap();
        plan.limits.cost = Some(1.0);
        plan
    };
    let used = |input| Input::Used { tokens: tokens(input), said_all: false };
    let cut = |input| [UP, used(input), Input::TimeOver(Timer::Timeout), exit(143)];
    let reached = RunOutcome::LimitReached { limit: LimitKind::Cost };
    assert_eq!(end(&plan, std::iter::once(Input::Begin).chain(cut(200_000)).chain(cut(200_000))), reached);
    let little = run(&plan, std::iter::once(Input::Begin).chain(cut(2_000)));
    assert!(!little.state.is_over() && little.state.used().cost_usd.is_none(), "it is said to be unknown");
}

#[test]
fn a_machine_without_room_is_waited_for_ten_seconds_at_most() {
    let busy = || [Input::NotStarted { error: "EAGAIN".into(), busy: true }, Input::TimeOver(Timer::Wait)];
    let for_ever = || std::iter::once(Input::Begin).chain((0..20).flat_map(|_| busy()));
    let ran = run(&plan("coder"), for_ever());
    assert_eq!(ran.events.last(), Some(&EventKind::RunFinished { outcome: RunOutcome::OutOfResources { step: 1 } }));
    let waited: Duration = waits(&ran).iter().sum();
    assert!(waited <= Duration::from_secs(10) && waited > Duration::from_secs(7), "{waited:?}");
    let soon = std::iter::once(Input::Begin).chain(busy()).chain([UP, exit(0)]);
    assert_eq!(end(&plan("coder"), soon), RunOutcome::Succeeded);
}

#[test]
fn a_program_that_says_nothing_at_its_start_is_started_three_times_more_and_then_fails() {
    let silent = || [UP, Input::TimeOver(Timer::Start), exit(143), Input::TimeOver(Timer::Wait)];
    let times = |count: usize| std::iter::once(Input::Begin).chain((0..count).flat_map(|_| silent()));
    assert_eq!(end(&plan("coder"), times(3).chain([UP, exit(0)])), RunOutcome::Succeeded);
    assert_eq!(end(&plan("coder"), times(4)), RunOutcome::Failed { step: 1 });
}

#[test]
fn a_limit_ends_the_run_while_the_agent_runs_unless_its_marker_came_first() {
    let reached = |limit| RunOutcome::LimitReached { limit };
    let plan = limited_plan("coder:9 -> x");
    let time = Input::TimeOver(Timer::Run);
    let ran = run(&plan, [Input::Begin, UP, time.clone(), exit(0)]);
    assert!(ran.effects.contains(&Effect::Signal(Sig::Term)));
    assert_eq!(ran.events.last(), Some(&EventKind::RunFinished { outcome: reached(LimitKind::Time) }));
    assert_eq!(
        end(&plan, [Input::Begin, UP, Input::Used { tokens: tokens(40), said_all: false }, exit(0)]),
        reached(LimitKind::Tokens)
    );
    let ran = run(&plan, [Input::Begin, UP, Input::Marker, time.clone(), exit(0)]);
    assert!(ran.events.iter().any(|event| matches!(event, EventKind::StepSucceeded { .. })));
    assert_eq!(ran.events.last(), Some(&EventKind::RunFinished { outcome: reached(LimitKind::Time) }));
    assert_eq!(end(&limited_plan("coder:9"), [Input::Begin, UP, Input::Marker, time, exit(0)]), RunOutcome::Succeeded);
    let nine = std::iter::once(Input::Begin).chain((0..9).flat_map(|_| [UP, exit(0)]));
    assert_eq!(end(&limited_plan("coder:10"), nine), reached(LimitKind::Attempts));
    let used = Input::Used { tokens: Tokens { cost_usd: Some(2.0), ..tokens(1) }, said_all: true };
    let once = limited_plan("coder");
    assert_eq!(end(&once, [Input::Begin, UP, used.clone(), exit(0)]), RunOutcome::Succeeded, "it has said all");
    assert_eq!(end(&once, [Input::Begin, UP, used, failed(ErrorClass::Turns)]), reached(LimitKind::Cost));
    let tokens = Some(Tokens { cost_usd: Some(1.5), ..tokens(1) });
    let costly = FinishedAgent { tokens, ..FinishedAgent::default() }.into();
    assert_eq!(end(&plan, [Input::Begin, UP, ended(costly)]), reached(LimitKind::Cost));
}

#[test]
fn an_agent_that_lingers_after_its_marker_is_ended_and_complete() {
    let ran = run(&plan("coder:1"), [Input::Begin, UP, Input::Marker, Input::TimeOver(Timer::Linger), exit(143)]);
    assert!(ran.effects.contains(&Effect::Arm(Timer::Linger, LINGER)));
    assert!(ran.effects.contains(&Effect::Signal(Sig::Term)));
    assert_eq!(ran.events.last(), Some(&EventKind::RunFinished { outcome: RunOutcome::Succeeded }));
    let once = run(&plan("coder"), [Input::Begin, UP, Input::Marker]);
    assert!(!once.effects.contains(&Effect::Arm(Timer::Linger, LINGER)), "a step that runs once has no marker");
}

fn waits(ran: &Ran) -> Vec<Duration> {
    let time = |effect: &Effect| if let Effect::Arm(Timer::Wait, time) = effect { Some(*time) } else { None };
    ran.effects.iter().filter_map(time).collect()
}

fn failed(class: ErrorClass) -> Input {
    let agent = FinishedAgent { error_class: Some(class), ..FinishedAgent::default() };
    let finished = Finished { error: Some("x".into()), agent, ..Finished::default() };
    Input::Exited { exit: Exit::Code(1), finished: Box::new(finished), verdict: None }
}

fn tokens(input: u64) -> Tokens {
    Tokens { input, ..Tokens::default() }
}

fn limited(resets_in_ms: Option<u64>) -> Input {
    let usage_limit = Some(UsageLimit { resets_in_ms, ..UsageLimit::default() });
    let agent = FinishedAgent { usage_limit, ..FinishedAgent::default() };
    Input::Exited { exit: Exit::Code(1), finished: Box::new(agent.into()), verdict: None }
}

pub(crate) mod laws;
mod signals;
