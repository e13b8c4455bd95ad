//! The events of an evaluation, and its state.

mod calibration;
mod event;
mod ledger;
mod remarks;
mod results;
mod score;

pub use calibration::Calibration;
pub use event::{
    AnswerAttempt, Baseline, CaseFacts, CaseResult, ColumnComparison, ColumnFacts, ColumnPreference, Comparison,
    EvalBudget, EvalEvent, EvalFacts, EvalOptions, JudgedBy, OutputComparison, Proof, Sensitivity, USUAL_LEVEL,
};
pub use ledger::{ChosenPrompt, EvalLedger, Proposal};
pub use remarks::{RemarkTexts, Remarks};
pub use results::CaseResults;
pub use score::Score;
