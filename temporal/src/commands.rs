//! What people and batches do with the queue: submit, list, cancel, status.

use crate::args::{CancelArgs, ListArgs, StatusArgs, SubmitArgs};
use crate::queue::{job_name, job_of_same_hub, queue_name};
use crate::server::connect;
use crate::unit::{Progress, UnitTask};
use crate::worker::Units;
use anyhow::{Context, Result, anyhow};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::json;
use std::process::Stdio;
use temporalio_client::errors::ActivityInteractionError;
use temporalio_client::{
    ActivityCancelOptions, ActivityDescribeOptions, ActivityExecutionInfoLike, ActivityExecutionStatus,
    ActivityIdConflictPolicy, ActivityIdReusePolicy, ActivityListOptions, ActivityStartOptions, Client,
    PendingActivityState,
};
use temporalio_common::{Priority, RetryPolicy};

/// How many requests are under way at once.
const AT_ONCE: usize = 16;

/// Puts units into the queue. One that the queue has already stays as it is.
///
/// # Errors
/// When the server cannot be reached, or refuses one.
pub(crate) async fn submit(args: SubmitArgs) -> Result<()> {
    let client = connect().await?;
    let queue = queue_name(&args.queue.queue, &args.labels.0);
    let beat_ms = u64::try_from(args.beat.as_millis())?;
    let submitted = stream::iter(&args.units).map(|unit| {
        let job = args.job.clone().unwrap_or_else(|| job_name(&args.hub, unit));
        let options = ActivityStartOptions::with_start_to_close_timeout(queue.as_str(), job, args.time)
            .heartbeat_timeout(args.lease)
            .retry_policy(RetryPolicy::builder().maximum_attempts(args.retry.saturating_add(1)).build())
            .priority(priority(&args))
            .summary(format!("unit {unit} of {}", args.hub))
            .id_conflict_policy(ActivityIdConflictPolicy::UseExisting)
            // What makes a unit be done once is its claim in the hub, not its name in the queue: a batch offers a unit
            // again that was interrupted.
            .id_reuse_policy(ActivityIdReusePolicy::AllowDuplicate)
            .build();
        let task = UnitTask { unit: unit.clone(), hub: args.hub.clone(), beat_ms };
        let client = client.clone();
        async move {
            let started = client.start_activity(Units::unit, task, options).await;
            let handle = started.map_err(|error| anyhow!("cannot submit unit {unit}: {error}"))?;
            anyhow::Ok(handle.activity_id().to_string())
        }
    });
    let jobs: Vec<String> = submitted.buffered(AT_ONCE).try_collect().await?;
    for job in jobs {
        println!("{job}");
    }
    Ok(())
}

fn priority(args: &SubmitArgs) -> Priority {
    Priority::builder().maybe_priority_key(args.priority).maybe_fairness_key(args.fairness_key.clone()).build()
}

/// Prints the jobs of a hub that have not ended. Each is asked for by its name, because what the server lists may be
/// older by tens of seconds.
///
/// # Errors
/// When the server or the hub cannot be read.
pub(crate) async fn list(args: ListArgs) -> Result<()> {
    let units = open_units(&args).await?;
    let client = connect().await?;
    let asked = stream::iter(units).map(|unit| {
        let (client, job) = (client.clone(), job_of_same_hub(&args.job, &unit));
        async move {
            let Some(job) = job else { return Ok(None) };
            let handle = client.get_untyped_activity_handle(job.as_str(), None);
            match handle.describe(ActivityDescribeOptions::default()).await {
                Ok(found) if has_ended(found.status()) => Ok(None),
                Ok(found) => Ok(Some(format!("{job} {}", words_of(found.status(), found.run_state())))),
                Err(ActivityInteractionError::NotFound(_)) => Ok(None),
                Err(error) => Err(anyhow!("cannot ask for {job}: {error}")),
            }
        }
    });
    let lines: Vec<Option<String>> = asked.buffered(AT_ONCE).try_collect().await?;
    for line in lines.into_iter().flatten() {
        println!("{line}");
    }
    Ok(())
}

/// The units of a hub whose work is not done, by their last commit.
async fn open_units(args: &ListArgs) -> Result<Vec<String>> {
    let mut command = tokio::process::Command::new("git");
    command.arg("--git-dir").arg(&args.hub).stdin(Stdio::null());
    command.args(["for-each-ref", "--format=%(refname:lstrip=3) %(subject)", "refs/forkhestra/units"]);
    let answer = command.output().await.context("git cannot be started")?;
    let error = String::from_utf8_lossy(&answer.stderr);
    anyhow::ensure!(answer.status.success(), "cannot read the hub {}: {}", args.hub.display(), error.trim());
    let text = String::from_utf8_lossy(&answer.stdout);
    let units = text.lines().filter_map(|line| line.split_once(' '));
    Ok(units.filter(|(_, subject)| !subject.ends_with(": done")).map(|(unit, _)| unit.to_string()).collect())
}

/// Ends a job.
///
/// # Errors
/// When there is no such job, or it has ended.
pub(crate) async fn cancel(args: CancelArgs) -> Result<()> {
    let client = connect().await?;
    let options = ActivityCancelOptions::builder().reason("cancelled with forkhestra-temporal").build();
    let asked = client.get_untyped_activity_handle(args.job.as_str(), None).cancel(options).await;
    asked.map_err(|error| anyhow!("cannot cancel {}: {error}", args.job))
}

/// Shows the units in a queue.
///
/// # Errors
/// When the server cannot be reached.
pub(crate) async fn status(args: StatusArgs) -> Result<()> {
    let client = connect().await?;
    let queue = queue_name(&args.queue.queue, &[]);
    let open = if args.all { "" } else { " AND ExecutionStatus = 'Running'" };
    // Those with labels have a longer name.
    let query = format!("TaskQueue STARTS_WITH '{queue}'{open}");
    let mut found = client.list_activities(query, ActivityListOptions::default());
    let mut rows = Vec::new();
    while let Some(info) = found.next().await {
        let info = info?;
        rows.push(row(&client, info.activity_id(), info.activity_run_id()).await?);
    }
    if args.json {
        for row in &rows {
            println!("{}", json!(row));
        }
        return Ok(());
    }
    if rows.is_empty() {
        println!("no unit is in the queue {queue}");
    }
    let width = rows.iter().map(|row| row.job.len()).max().unwrap_or(0);
    for row in rows {
        let Progress { place, round, iteration, cost_usd, last_line, .. } = &row.progress;
        let cost = cost_usd.map_or_else(|| "-".into(), |cost| format!("${cost:.2}"));
        let place = match (place.as_str(), round, iteration) {
            ("", _, _) => "-".to_string(),
            (place, 0 | 1, 0 | 1) => place.to_string(),
            (place, round, iteration) => format!("{place}, round {round}, iteration {iteration}"),
        };
        println!("{:width$}  {:16}  {place:36}  {cost:>8}  {last_line}", row.job, row.state);
    }
    Ok(())
}

/// A unit in the queue.
#[derive(Debug, serde::Serialize)]
struct Row {
    job: String,
    state: String,
    worker: String,
    attempt: u32,
    progress: Progress,
}

async fn row(client: &Client, job: &str, run: &str) -> Result<Row> {
    let options = ActivityDescribeOptions::builder().include_heartbeat_details(true).build();
    let found = client.get_untyped_activity_handle(job, Some(run.to_string())).describe(options).await?;
    // A unit that has not begun has reported nothing.
    let progress = if found.has_heartbeat_details() {
        found.heartbeat_details::<Progress>().await.ok().flatten().unwrap_or_default()
    } else {
        Progress::default()
    };
    // The SDK does not know the state of an activity that is paused while a worker has it.
    let is_held = progress.is_held && !has_ended(found.status());
    let state = if is_held { "held" } else { words_of(found.status(), found.run_state()) };
    Ok(Row {
        job: job.to_string(),
        state: state.to_string(),
        worker: found.last_worker_identity().unwrap_or_default().to_string(),
        attempt: found.attempt(),
        progress,
    })
}

fn has_ended(status: ActivityExecutionStatus) -> bool {
    !matches!(
        status,
        ActivityExecutionStatus::Running | ActivityExecutionStatus::Paused | ActivityExecutionStatus::Unspecified
    )
}

fn words_of(status: ActivityExecutionStatus, state: PendingActivityState) -> &'static str {
    match (status, state) {
        (ActivityExecutionStatus::Running, PendingActivityState::Scheduled) => "queued",
        (ActivityExecutionStatus::Running, PendingActivityState::CancelRequested) => "being cancelled",
        (ActivityExecutionStatus::Running, PendingActivityState::Started) => "at work",
        (ActivityExecutionStatus::Running, _) => "running",
        (ActivityExecutionStatus::Paused, _) => "held",
        (ActivityExecutionStatus::Completed, _) => "handed over",
        (ActivityExecutionStatus::Failed, _) => "interrupted",
        (ActivityExecutionStatus::Canceled, _) => "cancelled",
        (ActivityExecutionStatus::Terminated, _) => "terminated",
        (ActivityExecutionStatus::TimedOut, _) => "lost",
        _ => "unknown",
    }
}
