//! Runs as JUnit XML, which CI systems show as test results: a test suite for each run, and in it a test case for each
//! check, each judge, and the run itself.

use super::overview::next;
use super::{AttemptTexts, Document};
use crate::chain::Role;
use crate::checks::{Failure, OutputErrors, joined};
use crate::engine::{
    At, AttemptOutcome, CaseResult, EvalLedger, EventKind, Finished, JudgedBy, RunOutcome, RunState, RunSummary,
};
use crate::plan::OutlineStep;
use crate::report::format::{first_line, judge_words, outcome_words};
use crate::report::paint::printable;
use crate::report::verdicts::finding_line;
use crate::verdict::{Decision, Unclear, Verdict};
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestRerun, TestSuite, XmlString};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// How many errors of a failed check are listed.
const ERRORS: usize = 20;
/// How much of the end of an output is included, in bytes.
const END: usize = 16 << 10;
/// How many earlier attempts of a step are included, at most.
const RERUNS: usize = 100;
/// The name of the test case that is the run itself. No step can have it.
const WHOLE: &str = "the run";

/// Returns the report as JUnit XML.
///
/// # Errors
/// When it cannot be written as XML.
pub fn junit(documents: &[Document<'_>], several: bool) -> Result<String, String> {
    let mut report = Report::new("forkhestra");
    let mut time = Duration::ZERO;
    for document in documents {
        let suite = suite(document, several);
        time += suite.time.unwrap_or_default();
        report.timestamp = report.timestamp.min(suite.timestamp).or(suite.timestamp);
        report.add_test_suite(suite);
    }
    report.set_time(time);
    report.to_string().map_err(|error| error.to_string())
}

/// What an agent said in an attempt.
#[derive(Debug, Clone, Copy)]
enum Said<'a> {
    /// A verdict, and whether it converged.
    Verdict(&'a Verdict, bool),
    /// Something that is no clear verdict.
    Unclear(&'a Unclear),
}

/// An attempt of a step.
#[derive(Debug)]
struct Try<'a> {
    at: &'a At,
    planned: &'a str,
    ended: Option<(&'a AttemptOutcome, &'a Finished)>,
    said: Option<Said<'a>>,
}

/// What became of an attempt.
enum Decided {
    Passed,
    /// It decides nothing, for this reason.
    Open(String),
    Failed(Problem),
}

/// Why an attempt failed.
struct Problem {
    kind: NonSuccessKind,
    /// The type of failure, as in events.
    kind_name: String,
    message: String,
    text: String,
    /// The place of the first error.
    place: Option<(String, Option<u32>)>,
}

/// A run, while its test cases are collected.
struct TestCases<'a> {
    document: &'a Document<'a>,
    papers: HashMap<(u32, u32), &'a AttemptTexts>,
    tries: BTreeMap<u32, Vec<Try<'a>>>,
    skipped: HashMap<u32, &'a str>,
}

fn suite(document: &Document<'_>, several: bool) -> TestSuite {
    let summary = document.summary;
    let name = match title(document) {
        title if several => format!("run {}: {title}", summary.run),
        title => title,
    };
    let mut suite = TestSuite::new(valid(&name));
    suite.timestamp = summary.started.parse().ok();
    suite.set_time(Duration::from_millis(summary.watch.milliseconds()));
    suite.add_property(Property::new("run", summary.run.to_string()));
    suite.add_property(Property::new("chain", valid(&summary.chain)));
    let ledger = EvalLedger::of_events(document.events);
    let mut cases = if ledger.facts.is_some() { of_evaluation(&ledger) } else { TestCases::of(document).all() };
    cases.push(whole(document));
    for mut case in cases {
        case.set_classname(valid(&name));
        suite.add_test_case(case);
    }
    suite
}

/// Returns what a run is about: its task, or its chain. It is the same for each run of them, so that CI systems can
/// compare one with another.
fn title(document: &Document<'_>) -> String {
    let task = document.events.iter().find_map(|event| match &event.event {
        EventKind::RunStarted { task, .. } => task.as_ref().map(|task| format!("task {}: {}", task.id, task.title)),
        _ => None,
    });
    let RunSummary { name, chain, .. } = document.summary;
    first_line(&task.or_else(|| name.clone()).unwrap_or_else(|| chain.clone()))
}

/// Makes a text valid in XML 1.0, which has no control characters, and removes colors.
fn valid(text: &str) -> XmlString {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
    XmlString::new(printable(&XmlString::new(lines.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}"))))
}

/// Returns the end of an output, from the beginning of a line.
fn end(output: &str, folder: &str) -> Option<XmlString> {
    let output = output.trim_end();
    let cut = output.floor_char_boundary(output.len().saturating_sub(END));
    let text = match cut {
        0 => output.to_string(),
        cut => {
            let line = output[cut..].find('\n').map_or(cut, |line| cut + line + 1);
            format!("… the whole output is in {folder}\n{}", &output[line..])
        }
    };
    (!text.is_empty()).then(|| valid(&text))
}

/// Returns the `type` that a value has in events.
fn type_of(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.get("type").unwrap_or(&value).as_str().unwrap_or_default().to_string()
}

/// Returns the test case of the run itself.
fn whole(document: &Document<'_>) -> TestCase {
    let summary = document.summary;
    let state = RunState::of(summary.totals.outcome, document.at_work);
    let status = match state {
        RunState::Complete => TestCaseStatus::success(),
        RunState::Running => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(valid(document.reason));
            status
        }
        _ => {
            let by_itself = summary.totals.outcome.is_some_and(RunOutcome::is_a_conclusion);
            let next = next(document).map_or_else(String::new, |next| format!("\nnext: {next}"));
            Problem {
                kind: if by_itself { NonSuccessKind::Failure } else { NonSuccessKind::Error },
                kind_name: type_of(state),
                message: document.reason.to_string(),
                text: format!("{}{next}", document.reason),
                place: None,
            }
            .status()
        }
    };
    let mut case = TestCase::new(WHOLE, status);
    case.timestamp = summary.started.parse().ok();
    case.set_time(Duration::from_millis(summary.watch.milliseconds()));
    case
}

/// Returns the test cases of an evaluation: its cases, with the prompt that was chosen.
fn of_evaluation(ledger: &EvalLedger) -> Vec<TestCase> {
    let last = ledger.results.last_generation();
    let generation = ledger.chosen.as_ref().map_or(last, |chosen| chosen.generation);
    ledger.of(generation).map(of_case).collect()
}

fn of_case(result: &CaseResult) -> TestCase {
    let judged = result.judged_by != JudgedBy::Nobody;
    let status = if result.pass {
        TestCaseStatus::success()
    } else {
        Problem {
            kind: if judged { NonSuccessKind::Failure } else { NonSuccessKind::Error },
            kind_name: if judged { "failed" } else { "notJudged" }.into(),
            message: match &result.remarks.error {
                Some(error) => first_line(error),
                None => format!("score {:.2}", result.score),
            },
            text: result.remarks.issues.join("\n"),
            place: None,
        }
        .status()
    };
    let times = if result.repetition > 1 { format!(" (repetition {})", result.repetition) } else { String::new() };
    TestCase::new(valid(&format!("{}{times}", result.case)), status)
}

impl Problem {
    fn status(&self) -> TestCaseStatus {
        let mut status = TestCaseStatus::non_success(self.kind);
        status.set_type(valid(&self.kind_name)).set_message(valid(&self.message));
        if !self.text.is_empty() {
            status.set_description(valid(&self.text));
        }
        status
    }

    fn rerun(&self, tried: &Try<'_>) -> TestRerun {
        let mut rerun = TestRerun::new(self.kind);
        rerun.timestamp = tried.planned.parse().ok();
        rerun.time = tried.ended.map(|(_, finished)| Duration::from_millis(finished.took_ms));
        rerun.set_type(valid(&self.kind_name)).set_message(valid(&self.message));
        if !self.text.is_empty() {
            rerun.set_description(valid(&self.text));
        }
        rerun
    }
}

impl<'a> TestCases<'a> {
    fn of(document: &'a Document<'a>) -> Self {
        let papers = document.papers.iter().map(|paper| ((paper.at.step, paper.at.attempt), paper)).collect();
        let mut cases = Self { document, papers, tries: BTreeMap::new(), skipped: HashMap::new() };
        for event in document.events {
            match &event.event {
                EventKind::AttemptPlanned { at, .. } => {
                    let tried = Try { at, planned: &event.at, ended: None, said: None };
                    cases.tries.entry(at.step).or_default().push(tried);
                }
                EventKind::AttemptFinished { at, outcome, finished, .. } => {
                    cases.tried(at, |tried| tried.ended = Some((outcome, finished)));
                }
                EventKind::VerdictGiven { at, verdict, converged } => {
                    cases.tried(at, |tried| tried.said = Some(Said::Verdict(verdict, *converged)));
                }
                EventKind::VerdictUnclear { at, reason, .. } => {
                    cases.tried(at, |tried| tried.said = Some(Said::Unclear(reason)));
                }
                EventKind::StepSkipped { step, reason, .. } => drop(cases.skipped.insert(*step, reason)),
                _ => {}
            }
        }
        cases
    }

    /// Adds to an attempt. It is one of the last of its step.
    fn tried(&mut self, at: &At, add: impl FnOnce(&mut Try<'a>)) {
        let tries = self.tries.get_mut(&at.step).into_iter().flatten();
        if let Some(tried) = tries.rev().find(|tried| tried.at.attempt == at.attempt) {
            add(tried);
        }
    }

    /// Returns the test cases of all checks and judges, also of those that were not reached.
    fn all(&self) -> Vec<TestCase> {
        let steps = (1..).zip(&self.document.outline.steps);
        let steps: Vec<(u32, &OutlineStep)> =
            steps.filter(|(_, step)| step.check.is_some() || step.role == Some(Role::Judge)).collect();
        let named = |name: &str| steps.iter().filter(|(_, step)| step.name == name).count();
        let mut cases = Vec::new();
        for (number, step) in &steps {
            let name = if named(&step.name) > 1 { format!("{}, step {number}", step.name) } else { step.name.clone() };
            cases.push(self.case(*number, step, &name));
        }
        cases
    }

    fn case(&self, number: u32, step: &OutlineStep, name: &str) -> TestCase {
        let tries = self.tries.get(&number).map_or(&[][..], Vec::as_slice);
        let skipped = |why: &str| {
            let mut status = TestCaseStatus::skipped();
            status.set_message(valid(why));
            status
        };
        let last = tries.last().map(|last| (last, self.result(step, last)));
        let mut status = match &last {
            None => skipped(self.skipped.get(&number).copied().unwrap_or("not reached")),
            Some((_, Decided::Passed)) => TestCaseStatus::success(),
            Some((_, Decided::Open(why))) => skipped(why),
            Some((_, Decided::Failed(problem))) if step.optional => {
                let mut status = skipped(&format!("optional: {}", problem.message));
                status.set_description(valid(&problem.text));
                status
            }
            Some((_, Decided::Failed(problem))) => problem.status(),
        };
        let earlier = &tries[..tries.len().saturating_sub(1)];
        let counts = |tried: &&Try<'_>| tried.ended.is_some_and(|(outcome, _)| outcome.counts());
        let failed = |tried: &Try<'_>| match self.result(step, tried) {
            Decided::Failed(problem) => Some(problem.rerun(tried)),
            _ => None,
        };
        let mut reruns: Vec<TestRerun> = earlier.iter().rev().filter(counts).filter_map(failed).take(RERUNS).collect();
        reruns.reverse();
        status.add_reruns(reruns);
        let mut case = TestCase::new(valid(name), status);
        case.properties.extend(step.check.as_ref().map(|line| Property::new("command", valid(line))));
        if let Some((tried, result)) = last {
            self.describe(&mut case, tried, &result);
        }
        case
    }

    /// Adds what is known of the attempt that decides: its time, and for a failure its output and its place.
    fn describe(&self, case: &mut TestCase, tried: &Try<'_>, result: &Decided) {
        case.timestamp = tried.planned.parse().ok();
        case.time = tried.ended.map(|(_, finished)| Duration::from_millis(finished.took_ms));
        let Decided::Failed(Problem { place, .. }) = result else { return };
        if let Some((file, line)) = place {
            case.extra.insert("file".into(), valid(file));
            case.extra.extend(line.map(|line| ("line".into(), line.to_string().into())));
        }
        if let Some(paper) = self.papers.get(&(tried.at.step, tried.at.attempt)) {
            case.system_out = end(&paper.output, &paper.folder);
            case.system_err = end(&paper.errors, &paper.folder);
        }
    }

    fn result(&self, step: &OutlineStep, tried: &Try<'_>) -> Decided {
        let judge = step.check.is_none();
        let Some((outcome, _)) = tried.ended else {
            return if self.document.at_work {
                Decided::Open("running".into())
            } else {
                self.failed(tried, judge, &AttemptOutcome::Interrupted)
            };
        };
        match tried.said {
            Some(Said::Verdict(verdict, converged)) => of_verdict(verdict, converged),
            Some(Said::Unclear(why)) => Decided::Failed(Problem {
                kind: NonSuccessKind::Error,
                kind_name: "unclear".into(),
                message: format!("no clear verdict: {}", first_line(&why.words())),
                text: why.words(),
                place: None,
            }),
            None if *outcome == AttemptOutcome::Completed => Decided::Passed,
            None => self.failed(tried, judge, outcome),
        }
    }

    fn failed(&self, tried: &Try<'_>, judge: bool, outcome: &AttemptOutcome) -> Decided {
        let mut problem = Problem {
            kind: if judge || !outcome.counts() { NonSuccessKind::Error } else { NonSuccessKind::Failure },
            kind_name: type_of(outcome),
            message: if judge { judge_words(outcome) } else { outcome_words(outcome, false, false) },
            text: String::new(),
            place: None,
        };
        let paper = self.papers.get(&(tried.at.step, tried.at.attempt)).filter(|_| !judge);
        if let Some(paper) = paper {
            let errors = OutputErrors::of(&joined(&[paper.output.clone(), paper.errors.clone()]));
            let place = |error: &Failure| error.file.clone().map(|file| (file, error.line));
            problem.place = errors.found.iter().find_map(place);
            problem.text = errors.summary(ERRORS);
        }
        Decided::Failed(problem)
    }
}

fn of_verdict(verdict: &Verdict, converged: bool) -> Decided {
    let message = match verdict.decision {
        Decision::Reject if converged => return Decided::Passed,
        Decision::Reject => "rejects",
        Decision::Dispute => "disputes",
        _ => return Decided::Passed,
    };
    let (findings, notes) = (verdict.effective_findings(), verdict.notes.trim());
    let lines: Vec<String> = findings.iter().map(finding_line).collect();
    let first = lines.first().cloned().filter(|_| verdict.decision == Decision::Reject);
    let first = first.unwrap_or_else(|| first_line(notes));
    let text = if lines.is_empty() { notes.to_string() } else { lines.join("\n") };
    Decided::Failed(Problem {
        kind: NonSuccessKind::Failure,
        kind_name: verdict.decision.name().into(),
        message: if first.is_empty() { message.into() } else { format!("{message}: {first}") },
        text,
        place: findings.into_iter().find_map(|finding| Some((finding.file?, finding.line))),
    })
}
