//! What people and programs see, derived from events and plans. The only module that writes to the terminal, and the
//! only user of miette.

mod closing;
mod diagnostics;
mod format;
mod github;
mod page;
mod paint;
mod reasons;
mod sinks;
mod terminal;
mod text;
mod verdicts;

pub use closing::{SummaryFacts, closing_changes, closing_table, summary_json};
pub use diagnostics::{diagnostic_json, render};
pub use format::{attempt_label, fitted, wait_words};
pub use github::{GithubLog, step_summary};
pub use page::html::{Refresh, html_page};
pub use page::junit::junit;
pub use page::{AttemptTexts, BatchPage, Document, findings_of, markdown};
pub use paint::Paint;
pub use reasons::{go_on, reason, with_twice};
pub use sinks::{Keeper, Ndjson, Sinks};
pub use terminal::batch::BatchTerminal;
pub use terminal::console::{Console, Verbosity};
pub use terminal::evaluation::EvalTerminal;
pub use terminal::screen::{Screen, print, print_bytes, print_error};
pub use terminal::{Terminal, TerminalOptions};
pub use text::batch::{BatchLines, batch_json, batch_plan, batch_table, batch_text};
pub use text::changes::{changed_files, painted_patch};
pub use text::doctor::{DoctorFinding, Health, doctor};
pub use text::dry_run::{dry_run, quoted};
pub use text::earlier::{EarlierRuns, Spread};
pub use text::evaluation::{
    CaseTexts, comparison_json, comparison_text, evaluation_json, evaluation_preview, evaluation_text, prompt_diff,
};
pub use text::explain::{explained, explained_json};
pub use text::history::{next_of_part, resume_plan, run, runs};
pub use text::listing::{list, list_json, show_chain, show_chain_json};
pub use text::queue::{QueueRow, queue_table};
pub use text::status::{AttemptStatus, LaneStatus, RootStatus, RunStatus, TaskCount, WaitingItem, status};
pub use text::tasks::{dispute_text, disputes_text, task_text, tasks_text};
pub use text::timeline::timeline;
