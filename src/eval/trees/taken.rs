//! The trees of all cases, as they were when an evaluation began.

use super::{CaseTree, CaseTreeStore, FORGE, TreeIds};
use crate::eval::errors;
use crate::eval::suite::Suite;
use crate::source::Diagnostic;
use crate::world::World;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

/// The trees of all cases of a suite.
#[derive(Debug)]
pub struct CaseTrees {
    pub(in crate::eval) store: CaseTreeStore,
    /// By the id of the case.
    ids: HashMap<Arc<str>, TreeIds>,
}

impl CaseTrees {
    /// Takes the trees of all cases as they are now. `None` if the cases have none.
    ///
    /// # Errors
    /// All trees that cannot be read.
    pub fn take(world: &World, suite: &Suite, root: &Path) -> Result<Option<Self>, Vec<Diagnostic>> {
        if !suite.has_trees() {
            return Ok(None);
        }
        let store = CaseTreeStore::new(world, root).map_err(|why| errors::trees_unreadable(&[why]))?;
        let (mut known, mut faults): (HashMap<&CaseTree, TreeIds>, Vec<String>) = (HashMap::new(), Vec::new());
        let mut ids = HashMap::new();
        // No chain sees what another one is judged by.
        let trees = suite.cases.iter().filter_map(|case| case.tree.as_deref());
        let hidden: BTreeSet<&Path> = trees
            .filter_map(|tree| tree.hidden.as_deref())
            .filter_map(|hidden| hidden.strip_prefix(root).ok())
            .collect();
        for case in &suite.cases {
            let Some(tree) = case.tree.as_deref() else { continue };
            match known.get(tree).cloned().map_or_else(|| store.take(tree, root, FORGE, &hidden), Ok) {
                Ok(taken) => {
                    known.insert(tree, taken.clone());
                    ids.insert(case.id.clone(), taken);
                }
                Err(why) if faults.contains(&why) => {}
                Err(why) => faults.push(why),
            }
        }
        if faults.is_empty() { Ok(Some(Self { store, ids })) } else { Err(errors::trees_unreadable(&faults)) }
    }

    /// The trees of a case.
    #[must_use]
    pub fn of(&self, case: &str) -> Option<&TreeIds> {
        self.ids.get(case)
    }
}
