//! Events as data, and the state machine that decides what happens next. Pure: no clock, no I/O.

mod batch;
mod evaluation;
mod event;
mod evolve;
mod finished;
mod input;
mod machine;
mod observer;
mod outcome;
mod state;
mod stopwatch;
mod summary;
mod totals;
mod trees;
mod waits;

pub use batch::{
    BatchEvent, BatchFacts, BatchState, BatchTask, ChoiceOfTask, ChoicePlace, MOST_LOST, TaskOfBatch, TaskPlace, Trial,
    TriesNeed, TryOfTask, TryPlace, UnitOfBatch, UnitPart,
};
pub use evaluation::{
    AnswerAttempt, Baseline, Calibration, CaseFacts, CaseResult, CaseResults, ChosenPrompt, ColumnComparison,
    ColumnFacts, ColumnPreference, Comparison, EvalBudget, EvalEvent, EvalFacts, EvalLedger, EvalOptions, JudgedBy,
    OutputComparison, Proof, Proposal, RemarkTexts, Remarks, Score, Sensitivity, USUAL_LEVEL,
};
pub use event::{
    At, EVENT_VERSION, Ending, Event, EventKind, ExtraRounds, Feedback, FeedbackCause, HighestAttempt, Preparation,
};
pub use evolve::evolve;
pub use finished::{Finished, FinishedAgent, FinishedCheck, Leftover, Tokens, Unknown, UsageLimit};
pub use input::{Effect, Input, Timer};
#[cfg(test)]
pub(crate) use machine::tests::laws::drive as tests_drive;
pub use machine::{Transition, decide};
pub use observer::{CHUNK, Evidence, Notice, NullObserver, Observer, Pace, Stream};
pub use outcome::{AttemptOutcome, Containment, Cut, Exit, HumanNeeded, LimitKind, RunOutcome, Sig, WaitReason};
pub use state::State;
pub use stopwatch::Stopwatch;
pub use summary::{AttemptRow, RunKind, RunRow, RunState, unverified_words};
pub use totals::{LastAttempt, RunSummary, StepSum, Sum, Totals};
pub use trees::{AttemptTrees, FileChange, RunTrees};
