//! The only spawner: every program runs under a lifeline, a small process of ours that outlives nothing and lets nothing
//! outlive it (docs/signals.md). Linux only, until another system is tested.

mod child;
mod lifeline;
mod ourselves;
mod survivors;
mod table;
mod wire;

pub use child::{Child, Launch, Line, SpawnError};
pub use lifeline::lifeline;
pub use ourselves::{adopt_orphans, stop_ourselves};
pub use survivors::end_survivors;
pub use wire::Report;
