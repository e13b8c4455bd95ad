//! What HAPPENS: events and outcomes, the machine that decides (pure), and the driver that acts (effects).

mod attempt;
mod driver;
mod event;
mod fill;
mod guard;
mod idle;
mod machine;
mod outcome;
mod progress;
mod reading;
mod signals;
mod stage;
mod state;
mod stopwatch;
mod summary;
mod tape;
mod timers;
mod told;
mod verdicts;

pub use driver::{Begin, Cast, Ended, Failure, drive};
pub use event::{
    At, EVENT_VERSION, Ending, Event, EventKind, Feedback, FeedbackCause, Finished, HighestAttempt, Leftover,
    Overrides, Tokens, UsageLimit,
};
pub use fill::{Moment, fill};
#[cfg(test)]
pub(crate) use machine::tests::drive as tests_drive;
pub use machine::{Effect, Input, Timer};
pub use outcome::{AttemptOutcome, Cut, Exit, HumanNeeded, LimitKind, RunOutcome, Sig};
pub use state::State;
pub use stopwatch::Stopwatch;
pub use summary::{AttemptRow, RunRow, RunState};
pub use verdicts::MOST_REJECTIONS;
