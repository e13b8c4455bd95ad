//! A unit of work: what one worker does alone, from a claim to its result, as data. Pure.

mod bundle;
mod needs;
mod record;
mod shared;

pub use bundle::{BUNDLE_FORMAT, BadBundle, Bundle, BundledChoice, BundledPlan, BundledSlice, BundledTask, TrailEntry};
pub use needs::{Needs, is_label};
pub use record::{UnitRecord, UnitStage, is_unit_name};
pub use shared::{BadSharedTask, SHARED_TASK_FORMAT, SharedTask, is_same_entry};
