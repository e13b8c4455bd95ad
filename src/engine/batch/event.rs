//! Events of a batch: several tasks at once, each in a workspace of its own, as versioned data.

use crate::engine::RunOutcome;
use serde::{Deserialize, Serialize};

/// An event of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum BatchEvent {
    /// The batch starts or resumes.
    Started {
        /// Its tasks and options.
        facts: BatchFacts,
    },
    /// A process starts or continues the work of a unit.
    #[serde(rename_all = "camelCase")]
    UnitStarted {
        /// The name of the unit.
        unit: String,
        /// The task that it works on; `null` for a verification.
        task: Option<String>,
        /// With `--tries`: the number of its try at the task, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        try_number: Option<u32>,
        /// With `--tries`: whether its judge chooses one of the tries at the task.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        choice: bool,
        /// The lane in which it runs, from 1.
        lane: u32,
        /// The number of its run.
        run: i64,
        /// The commit that its work is compared with.
        base: String,
        /// The directory in which it works.
        workspace: String,
    },
    /// A worker on another machine has claimed a unit.
    UnitClaimed {
        /// The name of the unit.
        unit: String,
        /// The name of the machine; empty if it is not known.
        machine: String,
    },
    /// The process of a unit has ended.
    #[serde(rename_all = "camelCase")]
    UnitEnded {
        /// The name of the unit.
        unit: String,
        /// The exit code of the process; `null` if a signal killed it.
        exit: Option<u8>,
        /// How its run ended; `null` if it did not begin or did not end.
        outcome: Option<RunOutcome>,
        /// The commit with its work; `null` if it has handed nothing over.
        work: Option<String>,
        /// What the process printed last, if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Whether the batch was being stopped. Then a worker without a result does not count as lost.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stopping: bool,
    },
    /// The work of some tasks was merged into the line, and is verified next.
    Merged {
        /// The tasks, in the order in which they were merged.
        tasks: Vec<String>,
        /// The commit with all of their work, which the line advances to if it is verified.
        commit: String,
    },
    /// The work of a task conflicts with what has landed.
    Conflicted {
        /// The task.
        task: String,
        /// The files with conflicts.
        files: Vec<String>,
    },
    /// A merge of several tasks failed its verification. Fewer of them are merged next.
    Split {
        /// How many tasks are merged next, at most.
        most: u32,
    },
    /// The work of some tasks has landed: it is on the line.
    Landed {
        /// The tasks.
        tasks: Vec<String>,
        /// The last commit of the line.
        commit: String,
    },
    /// The work of a task goes back to its chain, because it conflicts with what has landed or fails its verification
    /// together with it. This counts as a rejection.
    #[serde(rename_all = "camelCase")]
    SentBack {
        /// The task.
        task: String,
        /// Why, in a few words.
        reason: String,
        /// What the agents are told.
        feedback: String,
        /// The commit that the work is compared with from now on: the last one of the line.
        base: String,
        /// The commit with which the work continues: the work, merged into the line.
        start: String,
    },
    /// One of several tries at a task was chosen. Its work lands next.
    #[serde(rename_all = "camelCase")]
    Chosen {
        /// The task.
        task: String,
        /// The number of the try, from 1.
        try_number: u32,
        /// Why, in the judge's words.
        reason: String,
    },
    /// The judge has named none of the tries at a task.
    Undecided {
        /// The task.
        task: String,
        /// Why the answer does not count.
        reason: String,
    },
    /// The batch does not work on a task any more.
    Stopped {
        /// The task.
        task: String,
        /// Why, in a few words.
        reason: String,
        /// The commit with the work so far, if its process was lost; otherwise, the last unit has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<String>,
    },
    /// An account has reached a usage limit: while it holds, the batch starts no agent.
    Parked {
        /// The backend of the account.
        backend: String,
        /// When the limit ends, in milliseconds since the Unix epoch.
        until: i64,
    },
}

/// The tasks and options of a batch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BatchFacts {
    /// The tasks, in the order in which they are begun.
    pub tasks: Vec<BatchTask>,
    /// `--jobs`: how many units are worked on at once.
    pub jobs: u32,
    /// `--on`: what brings the units to other machines; `null` if they are worked on here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// `--hub`: where the tasks come from, and where they land; `null` if they are those of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub: Option<String>,
    /// `--chain`: the chain that works on each task.
    pub chain: String,
    /// The variables of the chain, as `NAME=value`.
    pub vars: Vec<String>,
    /// The checks that verify a merge, as a chain; `null` with `--unverified`.
    pub verification: Option<String>,
    /// The commit with which the line began.
    pub line: String,
    /// The branch that was checked out; `null` for none.
    pub branch: Option<String>,
    /// The limit `rejections`: how often a task may be rejected before it has failed.
    pub rejections: u32,
    /// `--limit-each`: the limits of each run.
    pub limit_each: Vec<String>,
    /// How many tasks are merged at once, at most; `null` for all that are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<u32>,
    /// `--tries`: the backend of each try at a task, `null` for that of each agent; empty without the option.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tries: Vec<Option<String>>,
    /// The agent that chooses one of several tries; `null` without `--tries`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<String>,
}

/// A task of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BatchTask {
    /// The ID of the task.
    pub id: String,
    /// What is to be done, in one line.
    pub title: String,
    /// The tasks of the batch that must have landed first.
    pub after: Vec<String>,
    /// How often the task was rejected before the batch.
    pub rejections: u32,
    /// The work on the task in an earlier batch, with which this one continues; `null` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// The commit that this work is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Whether the task is completed, and its work only has to land.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub completed: bool,
}
