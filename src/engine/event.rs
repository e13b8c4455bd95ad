//! Events as versioned data. The journal, the terminal and every other sink receive exactly these events.

use super::batch::BatchEvent;
use super::evaluation::EvalEvent;
use super::finished::{Finished, Tokens};
use super::outcome::{AttemptOutcome, Containment, Cut, LimitKind, RunOutcome, Sig, WaitReason};
use crate::plan::{Overrides, TaskFacts};
use crate::verdict::{ProposedTask, Unclear, Verdict};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// The version of the event format (schemas/event.schema.json). It increases when the meaning of a field changes. New
/// fields do not increase it.
pub const EVENT_VERSION: u32 = 1;

/// One event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The version of the event format.
    pub version: u32,
    /// The run's number, unique within its workspace.
    pub run: i64,
    /// The event's number within the run: counts from 1, without gaps.
    pub seq: u64,
    /// When it happened, in UTC (RFC 3339), by the wall clock.
    pub at: String,
    /// How long the run had been running by then, in milliseconds. Includes the time that the machine was asleep, but
    /// not pauses, and does not depend on the wall clock. Absent in evaluations and in events of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worked_ms: Option<u64>,
    /// The name of the run's unit, if the run belongs to a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// What happened: an object with a `type`.
    pub event: EventKind,
}

/// The place of an attempt within its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct At {
    /// The step's number, from 1.
    pub step: u32,
    /// The step's name.
    pub name: String,
    /// The round of the innermost group, from 1; 1 outside of groups.
    pub round: u32,
    /// The iteration of the step's loop, from 1.
    pub iteration: u32,
    /// The number of the attempt within its step, from 1. Counts across iterations, rounds and retries.
    pub attempt: u32,
    /// The number of the lane in which it runs, from 1. Only an evaluation can have several lanes.
    pub lane: u32,
}

/// What the agents of a new round are told about the previous round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Feedback {
    /// The attempt that ended the previous round.
    pub from: At,
    /// Why the round ended.
    pub cause: FeedbackCause,
}

/// Why a round ended without success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum FeedbackCause {
    /// A check failed.
    CheckFailed {
        /// How the check's attempt ended.
        outcome: AttemptOutcome,
    },
    /// A loop used up its iterations without the marker.
    IterationsExhausted {
        /// The number of iterations that the loop had.
        iterations: u32,
    },
    /// A judge rejected the work.
    Rejected {
        /// The number of this rejection within the run, from 1.
        rejection: u32,
    },
}

/// How an attempt is started, where a step can be run in several ways.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Preparation {
    /// The number of the way: 0 for the first backend with its first model.
    pub variant: u32,
    /// The backend that runs it.
    pub backend: Option<String>,
    /// The model that it is told to use.
    pub model: Option<String>,
    /// The session that it continues.
    pub session: Option<String>,
    /// Why it is started in this way, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// Why the run is being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Ending {
    /// forkhestra received a signal.
    Signal {
        /// The signal that it received.
        signal: Sig,
    },
    /// The standard output of forkhestra was closed.
    OutputClosed,
    /// A limit of the run was reached.
    Limit {
        /// The limit that was reached.
        limit: LimitKind,
    },
}

/// The highest attempt number of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HighestAttempt {
    /// The step's number, from 1.
    pub step: u32,
    /// The number of its latest attempt, from 1.
    pub attempt: u32,
}

/// Iterations of a loop, or rounds of a group, in addition to its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExtraRounds {
    /// The group's number, from 1; `null` for a loop.
    pub group: Option<u32>,
    /// The number of the step that ran last.
    pub step: u32,
    /// How many iterations or rounds are added.
    pub count: u32,
}

/// What happened, with the facts of this type of event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum EventKind {
    /// The run starts.
    #[serde(rename_all = "camelCase")]
    RunStarted {
        /// The chain, in the chain language.
        chain: String,
        /// The chain's name in the config; `null` if it has none.
        name: Option<String>,
        /// The prompt that was given on the command line.
        prompt: Option<String>,
        /// The variables that were given on the command line.
        vars: IndexMap<String, String>,
        /// A digest of the plan.
        digest: String,
        /// The workspace: the path of the directory in which the run works.
        root: String,
        /// The version of forkhestra.
        forkhestra: String,
        /// The number of steps in the chain.
        steps: u32,
        /// Timeouts, limits and other settings that were given on the command line.
        #[serde(default)]
        overrides: Overrides,
        /// The commit at which the work began. Templates can show what has changed since then.
        #[serde(default)]
        base: Option<String>,
        /// The tree that the work is compared with, as the ID of a git tree in forkhestra's own store. Templates show
        /// what has changed since then.
        #[serde(default)]
        tree: Option<String>,
        /// The ignore rules that applied to that tree: the user's own, and those for caches, as lines of gitignore(5).
        #[serde(default)]
        rules: Option<String>,
        /// The task that the run is working on, as it was when the run started.
        #[serde(default)]
        task: Option<TaskFacts>,
        /// In a queue of tasks, the backends whose login has worked earlier in the queue. Absent outside of a queue.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queue: Option<Vec<String>>,
        /// The tree when this run started, as the ID of a git tree in forkhestra's own store. Differs from `tree` if
        /// the work is compared with an earlier state. Absent if no snapshot was taken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found: Option<String>,
        /// How the processes of agents are found again after they have left them.
        #[serde(default)]
        containment: Containment,
    },
    /// The run resumes after it was stopped early, or after a crash.
    #[serde(rename_all = "camelCase")]
    RunResumed {
        /// The version of forkhestra.
        forkhestra: String,
        /// The highest attempt number of each step that has an attempt directory, even if the journal has lost that
        /// attempt.
        attempts: Vec<HighestAttempt>,
        /// Limits that apply from now on, as given on the command line.
        limits: Vec<String>,
        /// How long the run had been running before, in milliseconds.
        #[serde(default)]
        worked_ms: u64,
        /// The extra iterations or rounds that the run was given (`resume --more`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        more: Option<ExtraRounds>,
        /// The tree with which the run resumes, as a snapshot that forkhestra took. Absent if none was taken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<String>,
    },
    /// A round of a group starts.
    #[serde(rename_all = "camelCase")]
    RoundStarted {
        /// The group's number, from 1. Outer groups are numbered before inner ones.
        group: u32,
        /// The number of the round, from 1.
        round: u32,
        /// The maximum number of rounds.
        rounds: u32,
    },
    /// An attempt is about to be started. This event is in the journal before the process exists.
    #[serde(rename_all = "camelCase")]
    AttemptPlanned {
        /// The attempt that is about to be started.
        at: At,
        /// The maximum number of iterations; `null` for a step that runs once.
        iterations: Option<u32>,
        /// The number of the retry, from 1; 0 for the first try of this iteration.
        retry: u32,
        /// What the agent is told about the previous round; `null` if there is nothing to report.
        feedback: Option<Feedback>,
    },
    /// An attempt would have been next, but the run is stopping. A resume starts with this attempt.
    #[serde(rename_all = "camelCase")]
    AttemptDeferred {
        /// The attempt that would have been next.
        at: At,
        /// The number of the retry, from 1; 0 for the first try of this iteration.
        retry: u32,
    },
    /// The attempt is started in another way than the one before: by another backend or model, or with the session
    /// of the attempt before.
    #[serde(rename_all = "camelCase")]
    AttemptPrepared {
        /// The attempt that is about to be started.
        at: At,
        /// How it is started.
        how: Preparation,
    },
    /// The process of an attempt has started.
    #[serde(rename_all = "camelCase")]
    AttemptStarted {
        /// The attempt whose process has started.
        at: At,
        /// The agent's process id.
        pid: i32,
        /// When the process started, in clock ticks since boot (proc(5), field 22 of stat). Together with the pid it
        /// identifies the process uniquely.
        start_time: u64,
    },
    /// The agent printed the marker.
    #[serde(rename_all = "camelCase")]
    MarkerSeen {
        /// The attempt that printed the marker.
        at: At,
    },
    /// The agent continued after its marker, and its last message does not contain it. The marker no longer counts.
    #[serde(rename_all = "camelCase")]
    MarkerWithdrawn {
        /// The attempt whose marker no longer counts.
        at: At,
    },
    /// The run is being stopped.
    #[serde(rename_all = "camelCase")]
    RunStopping {
        /// Why the run is being stopped.
        reason: Ending,
        /// The signal that is sent to the running agent; `null` if no agent runs.
        signal: Option<Sig>,
    },
    /// The agent was paused by a signal that forkhestra did not send.
    #[serde(rename_all = "camelCase")]
    AttemptPaused {
        /// The attempt whose agent was paused.
        at: At,
        /// The number of the signal that paused it.
        signal: i32,
    },
    /// A paused agent continues.
    #[serde(rename_all = "camelCase")]
    AttemptContinued {
        /// The attempt whose agent continues.
        at: At,
    },
    /// What an attempt has used so far, as reported by its program.
    #[serde(rename_all = "camelCase")]
    UsageReported {
        /// The attempt that the report is about.
        at: At,
        /// All tokens of the attempt so far.
        tokens: Tokens,
    },
    /// A wait starts, after which the attempt is repeated. The attempt does not count.
    #[serde(rename_all = "camelCase")]
    WaitStarted {
        /// The attempt that does not count.
        at: At,
        /// What the run is waiting for.
        #[serde(default)]
        reason: WaitReason,
        /// The minimum length of the wait, in milliseconds.
        wait_ms: u64,
        /// When the usage limit ends, in UTC (RFC 3339), if the service reported a time.
        until: Option<String>,
    },
    /// The run is paused, with its agent and its timers (Ctrl-Z).
    RunPaused,
    /// The run continues after a pause.
    RunContinued,
    /// An attempt is being stopped because one of its time limits has expired. The run continues.
    #[serde(rename_all = "camelCase")]
    AttemptTimedOut {
        /// The attempt that is being stopped.
        at: At,
        /// Which of its time limits has expired.
        reason: Cut,
        /// The signal that is sent to its process tree.
        signal: Sig,
    },
    /// An attempt has ended, and its whole process tree with it.
    #[serde(rename_all = "camelCase")]
    AttemptFinished {
        /// The attempt that has ended.
        at: At,
        /// How it ended.
        outcome: AttemptOutcome,
        /// Whether it printed the marker, and the marker still counted when it ended.
        marker: bool,
        /// What else is known about the attempt.
        finished: Finished,
    },
    /// An agent or a person gave a verdict.
    #[serde(rename_all = "camelCase")]
    VerdictGiven {
        /// The attempt that the verdict belongs to.
        at: At,
        /// The verdict, with its findings.
        verdict: Verdict,
        /// Whether it is a rejection with only minor findings, which ends the round successfully.
        #[serde(default)]
        converged: bool,
    },
    /// An agent gave no verdict that counts.
    #[serde(rename_all = "camelCase")]
    VerdictUnclear {
        /// The attempt whose verdict is unclear.
        at: At,
        /// Why no verdict counts.
        reason: Unclear,
        /// How many times the judge has been asked so far; 0 for a worker, whose exit code counts instead.
        asked: u32,
    },
    /// A worker ended successfully but changed nothing. It is asked once more.
    #[serde(rename_all = "camelCase")]
    WorkUnchanged {
        /// The worker's attempt.
        at: At,
    },
    /// A worker of a run that has no task proposes tasks.
    #[serde(rename_all = "camelCase")]
    TasksProposed {
        /// The attempt that proposes them.
        at: At,
        /// The proposed tasks.
        tasks: Vec<ProposedTask>,
        /// The parts of the proposal that could not be read, one line each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unread: Vec<String>,
    },
    /// Templates were edited during the run.
    #[serde(rename_all = "camelCase")]
    TemplatesEdited {
        /// The edited files, as paths relative to the workspace.
        files: Vec<String>,
        /// Whether later attempts use the new text (`--accept-changes`).
        accepted: bool,
        /// What is wrong with the new text, if anything. The old text then stays in use.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A person sent a message to the run (`forkhestra tell`). Every later attempt of an agent gets it in its prompt.
    #[serde(rename_all = "camelCase")]
    MessageReceived {
        /// The number of the message, unique within the workspace.
        id: i64,
        /// What it says.
        text: String,
    },
    /// A step is skipped: a check has nothing to run, or the step's work has already been done. The step does not count
    /// as passed.
    #[serde(rename_all = "camelCase")]
    StepSkipped {
        /// The step's number, from 1.
        step: u32,
        /// The step's name.
        name: String,
        /// Why the step is skipped.
        reason: String,
        /// Whether it is a check that would have verified the work, but for which the project has no command.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        absent: bool,
    },
    /// A step has succeeded.
    #[serde(rename_all = "camelCase")]
    StepSucceeded {
        /// The last attempt of the step.
        at: At,
    },
    /// A round of a group has ended.
    #[serde(rename_all = "camelCase")]
    RoundFinished {
        /// The group's number, from 1.
        group: u32,
        /// The number of the round, from 1.
        round: u32,
        /// What ended the round; `null` if it ended successfully.
        ended_by: Option<Feedback>,
    },
    /// Something happened in an evaluation.
    #[serde(rename_all = "camelCase")]
    Evaluation {
        /// What happened in the evaluation.
        event: EvalEvent,
    },
    /// Something happened in a batch: several tasks at once, each in a workspace of its own.
    #[serde(rename_all = "camelCase")]
    Batch {
        /// What happened in the batch.
        event: BatchEvent,
    },
    /// The run has ended. Nothing follows, unless the run is resumed.
    #[serde(rename_all = "camelCase")]
    RunFinished {
        /// How the run ended.
        outcome: RunOutcome,
    },
}

impl EventKind {
    /// The place of the attempt that an event in the lane of an evaluation is about; `None` for other events.
    pub fn place_in_lane(&mut self) -> Option<&mut At> {
        match self {
            Self::AttemptPlanned { at, .. }
            | Self::AttemptPrepared { at, .. }
            | Self::AttemptStarted { at, .. }
            | Self::AttemptPaused { at, .. }
            | Self::AttemptContinued { at }
            | Self::UsageReported { at, .. }
            | Self::WaitStarted { at, .. }
            | Self::AttemptTimedOut { at, .. }
            | Self::AttemptFinished { at, .. }
            | Self::VerdictUnclear { at, .. } => Some(at),
            _ => None,
        }
    }
}
