//! The only owner of `.forkhestra/`: the database of runs and events, and the transcripts next to it.

mod calls;
mod database;
mod error;
mod folders;
mod handle;
mod ledger;
mod lock;
mod own;
mod run_files;
mod schema;
mod snapshots;
mod store;
mod tables;
mod writer;

pub use calls::{AttemptCalls, Caller, Recorded, caller, record_call, token_digest, word_of_attempt};
pub use error::JournalError;
pub use folders::{AttemptFolder, Transcript, WorkFile};
pub use ledger::tampering::{Tampered, forget_tampering, remember_config, remember_tampering, tampered};
pub use lock::{BusyLock, LockAttempt, LockHolder, QUEUE_TITLE, RunLock};
pub use own::{OwnFolder, UnexpectedFile};
pub use run_files::RunFiles;
pub use snapshots::{forget_trees, keep_trees, prepare_store, snapshot_store};
pub use store::Journal;
pub use tables::answers::{AnswerPlace, AnswerTable, NewAnswer, StoredAnswer};
pub use tables::disputes::DisputeTable;
pub use tables::events::EventTable;
pub use tables::lease::{Lease, Worker};
pub use tables::messages::{Message, MessageTable};
pub use tables::new_run::NewRun;
pub use tables::runs::RunTable;
pub use tables::task_rows::NewTask;
pub use tables::tasks::{Refused, TaskTable};
pub use writer::Commit;
