//! The only module that starts processes. Agents, checks and hooks run under a lifeline, our small process that
//! lets nothing outlive it (docs/signals.md). What differs between systems is in `system/`.

mod awake;
mod background;
mod command;
mod git;
mod host;
mod interrupts;
mod launch;
mod lifeline;
mod line;
mod lineage;
mod others;
mod ourselves;
mod probe;
mod survivors;
mod system;
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
pub use survivors::{end_forks, end_holders, end_old, end_survivors};
pub use system::{containment, inherited, start_time};
pub use wire::LifelineReport;
