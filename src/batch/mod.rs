//! Several tasks at once: `task run --jobs N`. The machine decides, and everything else carries out.

mod budget;
mod driver;
mod landing;
mod lane;
mod machine;

pub use budget::Budget;
pub use driver::{BatchContext, BatchError, PlannedUnit, UnitPlanner, work_on_batch};
