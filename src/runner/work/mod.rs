//! The work of a run: the tree, what it is judged by, and what is not committed of it.

mod changes;
mod guard;
mod spans;
mod uncommitted;
mod watch;

pub use changes::{PrunedSnapshots, TreeStore, prune_snapshots};
pub(super) use guard::WorkGuard;
pub use uncommitted::{Uncommitted, uncommitted, uncommitted_of_task};
pub(super) use watch::{AttemptBaseline, WorkWatch};
