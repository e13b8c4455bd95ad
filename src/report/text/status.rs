//! What is running now, and what is waiting for a person.

use crate::report::format::{amount, first_line, fitted, seconds};
use crate::report::paint::{Paint, printable};
use serde::Serialize;

/// A root, as it is now.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RootStatus {
    /// The path of the root.
    pub root: String,
    /// Why nothing else is known of it, if its journal cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The run that is in progress, if there is one.
    pub run: Option<RunStatus>,
    /// What is waiting for a person, with the command to type.
    pub waiting: Vec<WaitingItem>,
    /// The numbers of tasks, by status.
    pub tasks: Vec<TaskCount>,
}

/// Something that is waiting for a person.
#[derive(Debug, Clone, Serialize)]
pub struct WaitingItem {
    /// What is waiting.
    pub what: String,
    /// The command to type.
    pub next: String,
}

/// How many tasks have a status.
#[derive(Debug, Clone, Serialize)]
pub struct TaskCount {
    /// The status.
    pub status: String,
    /// The number of tasks.
    pub count: usize,
}

/// A run that is in progress.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunStatus {
    /// The run's number.
    pub run: i64,
    /// The name of its chain, or the chain itself.
    pub chain: String,
    /// Its task: id and title.
    pub task: Option<String>,
    /// When it started, in UTC (RFC 3339).
    pub started: String,
    /// How long ago it started, in milliseconds.
    pub running_ms: u64,
    /// The number of attempts so far, including the current one.
    pub attempts: u32,
    /// The tokens of all attempts that have ended, if any were reported.
    pub tokens: Option<u64>,
    /// The cost of all attempts that have ended, in US dollars, if it was reported.
    pub cost_usd: Option<f64>,
    /// The current attempt; `None` between attempts.
    pub attempt: Option<AttemptStatus>,
    /// What it is waiting for, if it is: `waiting for the usage limit to end, until 06:30:05`.
    pub waits: Option<String>,
    /// The lanes that are working, if the run is a batch.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<LaneStatus>,
    /// How many tasks are where, if the run is a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
}

/// A lane of a batch.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LaneStatus {
    /// Its number, from 1.
    pub lane: u32,
    /// The ID of the task that it is working on; `None` for a verification.
    pub task: Option<String>,
    /// The title of that task.
    pub title: Option<String>,
    /// With `--tries`: the number of its try at the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub try_number: Option<u32>,
    /// Whether a judge chooses one of the tries at the task.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub choice: bool,
    /// The number of its run.
    pub run: i64,
    /// The current attempt; `None` between attempts.
    pub attempt: Option<AttemptStatus>,
    /// What it is waiting for, if it is.
    pub waits: Option<String>,
}

/// An attempt that is running.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptStatus {
    /// Its number, the name of its step, and its place in loops and groups: `2.3 coder, round 2, iteration 1 of 3`.
    pub label: String,
    /// How long it has been running, in milliseconds.
    pub running_ms: u64,
    /// How long it has printed nothing, in milliseconds.
    pub silent_ms: u64,
    /// The last line that it printed, decoded; empty if there is none.
    pub last_line: String,
}

/// A silence is shown from this length on, in milliseconds.
const SILENT: u64 = 5_000;
/// The maximum width of a task's title, in columns.
const TITLE: usize = 50;

/// Returns the lines about one root. With `named`, the first one is its path.
#[must_use]
pub fn status(root: &RootStatus, named: bool, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    if named {
        lines.push(paint.bold(&printable(&root.root)));
    }
    if let Some(error) = &root.error {
        lines.push(paint.warn(&format!("! {}", printable(error))));
    } else if let Some(run) = &root.run {
        run_lines(run, paint, &mut lines);
    } else {
        lines.push("nothing is running here".into());
    }
    for item in &root.waiting {
        lines.push(paint.warn(&format!("! {}: {}", printable(&item.what), item.next)));
    }
    if !root.tasks.is_empty() {
        let counts: Vec<String> = root.tasks.iter().map(|task| format!("{} {}", task.count, task.status)).collect();
        lines.push(paint.dim(&format!("tasks: {}", counts.join(", "))));
    }
    lines
}

fn whole(ms: u64) -> String {
    seconds(ms / 1000 * 1000).replace(".0 s", " s")
}

fn run_lines(run: &RunStatus, paint: Paint, lines: &mut Vec<String>) {
    let mut facts = vec![format!("for {}", whole(run.running_ms)), format!("attempt {}", run.attempts)];
    facts.extend(run.tokens.map(|tokens| amount(tokens, "token")));
    facts.extend(run.cost_usd.map(|cost| format!("${cost:.2}")));
    let title = paint.bold(&format!("run {} {}", run.run, first_line(&run.chain)));
    lines.push(format!("{} {title} {}", paint.sign("●", "*"), paint.dim(&format!("({})", facts.join(", ")))));
    if let Some(task) = &run.task {
        lines.push(format!("  task {}", first_line(task)));
    }
    if let Some(words) = &run.waits {
        lines.push(format!("  {}", paint.warn(words)));
    }
    for lane in &run.lanes {
        let what = match (&lane.task, &lane.title) {
            (Some(task), Some(title)) => format!("{task}  {}", fitted(&first_line(title), TITLE)),
            (Some(task), None) => task.clone(),
            (None, _) => "verification".into(),
        };
        let part = match lane.try_number {
            _ if lane.choice => ", choice".to_string(),
            Some(number) => format!(", try {number}"),
            None => String::new(),
        };
        lines.push(format!("  {} {what}{part} {}", lane.lane, paint.dim(&format!("(run {})", lane.run))));
        lines.extend(lane.waits.as_ref().map(|words| format!("    {}", paint.warn(words))));
        lines.extend(lane.attempt.iter().flat_map(|attempt| attempt_lines(attempt, "    ", paint)));
    }
    lines.extend(run.progress.as_ref().map(|words| paint.dim(&format!("  {words}"))));
    lines.extend(run.attempt.iter().flat_map(|attempt| attempt_lines(attempt, "  ", paint)));
}

/// The current attempt, and the last line that it printed.
fn attempt_lines(attempt: &AttemptStatus, margin: &str, paint: Paint) -> Vec<String> {
    let silent =
        if attempt.silent_ms >= SILENT { format!(", silent for {}", whole(attempt.silent_ms)) } else { String::new() };
    let mut lines = vec![format!("{margin}{} for {}{silent}", attempt.label, whole(attempt.running_ms))];
    if !attempt.last_line.is_empty() {
        let most = paint.width.saturating_sub(margin.len() + 2);
        lines.push(format!("{margin}{}", paint.dim(&fitted(&printable(&attempt.last_line), most))));
    }
    lines
}
