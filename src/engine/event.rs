//! What happened, as versioned data: the journal, the terminal and every other sink see exactly this.

use super::evaluated::EvalEvent;
use super::finished::{Finished, Tokens};
use super::outcome::{AttemptOutcome, Cut, LimitKind, RunOutcome, Sig, WaitReason};
use crate::plan::{Overrides, TaskFacts};
use crate::verdict::{ProposedTask, Unclear, Verdict};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// The version of the format (schemas/event.schema.json). A field may be added; a change of meaning counts it up.
pub const EVENT_VERSION: u32 = 1;

/// One event of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// [`EVENT_VERSION`].
    pub version: u32,
    /// The run's number in its root.
    pub run: i64,
    /// Counts from 1 in a run, without gaps.
    pub seq: u64,
    /// When, in UTC (RFC 3339), by the clock on the wall.
    pub at: String,
    /// How long the run has been at work by then, in milliseconds: the machine's sleep included, pauses not, by a clock that nobody
    /// sets. None of a part of an evaluation, and of events of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worked_ms: Option<u64>,
    /// What.
    pub event: EventKind,
}

/// The place of an attempt in its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct At {
    /// The step's number, from 1.
    pub step: u32,
    /// The step's name.
    pub name: String,
    /// The round of the innermost group; 1 outside groups.
    pub round: u32,
    /// The iteration of the step's loop, from 1.
    pub iteration: u32,
    /// The running number of the attempt in its step, over iterations, rounds and retries.
    pub attempt: u32,
    /// Always 1 for now.
    pub lane: u32,
}

/// What a new round is told about the last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Feedback {
    /// The attempt whose end ended the round.
    pub from: At,
    /// Why it did.
    pub cause: FeedbackCause,
}

/// Why a round ended without success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "is", rename_all = "camelCase")]
pub enum FeedbackCause {
    /// A check failed in this way.
    CheckFailed {
        /// How it ended.
        outcome: AttemptOutcome,
    },
    /// A loop did not reach its marker.
    Exhausted {
        /// After so many iterations.
        iterations: u32,
    },
    /// A judge rejected.
    Rejected {
        /// The number of this rejection in its run, from 1.
        rejection: u32,
    },
}

/// Why the run is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "is", rename_all = "camelCase")]
pub enum Ending {
    /// We were sent this signal.
    Asked {
        /// It.
        signal: Sig,
    },
    /// Our standard output was closed.
    OutputClosed,
    /// A limit of the run was reached.
    Limit {
        /// Which.
        limit: LimitKind,
    },
}

/// How far a step's attempts have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HighestAttempt {
    /// The step's number.
    pub step: u32,
    /// Its highest attempt.
    pub attempt: u32,
}

/// More iterations of a loop, or rounds of a group, than its count says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct More {
    /// The group's number; none for a loop.
    pub group: Option<u32>,
    /// The number of the step that ended last.
    pub step: u32,
    /// How many more.
    pub count: u32,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum EventKind {
    /// The run begins.
    #[serde(rename_all = "camelCase")]
    RunStarted {
        /// The chain in the chain language.
        chain: String,
        /// Its name in the config.
        name: Option<String>,
        /// The prompt of the command line.
        prompt: Option<String>,
        /// Variables of the command line.
        vars: IndexMap<String, String>,
        /// The plan's digest.
        digest: String,
        /// Where it works.
        root: String,
        /// Our version.
        forkhestra: String,
        /// How many steps it has.
        steps: u32,
        /// What the command line said of times and limits.
        #[serde(default)]
        overrides: Overrides,
        /// The commit that the work began at, where templates show what was changed since.
        #[serde(default)]
        base: Option<String>,
        /// The tree that the work began at, a snapshot of our own: what templates show was changed since.
        #[serde(default)]
        tree: Option<String>,
        /// What the user's own rules left out of that tree, as lines of gitignore(5).
        #[serde(default)]
        rules: Option<String>,
        /// The task that it works on, as it was then.
        #[serde(default)]
        task: Option<TaskFacts>,
        /// In a queue of tasks: the backends whose login worked in it before. None outside of a queue.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queue: Option<Vec<String>>,
        /// The tree as it was found, a snapshot of our own; none where nobody looked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found: Option<String>,
    },
    /// The run goes on after it was ended before its aim, or after a crash.
    #[serde(rename_all = "camelCase")]
    RunResumed {
        /// Our version.
        forkhestra: String,
        /// Attempts that have left a folder, even where the journal has lost them.
        attempts: Vec<HighestAttempt>,
        /// Limits that hold from now on, as the command line gave them.
        limits: Vec<String>,
        /// How long the run was at work before, in milliseconds.
        #[serde(default)]
        worked_ms: u64,
        /// What it was given more of (`resume --more`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        more: Option<More>,
        /// The tree that it goes on with, a snapshot of our own; none where nobody looked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<String>,
    },
    /// A round of a group begins.
    #[serde(rename_all = "camelCase")]
    RoundStarted {
        /// The group's number, from 1, outer before inner.
        group: u32,
        /// The round, from 1.
        round: u32,
        /// Of how many at most.
        rounds: u32,
    },
    /// An attempt is about to be started. In the journal before its process exists.
    #[serde(rename_all = "camelCase")]
    AttemptPlanned {
        /// Which.
        at: At,
        /// Of how many iterations at most; none for a step that runs once.
        iterations: Option<u32>,
        /// How often this iteration failed before and is tried again.
        retry: u32,
        /// What it is told about the last round.
        feedback: Option<Feedback>,
    },
    /// An attempt that would have been next, had the run not been at its end: a resume begins with it.
    #[serde(rename_all = "camelCase")]
    AttemptHeld {
        /// Which.
        at: At,
        /// How often this iteration failed before.
        retry: u32,
    },
    /// Its process runs.
    #[serde(rename_all = "camelCase")]
    AttemptStarted {
        /// Which.
        at: At,
        /// The agent's process id.
        pid: i32,
        /// The process's start time in clock ticks since boot: with the pid it names one process only (proc(5), stat field 22).
        start_time: u64,
    },
    /// The marker was seen.
    #[serde(rename_all = "camelCase")]
    MarkerSeen {
        /// By which attempt.
        at: At,
    },
    /// The agent has gone on, and its last message has no marker.
    #[serde(rename_all = "camelCase")]
    MarkerWithdrawn {
        /// By which attempt.
        at: At,
    },
    /// The run is being ended.
    #[serde(rename_all = "camelCase")]
    Terminating {
        /// Why.
        why: Ending,
        /// What the agent is sent, if one runs.
        with: Option<Sig>,
    },
    /// The agent was stopped, and not by us.
    #[serde(rename_all = "camelCase")]
    AttemptStopped {
        /// Which.
        at: At,
        /// By this signal's number.
        signal: i32,
    },
    /// A stopped agent goes on.
    #[serde(rename_all = "camelCase")]
    AttemptContinued {
        /// Which.
        at: At,
    },
    /// What an attempt has used so far, as its program reports it.
    #[serde(rename_all = "camelCase")]
    UsageReported {
        /// Which.
        at: At,
        /// All of it so far.
        tokens: Tokens,
    },
    /// The attempt did not count, and is made again after a wait.
    #[serde(rename_all = "camelCase")]
    WaitStarted {
        /// The attempt that did not count.
        at: At,
        /// What is waited for.
        #[serde(default)]
        reason: WaitReason,
        /// For so long at least, in milliseconds.
        wait_ms: u64,
        /// The end of a usage limit, if it was named.
        until: Option<String>,
    },
    /// The run stands still, its agent and its timers with it (Ctrl-Z).
    RunPaused,
    /// It goes on.
    RunContinued,
    /// An attempt is being ended because its time is over; the run goes on.
    #[serde(rename_all = "camelCase")]
    AttemptTimedOut {
        /// Which.
        at: At,
        /// Which of its times.
        why: Cut,
        /// What it is sent.
        with: Sig,
    },
    /// An attempt is over and nothing of it is left.
    #[serde(rename_all = "camelCase")]
    AttemptFinished {
        /// Which.
        at: At,
        /// How it ended.
        outcome: AttemptOutcome,
        /// Whether the marker was seen.
        marker: bool,
        /// What else is known.
        finished: Finished,
    },
    /// An agent decided.
    #[serde(rename_all = "camelCase")]
    VerdictGiven {
        /// Which attempt.
        at: At,
        /// What.
        verdict: Verdict,
        /// Whether it is a reject that leaves nothing to be mended, and so ends the round well.
        #[serde(default)]
        converged: bool,
    },
    /// An agent's words hold no verdict that counts.
    #[serde(rename_all = "camelCase")]
    VerdictUnclear {
        /// Which attempt.
        at: At,
        /// Why.
        why: Unclear,
        /// How often it was asked by now; 0 for a worker, whose exit code counts instead.
        asked: u32,
    },
    /// A worker ended well and changed nothing; it is asked once more.
    #[serde(rename_all = "camelCase")]
    NothingSubmitted {
        /// Which attempt.
        at: At,
    },
    /// A worker that works on no task of its own proposes some.
    #[serde(rename_all = "camelCase")]
    TasksProposed {
        /// Which attempt.
        at: At,
        /// Them.
        tasks: Vec<ProposedTask>,
        /// What of the proposal could not be read, a line each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unread: Vec<String>,
    },
    /// Templates were edited while the run was under way.
    #[serde(rename_all = "camelCase")]
    TemplatesEdited {
        /// Which, from the root.
        files: Vec<String>,
        /// Whether the attempts from here on are told by the new text (`--accept-changes`).
        taken: bool,
        /// What is wrong with it, if something is: then the old text stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A check has nothing to run: it is passed over, and not passed.
    #[serde(rename_all = "camelCase")]
    StepSkipped {
        /// The step's number.
        step: u32,
        /// Its name.
        name: String,
        /// Why.
        why: String,
        /// Whether it would have verified the work, and the project has no command for it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        absent: bool,
    },
    /// A step has reached its aim.
    #[serde(rename_all = "camelCase")]
    StepSucceeded {
        /// Its last attempt.
        at: At,
    },
    /// A round is over.
    #[serde(rename_all = "camelCase")]
    RoundFinished {
        /// The group's number.
        group: u32,
        /// The round.
        round: u32,
        /// What ended it, unless all its steps succeeded.
        ended_by: Option<Feedback>,
    },
    /// Of an evaluation.
    #[serde(rename_all = "camelCase")]
    Evaluation {
        /// What.
        what: EvalEvent,
    },
    /// The run is over; nothing follows.
    #[serde(rename_all = "camelCase")]
    RunFinished {
        /// How it ended.
        outcome: RunOutcome,
    },
}
