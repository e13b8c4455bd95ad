//! A slice of an evaluation, as its worker carries it out: some cases of a suite, in a workspace.

use super::args::EvalRunArgs;
use super::{begin, options};
use crate::cli::options::{BoundOptions, Common};
use crate::cli::respond::{Answered, Stopped};
use crate::engine::RunKind;
use crate::eval::{SLICE_ANSWERS, SliceAnswer};
use crate::journal::Journal;
use crate::plan::Overrides;
use crate::unit::{BundledPlan, BundledSlice};
use crate::world::World;
use std::path::Path;

/// Asks the cases of a slice.
pub(in crate::cli) fn run_slice(
    world: &World,
    common: &Common,
    slice: &BundledSlice,
    made: Option<&BundledPlan>,
    overrides: Overrides,
) -> Answered {
    let args = EvalRunArgs {
        suite: slice.suite.clone().into(),
        case: slice.cases.clone(),
        only: Vec::new(),
        jobs: 1,
        repeat: slice.repeat,
        prompts: slice.prompts.clone().map(Into::into),
        fresh: false,
        bounds: BoundOptions {
            timeout: overrides.timeout,
            idle_timeout: overrides.idle_timeout,
            permissions: overrides.permissions,
            limit: overrides.limits,
        },
        events: None,
        dry_run: false,
        wait: true,
        json: false,
    };
    begin(world, common, &args, options(world, common, &args, None, None), made)
}

/// Writes the answers of the last evaluation in a workspace next to its attempts, with which they travel.
pub(in crate::cli) fn keep_answers(root: &Path) -> Result<(), Stopped> {
    let Some(journal) = Journal::existing(root)? else { return Ok(()) };
    let Some(row) = journal.runs().all()?.into_iter().find(|row| row.kind == RunKind::Evaluation) else {
        return Ok(());
    };
    let answers = journal.answers().of(row.id)?.into_iter();
    let lines = answers.filter_map(|(at, answer)| {
        serde_json::to_string(&SliceAnswer { step: at.step, attempt: at.attempt, answer }).ok()
    });
    let text: String = lines.map(|line| line + "\n").collect();
    Ok(journal.files().write_in_run_folder(row.id, SLICE_ANSWERS, text.as_bytes())?)
}
