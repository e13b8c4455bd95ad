//! Events of an evaluation, apart from those of its attempts, as versioned data.

use serde::{Deserialize, Serialize};

/// An event of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum EvalEvent {
    /// The evaluation starts or resumes.
    Started {
        /// The suite, agents, prompt, cases and options of the evaluation.
        facts: EvalFacts,
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
    },
    /// The best prompt was chosen.
    PromptChosen {
        /// The generation of the chosen prompt; 0 for the original.
        generation: u32,
        /// Why no further prompt is tried.
        reason: String,
    },
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
    /// The agent that judges in addition to the criteria, if there is one.
    pub evaluator: Option<String>,
    /// The agent that rewrites the prompt, if there is one.
    pub improver: Option<String>,
    /// The original prompt.
    pub prompt: String,
    /// The length of the original prompt, in tokens.
    pub tokens: usize,
    /// The cases, in the order of the suite.
    pub cases: Vec<CaseFacts>,
    /// The options that were given on the command line.
    pub options: EvalOptions,
}

/// A case of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CaseFacts {
    /// The id of the case.
    pub id: String,
    /// Whether the case is held out: it decides which prompt wins, and is never shown to the improver.
    pub held_out: bool,
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
    /// `--jobs`: how many cases are worked on at once.
    pub jobs: u32,
    /// `--on`: the engine that brings the cases to other machines; `null` for this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// `--slice`: how many cases each unit of work has; 0 without an engine.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slice: u32,
    /// `--fresh`: whether answers of earlier evaluations are ignored.
    pub fresh: bool,
    /// `--holdout`: the share of the cases that is held out, from 0 to 1.
    pub holdout: f64,
    /// `--seed`: the number that determines which cases are held out.
    pub seed: u64,
    /// `--generations`: the maximum number of proposed prompts.
    pub generations: u32,
    /// `--max-tokens`: the maximum length of a proposed prompt, in tokens.
    pub max_tokens: usize,
    /// `--always`: whether a prompt is improved even if it passes every case.
    pub always: bool,
    /// `--out`: the new file to which the chosen prompt is written.
    pub out: Option<String>,
    /// `--write`: whether the chosen prompt is written to the suite's `promptFile`.
    pub write: bool,
    /// `--json`: whether the result is printed as JSON.
    pub json: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_zero(number: &u32) -> bool {
    *number == 0
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

/// The result of a prompt on one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CaseResult {
    /// The generation of the prompt; 0 for the original.
    pub generation: u32,
    /// The id of the case.
    pub case: String,
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
    /// What is wrong with the output.
    pub issues: Vec<String>,
    /// Suggestions for how to fix the issues.
    pub suggestions: Vec<String>,
    /// How many issues and suggestions were dropped because they revealed an expected output.
    pub dropped: usize,
    /// Why the case was not judged; `null` if it was.
    pub error: Option<String>,
    /// Whether an answer from an earlier evaluation was used, so that the executor did not run.
    pub cached: bool,
}
