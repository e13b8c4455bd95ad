//! Several tasks at once: `task run --jobs N`. The machine decides, and everything else carries out.

mod at_work;
mod budget;
mod context;
mod driver;
mod landing;
mod lane;
mod machine;
mod parking;
mod planned;
mod remote;
mod slices;
mod tries;

pub use budget::Budget;
pub use context::{BatchContext, BatchError};
pub use driver::work_on_batch;
pub use planned::{PlannedUnit, UnitPlanner, UnitPurpose, UnitToStart};
pub use remote::RemoteEngine;
pub use slices::{SliceSettings, Slices};
