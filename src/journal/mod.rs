//! The only owner of `.forkhestra/`: the database of runs and events, and the transcripts next to it.

mod answers;
mod baseline;
mod calls;
mod children;
mod error;
mod folders;
mod handle;
mod ledger;
mod lock;
mod messages;
mod new_run;
mod open;
mod own;
mod run_folders;
mod runs;
mod schema;
mod snapshots;
mod store;
mod task_rows;
mod tasks;

pub use answers::{AnswerPlace, StoredAnswer};
pub use calls::{Caller, Recorded, caller, record_call, word_of_attempt};
pub use error::JournalError;
pub use folders::{AttemptFolder, Transcript, WorkFile};
pub use ledger::tampering::{Tampered, forget_tampering, tampered};
pub use lock::{BusyLock, LockAttempt, LockHolder, QUEUE_TITLE, RunLock};
pub use messages::Message;
pub use new_run::{NewRun, Worker};
pub use own::{OwnFolder, UnexpectedFile};
pub use runs::Lease;
pub use snapshots::{forget_trees, keep_trees, prepare_store, snapshot_store};
pub use store::{Journal, token_digest};
pub use task_rows::NewTask;
pub use tasks::Refused;
