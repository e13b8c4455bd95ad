//! What a batch does next, as a function of its state. Pure: no clock, no I/O.

use crate::engine::{BatchState, MOST_LOST, RunOutcome, TaskOfBatch, TaskPlace, TriesNeed, TryPlace};

/// What a batch can start at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Capacity {
    /// Whether a lane is free.
    pub lane: bool,
    /// Whether units may be started: no signal has arrived, no limit is reached.
    pub starts: bool,
    /// Whether agents may be started: no usage limit holds them.
    pub agents: bool,
}

/// What a batch does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// Start a worker for a task's unit, or another one if the last was lost.
    Start {
        /// The task.
        task: String,
        /// With `--tries`: the number of the try.
        try_number: Option<u32>,
        /// The number of the unit of this task or try, from 1.
        turn: u32,
        /// The commit that the work is compared with.
        base: String,
        /// The commit with which it begins.
        start: String,
    },
    /// Let the judge choose one of the tries at a task.
    Choose {
        /// The task.
        task: String,
        /// The number of the choice, from 1.
        number: u32,
    },
    /// Take the try at a task that the judge has chosen, or the only one that was accepted.
    Take {
        /// The task.
        task: String,
    },
    /// Merge the work of these tasks into the line, as many as do not conflict.
    Merge {
        /// The tasks, in this order.
        tasks: Vec<String>,
    },
    /// Verify a merge.
    Verify {
        /// The number of the merge, from 1.
        number: u32,
        /// The commit to verify.
        commit: String,
    },
    /// Advance the line to a merge that is verified.
    Land {
        /// The tasks.
        tasks: Vec<String>,
        /// The commit.
        commit: String,
    },
    /// Merge fewer tasks at once: together they failed their verification.
    Split {
        /// How many at most.
        most: u32,
    },
    /// Send the work of a task back to its chain.
    SendBack {
        /// The task.
        task: String,
        /// The files that conflict; empty if the verification failed.
        files: Vec<String>,
    },
    /// Give up a task, for this reason.
    Stop {
        /// The task.
        task: String,
        /// The reason.
        reason: String,
        /// Whether it was sent back too often.
        is_failed: bool,
    },
}

/// Returns the name of a unit. It ends with a number, so that git accepts it whatever the task is called. No task has a
/// `+` in its name.
#[must_use]
pub(super) fn unit_name(batch: i64, task: &str, try_number: Option<u32>, turn: u32) -> String {
    format!("{}-{turn}", workspace_name(batch, task, try_number))
}

/// Returns the name of the workspace of a task, or of a try at it.
#[must_use]
pub(super) fn workspace_name(batch: i64, task: &str, try_number: Option<u32>) -> String {
    try_number.map_or_else(|| format!("{batch}-{task}"), |number| format!("{batch}-{task}+{number}"))
}

/// Returns the name of the workspace in which a judge chooses among the tries at a task.
#[must_use]
pub(super) fn choice_name(batch: i64, task: &str) -> String {
    format!("{batch}-{task}+choice")
}

/// Returns what to do next; `None` if nothing can be done until a worker ends.
#[must_use]
pub(super) fn next(state: &BatchState, capacity: Capacity) -> Option<Action> {
    settled(state).or_else(|| landing(state)).or_else(|| started(state, capacity))
}

/// What follows from the end of a unit, and needs no lane.
fn settled(state: &BatchState) -> Option<Action> {
    let most = state.facts.as_ref().map_or(u32::MAX, |facts| facts.rejections);
    let blocked = state.trial.as_ref().is_some_and(|trial| trial.lost >= MOST_LOST);
    state.tasks.iter().find_map(|(id, task)| {
        let stop = |reason: String, is_failed| Some(Action::Stop { task: id.clone(), reason, is_failed });
        match &task.place {
            TaskPlace::Unsuccessful(outcome) => stop(reason_of(*outcome), false),
            TaskPlace::Trying => match task.tries_need(MOST_LOST) {
                TriesNeed::Taking => Some(Action::Take { task: id.clone() }),
                TriesNeed::GivingUp => stop(why_none(task), false),
                _ => None,
            },
            TaskPlace::OnTrial if blocked => stop("it could not be verified".into(), false),
            TaskPlace::Interrupted if task.lost >= MOST_LOST => {
                stop(format!("its process was lost, or not started, {} times", task.lost), false)
            }
            TaskPlace::Conflicted(_) | TaskPlace::Red if task.rejections.saturating_add(1) >= most => {
                stop(format!("rejected {} times", task.rejections.saturating_add(1)), true)
            }
            TaskPlace::Conflicted(files) => Some(Action::SendBack { task: id.clone(), files: files.clone() }),
            TaskPlace::Red => Some(Action::SendBack { task: id.clone(), files: Vec::new() }),
            _ => None,
        }
    })
}

/// Why none of the tries at a task could be taken.
fn why_none(task: &TaskOfBatch) -> String {
    if !task.accepted().is_empty() {
        let tries = task.accepted().iter().map(|(number, _)| number.to_string()).collect::<Vec<_>>().join(" and ");
        return format!("the judge chose none of tries {tries}, which were all accepted");
    }
    let reasons = task.tries.iter().map(|one| match one.place {
        TryPlace::Unsuccessful(outcome) => reason_of(outcome),
        _ => "its process was lost".into(),
    });
    let reasons = (1..).zip(reasons).map(|(number, reason): (u32, String)| format!("try {number}: {reason}"));
    format!("no try was accepted ({})", reasons.collect::<Vec<_>>().join("; "))
}

/// Why a run did not complete its task, in a few words.
fn reason_of(outcome: Option<RunOutcome>) -> String {
    outcome.map_or("it was refused", RunOutcome::few_words).to_string()
}

/// What the landing queue does next.
fn landing(state: &BatchState) -> Option<Action> {
    if let Some(trial) = &state.trial {
        return match trial.passed? {
            true => Some(Action::Land { tasks: trial.tasks.clone(), commit: trial.commit.clone() }),
            // A single one is sent back.
            false if trial.tasks.len() < 2 => None,
            false => {
                let most = u32::try_from(trial.tasks.len() / 2).unwrap_or(1);
                Some(Action::Split { most })
            }
        };
    }
    let together = state.facts.as_ref().and_then(|facts| facts.together);
    let most = state.most.into_iter().chain(together).min().unwrap_or(u32::MAX).max(1);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let tasks: Vec<String> = state.ready().into_iter().take(most).map(str::to_string).collect();
    (!tasks.is_empty()).then_some(Action::Merge { tasks })
}

/// What a free lane does: first a verification, then what was begun, then what was not.
fn started(state: &BatchState, capacity: Capacity) -> Option<Action> {
    if !capacity.lane || !capacity.starts {
        return None;
    }
    let verifies = state.units.values().any(|unit| unit.at_work && unit.task.is_none());
    if let Some(trial) = state.trial.as_ref().filter(|trial| trial.passed.is_none() && !verifies) {
        return Some(Action::Verify { number: trial.number, commit: trial.commit.clone() });
    }
    if !capacity.agents {
        return None;
    }
    let needed = |task: &TaskOfBatch| match task.place {
        TaskPlace::Trying => task.tries_need(MOST_LOST),
        _ => TriesNeed::Nothing,
    };
    let choice = state.tasks.iter().find_map(|(id, task)| match needed(task) {
        TriesNeed::Choice(number) => Some(Action::Choose { task: id.clone(), number }),
        _ => None,
    });
    if choice.is_some() {
        return choice;
    }
    let begun = |task: &&(&String, &TaskOfBatch)| {
        task.1.place == TaskPlace::Interrupted || matches!(needed(task.1), TriesNeed::Try(_))
    };
    let back = |task: &&(&String, &TaskOfBatch)| task.1.place == TaskPlace::Waiting && task.1.turn > 0;
    let new =
        |task: &&(&String, &TaskOfBatch)| task.1.place == TaskPlace::Waiting && waits_for(state, task.1).is_empty();
    let tasks: Vec<(&String, &TaskOfBatch)> = state.tasks.iter().collect();
    let (id, task) = tasks.iter().find(begun).or_else(|| tasks.iter().find(back)).or_else(|| tasks.iter().find(new))?;
    let base = task.base.clone().unwrap_or_else(|| state.line.clone());
    let start = task.start.clone().unwrap_or_else(|| base.clone());
    let task_name = (*id).clone();
    if task.chosen.is_none() && !task.tries.is_empty() {
        let TriesNeed::Try(number) = task.tries_need(MOST_LOST) else { return None };
        return Some(Action::Start { task: task_name, try_number: Some(number), turn: 1, base, start });
    }
    // A worker that was lost is replaced in the same unit.
    let turn = if task.place == TaskPlace::Interrupted { task.turn } else { task.turn + 1 };
    Some(Action::Start { task: task_name, try_number: task.chosen, turn, base, start })
}

/// The tasks of the batch that a task waits for: they have not landed yet.
fn waits_for<'a>(state: &'a BatchState, task: &'a TaskOfBatch) -> Vec<&'a str> {
    let landed = |id: &String| state.tasks.get(id).is_none_or(|before| matches!(before.place, TaskPlace::Landed(_)));
    task.facts.after.iter().filter(|id| !landed(id)).map(String::as_str).collect()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod verifications;
