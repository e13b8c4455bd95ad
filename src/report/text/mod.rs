//! The output of commands for people: plans, lists, chains, past runs and tasks.

pub(super) mod batch;
pub(super) mod changes;
pub(super) mod doctor;
pub(super) mod dry_run;
pub(super) mod earlier;
pub(super) mod evaluation;
pub(super) mod explain;
pub(super) mod history;
pub(super) mod listing;
pub(super) mod queue;
pub(super) mod status;
pub(super) mod tasks;
pub(super) mod timeline;
