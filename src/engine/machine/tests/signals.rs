//! Scripted tests of how the machine handles signals, timeouts and failures.

use super::*;

#[test]
fn a_pause_stops_the_agent_then_us_and_the_agent_goes_on_after_us() {
    let ran = run(&plan("coder"), [Input::Begin, UP, Input::Pause, Input::Pause, Input::Continue, Input::Continue]);
    let effects: Vec<&Effect> = ran.effects.iter().skip(3).collect();
    assert_eq!(effects, [&Effect::PauseAgent, &Effect::StandStill, &Effect::ContinueAgent]);
}

#[test]
fn a_signal_is_passed_on_then_term_then_kill_and_a_second_one_kills_now() {
    let signals = |inputs: Vec<Input>| -> Vec<Sig> {
        let ran = run(&plan("coder:9"), inputs);
        ran.effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Signal(signal) => Some(*signal),
                _ => None,
            })
            .collect()
    };
    let int = || Input::Signal(Sig::Int);
    assert_eq!(
        signals(vec![Input::Begin, UP, int(), Input::TimeOver(Timer::Grace), Input::TimeOver(Timer::Grace)]),
        [Sig::Int, Sig::Term, Sig::Kill]
    );
    assert_eq!(
        signals(vec![Input::Begin, UP, Input::Signal(Sig::Term), Input::TimeOver(Timer::Grace)]),
        [Sig::Term, Sig::Kill]
    );
    assert_eq!(signals(vec![Input::Begin, UP, int(), int()]), [Sig::Int, Sig::Kill]);
    assert_eq!(signals(vec![Input::Begin, int(), UP]), [Sig::Int], "a signal during the spawn is not lost");
    assert_eq!(signals(vec![Input::Begin, int(), int(), UP]), [Sig::Kill]);
    assert_eq!(signals(vec![Input::Begin, UP, Input::OutputClosed, Input::OutputClosed]), [Sig::Term]);
}

#[test]
fn a_timeout_ends_the_attempt_by_the_ladder_and_the_loop_goes_on() {
    let mut plan = plan("coder:2 -> x");
    plan.steps[0].timeout = Some(Duration::from_secs(9));
    let ran = run(
        &plan,
        [
            Input::Begin,
            UP,
            Input::TimeOver(Timer::Timeout),
            Input::TimeOver(Timer::Timeout),
            Input::TimeOver(Timer::Grace),
            exit(0),
            UP,
            Input::Marker,
            exit(0),
            UP,
            exit(0),
        ],
    );
    assert!(
        ran.effects.contains(&Effect::Arm(Timer::Timeout, Duration::from_secs(9)))
            && ran.effects.contains(&Effect::Arm(Timer::Idle, Duration::from_mins(15)))
    );
    let signals: Vec<&Effect> = ran.effects.iter().filter(|effect| matches!(effect, Effect::Signal(_))).collect();
    assert_eq!(signals, [&Effect::Signal(Sig::Term), &Effect::Signal(Sig::Kill)]);
    let outcomes: Vec<&AttemptOutcome> = ran
        .events
        .iter()
        .filter_map(|event| match event {
            EventKind::AttemptFinished { outcome, .. } => Some(outcome),
            _ => None,
        })
        .collect();
    assert_eq!(outcomes, [&AttemptOutcome::TimedOut, &AttemptOutcome::Completed, &AttemptOutcome::Completed]);
    assert_eq!(ran.events.last(), Some(&EventKind::RunFinished { outcome: RunOutcome::Succeeded }));
}

#[test]
fn a_marker_before_the_timeout_counts_and_a_signal_outranks_it() {
    let ran = run(
        &plan("coder:1"),
        [
            Input::Begin,
            UP,
            Input::Marker,
            Input::TimeOver(Timer::Timeout),
            Input::Exited { exit: Exit::Signal(15), finished: Box::default(), verdict: None },
        ],
    );
    assert_eq!(ran.events.last(), Some(&EventKind::RunFinished { outcome: RunOutcome::Succeeded }));
    let ran =
        run(&plan("coder:2"), [Input::Begin, UP, Input::TimeOver(Timer::Timeout), Input::Signal(Sig::Int), exit(0)]);
    assert_eq!(
        ran.events.last(),
        Some(&EventKind::RunFinished { outcome: RunOutcome::Interrupted { signal: Sig::Int } })
    );
    let ran = run(&plan("coder"), [Input::Begin, UP, Input::TimeOver(Timer::Timeout), exit(0)]);
    assert_eq!(
        ran.events.last(),
        Some(&EventKind::RunFinished { outcome: RunOutcome::Failed { step: 1 } }),
        "exit 0 after our TERM is no success"
    );
}

#[test]
fn after_a_signal_no_further_attempt_begins_and_the_first_signal_is_the_outcome() {
    let ran = run(
        &plan("coder:9 -> x"),
        [Input::Begin, UP, Input::Marker, Input::Signal(Sig::Int), Input::Signal(Sig::Term), exit(0)],
    );
    assert_eq!(
        ran.events.last(),
        Some(&EventKind::RunFinished { outcome: RunOutcome::Interrupted { signal: Sig::Int } })
    );
    assert_eq!(ran.effects.iter().filter(|effect| matches!(effect, Effect::Spawn { .. })).count(), 1);
    let ran = run(&plan("coder"), [Input::Signal(Sig::Hup), Input::Begin]);
    assert_eq!(ran.effects, [Effect::Finish(RunOutcome::Interrupted { signal: Sig::Hup })]);
}

#[test]
fn an_error_that_the_program_reports_with_exit_0_is_no_success() {
    let finished = Finished { error: Some("API Error".into()), ..Finished::default() };
    let ran = run(&plan("coder"), [Input::Begin, UP, ended(finished)]);
    assert_eq!(ran.events.last(), Some(&EventKind::RunFinished { outcome: RunOutcome::Failed { step: 1 } }));
}

#[test]
fn an_exit_before_the_word_of_the_spawn_ends_the_attempt() {
    let ran = run(
        &plan("coder"),
        [Input::Begin, Input::Exited { exit: Exit::Signal(9), finished: Box::default(), verdict: None }],
    );
    assert_eq!(ran.events.last(), Some(&EventKind::RunFinished { outcome: RunOutcome::Failed { step: 1 } }));
}

#[test]
fn a_program_that_cannot_be_started_stops_the_chain_even_in_a_group() {
    let ran = run(&plan("(coder -> t):5"), [Input::Begin, Input::NotStarted { error: "ENOENT".into(), busy: false }]);
    assert_eq!(ran.events.last(), Some(&EventKind::RunFinished { outcome: RunOutcome::Failed { step: 1 } }));
}

#[test]
fn a_program_that_cannot_be_started_stops_the_chain() {
    let ran = run(&plan("coder:5 -> x"), [Input::Begin, Input::NotStarted { error: "ENOENT".into(), busy: false }]);
    assert_eq!(ran.events.last(), Some(&EventKind::RunFinished { outcome: RunOutcome::Failed { step: 1 } }));
}
