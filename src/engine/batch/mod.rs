//! A batch, several tasks at once, as events and their fold.

mod event;
mod state;

pub use event::{BatchEvent, BatchFacts, BatchTask};
pub use state::{BatchState, MOST_LOST, TaskOfBatch, TaskPlace, Trial, UnitOfBatch};
