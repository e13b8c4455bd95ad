//! What HAPPENS: events and outcomes, the machine that decides (pure), and the driver that acts (effects).

mod attempt;
mod cast;
mod driver;
mod evaluated;
mod event;
mod facts;
mod fill;
mod finished;
mod guard;
mod hooks;
mod idle;
mod lane;
mod lanes;
mod machine;
mod outcome;
mod progress;
mod reading;
mod scores;
mod signals;
mod stage;
mod start;
mod state;
mod stopwatch;
mod summary;
mod tape;
mod templates;
mod timers;
mod told;
mod verdicts;
mod waits;
mod work;

pub use cast::{Again, Begin, Cast, Ended, Failure};
pub use driver::{drive, flushed};
pub use evaluated::{CaseFacts, CaseResult, EvalEvent, EvalFacts, EvalOptions, JudgedBy};
pub use event::{
    At, EVENT_VERSION, Ending, Event, EventKind, Feedback, FeedbackCause, HighestAttempt, More, Overrides,
};
pub use fill::{Moment, fill};
pub use finished::{Finished, Leftover, Tokens, Unknown, UsageLimit};
pub use lane::{Answer, Numbers};
pub use lanes::{Halt, Job, Lanes, Work, work_in_lanes};
#[cfg(test)]
pub(crate) use machine::tests::laws::drive as tests_drive;
pub use machine::{Effect, Input, Timer};
pub use outcome::{AttemptOutcome, Cut, Exit, HumanNeeded, LimitKind, RunOutcome, Sig, WaitReason};
pub use scores::{EvalLedger, Proposal, Score};
pub use stage::LONGEST_ANSWER;
pub use start::{wait_for_lock, wait_until};
pub use state::State;
pub use stopwatch::Stopwatch;
pub use summary::{AttemptRow, RunRow, RunState, unverified_words};
pub use templates::Replan;
pub use work::{Uncommitted, uncommitted, uncommitted_of_task};
