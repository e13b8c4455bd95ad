//! A batch, several tasks at once, as events and their fold.

mod event;
mod state;
mod tries;

pub use event::{BatchEvent, BatchFacts, BatchTask};
pub use state::{BatchState, MOST_LOST, TaskOfBatch, TaskPlace, Trial, UnitOfBatch};
pub use tries::{ChoiceOfTask, ChoicePlace, TriesNeed, TryOfTask, TryPlace};
