//! Asks the questions of an evaluation in its lanes, and passes on the answers. A question with a stored answer is not
//! asked again.

use super::judging::{
    answered, case_folder, command_done, command_of, evaluated, lay_out, needs_usage, patch_of, record_error,
    unreadable,
};
use super::selecting::{read_selection, select, selected, selection_done};
use super::{Questions, attempt_of, why, words};
use crate::engine::{At, AttemptOutcome, Event, EventKind};
use crate::eval::jobs::{for_command, for_tree};
use crate::eval::machine::{EvalInput, IMPROVES, limit_reached, may_reach};
use crate::eval::planner::key_of;
use crate::eval::question::{CaseRun, Evaluating, Question};
use crate::journal::{AnswerPlace, StoredAnswer};
use crate::plan::{Part, Plan};
use crate::runner::{AnswerStore, Failure, Job, JobSource, LaneAnswer};
use crate::verdict::{ScoreMode, evaluation};
use std::time::Duration;

impl JobSource for Questions<'_> {
    fn next(&mut self) -> Result<Option<Job>, Failure> {
        if let Some(question) = self.next_question() {
            return job_for(self, question);
        }
        let Some(pair) = self.pairs.pop_front() else { return Ok(None) };
        select(self, pair)?.map_or(Ok(None), |question| job_for(self, question))
    }

    fn has_more(&self) -> bool {
        !(self.held || self.queue.is_empty() && self.samples.is_empty() && self.pairs.is_empty())
    }

    fn paused(&mut self, over: Option<Duration>) -> Result<(), Failure> {
        let Some(over) = over else { return self.take(EvalInput::Pause) };
        self.until = self.until.and_then(|until| until.checked_add(over));
        self.take(EvalInput::Continue)
    }

    fn done(&mut self, job: Job, answer: LaneAnswer) -> Result<(), Failure> {
        let Some((question, _)) = self.under_way.remove(&job.id) else { return Ok(()) };
        self.case_folders.remove(&job.id);
        self.held = false;
        self.queue.extend(self.equal.drain(..));
        let cut_off = answer.is_interrupted || matches!(answer.outcome, None | Some(AttemptOutcome::Interrupted));
        let given = AnswerPlace { run: self.recorder.run(), step: job.at.step, attempt: answer.attempt };
        match question {
            // A resume asks again.
            _ if cut_off && answer.message.is_none() => Ok(()),
            Question::Rewrite { generation, .. } => {
                let why = why(&answer);
                self.rewritten(generation, answer.message.ok_or(why))
            }
            Question::Answer(of) => match answer.stored() {
                Some(stored) => answered(self, CaseRun { answer: Some(attempt_of(given)), ..of }, stored),
                None if answer.is_cut() => {
                    record_error(self, of, "executor_error: its answer is longer than 1 MiB".into())
                }
                None => record_error(self, of, format!("executor_error: {}", why(&answer))),
            },
            Question::Select(selecting) => selection_done(self, &selecting, &answer),
            Question::Command(judging) => command_done(self, *judging, &answer),
            Question::Evaluate(evaluating) => {
                let of = evaluating.of;
                let Some(message) = answer.message else {
                    let why = format!("evaluator_error: {}", why(&answer));
                    // What was wrong with the evaluator's answer is recorded as an issue of the case.
                    return match answer.unread {
                        Some(bad) => unreadable(self, of, why, bad),
                        None => record_error(self, of, why),
                    };
                };
                if cut_off && evaluation(&message, self.context.suite.score_mode).is_err() {
                    return Ok(());
                }
                if evaluating.session.is_some() && evaluating.session == answer.finished.agent.session {
                    return record_error(self, of, "evaluator_error: it answered in the executor's session".into());
                }
                evaluated(self, *evaluating, &message)
            }
        }
    }

    fn see(&mut self, event: &Event) {
        // These events come from the machine itself, which knows them already.
        let own = matches!(
            event.event,
            EventKind::Evaluation { .. }
                | EventKind::RunStarted { .. }
                | EventKind::RunResumed { .. }
                | EventKind::RunPaused
                | EventKind::RunContinued
                | EventKind::RunFinished { .. }
        );
        if !own {
            self.state.evolve(&event.event);
        }
    }
}

/// Returns the job for a question; `None` if a stored answer was used, the question cannot be asked, or a limit was
/// reached.
pub(in crate::eval) fn job_for(questions: &mut Questions<'_>, mut question: Question) -> Result<Option<Job>, Failure> {
    let step = question.step();
    if let Question::Answer(of) = question
        && let Some(output) = &questions.case(of).output
    {
        let answer = StoredAnswer { said: output.to_string(), ..StoredAnswer::default() };
        return answered(questions, of, answer).map(|()| None);
    }
    if let Question::Command(judging) = &mut question
        && let Err(why) = lay_out(questions, judging)
    {
        return cannot_be_asked(questions, &question, why).map(|()| None);
    }
    let plan = match plan_of(questions, &question) {
        Ok(plan) => plan,
        Err(why) => return cannot_be_asked(questions, &question, why).map(|()| None),
    };
    let key = match &question {
        Question::Command(judging) => judging.key(),
        _ => key_of(&plan, question.repetition()),
    };
    let Some(question) = known(questions, question, &key)? else { return Ok(None) };
    let late = questions.until.is_some_and(|until| questions.context.world.uptime() >= until);
    let totals = &questions.state.ledger.totals;
    questions.limit =
        limit_reached(totals, &plan.limits, questions.context.settings.limits.attempts, questions.issued, late);
    if questions.limit.is_some() {
        questions.queue.clear();
        questions.samples.clear();
        questions.pairs.clear();
        questions.equal.clear();
        return Ok(None);
    }
    if questions.under_way.values().any(|(_, asked)| *asked == key) {
        questions.equal.push(question);
        return Ok(None);
    }
    questions.held = may_reach(&questions.state.ledger.totals, &plan.limits, questions.under_way.len());
    if questions.held {
        questions.queue.push_front(question);
        return Ok(None);
    }
    let (generation, iteration) = match &question {
        Question::Answer(of) => (of.generation, questions.iteration(*of)),
        Question::Evaluate(evaluating) => (evaluating.of.generation, questions.iteration(evaluating.of)),
        Question::Command(judging) => (judging.of.generation, questions.iteration(judging.of)),
        Question::Select(selecting) => (selecting.pair.first, selecting.pair.case + 1),
        Question::Rewrite { generation, .. } => (*generation, 1),
    };
    let id = questions.issued as usize;
    let mut plan = questions.limited(plan);
    if let (Question::Answer(_), Some(trees)) = (&question, questions.context.trees) {
        for_tree(&mut plan, trees.store.path());
    }
    if let Question::Command(judging) = &question {
        match case_folder(questions, judging) {
            Ok(folder) => {
                for_command(&mut plan, folder.path(), judging.tree());
                questions.case_folders.insert(id, folder);
            }
            Err(error) => {
                let why = format!("criterion_error: no temporary directory: {error}");
                return record_error(questions, judging.of, why).map(|()| None);
            }
        }
    }
    questions.issued = questions.issued.saturating_add(1);
    let name = questions.name_of(&question);
    let not_in = match &question {
        Question::Evaluate(evaluating) => evaluating.session.clone(),
        _ => None,
    };
    let store = question.is_stored().then(|| AnswerStore { key: key.clone(), not_in });
    questions.under_way.insert(id, (question, key));
    let at = At { step, name, round: generation + 1, iteration, attempt: 0, lane: 1 };
    let mode = if step == IMPROVES { ScoreMode::Strict } else { questions.context.suite.score_mode };
    Ok(Some(Job { plan, at, mode, id, store }))
}

/// The plan of a question, or why it cannot be asked.
pub(in crate::eval) fn plan_of(questions: &Questions<'_>, question: &Question) -> Result<Plan, String> {
    let context = questions.context;
    let prompt = match question {
        Question::Command(judging) => {
            let command = command_of(questions, judging).ok_or("there is no such command")?;
            return context.planner.command_plan(command, judging.output()).map_err(|faults| words(&faults));
        }
        Question::Answer(of) => {
            let prompt =
                context.execute_prompt(of.generation, &questions.prompt(of.generation), questions.case(*of))?;
            return context.executor_plan(of.generation, &prompt).map_err(|faults| words(&faults));
        }
        Question::Evaluate(evaluating) => {
            let prompt = context.evaluate_prompt(questions.case(evaluating.of), &evaluating.output)?;
            let agent = evaluating.evaluator(context.suite);
            return context.planner.plan(agent, Part::Evaluates, &prompt).map_err(|faults| words(&faults));
        }
        Question::Select(selecting) => {
            let agent = context.suite.select_best.as_ref().ok_or("nothing compares outputs")?;
            return context.planner.plan(agent, Part::Answers, &selecting.prompt).map_err(|faults| words(&faults));
        }
        Question::Rewrite { of, .. } => {
            context.improve_prompt(&questions.prompt(*of), &questions.feedback(*of), &questions.guards)
        }
    };
    let agent = context.suite.rewriter();
    prompt.and_then(|prompt| context.planner.plan(agent, Part::Answers, &prompt).map_err(|faults| words(&faults)))
}

/// Uses a stored answer, if there is one; otherwise returns the question.
fn known(questions: &mut Questions<'_>, question: Question, key: &str) -> Result<Option<Question>, Failure> {
    if !question.is_stored() {
        return Ok(Some(question));
    }
    let known = questions.journal.answers().last(key, questions.fresh.then_some(questions.recorder.run()))?;
    let Some((answer, place)) = known else { return Ok(Some(uncached(question))) };
    let StoredAnswer { said, session: own, .. } = &answer;
    match question {
        // The change that a chain has made may be gone, with the files of its attempt.
        Question::Answer(of)
            if questions.case(of).tree.is_some() && !patch_of(questions, of, attempt_of(place)).is_file() =>
        {
            Ok(Some(question))
        }
        Question::Answer(of) if answer.took_ms.is_some() || !needs_usage(questions, of) => {
            answered(questions, CaseRun { cached: true, answer: Some(attempt_of(place)), ..of }, answer).map(|()| None)
        }
        // A stored evaluation that is invalid in this mode, or was given in the executor's session, is not used.
        Question::Evaluate(evaluating)
            if (own.is_none() || *own != evaluating.session)
                && evaluation(said, questions.context.suite.score_mode).is_ok() =>
        {
            evaluated(questions, *evaluating, said).map(|()| None)
        }
        // An answer that cannot be read is not used.
        Question::Select(selecting) => match read_selection(&selecting, said) {
            Ok(preference) => selected(questions, selecting.pair, Ok(preference)).map(|()| None),
            Err(_) => Ok(Some(Question::Select(selecting))),
        },
        question => Ok(Some(uncached(question))),
    }
}

fn cannot_be_asked(questions: &mut Questions<'_>, question: &Question, why: String) -> Result<(), Failure> {
    match *question {
        Question::Answer(of) => record_error(questions, of, format!("cannot be asked: {why}")),
        Question::Evaluate(ref evaluating) => record_error(questions, evaluating.of, format!("cannot be asked: {why}")),
        Question::Command(ref judging) => record_error(questions, judging.of, format!("criterion_error: {why}")),
        Question::Select(ref selecting) => selected(questions, selecting.pair, Err(why)),
        Question::Rewrite { generation, .. } => questions.rewritten(generation, Err(why)),
    }
}

/// Marks a question as not answered from the store.
fn uncached(question: Question) -> Question {
    match question {
        Question::Evaluate(evaluating) => {
            let of = CaseRun { cached: false, ..evaluating.of };
            Question::Evaluate(Box::new(Evaluating { of, ..*evaluating }))
        }
        question => question,
    }
}
