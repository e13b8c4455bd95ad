//! What is gathered from the working tree while a run goes on. Effects: reads files, writes nothing.

mod gather;
mod guard;
mod repository;
mod snapshots;
mod tree;

pub use gather::{Git, OF_WORK, TreeChanges, gather};
pub use guard::{GuardWatch, config_digest};
pub use repository::Repository;
pub use snapshots::{Changed, Snapshots};
pub use tree::{BUILDS, Snapshot, TreeWatch};
