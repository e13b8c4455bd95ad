//! A batch, several tasks at once, as events and their fold.

mod event;
mod state;
mod task;
mod tries;
mod unit_part;

pub use event::{BatchEvent, BatchFacts, BatchTask};
pub use state::{BatchState, MOST_LOST, Trial, UnitOfBatch};
pub use task::{TaskOfBatch, TaskPlace};
pub use tries::{ChoiceOfTask, ChoicePlace, TriesNeed, TryOfTask, TryPlace};
pub use unit_part::UnitPart;
