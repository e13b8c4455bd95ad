//! Whether a worker arrives at the plan that was made on the machine of the batch.

use crate::cli::config::Project;
use crate::plan::{Limits, Outline, OutlineStep, Plan, Root, outline};
use crate::source::Diagnostic;
use crate::unit::BundledPlan;

/// Returns an error if the plan is not the one that was made for the unit. If the project's config is
/// the same, a difference comes from the user's own config or from the environment.
pub(in crate::cli) fn another_plan(made: &BundledPlan, project: &Project, plan: &Plan) -> Option<Diagnostic> {
    let (mut before, mut now) = (made.outline.clone(), outline(plan));
    forget_prompts_of_the_project(&mut before, &mut now, &plan.root);
    another_outline(&BundledPlan { outline: before, ..made.clone() }, project, &now)
}

/// Like [`another_plan`], for a plan in brief.
pub(in crate::cli) fn another_outline(made: &BundledPlan, project: &Project, now: &Outline) -> Option<Diagnostic> {
    // The config has changed since, by work that has landed: what is planned now is right.
    if made.config != project.digest {
        return None;
    }
    let (mut before, mut now) = (made.outline.clone(), now.clone());
    for outline in [&mut before, &mut now] {
        // A run gets its share of the batch's limits.
        outline.limits = Limits::default();
    }
    let changes = before.changes(&now);
    (!changes.is_empty()).then(|| {
        Diagnostic::error(
            "work/plan",
            format!(
                "this machine has arrived at a different plan for the unit from its batch's: {}",
                changes.join("; ")
            ),
        )
        .help(
            "compare ~/.config/forkhestra/chains.json on both machines, and the variables that the config uses; \
                 what all machines need belongs in the project's forge/chains.json",
        )
    })
}

/// Leaves out the prompts that are files of the project: they are part of the commit.
fn forget_prompts_of_the_project(before: &mut Outline, now: &mut Outline, root: &Root) {
    let Root::Folder(root) = root else { return };
    let root = root.display().to_string();
    let is_file = |step: &OutlineStep| step.origin.as_ref().is_some_and(|origin| origin.contains(&root));
    for (before, now) in before.steps.iter_mut().zip(&mut now.steps) {
        if is_file(now) {
            before.prompt.clone_from(&now.prompt);
        }
    }
}
