//! What ACTS: it runs a plan, attempt by attempt, as the machine decides.

mod attempt;
mod cast;
mod driver;
mod evidence;
mod fill;
mod guard;
mod hooks;
mod idle;
mod lanes;
mod reading;
mod recorder;
mod signals;
mod stage;
mod start;
mod tape;
mod templates;
mod timers;
mod told;
mod work;

pub use cast::{Again, Begin, Cast, Ended, Failure};
pub use driver::{drive, flushed};
pub use fill::{Moment, fill};
pub use lanes::lane::LaneAnswer;
pub use lanes::{Halt, Job, Lanes, Work, tell_news, work_in_lanes};
pub use recorder::Recorder;
pub use stage::LONGEST_ANSWER;
pub use start::{wait_for_lock, wait_until};
pub use templates::Replan;
pub use work::{Uncommitted, uncommitted, uncommitted_of_task};
