//! What HAPPENS: events and outcomes, the machine that decides (pure), and the driver that acts (effects).

mod attempt;
mod driver;
mod event;
mod idle;
mod machine;
mod outcome;
mod signals;
mod stage;
mod tape;

pub use driver::{Cast, Ended, Failure, drive};
pub use event::{At, EVENT_VERSION, Ending, Event, EventKind, Feedback, FeedbackCause, Finished, Leftover, Tokens};
pub use machine::{Effect, Input, State};
pub use outcome::{AttemptOutcome, Cut, Exit, RunOutcome, Sig};
