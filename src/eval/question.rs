//! What an evaluation asks: an answer, an evaluation, a comparison, or a new prompt.

use super::judging::{Evaluating, Judging};
use super::machine::{CRITERIA, EVALUATES, EXECUTES, IMPROVES, Sample};
use super::selecting::Selecting;
use crate::engine::AnswerAttempt;

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
