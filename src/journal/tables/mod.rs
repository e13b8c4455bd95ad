//! The tables of the database, and the statements that read and write them.

pub(super) mod answers;
pub(super) mod disputes;
pub(super) mod events;
pub(super) mod lease;
pub(super) mod messages;
pub(super) mod new_run;
pub(super) mod runs;
pub(super) mod task_rows;
pub(super) mod tasks;
