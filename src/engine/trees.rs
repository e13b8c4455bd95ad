//! The trees between which the attempts of a run worked: a fold of its events.

use super::event::{At, Event, EventKind};
use serde::Serialize;

/// The trees before and after an attempt, as IDs of git trees in forkhestra's own store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptTrees {
    /// The attempt's place in the run.
    pub at: At,
    /// The tree with which the attempt began; `None` if there was no snapshot.
    pub before: Option<String>,
    /// The tree with which the attempt ended; `None` if there was no snapshot, or it has not ended.
    pub after: Option<String>,
}

/// The trees of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunTrees {
    /// The tree with which the run began; `None` if there was no snapshot.
    pub began: Option<String>,
    /// The trees of its attempts, in the order in which they were planned.
    pub attempts: Vec<AttemptTrees>,
    now: Option<String>,
}

impl RunTrees {
    /// Returns the trees of a run with these events.
    #[must_use]
    pub fn of(events: &[Event]) -> Self {
        let mut trees = Self::default();
        for event in events {
            trees.evolve(&event.event);
        }
        trees
    }

    /// Returns the same attempts without their trees, with another first and last tree of the run.
    #[must_use]
    pub fn with_ends(self, began: Option<String>, last: Option<String>) -> Self {
        let without = |trees: AttemptTrees| AttemptTrees { before: None, after: None, ..trees };
        Self { began, attempts: self.attempts.into_iter().map(without).collect(), now: last }
    }

    /// Returns the last tree of the run; `None` if there was no snapshot after the first one.
    #[must_use]
    pub fn last(&self) -> Option<&str> {
        self.now.as_deref()
    }

    /// Applies the next event.
    pub fn evolve(&mut self, event: &EventKind) {
        match event {
            EventKind::RunStarted { found, tree, .. } => {
                self.began = found.clone().or_else(|| tree.clone());
                self.now.clone_from(&self.began);
            }
            // What was changed while the run stood still is not the work of an attempt.
            EventKind::RunResumed { tree: Some(tree), .. } => self.now = Some(tree.clone()),
            EventKind::AttemptPlanned { at, .. } => {
                self.attempts.push(AttemptTrees { at: at.clone(), before: self.now.clone(), after: None });
            }
            EventKind::AttemptFinished { at, finished, .. } => {
                let place = |trees: &&mut AttemptTrees| (trees.at.step, trees.at.attempt) == (at.step, at.attempt);
                if let Some(trees) = self.attempts.iter_mut().rev().find(place) {
                    trees.after.clone_from(&finished.tree);
                }
                if finished.tree.is_some() {
                    self.now.clone_from(&finished.tree);
                }
            }
            _ => {}
        }
    }
}

/// A file that differs between two trees, with the numbers of its lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// `A` for a new file, `D` for a deleted one, `T` for one whose type changed, `M` for any other.
    pub status: char,
    /// The path relative to the root; it starts with `../` for a file outside the root.
    pub path: String,
    /// The number of added lines; `None` for a binary file.
    pub added: Option<u64>,
    /// The number of removed lines; `None` for a binary file.
    pub removed: Option<u64>,
}
