//! A task of a batch, with the tries at it.

use super::event::BatchTask;
use super::tries::{ChoiceOfTask, ChoicePlace, TriesNeed, TryOfTask, TryPlace};
use crate::engine::RunOutcome;

/// How many choices are made among the tries at a task, if the judge names none of them.
const MOST_CHOICES: u32 = 2;

/// Where a task of a batch is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskPlace {
    /// It waits to be begun, or to be continued after it was sent back.
    Waiting,
    /// A lane works on it.
    AtWork,
    /// Several tries are made at it, until one of them is chosen.
    Trying,
    /// Its worker was interrupted or lost. Another one continues its work.
    Interrupted,
    /// Its run has ended without success.
    Unsuccessful(Option<RunOutcome>),
    /// Its chain is complete, and its work waits to land.
    Ready,
    /// Its work is merged into the line, and is being verified.
    OnTrial,
    /// Its work has landed, as this commit.
    Landed(String),
    /// It conflicts with what has landed, in these files, and is sent back next.
    Conflicted(Vec<String>),
    /// It failed its verification alone, and is sent back next.
    Red,
    /// The batch does not work on it any more, for this reason.
    Stopped(String),
}

/// A task of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskOfBatch {
    /// What was known of it when the batch began.
    pub facts: BatchTask,
    /// Where it is.
    pub place: TaskPlace,
    /// The number of its unit, from 1: each time that it is sent back adds one. 0 before the first.
    pub turn: u32,
    /// The commit that its work is compared with; `None` for the last one of the line when it begins.
    pub base: Option<String>,
    /// The commit with which its work begins, if it is not `base`.
    pub start: Option<String>,
    /// The commit with its work, once its chain is complete.
    pub work: Option<String>,
    /// How often it was rejected, as far as the batch knows.
    pub rejections: u32,
    /// How often it was sent back.
    pub sent_back: u32,
    /// How many workers of its unit were lost since the batch began or resumed.
    pub lost: u32,
    /// When its chain was complete, as a number that increases.
    pub(super) ready: u64,
    /// Its runs, in order.
    pub runs: Vec<i64>,
    /// With `--tries`: the tries at it.
    pub tries: Vec<TryOfTask>,
    /// The choice among its tries.
    pub choice: ChoiceOfTask,
    /// The number of the try that was chosen.
    pub chosen: Option<u32>,
}

impl TaskOfBatch {
    /// A lane begins with a unit of this task, or continues it `again`.
    pub(super) fn unit_started(
        &mut self,
        try_number: Option<u32>,
        is_choice: bool,
        run: i64,
        (base, again): (&str, bool),
    ) {
        self.base.get_or_insert_with(|| base.to_string());
        if !again {
            self.runs.push(run);
        }
        match try_number {
            _ if is_choice => self.choice_started(again),
            Some(number) if self.chosen.is_none() => self.try_started(number, run, again),
            _ => {
                self.place = TaskPlace::AtWork;
                if !again {
                    self.turn += 1;
                    self.lost = 0;
                }
            }
        }
    }

    /// The numbers of the tries that were accepted, with the commits of their work.
    #[must_use]
    pub fn accepted(&self) -> Vec<(u32, &str)> {
        let accepted = (1..).zip(&self.tries).filter_map(|(number, one)| match &one.place {
            TryPlace::Accepted(work) => Some((number, work.as_str())),
            _ => None,
        });
        accepted.collect()
    }

    /// The commit with the work that a later batch can use: that of its chain, or else of the first try that was
    /// accepted, or else that of the first try, or else what it began with.
    #[must_use]
    pub fn best_work(&self) -> Option<&str> {
        let accepted = || self.accepted().first().map(|(_, work)| *work);
        let tried = || self.tries.iter().find_map(|one| one.work.as_deref());
        self.work.as_deref().or_else(accepted).or_else(tried).or(self.start.as_deref())
    }

    /// The run that has made its work: that of the chosen try, until the work is sent back.
    #[must_use]
    pub fn run_of_work(&self) -> Option<i64> {
        let chosen = self.chosen.filter(|_| self.sent_back == 0).and_then(|number| self.try_of(number));
        chosen.and_then(|chosen| chosen.run).or_else(|| self.runs.last().copied())
    }

    /// What its tries need next. `most_lost` is how many workers of one unit may be lost.
    #[must_use]
    pub fn tries_need(&self, most_lost: u32) -> TriesNeed {
        let numbered = || (1..).zip(&self.tries);
        let can_go_on = |one: &TryOfTask| one.place == TryPlace::Interrupted && one.lost < most_lost;
        let begun = numbered().find(|(_, one)| can_go_on(one));
        if let Some((number, _)) = begun.or_else(|| numbered().find(|(_, one)| one.place == TryPlace::Waiting)) {
            return TriesNeed::Try(number);
        }
        if self.tries.iter().any(|one| one.place == TryPlace::AtWork) {
            return TriesNeed::Nothing;
        }
        let choice = self.choice;
        match (self.accepted().len(), choice.place) {
            (0, _) => TriesNeed::GivingUp,
            (1, _) | (_, ChoicePlace::Answered) => TriesNeed::Taking,
            (_, ChoicePlace::AtWork) => TriesNeed::Nothing,
            _ if choice.lost >= most_lost => TriesNeed::GivingUp,
            // A worker that was lost is replaced in the same unit.
            (_, ChoicePlace::Interrupted) => TriesNeed::Choice(choice.number),
            (_, ChoicePlace::Open) if choice.number >= MOST_CHOICES => TriesNeed::GivingUp,
            (_, ChoicePlace::Open) => TriesNeed::Choice(choice.number + 1),
        }
    }

    /// A worker has started one of its tries.
    pub(super) fn try_started(&mut self, number: u32, run: i64, again: bool) {
        self.place = TaskPlace::Trying;
        if let Some(one) = self.try_mut(number) {
            (one.place, one.run) = (TryPlace::AtWork, Some(run));
            if !again {
                one.lost = 0;
            }
        }
    }

    /// The worker of one of its tries has ended.
    pub(super) fn try_ended(
        &mut self,
        (number, passed): (u32, bool),
        outcome: Option<RunOutcome>,
        work: Option<&String>,
        is_lost: bool,
    ) {
        let Some(one) = self.try_mut(number) else { return };
        one.work = work.cloned();
        one.place = match work {
            None => {
                one.lost += u32::from(is_lost);
                TryPlace::Interrupted
            }
            Some(work) if passed => TryPlace::Accepted(work.clone()),
            Some(_) => TryPlace::Unsuccessful(outcome),
        };
    }

    /// A worker asks the judge to choose.
    pub(super) fn choice_started(&mut self, again: bool) {
        self.choice.place = ChoicePlace::AtWork;
        if !again {
            self.choice.number += 1;
        }
    }

    /// The worker that asked the judge has ended. Without an answer, the judge is asked again, but not for ever.
    pub(super) fn choice_ended(&mut self, has_answered: bool, is_lost: bool) {
        self.choice.place = if has_answered { ChoicePlace::Answered } else { ChoicePlace::Interrupted };
        self.choice.lost += u32::from(is_lost);
    }

    /// Nothing is at work when a batch resumes.
    pub(super) fn tries_interrupted(&mut self) {
        self.choice.lost = 0;
        if self.choice.place == ChoicePlace::AtWork {
            self.choice.place = ChoicePlace::Interrupted;
        }
        for one in &mut self.tries {
            one.lost = 0;
            if one.place == TryPlace::AtWork {
                one.place = TryPlace::Interrupted;
            }
        }
    }

    fn try_mut(&mut self, number: u32) -> Option<&mut TryOfTask> {
        self.tries.get_mut(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// The backend of the try of this number; `None` for that of each agent.
    #[must_use]
    pub fn backend_of(&self, number: u32) -> Option<&str> {
        self.try_of(number)?.backend.as_deref()
    }

    fn try_of(&self, number: u32) -> Option<&TryOfTask> {
        self.tries.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }
}
