//! What people and machines see: folds over events and plans. The only room that writes to the terminal, and the only
//! user of miette.

mod catalogue;
mod console;
mod diagnostics;
mod doctor;
mod document;
mod dry_run;
mod earlier;
mod endings;
mod evaluation;
mod explain;
mod foreign;
mod github;
mod history;
mod html;
mod live;
mod paint;
mod phrases;
mod queue;
mod screen;
mod sinks;
mod tally;
mod tasks;
mod verdicts;

pub use catalogue::{list, list_json, show_chain, show_chain_json};
pub use console::{Console, Verbosity};
pub use diagnostics::{diagnostic_json, render};
pub use doctor::{Finding, Health, doctor};
pub use document::{Document, Paper, markdown};
pub use dry_run::{dry_run, quoted};
pub use earlier::{EarlierRuns, Spread};
pub use evaluation::{evaluation_json, evaluation_line, evaluation_preview, evaluation_text, prompt_diff};
pub use explain::{explained, explained_json};
pub use foreign::ForeignWords;
pub use github::step_summary;
pub use history::{resume_plan, run, runs};
pub use html::html;
pub use live::{Now, TICK};
pub use paint::{Paint, columns};
pub use queue::{QueueRow, queue_table};
pub use screen::{CHUNK, Screen, Stream, print, print_bytes, print_error};
pub use sinks::{Ndjson, Sinks};
pub use tally::{StepSum, Sum, Tally};
pub use tasks::{dispute_text, disputes_text, task_text, tasks_text};
