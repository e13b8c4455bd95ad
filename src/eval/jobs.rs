//! What the job of a question gets once its plan and its key are known.

use super::trees::{TREES, WORK};
use crate::plan::{Plan, PlannedStep};
use crate::prompt::{Late, Segment, text};
use std::path::Path;
use std::sync::Arc;

/// Tells a command where the files of its case are, and runs it in the tree of its case, if that has one.
pub(super) fn for_command(plan: &mut Plan, case: &Path, tree: Option<&Path>) {
    if let [step] = plan.steps.as_mut_slice() {
        set_variable(step, "FORKHESTRA_CASE", case);
        step.folder = tree.map(Path::to_path_buf).or_else(|| step.folder.take());
    }
}

/// Tells the process that works on a tree where the trees are, and what the chain may cost.
pub(super) fn for_tree(plan: &mut Plan, store: &Path) {
    let is_limited = plan.limits.cost.is_some();
    if let [step] = plan.steps.as_mut_slice() {
        set_variable(step, TREES, store);
        Arc::make_mut(&mut step.env).set.push((WORK.into(), vec![Segment::Late(Late::Folder)]));
        if is_limited {
            step.argv.push(text("--limit"));
            step.argv.push(vec![Segment::Text("cost=".into()), Segment::Late(Late::Budget)]);
        }
    }
}

fn set_variable(step: &mut PlannedStep, name: &str, path: &Path) {
    Arc::make_mut(&mut step.env).set.push((name.into(), text(path.display().to_string())));
}
