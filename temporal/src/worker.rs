//! The worker: takes units from the queue, and works on each with `forkhestra work`.

use crate::args::WorkerArgs;
use crate::child::{Program, options};
use crate::queue::queue_name;
use crate::server::connect;
use crate::unit::{UnitDone, UnitTask};
use crate::work::{LIMIT_REACHED, UnitWork, WorkEnd};
use anyhow::{Result, anyhow};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use temporalio_client::{ActivityIdentifier, RpcOptions};
use temporalio_common::error::ApplicationFailure;
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use temporalio_sdk::runtime::RuntimeOptions;
use temporalio_sdk::runtime::worker_tuner::{FixedSizeSlotSupplier, TunerHolder};
use temporalio_sdk::{Runtime, Worker, WorkerOptions};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::timeout;

/// What the worker knows while it works.
pub(crate) struct Units {
    program: Program,
    hubs: Vec<String>,
    /// Becomes true when the worker has to end.
    ends: watch::Receiver<bool>,
    /// How many units in a row it has failed to work on.
    failures: AtomicU32,
}

#[activities]
impl Units {
    /// Works on one unit.
    #[activity(name = "unit")]
    pub(crate) async fn unit(
        self: Arc<Self>,
        context: ActivityContext,
        task: UnitTask,
    ) -> Result<UnitDone, ActivityError> {
        if !self.hubs.is_empty() && !self.hubs.contains(&task.hub) {
            let error = anyhow!("this worker has no hub {}; it was started with other ones", task.hub);
            return Err(self.failed(&context, error).await);
        }
        let unit = task.unit.clone();
        let (process, events) = match self.program.start(&task) {
            Ok(started) => started,
            Err(error) => return Err(self.failed(&context, error).await),
        };
        let end = UnitWork::new(context.clone(), self.program.clone(), &task, self.ends.clone())
            .follow(process, events)
            .await;
        crate::say(&format!("unit {unit}: {end}"));
        if let WorkEnd::Failed(..) = end {
            return Err(self.failed(&context, anyhow!("unit {unit}: {end}")).await);
        }
        self.failures.store(0, Ordering::Relaxed);
        match end {
            WorkEnd::HandedOver(done) => Ok(done),
            WorkEnd::Cancelled(_) => Err(ActivityError::cancelled()),
            // Another worker would reach the same limit.
            WorkEnd::Interrupted(Some(LIMIT_REACHED), _) => {
                Err(ActivityError::application(ApplicationFailure::non_retryable(anyhow!("unit {unit}: {end}"))))
            }
            end => Err(anyhow!("unit {unit}: {end}").into()),
        }
    }
}

impl Units {
    /// Gives a unit back that this worker has failed to work on, and waits before the worker takes the next one: a
    /// broken machine must not take unit after unit from the queue.
    async fn failed(&self, context: &ActivityContext, error: anyhow::Error) -> ActivityError {
        let pause = pause_after(self.failures.fetch_add(1, Ordering::Relaxed));
        crate::say(&format!("taking the next unit in {} s", pause.as_secs()));
        let identifier = ActivityIdentifier::from_task_token(context.info().task_token.clone().into());
        let handle = context.client().get_async_activity_handle(identifier);
        let failure = ApplicationFailure::new(anyhow!("{error}"));
        if handle.fail(failure, None::<()>, RpcOptions::default()).await.is_err() {
            return error.into();
        }
        let mut ends = self.ends.clone();
        let _ = timeout(pause, ends.wait_for(|ends| *ends)).await;
        ActivityError::WillCompleteAsync
    }
}

/// How long a worker waits that has failed before this often in a row: a second, then twice as long each time, a minute
/// at most.
fn pause_after(failures: u32) -> Duration {
    Duration::from_secs(1 << failures.min(6)).min(Duration::from_mins(1))
}

/// Whether the parent has made us ignore SIGHUP, as nohup(1) does (`SigIgn` in `proc_pid_status(5)`).
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Runs a worker until a signal ends it.
///
/// # Errors
/// When the server or a hub cannot be reached.
pub(crate) async fn work(args: WorkerArgs) -> Result<()> {
    let program = Program { path: args.program, options: options(args.workspaces.as_deref(), args.files.as_deref()) };
    let version = program.ask(&["--version"], Duration::from_secs(20)).await?;
    anyhow::ensure!(version.starts_with("forkhestra "), "{} is not forkhestra", program.path.display());
    for hub in &args.hub {
        program.reaches(hub).await?;
    }
    let client = connect().await?;
    let queue = queue_name(&args.queue.queue, &args.label);
    let (tell, ends) = watch::channel(false);
    let one = || FixedSizeSlotSupplier::new(1);
    let tuner = TunerHolder::builder()
        .workflow_task_slot_supplier(one())
        .activity_task_slot_supplier(FixedSizeSlotSupplier::new(usize::try_from(args.slots)?))
        .local_activity_task_slot_supplier(one())
        .nexus_task_slot_supplier(one())
        .build();
    let settings = WorkerOptions::new(queue.as_str())
        .register_activities(Units { program, hubs: args.hub, ends, failures: AtomicU32::new(0) })
        .tuner(tuner)
        .build();
    let runtime = Runtime::from_current_tokio(RuntimeOptions::default())?;
    let mut worker = Worker::new(&runtime, client, settings)?;
    let stop = worker.shutdown_handle();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hangup = if ignores_hangup() { None } else { Some(signal(SignalKind::hangup())?) };
    tokio::spawn(async move {
        let hung_up = async {
            match &mut hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hung_up => {}
        }
        let _ = tell.send(true);
        stop();
        crate::say("stopping: units are being handed back");
        // The receivers end with the units.
        tell.closed().await;
    });
    crate::say(&format!("waiting for units in the queue {queue}"));
    worker.run().await.map_err(|error| anyhow!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_fails_again_and_again_waits_longer_and_a_minute_at_most() {
        let pauses: Vec<u64> = (0..9).map(|failures| pause_after(failures).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }
}
