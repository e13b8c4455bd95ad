//! Several tries at one task, of which a judge chooses one.

use crate::engine::RunOutcome;

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
