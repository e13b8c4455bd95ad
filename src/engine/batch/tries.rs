//! Several tries at one task, of which a judge chooses one.

use super::state::{TaskOfBatch, TaskPlace};
use crate::engine::RunOutcome;

/// How many choices are made among the tries at a task, if the judge names none of them.
const MOST_CHOICES: u32 = 2;

/// Where one of several tries at a task is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TryPlace {
    /// It has not begun.
    #[default]
    Waiting,
    /// A lane works on it.
    AtWork,
    /// Its worker was interrupted or lost. Another one continues its work.
    Interrupted,
    /// Its run has ended without success.
    Unsuccessful(Option<RunOutcome>),
    /// Its chain is complete. This commit has its work.
    Accepted(String),
}

/// One of several tries at a task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TryOfTask {
    /// The backend of its agents; `None` for that of each agent.
    pub backend: Option<String>,
    /// Where it is.
    pub place: TryPlace,
    /// The number of its run, once it has begun.
    pub run: Option<i64>,
    /// The commit with its work, accepted or not, once its run has ended.
    pub work: Option<String>,
    /// How many of its workers were lost since the batch began or resumed.
    pub lost: u32,
}

/// Where the choice among the tries at a task is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ChoicePlace {
    /// The judge is not asked yet, or has named none of the tries.
    #[default]
    Open,
    /// The judge compares the tries.
    AtWork,
    /// The judge's worker was interrupted or lost.
    Interrupted,
    /// The judge has answered.
    Answered,
}

/// The choice among the tries at a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChoiceOfTask {
    /// The number of the choice, from 1; 0 before the first.
    pub number: u32,
    /// Where it is.
    pub place: ChoicePlace,
    /// How many of its workers were lost since the batch began or resumed.
    pub lost: u32,
}

/// What the tries at a task need next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriesNeed {
    /// This try is to be started, or continued.
    Try(u32),
    /// The judge is to be asked, for the choice of this number.
    Choice(u32),
    /// One of them can be taken: the judge has answered, or only one was accepted.
    Taking,
    /// No try was accepted, or the judge could not choose one.
    GivingUp,
    /// Lanes are working.
    Nothing,
}

impl TaskOfBatch {
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
