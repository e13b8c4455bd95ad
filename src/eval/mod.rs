//! Evaluation: prompts are measured by suites of cases and improved with the feedback, on the same engine as every run.

mod candidate;
mod choose;
mod cost;
mod criteria;
mod errors;
mod evaluate;
mod feedback;
mod holdout;
mod keys;
mod leak;
mod machine;
mod prompts;
mod questions;
mod requests;
mod slices;
mod suite;
mod tokens;

pub use criteria::{Criterion, JsonSchema};
pub use errors::too_few_cases;
pub use evaluate::{EvalEnd, Setting, evaluate, worked};
pub use holdout::held_out;
pub use keys::suite_schema;
pub use prompts::Prompts;
pub use requests::EvalContext;
pub use slices::{SLICE_ANSWERS, SliceAnswer, SliceAnswers, SliceNews, SliceSource, evaluate_in_slices};
pub use suite::{Case, Suite};
pub use tokens::{allowed, tokens};
