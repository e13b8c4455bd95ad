//! The hub: a bare repository of forkhestra's own, `.forkhestra/hub.git`, through which units of work and their results
//! pass. Of the files of this module, only `land.rs` writes to the user's repository.

mod carry;
mod checkpoint;
mod commits;
mod error;
mod files;
mod fill;
mod git;
mod hub_git;
mod integrator;
mod land;
mod open;
mod ports;
mod probe;
mod remote;
mod snapshot;
mod store;
mod tasks;
mod units;
mod workspace;

pub use carry::{Synced, UnitFiles};
pub use checkpoint::{KeptRun, KeptUnit, KeptWork};
pub use commits::{HubCommits, Merged, conflict_text};
pub use error::HubError;
pub use hub_git::{LINE, RefChange};
pub use integrator::{FoundIntegrator, IntegratorClaim, Pushed, SharedHub};
pub use land::{FastForward, fast_forward};
pub use open::{OpenBatch, OpenBatches};
pub use ports::PortBlock;
pub use probe::refuses_a_second_change;
pub use remote::{is_hub_url, project_of_url, url_of_remote};
pub use snapshot::UserTree;
pub use store::Hub;
pub use tasks::{FoundTask, HubTasks, Person, TaskChange};
pub use units::{Claim, FoundUnit, HubUnits};
pub use workspace::{HubWorkspaces, Workspace, WorkspaceLock};
