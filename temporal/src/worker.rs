//! The worker: takes units from the queue, and works on each with `forkhestra work`.

use crate::args::WorkerArgs;
use crate::child::{Program, options};
use crate::queue::queue_name;
use crate::server::connect;
use crate::unit::{UnitDone, UnitTask};
use crate::work::{LIMIT_REACHED, UnitWork, WorkEnd};
use anyhow::{Result, anyhow};
use std::sync::Arc;
use std::time::Duration;
use temporalio_common::error::ApplicationFailure;
use temporalio_macros::activities;
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use temporalio_sdk::runtime::RuntimeOptions;
use temporalio_sdk::runtime::worker_tuner::{FixedSizeSlotSupplier, TunerHolder};
use temporalio_sdk::{Runtime, Worker, WorkerOptions};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// What the worker knows while it works.
pub(crate) struct Units {
    program: Program,
    hubs: Vec<String>,
    /// Becomes true when the worker has to end.
    ends: watch::Receiver<bool>,
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
            return Err(anyhow!("this worker has no hub {}; it was started with other ones", task.hub).into());
        }
        let unit = task.unit.clone();
        let (process, events) = self.program.start(&task)?;
        let end = UnitWork::new(context, self.program.clone(), &task, self.ends.clone()).follow(process, events).await;
        crate::say(&format!("unit {unit}: {end}"));
        match end {
            WorkEnd::HandedOver(done) => Ok(done),
            WorkEnd::Cancelled => Err(ActivityError::cancelled()),
            // Another worker would reach the same limit.
            WorkEnd::Interrupted(Some(LIMIT_REACHED), _) => {
                Err(ActivityError::application(ApplicationFailure::non_retryable(anyhow!("unit {unit}: {end}"))))
            }
            end => Err(anyhow!("unit {unit}: {end}").into()),
        }
    }
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
        .register_activities(Units { program, hubs: args.hub, ends })
        .tuner(tuner)
        .build();
    let runtime = Runtime::from_current_tokio(RuntimeOptions::default())?;
    let mut worker = Worker::new(&runtime, client, settings)?;
    let stop = worker.shutdown_handle();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
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
