//! What is gathered from the working tree while a run goes on. Effects: reads files, writes nothing.

mod gather;
mod guard;
mod tree;

pub use gather::{Git, gather};
pub use guard::{GuardWatch, config_digest};
pub use tree::{BUILDS, Snapshot, TreeWatch};
