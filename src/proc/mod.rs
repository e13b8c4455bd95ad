//! The only spawner: every program runs under a lifeline, a small process of ours that outlives nothing and lets nothing
//! outlive it (docs/signals.md). Linux only, until another system is tested.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "forkhestra runs on Linux only: what it promises about processes needs PR_SET_CHILD_SUBREAPER and /proc, and no other system was tested"
);

mod ask;
mod awake;
mod host;
mod interrupts;
mod launch;
mod lifeline;
mod line;
mod ourselves;
mod probe;
mod survivors;
mod table;
mod tree;
mod wire;

pub use ask::{ByHand, ProgramAnswer, ask, ask_git, ask_with_input, find_outside};
pub use awake::Awake;
pub use host::{AgentPipes, LifelineHandle, SpawnError, is_busy};
pub use interrupts::Interrupts;
pub use launch::Launch;
pub use lifeline::lifeline;
pub use line::{GivenUp, Line};
pub use ourselves::{StopRequests, adopt_orphans, open_files, survive_full_files};
pub use probe::{Mechanisms, Probe, mechanisms, probe, probe_step};
pub use survivors::{end_forks, end_holders, end_old, end_survivors};
pub use table::{inherited, start_time};
pub use wire::LifelineReport;
