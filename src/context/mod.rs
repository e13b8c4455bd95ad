//! What is gathered from the working tree while a run goes on. Effects: reads files, writes nothing.

mod gather;
mod git_state;
mod guard;
mod repository;
mod snapshots;
mod tree;

pub use gather::{OF_WORK, TreeChanges, gather};
pub use guard::{GuardWatch, Guarded, config_digest};
pub use repository::{Repository, small};
pub use snapshots::{Changed, Git, Snapshots};
pub use tree::{BUILDS, CACHES, Snapshot, TreeWatch};
