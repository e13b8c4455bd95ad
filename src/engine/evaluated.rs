//! What happens in an evaluation beside its attempts, as versioned data (spec/evaluation.md).

use serde::{Deserialize, Serialize};

/// An event of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "is", rename_all = "camelCase")]
pub enum EvalEvent {
    /// It begins, or goes on.
    Began {
        /// What it is about.
        facts: EvalFacts,
    },
    /// A case was judged.
    Judged {
        /// How.
        result: CaseResult,
    },
    /// A prompt was proposed.
    #[serde(rename_all = "camelCase")]
    Proposed {
        /// Its generation, from 1.
        generation: u32,
        /// It.
        prompt: String,
        /// How many tokens it has.
        tokens: usize,
        /// Why it is not tried, if it is not.
        refused: Option<String>,
    },
    /// A prompt has won.
    Chose {
        /// Its generation; 0 for the original.
        generation: u32,
        /// Why nothing more was tried.
        why: String,
    },
}

/// What an evaluation is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvalFacts {
    /// The suite's file, as it was named.
    pub suite: String,
    /// Who answers.
    pub executor: String,
    /// Who judges, beside criteria.
    pub evaluator: Option<String>,
    /// Who rewrites.
    pub improver: Option<String>,
    /// The original prompt, and its tokens.
    pub prompt: String,
    /// How many tokens it has.
    pub tokens: usize,
    /// The cases, in order.
    pub cases: Vec<CaseFacts>,
    /// What the command line said.
    pub options: EvalOptions,
}

/// A case of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CaseFacts {
    /// Its name.
    pub id: String,
    /// Whether it decides which prompt wins, and is never told to the improver.
    pub held_out: bool,
}

/// What the command line of an evaluation said, its paths absolute; a resume goes by it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "one a flag")]
pub struct EvalOptions {
    /// Whether the prompt is improved, and not only measured.
    pub improves: bool,
    /// The suite's file, absolute.
    pub suite: String,
    /// `--prompts`.
    pub prompts: Option<String>,
    /// Every `--case`.
    pub cases: Vec<String>,
    /// `--jobs`.
    pub jobs: u32,
    /// `--fresh`.
    pub fresh: bool,
    /// `--holdout`.
    pub holdout: f64,
    /// `--seed`.
    pub seed: u64,
    /// `--generations`.
    pub generations: u32,
    /// `--max-tokens`.
    pub max_tokens: usize,
    /// `--always`.
    pub always: bool,
    /// `--out`.
    pub out: Option<String>,
    /// `--write`.
    pub write: bool,
    /// `--json`.
    pub json: bool,
}

/// Who judged a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum JudgedBy {
    /// Its criteria.
    Criteria,
    /// The evaluator, after its criteria.
    Evaluator,
    /// Nobody: the answer or the evaluation did not come.
    Nobody,
}

/// How a prompt did on a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CaseResult {
    /// The prompt's generation; 0 for the original.
    pub generation: u32,
    /// The case.
    pub case: String,
    /// Whether it is held out.
    pub held_out: bool,
    /// Whether it passed.
    pub pass: bool,
    /// From 0 to 1.
    pub score: f64,
    /// How like its expectation the output is, from 0 to 1, where there is one.
    pub closeness: Option<f64>,
    /// Who judged it.
    pub judged_by: JudgedBy,
    /// What is wrong with it.
    pub issues: Vec<String>,
    /// What would mend that.
    pub suggestions: Vec<String>,
    /// How many of those gave the expected output away, and were dropped.
    pub dropped: usize,
    /// Why nobody judged it.
    pub error: Option<String>,
    /// Whether the answer was there from before, and nothing was run for it.
    pub cached: bool,
}
