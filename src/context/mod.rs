//! What is gathered from the working tree while a run goes on. Effects: reads files, writes nothing.

mod tree;

pub use tree::TreeWatch;
