//! The module that acts: it runs a plan, attempt by attempt, as the engine decides.

mod attempt;
mod changes;
mod context;
mod driver;
mod evidence;
mod flush;
mod hear;
mod hooks;
mod idle;
mod inspect;
mod lanes;
mod prompt;
mod recorder;
mod render;
mod signals;
mod start;
mod tamper;
mod templates;
mod timers;
mod work;

pub use attempt::LONGEST_ANSWER;
pub use changes::{PrunedSnapshots, TreeStore, prune_snapshots};
pub use context::{Failure, Replan, ResumePoint, RunContext, RunEnd, RunStart};
pub use driver::drive;
pub use evidence::Transcripts;
pub use flush::{flushed, written};
pub use lanes::lane::LaneAnswer;
pub use lanes::{Halt, Job, JobSource, Lanes, tell_news, tell_recorded, work_in_lanes};
pub use recorder::Recorder;
pub use render::{AttemptContext, fill};
pub use signals::{ReceivedSignal, Signals};
pub use start::{wait_for_lock, wait_until};
pub use work::{Uncommitted, uncommitted, uncommitted_of_task};
