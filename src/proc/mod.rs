//! The only module that starts processes. Agents, checks and hooks run under a lifeline, our small process that
//! lets nothing outlive it (docs/signals.md). Linux only, until another system is tested.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "forkhestra runs only on Linux: its control of processes needs PR_SET_CHILD_SUBREAPER and /proc, \
     and no other system has been tested"
);

mod awake;
mod background;
mod command;
mod git;
mod host;
mod interrupts;
mod launch;
mod lifeline;
mod line;
mod others;
mod ourselves;
mod probe;
mod procfs;
mod survivors;
mod tree;
mod wire;

pub use awake::SleepInhibitor;
pub use background::{BackgroundProcess, leave_session};
pub use command::{ByHand, ProgramAnswer, capture, capture_aside, capture_with_input, find_outside};
pub use git::{GitCall, capture_git, environment_chooses_ssh};
pub use host::{AgentPipes, LifelineHandle, SpawnError, is_busy};
pub use interrupts::Interrupts;
pub use launch::Launch;
pub use lifeline::lifeline;
pub use line::{GivenUp, Line};
pub use others::{end_process, is_below_agent, roots_at_work};
pub use ourselves::{StopRequests, adopt_orphans, end_ourselves, open_files, survive_full_files};
pub use probe::{Mechanisms, Probe, mechanisms, probe, probe_step};
pub use procfs::{inherited, start_time};
pub use survivors::{end_forks, end_holders, end_old, end_survivors};
pub use wire::LifelineReport;
