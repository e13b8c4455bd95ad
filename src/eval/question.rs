//! What an evaluation asks: an answer, an evaluation, a comparison, or a new prompt.

use super::criteria::Measured;
use super::machine::{CRITERIA, EVALUATES, EXECUTES, IMPROVES, OutputPair, Sample};
use super::suite::Suite;
use super::trees::TreeWork;
use crate::engine::AnswerAttempt;
use crate::journal::StoredAnswer;
use crate::source::Text;
use crate::verdict::Evaluation;
use std::collections::VecDeque;
use std::path::Path;
use tempfile::TempDir;

/// A case of a generation, by its number from 0, in one repetition.
#[derive(Debug, Clone, Copy)]
pub(super) struct CaseRun {
    pub(super) generation: u32,
    pub(super) case: usize,
    /// From 1.
    pub(super) repetition: u32,
    /// Whether the answer was stored before, so that nothing was run for it.
    pub(super) cached: bool,
    /// The attempt that gave the answer, once there is one.
    pub(super) answer: Option<AnswerAttempt>,
    /// What the answer has cost, in US dollars, and how long it has taken, once there is one.
    pub(super) cost_usd: Option<f64>,
    pub(super) took_ms: Option<u64>,
}

impl CaseRun {
    /// A case that has no answer yet.
    pub(super) fn new(generation: u32, sample: Sample) -> Self {
        let Sample { case, repetition } = sample;
        Self { generation, case: case as usize, repetition, cached: false, answer: None, cost_usd: None, took_ms: None }
    }
}

/// The judgment of an answer, in progress.
#[derive(Debug)]
pub(super) struct Judging {
    pub(super) of: CaseRun,
    pub(super) answer: StoredAnswer,
    /// What the criteria say, in order. That of a command counts once it has run.
    pub(super) measured: Vec<Measured>,
    /// The commands that have not run yet, by their place among the criteria.
    pub(super) open: VecDeque<usize>,
    /// What a chain has done in the tree of the case.
    pub(super) work: Option<TreeWork>,
    /// The directory in which commands judge that work, once there is one.
    pub(super) tree: Option<TempDir>,
}

impl Judging {
    /// What distinguishes the command that is run next from all others.
    pub(super) fn key(&self) -> String {
        let CaseRun { generation, case, repetition, .. } = self.of;
        format!("command {:?} of {generation} {case} {repetition}", self.open.front())
    }

    /// The output to judge: the answer, or what a chain has changed.
    pub(super) fn output(&self) -> &str {
        self.work.as_ref().map_or(&self.answer.said, |work| &work.diff)
    }

    /// The directory in which commands run; none for that of the suite.
    pub(super) fn tree(&self) -> Option<&Path> {
        self.tree.as_ref().map(TempDir::path)
    }
}

/// The judgment of an output by evaluators, in progress.
#[derive(Debug)]
pub(super) struct Evaluating {
    pub(super) of: CaseRun,
    pub(super) output: String,
    /// The session of the executor, in which no evaluator may answer.
    pub(super) session: Option<String>,
    /// The evaluations so far, in the order of the suite's evaluators.
    pub(super) given: Vec<Evaluation>,
}

impl Evaluating {
    /// The evaluator that is asked next.
    pub(super) fn evaluator<'s>(&self, suite: &'s Suite) -> &'s Text {
        suite.evaluators.get(self.given.len()).unwrap_or(&suite.executor)
    }
}

/// Two outputs that are to be compared.
#[derive(Debug)]
pub(super) struct Selecting {
    pub(super) pair: OutputPair,
    pub(super) prompt: String,
    /// Both outputs.
    pub(super) outputs: String,
}

/// What is to be asked next.
pub(super) enum Question {
    Answer(CaseRun),
    /// A command that is a criterion.
    Command(Box<Judging>),
    /// An evaluator.
    Evaluate(Box<Evaluating>),
    /// The agent of `selectBest`.
    Select(Box<Selecting>),
    Rewrite {
        generation: u32,
        of: u32,
    },
}

impl Question {
    /// The step that asks it.
    pub(super) fn step(&self) -> u32 {
        match self {
            Self::Answer(_) => EXECUTES,
            Self::Command(_) => CRITERIA,
            Self::Evaluate(_) | Self::Select(_) => EVALUATES,
            Self::Rewrite { .. } => IMPROVES,
        }
    }

    /// Whether its answer is stored, so that it is not asked again. What a command says is not: its files may have
    /// changed. A rewrite is not: another one is wanted.
    pub(super) fn is_stored(&self) -> bool {
        !matches!(self, Self::Command(_) | Self::Rewrite { .. })
    }

    /// The repetition to which it belongs.
    pub(super) fn repetition(&self) -> u32 {
        match self {
            Self::Answer(of) => of.repetition,
            Self::Evaluate(evaluating) => evaluating.of.repetition,
            Self::Command(judging) => judging.of.repetition,
            Self::Select(selecting) => selecting.pair.repetition,
            Self::Rewrite { .. } => 1,
        }
    }
}
