//! Events of an evaluation, apart from those of its attempts, as versioned data.

use super::remarks::Remarks;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The usual probability of an error with which a prompt counts as better.
pub const USUAL_LEVEL: f64 = 0.05;

/// An event of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum EvalEvent {
    /// The evaluation starts or resumes.
    Started {
        /// The suite, agents, prompt, cases and options of the evaluation. Shared, because a suite may have many cases.
        facts: Arc<EvalFacts>,
    },
    /// A case was judged.
    CaseJudged {
        /// The result of the case.
        result: CaseResult,
    },
    /// The improver proposed a prompt.
    #[serde(rename_all = "camelCase")]
    PromptProposed {
        /// The generation of the prompt, from 1.
        generation: u32,
        /// The text of the prompt.
        prompt: String,
        /// The length of the prompt, in tokens.
        tokens: usize,
        /// Why the prompt is not tried; `null` if it is tried.
        refused: Option<String>,
        /// The generation of the prompt from which it was made.
        #[serde(default)]
        parent: u32,
    },
    /// A proposed prompt is not run any further: on the cases of `--minibatch`, it was no better than the prompt from
    /// which it was made, or after half of its repetitions no better than the original.
    PromptStopped {
        /// The generation of the prompt.
        generation: u32,
        /// How many results were saved by this.
        saved: u32,
    },
    /// The results were compared with those of an earlier evaluation.
    BaselineCompared {
        /// What came out.
        comparison: Comparison,
    },
    /// Several executors or prompts were compared.
    ColumnsCompared {
        /// The best one, compared with each of the others.
        comparisons: Vec<ColumnComparison>,
        /// Which of each two columns the agent of `selectBest` prefers.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        preferences: Vec<ColumnPreference>,
    },
    /// The outputs of two columns for a case were compared by the agent of `selectBest`.
    OutputsCompared {
        /// What it said.
        comparison: OutputComparison,
    },
    /// The best prompt was chosen.
    PromptChosen {
        /// The generation of the chosen prompt; 0 for the original.
        generation: u32,
        /// Why no further prompt is tried.
        reason: String,
        /// Whether the chosen prompt is better than the original beyond chance; `null` for the original.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proof: Option<Proof>,
        /// What this evaluation could find; `null` if no other prompt was compared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sensitivity: Option<Sensitivity>,
    },
}

/// Whether a prompt is better than the original beyond chance. A result counts half for passing, half for its score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Proof {
    /// Whether it is: `chance` is at most `level`.
    pub proven: bool,
    /// How much better it is: the mean over the cases, from -1 to 1.
    pub gain: f64,
    /// The probability that the best of all these candidates looks as good although none changes anything.
    pub chance: f64,
    /// The highest `chance` that counts as proof.
    pub level: f64,
    /// How often each case would have to be run to prove a gain of `planned`.
    pub repeat: u32,
    /// The gain that `repeat` is planned for: `gain`, but not more than few results can be trusted with.
    pub planned: f64,
}

/// The results of an earlier evaluation of the same suite, with which an evaluation is compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    /// The number of its run.
    pub run: i64,
    /// The results by case id, each from 0 to 1: half for passing, half for the score.
    pub cases: BTreeMap<String, Vec<f64>>,
}

/// How an evaluation compares to an earlier one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// The number of the earlier run.
    pub run: i64,
    /// The number of cases that both have.
    pub cases: u32,
    /// How much better this evaluation is: the mean over these cases, from -1 to 1.
    pub gain: f64,
    /// The probability that it looks as bad although nothing has become worse.
    pub chance: f64,
    /// The highest probability that counts as proof.
    pub level: f64,
    /// Whether it is worse beyond chance: as a whole, or in a case.
    pub regressed: bool,
    /// The ids of the cases that are worse beyond chance.
    pub worse: Vec<String>,
    /// The ids of the cases that did worse, which can be chance.
    pub lower: Vec<String>,
    /// How often each case would have to be run to prove that one that always passed never does.
    pub repeat: u32,
}

/// How the best of several columns compares to another one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ColumnComparison {
    /// The number of the best column, from 0.
    pub best: u32,
    /// The number of the other column.
    pub other: u32,
    /// How much better the best one is: the mean over the cases, from -1 to 1.
    pub gain: f64,
    /// The probability that it looks as good although the two do not differ.
    pub chance: f64,
    /// The highest `chance` that counts as proof.
    pub level: f64,
}

/// Two outputs for the same case, compared by the agent of `selectBest`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutputComparison {
    /// The id of the case.
    pub case: Arc<str>,
    /// Which repetition of the case this is, from 1.
    pub repetition: u32,
    /// The number of the column whose output was shown first, from 0.
    pub first: u32,
    /// The number of the column whose output was shown second.
    pub second: u32,
    /// The number of the column whose output is better; `null` if they are equally good, or were not compared.
    pub better: Option<u32>,
    /// Why they were not compared; `null` if they were.
    pub error: Option<String>,
}

/// Which of two columns the agent of `selectBest` prefers. It prefers an output only if it says so in both orders.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ColumnPreference {
    /// The number of one column, from 0.
    pub first: u32,
    /// The number of the other column.
    pub second: u32,
    /// In how many cases the first one is preferred.
    pub wins: u32,
    /// In how many cases the second one is preferred.
    pub losses: u32,
    /// In how many cases neither is preferred.
    pub ties: u32,
    /// How many comparisons failed.
    pub failed: u32,
    /// The probability that one of them is preferred as often although they are equally good.
    pub chance: f64,
    /// The highest `chance` that counts as proof.
    pub level: f64,
}

/// How small a gain an evaluation finds in four of five attempts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Sensitivity {
    /// The smallest gain that it finds, from 0 to 1.
    pub gain: f64,
    /// How often each case would have to be run to find a gain of `planned`.
    pub repeat: u32,
    /// The gain that `repeat` is planned for.
    pub planned: f64,
}

/// The suite, agents, prompt, cases and options of an evaluation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvalFacts {
    /// The path of the suite file, as it was given.
    pub suite: String,
    /// The agent that answers.
    pub executor: String,
    /// Every executor with every prompt, if there are several: each is a generation, from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnFacts>,
    /// The agent that judges in addition to the criteria, if there is one; several are separated by commas.
    pub evaluator: Option<String>,
    /// How many evaluators there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub evaluators: u32,
    /// The agent of `selectBest`, which compares the outputs of the columns, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The agent that rewrites the prompt, if there is one.
    pub improver: Option<String>,
    /// The original prompt.
    pub prompt: String,
    /// The length of the original prompt, in tokens.
    pub tokens: usize,
    /// The cases, in the order of the suite.
    pub cases: Vec<CaseFacts>,
    /// The results of `--baseline`, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// The options that were given on the command line.
    pub options: EvalOptions,
}

/// An executor with a prompt, of several that are measured side by side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ColumnFacts {
    /// What distinguishes it from the others.
    pub name: String,
    /// The agent that answers.
    pub executor: String,
    /// The prompt.
    pub prompt: String,
    /// The length of the prompt, in tokens.
    pub tokens: usize,
}

/// A case of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CaseFacts {
    /// The id of the case. Shared, because a suite may have many cases.
    pub id: Arc<str>,
    /// Whether the case is held out: it decides which prompt wins, and is never shown to the improver.
    pub held_out: bool,
    /// How often the case is run with each prompt.
    #[serde(default = "once", skip_serializing_if = "is_one")]
    pub repeat: u32,
    /// The id of an earlier case that asks the same. The answers to both are the same, and count once in a comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<Arc<str>>,
    /// Whether a person has found the recorded output of the case good; `null` without a label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<bool>,
}

impl Default for CaseFacts {
    fn default() -> Self {
        Self { id: Arc::from(""), held_out: false, repeat: 1, same_as: None, label: None }
    }
}

/// The command-line options of an evaluation, with absolute paths. A resume uses them again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag")]
pub struct EvalOptions {
    /// Whether the prompt is improved (`eval improve`), and not only measured (`eval run`).
    pub improves: bool,
    /// The absolute path of the suite file.
    pub suite: String,
    /// `--prompts`: the directory with the user's own versions of the evaluation prompts.
    pub prompts: Option<String>,
    /// Every `--case`: the ids of the cases to use; empty for all.
    pub cases: Vec<String>,
    /// Every `--only`: the tags of the cases to use; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// `--jobs`: how many cases are worked on at once.
    pub jobs: u32,
    /// `--on`: the engine that brings the cases to other machines; `null` for this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// `--slice`: how many cases each unit of work has; 0 without an engine.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slice: u32,
    /// `--repeat`: how often every case is run with each prompt; `null` if the suite says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// `--fresh`: whether answers of earlier evaluations are ignored.
    pub fresh: bool,
    /// `--holdout`: the share of the cases that is held out, from 0 to 1.
    pub holdout: f64,
    /// `--seed`: the number that determines which cases are held out.
    pub seed: u64,
    /// `--generations`: the maximum number of proposed prompts.
    pub generations: u32,
    /// `--budget`: what the improvement may use.
    #[serde(default, skip_serializing_if = "EvalBudget::is_none")]
    pub budget: EvalBudget,
    /// `--minibatch`: on how many cases a proposed prompt is tried first; 0 for all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub minibatch: u32,
    /// `--max-tokens`: the maximum length of a proposed prompt, in tokens.
    pub max_tokens: usize,
    /// `--level`: the highest probability of an error with which a prompt counts as better.
    #[serde(default = "usual_level")]
    pub level: f64,
    /// `--min-pass`: the share of the results that has to pass; `null` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_pass: Option<f64>,
    /// `--baseline`: the number of the run to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<i64>,
    /// `--always`: whether a prompt is improved even if it passes every case.
    pub always: bool,
    /// `--out`: the new file to which the chosen prompt is written.
    pub out: Option<String>,
    /// `--write`: whether the chosen prompt is written to the suite's `promptFile`.
    pub write: bool,
    /// `--json`: whether the result is printed as JSON.
    pub json: bool,
}

/// What an improvement may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EvalBudget {
    /// The most attempts of all agents; `null` for any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The highest cost, in US dollars; `null` for any cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl EvalBudget {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

fn usual_level() -> f64 {
    USUAL_LEVEL
}

fn once() -> u32 {
    1
}

/// The attempt of an executor that gave an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AnswerAttempt {
    /// The number of the run: of this one, or of an earlier one whose answer was used again.
    pub run: i64,
    /// The number of the attempt of step 1.
    pub attempt: u32,
}

/// What judged a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum JudgedBy {
    /// The criteria of the case.
    Criteria,
    /// The evaluator, after the criteria had passed.
    Evaluator,
    /// Nothing, because an answer or an evaluation is missing.
    Nobody,
}

/// The result of a prompt on one case, in one repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CaseResult {
    /// The generation of the prompt; 0 for the original.
    pub generation: u32,
    /// The id of the case.
    pub case: Arc<str>,
    /// Which repetition of the case this is, from 1.
    #[serde(default = "once", skip_serializing_if = "is_one")]
    pub repetition: u32,
    /// Whether the case is held out.
    pub held_out: bool,
    /// Whether the case passed.
    pub pass: bool,
    /// The score of the output, from 0 to 1.
    pub score: f64,
    /// How similar the output is to the expected output, from 0 to 1; `null` if either is missing.
    pub closeness: Option<f64>,
    /// What judged the case.
    pub judged_by: JudgedBy,
    /// What is wrong with the output, or why it was not judged.
    #[serde(flatten)]
    pub remarks: Remarks,
    /// Whether an answer from an earlier evaluation was used, so that the executor did not run.
    pub cached: bool,
    /// The attempt that gave the answer; `null` if there is none, or it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerAttempt>,
    /// What the answer has cost when it was given, in US dollars, if the executor reports that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How long the answer has taken when it was given, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}

impl CaseResult {
    /// Returns the result as a number from 0 to 1: half for passing, half for the score.
    #[must_use]
    pub fn value(&self) -> f64 {
        f64::midpoint(if self.pass { 1.0 } else { 0.0 }, self.score)
    }
}
