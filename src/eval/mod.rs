//! Evaluation: prompts are measured by suites of cases and improved with the feedback, on the same engine as every run.

mod candidate;
mod choose;
mod compare;
mod cost;
mod criteria;
mod errors;
mod evaluate;
mod feedback;
mod holdout;
mod jobs;
mod leak;
mod machine;
mod prompts;
mod question;
mod questions;
mod requests;
mod significance;
mod slices;
mod suite;
mod tokens;
mod trees;

pub use compare::compare_columns;
pub use criteria::{Criterion, JsonSchema};
pub use errors::{matrix_refused, outputs_refused, too_few_cases};
pub use evaluate::{EvalEnd, Setting, evaluate, worked};
pub use holdout::held_out;
pub use prompts::Prompts;
pub use requests::EvalContext;
pub use significance::MOST_REPETITIONS;
pub use slices::{SLICE_ANSWERS, SliceAnswer, SliceAnswers, SliceNews, SliceSource, evaluate_in_slices};
pub use suite::{Case, Column, Decide, Suite, suite_schema};
pub use tokens::{allowed, tokens};
pub use trees::{CaseTree, CaseTreeStore, CaseTrees, TreeAnswer, TreeIds, TreeSource, work_on_tree};
