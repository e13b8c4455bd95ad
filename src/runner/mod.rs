//! The module that acts: it runs a plan, attempt by attempt, as the engine decides.

mod attempt;
mod choices;
mod context;
mod drive;
mod driver;
mod evidence;
mod flush;
mod hooks;
mod idle;
mod inspect;
mod lanes;
mod notes;
mod prompt;
mod recorder;
mod render;
mod signals;
mod start;
mod templates;
mod timers;
mod work;

pub use context::{Failure, Replan, ResumePoint, RunContext, RunEnd, RunStart, StartPoint};
pub use drive::drive;
pub use evidence::Transcripts;
pub use flush::{flushed, written};
pub use lanes::lane::{AnswerStore, LaneAnswer};
pub use lanes::{Halt, Job, JobSource, Lanes, tell_news, tell_recorded, work_in_lanes};
pub use recorder::{Recorder, Recording};
pub use render::{AttemptContext, fill};
pub use signals::{ReceivedSignal, Signals};
pub use start::{wait_for_lock, wait_until};
pub use work::{PrunedSnapshots, TreeStore, Uncommitted, prune_snapshots, uncommitted, uncommitted_of_task};
