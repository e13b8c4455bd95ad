//! Properties of the machine, for any chain and any history.

use super::*;
use crate::engine::Preparation;

/// Returns the maximum number of attempts of a chain, computed from its program alone.
fn bound(plan: &Plan) -> u64 {
    let of = |index: usize| {
        let step = &plan.steps[index];
        let iterations = if plan.steps[index].role() == Some(Role::Judge) { ASKED } else { step.iterations() };
        let mut product = u64::from(iterations) * u64::from(RETRIES + 1);
        let mut group = plan.program.step_group[index];
        while let Some(index) = group {
            product *= u64::from(plan.program.groups[index].rounds);
            group = plan.program.groups[index].parent;
        }
        product
    };
    (0..plan.steps.len()).map(of).sum()
}

fn again() -> Input {
    Input::Resume {
        elapsed_ms: 0,
        leftovers: Vec::new(),
        attempts: Vec::new(),
        limits: Vec::new(),
        decided: None,
        more: None,
        tree: None,
    }
}

/// Performs a run as its driver does. The n-th attempt that is not interrupted ends as the n-th letter says. With a
/// `cut`, the process dies when that many batches of events are in the journal, and another process resumes from their
/// fold.
fn driven(plan: &Plan, script: &str, cut: Option<usize>) -> Vec<EventKind> {
    let (mut state, mut log, mut batches) = (State::default(), Vec::new(), 0);
    let (mut inputs, mut ended) = (VecDeque::from([Input::Begin]), 0);
    while let Some(input) = inputs.pop_front() {
        ended += usize::from(matches!(input, Input::Exited { .. }));
        let Transition { state: next, events, effects } = decide(state, plan, input);
        state = next;
        batches += usize::from(!events.is_empty());
        log.extend(events);
        if cut == Some(batches) && !state.is_over() {
            state = State::default();
            for event in &log {
                evolve(&mut state, event);
            }
            ended = finished(&log).len();
            (batches, inputs) = (usize::MAX / 2, VecDeque::from([again()]));
            continue;
        }
        if effects.iter().any(|effect| matches!(effect, Effect::Spawn { .. })) {
            let letter = &script[ended..=ended];
            inputs.extend(self::inputs(letter).into_iter().skip(1));
        }
    }
    log
}

/// Returns the events of a run whose attempts end as the letters of a script say. At the end of the script a signal
/// stops the run.
pub(crate) fn drive(plan: &Plan, script: &str) -> Vec<EventKind> {
    run(plan, inputs(script).into_iter().chain([Input::Signal(Sig::Int), UP, exit(1)])).events
}

/// Returns the attempts that were not interrupted, and how they ended.
fn finished(log: &[EventKind]) -> Vec<(u32, u32, u32, &AttemptOutcome)> {
    let ends = log.iter().filter_map(|event| match event {
        EventKind::AttemptFinished { at, outcome, .. } if *outcome != AttemptOutcome::Interrupted => {
            Some((at.step, at.round, at.iteration, outcome))
        }
        _ => None,
    });
    ends.collect()
}

fn any_input() -> impl Strategy<Value = Input> {
    prop_oneof![
        Just(Input::TimeOver(Timer::Linger)),
        Just(Input::TimeOver(Timer::Wait)),
        Just(Input::TimeOver(Timer::Wait)),
        Just(Input::TimeOver(Timer::Run)),
        Just(again()),
        Just(Input::Pause),
        Just(Input::Continue),
        Just(Input::AgentPaused(19)),
        Just(Input::AgentContinued),
        (0..2_u32, any::<bool>()).prop_map(|(variant, continues)| {
            let session = continues.then(|| "s".to_string());
            Input::Prepared(Preparation { variant, session, ..Preparation::default() })
        }),
        (0..9_u64, any::<bool>()).prop_map(|(used, said_all)| Input::Used { tokens: tokens(used), said_all }),
        (0..2_u64).prop_map(|hours| limited(Some(hours * 3_600_000))),
        (0..2_u32).prop_map(|same| Input::Exited {
            exit: Exit::Code(0),
            finished: Box::new(Finished {
                fingerprint: Some(same.to_string()),
                agent: FinishedAgent { tokens: Some(tokens(5)), ..FinishedAgent::default() },
                ..Finished::default()
            }),
            verdict: None,
        }),
        (0..2_u32).prop_map(|same| Input::Exited {
            exit: Exit::Code(1),
            finished: Box::new(
                FinishedCheck { failure_digest: Some(same.to_string()), ..FinishedCheck::default() }.into()
            ),
            verdict: None,
        }),
        Just(says(verdict(Decided::Approve))),
        Just(says(verdict(Decided::Reject))),
        Just(says(verdict(Decided::Dispute))),
        Just(says(verdict(Decided::Skip))),
        Just(says(VerdictReading::Unclear(Unclear::Nothing))),
        Just(ended(FinishedAgent { unchanged: Some(true), ..FinishedAgent::default() }.into())),
        Just(Input::Begin),
        Just(UP),
        Just(UP),
        Just(UP),
        Just(Input::Marker),
        Just(Input::MarkerGone),
        Just(Input::TimeOver(Timer::Grace)),
        Just(Input::TimeOver(Timer::Timeout)),
        Just(Input::TimeOver(Timer::Idle)),
        Just(Input::OutputClosed),
        Just(Input::Signal(Sig::Int)),
        Just(Input::Signal(Sig::Term)),
        Just(Input::NotStarted { error: "x".into(), busy: false }),
        Just(Input::Parked { limit: UsageLimit { resets_in_ms: Some(10), ..UsageLimit::default() } }),
        Just(exit(0)),
        Just(exit(0)),
        Just(exit(0)),
        Just(exit(1)),
        Just(exit(1)),
        Just(Input::Exited { exit: Exit::Signal(11), finished: Box::default(), verdict: None }),
    ]
}

const CHAINS: [&str; 8] = [
    "coder",
    "coder:3 -> x",
    "(coder:2 -> t):3 -> x",
    "((coder -> t):2 -> x -> o):2",
    "t -> (x):2",
    "coder -> j",
    "(coder -> t -> j):3 -> x",
    "((coder -> t):2 -> j):2 -> (coder -> j -> j:2):2",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn replaying_the_events_rebuilds_the_state_and_nothing_follows_the_end(
        chain in 0..CHAINS.len(), inputs in proptest::collection::vec(any_input(), 0..40),
    ) {
        thread_local!(static PLANS: Vec<Plan> = CHAINS.map(limited_plan).into());
        PLANS.with(|plans| {
            let (plan, mut state, mut log) = (&plans[chain], State::default(), Vec::new());
            let mut running = 0_i32;
            for input in inputs {
                let was_over = state.is_over();
                let ends = matches!(input, Input::Exited { .. } | Input::NotStarted { .. } | Input::Parked { .. });
                let resumed = matches!(input, Input::Resume { .. });
                if resumed {
                    // The process that ran the attempt is dead.
                    running = 0;
                }
                let Transition { state: next, events, effects } = decide(state, plan, input);
                state = next;
                prop_assert!(!was_over || resumed || (events.is_empty() && effects.is_empty()));
                if ends && events.iter().any(|event| matches!(event, EventKind::AttemptFinished { .. })) {
                    running -= 1;
                }
                running += effects.iter().map(|effect| i32::from(matches!(effect, Effect::Spawn { .. }))).sum::<i32>();
                prop_assert!(running <= 1, "two attempts at once");
                let finishes = effects.iter().any(|effect| matches!(effect, Effect::Finish(_)));
                let ended = events.iter().any(|event| matches!(event, EventKind::RunFinished { .. }));
                prop_assert_eq!(ended, (!was_over || resumed && !events.is_empty()) && state.is_over());
                log.extend(events);
                prop_assert_eq!(finishes, ended, "an end is told and performed");
            }
            // Like the journal: through the stored text.
            let mut again = State::default();
            for event in &log {
                let stored = serde_json::to_string(event).unwrap();
                evolve(&mut again, &serde_json::from_str(&stored).unwrap());
            }
            prop_assert_eq!(again, state);
            Ok(())
        })?;
    }

    #[test]
    fn an_attempt_that_ends_in_any_way_leads_to_another_or_to_the_end(
        chain in 0..CHAINS.len(), before in proptest::collection::vec(any_input(), 0..20), last in any_input(),
    ) {
        let ends = matches!(last, Input::Exited { .. } | Input::NotStarted { .. } | Input::Parked { .. });
        thread_local!(static PLANS: Vec<Plan> = CHAINS.map(limited_plan).into());
        PLANS.with(|plans| {
            let plan = &plans[chain];
            let state = run(plan, std::iter::once(Input::Begin).chain(before)).state;
            let effects = decide(state.clone(), plan, last).effects;
            let goes_on = effects.iter().any(|effect| {
                matches!(effect, Effect::Spawn { .. } | Effect::Finish(_) | Effect::Arm(Timer::Wait, _))
            });
            // A process that is already running cannot fail to start.
            prop_assert!(!ends || goes_on || state.is_over() || matches!(state.phase, Phase::Running | Phase::Waiting));
            Ok(())
        })?;
    }

    #[test]
    fn a_run_that_was_cut_off_anywhere_goes_on_to_the_same_end_and_repeats_only_what_was_under_way(
        chain in 0..CHAINS.len(), script in "[.mxMkarudsn]{200}", cut in 1..60_usize,
    ) {
        thread_local!(static PLANS: Vec<Plan> = CHAINS.map(plan).into());
        PLANS.with(|plans| {
            let (whole, resumed) = (driven(&plans[chain], &script, None), driven(&plans[chain], &script, Some(cut)));
            let over = matches!(whole.last(), Some(EventKind::RunFinished { .. }));
            prop_assert!(over);
            prop_assert_eq!(whole.last(), resumed.last());
            prop_assert_eq!(finished(&whole), finished(&resumed));
            let interrupted = resumed.iter().filter(|event| {
                matches!(event, EventKind::AttemptFinished { outcome: AttemptOutcome::Interrupted, .. })
            });
            prop_assert!(interrupted.count() <= 1);
            let planned = resumed.iter().filter_map(|event| match event {
                EventKind::AttemptPlanned { at, .. } => Some((at.step, at.attempt)),
                _ => None,
            });
            let planned: Vec<_> = planned.collect();
            let unique: HashSet<_> = planned.iter().collect();
            prop_assert_eq!(planned.len(), unique.len(), "an attempt's folder is used once");
            Ok(())
        })?;
    }

    #[test]
    fn every_run_ends_within_the_bound_of_its_plan(chain in 0..CHAINS.len(), script in "[.mxMkarudsn]{2000}") {
        thread_local!(static PLANS: Vec<Plan> = CHAINS.map(plan).into());
        PLANS.with(|plans| {
            let ran = run(&plans[chain], inputs(&script));
            prop_assert!(ran.state.is_over());
            let attempts = ran.events.iter().filter(|event| matches!(event, EventKind::AttemptPlanned { .. })).count() as u64;
            prop_assert!(attempts <= bound(&plans[chain]), "{attempts} attempts");
            Ok(())
        })?;
    }
}
