//! What is gathered from the working tree during a run. Reads files, writes nothing except in the snapshot store.

mod gather;
mod git_state;
mod instructions;
mod own_output;
mod protected;
mod repository;
mod snapshots;
mod text;
mod worktree;

pub use gather::{OF_WORK, Subject, TreeChanges, gather};
pub use instructions::Instructions;
pub use protected::{GuardWatch, Guarded, config_digest};
pub use repository::{Repository, small};
pub use snapshots::{Changed, FreshTree, Git, Snapshots, TreeOrigin};
pub use worktree::{BUILDS, CACHES, Snapshot, TreeFingerprint, TreeWatch};
