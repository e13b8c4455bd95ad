//! How an answer of the executor is judged: by the criteria, by commands, and then by the evaluator.

use super::{Questions, why};
use crate::engine::{AnswerAttempt, AttemptOutcome, CaseResult, JudgedBy, RemarkTexts, Remarks};
use crate::eval::criteria::command::CommandCriterion;
use crate::eval::criteria::{Criterion, Judged};
use crate::eval::leak::closeness;
use crate::eval::machine::{EXECUTES, EvalInput};
use crate::eval::question::{CaseRun, Evaluating, Judging, Question};
use crate::eval::suite::Decide;
use crate::eval::trees::{PATCH, TreeWork};
use crate::journal::StoredAnswer;
use crate::runner::{Failure, LaneAnswer};
use crate::verdict::{Evaluation, evaluation};
use std::io;
use std::path::PathBuf;
use tempfile::TempDir;

/// Makes one evaluation of several. Its score is the mean of theirs. Its issues are those of the evaluators that
/// rejected the output, or of all if it passes.
fn decided(mut given: Vec<Evaluation>, decide: Decide) -> Evaluation {
    if given.len() == 1 {
        return given.remove(0);
    }
    #[expect(clippy::cast_precision_loss, reason = "a handful of evaluators")]
    let score = given.iter().map(|one| one.score).sum::<f64>() / given.len().max(1) as f64;
    let passes = given.iter().filter(|one| one.pass).count();
    let pass = match decide {
        Decide::Majority => passes * 2 > given.len(),
        Decide::All => passes == given.len(),
        Decide::Mean => score >= 0.5,
    };
    let (mut issues, mut suggestions) = (Vec::new(), Vec::new());
    for one in given.into_iter().filter(|one| pass || !one.pass) {
        issues.extend(one.issues);
        suggestions.extend(one.suggestions);
    }
    Evaluation { pass, score, issues, suggestions, more: serde_json::Map::new() }
}

/// The criteria of a case: those of the suite, then its own.
fn criteria<'a>(questions: &'a Questions<'_>, of: CaseRun) -> impl Iterator<Item = &'a Criterion> {
    let case = questions.case(of);
    // What a recorded output has cost is not known.
    let is_known = case.output.is_none();
    let all = questions.context.suite.criteria.iter().chain(case.criteria.iter());
    all.filter(move |criterion| is_known || !criterion.needs_usage())
}

/// Whether a case can only be judged if the cost and the time of its answer are known.
pub(in crate::eval) fn needs_usage(questions: &Questions<'_>, of: CaseRun) -> bool {
    criteria(questions, of).any(Criterion::needs_usage)
}

/// The command that is run next.
pub(in crate::eval) fn command_of<'a>(questions: &'a Questions<'_>, judging: &Judging) -> Option<&'a CommandCriterion> {
    criteria(questions, judging.of).nth(*judging.open.front()?)?.command()
}

/// Handles an answer: first the criteria, then the evaluator if all of them are met.
pub(in crate::eval) fn answered(
    questions: &mut Questions<'_>,
    of: CaseRun,
    answer: StoredAnswer,
) -> Result<(), Failure> {
    let of = CaseRun { cost_usd: answer.cost_usd, took_ms: answer.took_ms, ..of };
    let work = match questions.case(of).tree.as_ref().map(|_| serde_json::from_str::<TreeWork>(&answer.said)) {
        None => None,
        Some(Ok(TreeWork { error: Some(why), .. })) => {
            return record_error(questions, of, format!("executor_error: {why}"));
        }
        Some(Ok(work)) => Some(work),
        Some(Err(_)) => return record_error(questions, of, "executor_error: its answer is no work on a tree".into()),
    };
    let judged = Judged {
        output: work.as_ref().map_or(&answer.said, |work| &work.diff),
        expected: questions.case(of).expected.as_deref(),
        cost_usd: answer.cost_usd,
        took_ms: answer.took_ms,
        work: work.as_ref(),
    };
    let measured = criteria(questions, of).map(|criterion| criterion.measure(judged)).collect();
    let open = (0..).zip(criteria(questions, of)).filter(|(_, one)| one.command().is_some()).map(|(index, _)| index);
    let judging = Judging { of, measured, open: open.collect(), answer, work, tree: None };
    judge(questions, judging)
}

/// Runs the next command, or decides.
fn judge(questions: &mut Questions<'_>, judging: Judging) -> Result<(), Failure> {
    if !judging.open.is_empty() {
        questions.queue.push_front(Question::Command(Box::new(judging)));
        return Ok(());
    }
    let output = judging.output().to_string();
    let Judging { of, measured, answer, .. } = judging;
    if measured.iter().all(|one| one.pass) && questions.context.suite.evaluator().is_some() {
        let evaluating = Evaluating { of, output, session: answer.session, given: Vec::new() };
        questions.queue.push_front(Question::Evaluate(Box::new(evaluating)));
        return Ok(());
    }
    #[expect(clippy::cast_precision_loss, reason = "a case's criteria")]
    let score = measured.iter().map(|one| one.score).sum::<f64>() / measured.len() as f64;
    // Without criteria, outputs are only compared.
    let score = if measured.is_empty() { 1.0 } else { score };
    let result = CaseResult {
        pass: measured.iter().all(|one| one.pass) && is_enough(questions, score),
        score,
        judged_by: JudgedBy::Criteria,
        ..result(questions, of, Some(&output))
    };
    let issues = measured.into_iter().filter_map(|one| one.issue).collect();
    judged(questions, result, RemarkTexts { issues, ..RemarkTexts::default() })
}

/// Handles the end of a command.
pub(in crate::eval) fn command_done(
    questions: &mut Questions<'_>,
    mut judging: Judging,
    answer: &LaneAnswer,
) -> Result<(), Failure> {
    let printed = answer.message.as_deref().unwrap_or_default();
    let measured = match answer.outcome {
        Some(AttemptOutcome::Completed) => CommandCriterion::verdict(0, printed),
        Some(AttemptOutcome::Failed { code }) => CommandCriterion::verdict(code, printed),
        _ => Err(why(answer)),
    };
    match measured {
        Ok(measured) => {
            if let Some(place) = judging.open.pop_front().and_then(|index| judging.measured.get_mut(index)) {
                *place = measured;
            }
            judge(questions, judging)
        }
        Err(why) => record_error(questions, judging.of, format!("criterion_error: {why}")),
    }
}

/// The file with the change that a chain has made in an attempt.
pub(in crate::eval) fn patch_of(questions: &Questions<'_>, of: CaseRun, answer: AnswerAttempt) -> PathBuf {
    let (executor, _) = questions.context.suite.column(of.generation);
    questions.journal.files().attempt_folder(answer.run, EXECUTES, &executor.value, answer.attempt).path().join(PATCH)
}

/// Lays out what a chain has done in a tree, so that commands can judge it.
pub(in crate::eval) fn lay_out(questions: &Questions<'_>, judging: &mut Judging) -> Result<(), String> {
    let case = questions.case(judging.of);
    let (Some(_), Some(trees), None) = (&judging.work, questions.context.trees, &judging.tree) else { return Ok(()) };
    let patch = judging.of.answer.map(|answer| patch_of(questions, judging.of, answer));
    let patch = patch.ok_or("the attempt that made the change is not known")?;
    let ids = trees.of(&case.id).ok_or("its tree is not known")?;
    let folder = questions.context.world.scratch_folder().map_err(|error| error.to_string())?;
    let file = questions.context.measured_file(&questions.prompt(judging.of.generation));
    trees.store.lay_out_work(ids, file.as_ref(), &patch, folder.path())?;
    judging.tree = Some(folder);
    Ok(())
}

/// Writes the files that a command may look at: `output`, `text`, `expected`, and `case.json` with all of it.
pub(in crate::eval) fn case_folder(questions: &Questions<'_>, judging: &Judging) -> io::Result<TempDir> {
    let (case, world) = (questions.case(judging.of), questions.context.world);
    let folder = world.scratch_folder()?;
    let whole = serde_json::json!({
        "id": case.id,
        "output": judging.output(),
        "text": case.text,
        "expected": case.expected,
        "vars": case.vars,
        "tags": case.tags,
        "generation": judging.of.generation,
        "repetition": judging.of.repetition,
    });
    let files = [
        ("output", Some(judging.output())),
        ("text", Some(&*case.text)),
        ("expected", case.expected.as_deref()),
        ("case.json", Some(&format!("{whole}\n"))),
    ];
    for (name, text) in files {
        if let Some(text) = text {
            world.disk().create(&folder.path().join(name), text)?;
        }
    }
    Ok(folder)
}

/// Handles what an evaluator says: the next one is asked, or the case is decided.
pub(in crate::eval) fn evaluated(
    questions: &mut Questions<'_>,
    mut evaluating: Evaluating,
    said: &str,
) -> Result<(), Failure> {
    let suite = questions.context.suite;
    match evaluation(said, suite.score_mode) {
        Ok(evaluation) => evaluating.given.push(evaluation),
        Err(bad) => return record_error(questions, evaluating.of, format!("evaluator_error: {}", bad.issue())),
    }
    if evaluating.given.len() < suite.evaluators.len() {
        questions.queue.push_front(Question::Evaluate(Box::new(evaluating)));
        return Ok(());
    }
    let Evaluating { of, output, given, .. } = evaluating;
    let Evaluation { pass, score, issues, suggestions, .. } = decided(given, suite.decide);
    let enough = is_enough(questions, score);
    let mut issues = issues;
    if pass && !enough {
        issues.push("the score is below the minimum".into());
    }
    let result = CaseResult {
        pass: pass && enough,
        score,
        judged_by: JudgedBy::Evaluator,
        ..result(questions, of, Some(&output))
    };
    judged(questions, result, RemarkTexts { issues, suggestions, ..RemarkTexts::default() })
}

fn is_enough(questions: &Questions<'_>, score: f64) -> bool {
    questions.context.suite.min_score.is_none_or(|least| score >= f64::from(least) / 1000.0)
}

/// Records a failure of the evaluation, not of the prompt: it never becomes feedback.
pub(in crate::eval) fn record_error(questions: &mut Questions<'_>, of: CaseRun, why: String) -> Result<(), Failure> {
    judged(questions, result(questions, of, None), RemarkTexts { error: Some(why), ..RemarkTexts::default() })
}

pub(in crate::eval) fn unreadable(
    questions: &mut Questions<'_>,
    of: CaseRun,
    why: String,
    issue: String,
) -> Result<(), Failure> {
    let remarks = RemarkTexts { error: Some(why), issues: vec![issue], ..RemarkTexts::default() };
    judged(questions, result(questions, of, None), remarks)
}

fn result(questions: &Questions<'_>, of: CaseRun, output: Option<&str>) -> CaseResult {
    let case = questions.case(of);
    let both = output.zip(case.expected.as_deref());
    CaseResult {
        generation: of.generation,
        case: case.id.clone(),
        repetition: of.repetition,
        held_out: is_held_out(questions, of.case),
        pass: false,
        score: 0.0,
        closeness: both.map(|(output, expected)| closeness(output, expected)),
        judged_by: JudgedBy::Nobody,
        remarks: Remarks::default(),
        cached: of.cached,
        answer: of.answer,
        cost_usd: of.cost_usd,
        took_ms: of.took_ms,
    }
}

fn judged(questions: &mut Questions<'_>, result: CaseResult, mut remarks: RemarkTexts) -> Result<(), Failure> {
    // Feedback must not reveal another case either.
    remarks.dropped =
        questions.texts.sanitise(&mut remarks.issues) + questions.texts.sanitise(&mut remarks.suggestions);
    questions.take(EvalInput::Result(Box::new(CaseResult { remarks: remarks.into(), ..result })))
}

fn is_held_out(questions: &Questions<'_>, case: usize) -> bool {
    let facts = questions.state.ledger.facts.as_ref();
    facts.and_then(|facts| facts.cases.get(case)).is_some_and(|case| case.held_out)
}
