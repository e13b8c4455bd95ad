//! `eval run --on ENGINE`: the cases are asked on other machines, a slice of them at a time.

use super::ReadyEval;
use crate::batch::{Budget, RemoteEngine, SliceSettings, Slices};
use crate::chain::Limits;
use crate::cli::config::Project;
use crate::cli::respond::Stopped;
use crate::cli::task::batch::{WorkspacePlan, engine_of, repository_of};
use crate::context::Repository;
use crate::engine::EvalOptions;
use crate::eval::matrix_refused;
use crate::hub::{Hub, UserTree};
use crate::source::Diagnostic;
use crate::unit::{BUNDLE_FORMAT, Bundle, BundledPlan, BundledSlice};
use crate::world::World;
use std::num::NonZeroU32;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// What an evaluation on other machines is made of, checked.
pub(super) struct Elsewhere {
    engine: RemoteEngine,
    workspaces: WorkspacePlan,
    repository: Repository,
    head: String,
    slice: BundledSlice,
}

impl Elsewhere {
    /// Checks everything before anything is started; `None` without `--on`.
    ///
    /// # Errors
    /// All that stands in the way.
    pub(super) fn check(world: &World, project: &Project, ready: &ReadyEval) -> Result<Option<Self>, Vec<Diagnostic>> {
        let Some(name) = &ready.facts.options.engine else { return Ok(None) };
        let mut faults = Vec::new();
        if ready.suite.runs_commands() {
            let fault = Diagnostic::error("eval/elsewhere", "a criterion that is a command runs on this machine only");
            faults.push(fault.help("run the suite without --on, or judge the cases by other criteria"));
        }
        if ready.suite.evaluators.len() > 1 {
            let fault = Diagnostic::error("eval/elsewhere", "several evaluators judge on this machine only");
            faults.push(fault.help("run the suite without --on, or with one evaluator"));
        }
        if ready.suite.is_matrix() {
            faults.push(matrix_refused("--on"));
        }
        if ready.trees.is_some() {
            let fault = Diagnostic::error("eval/elsewhere", "cases that are trees run on this machine only");
            faults.push(fault.help("run the suite without --on"));
        }
        let mut gathered = |found: Vec<Diagnostic>| faults.extend(found);
        let repository = repository_of(&project.root, true).map_err(&mut gathered).ok();
        let workspaces = (repository.as_ref())
            .map(|(repository, _)| WorkspacePlan::of(world, project, Some(repository)))
            .transpose()
            .map_err(&mut gathered)
            .ok()
            .flatten();
        let needed: Vec<&str> =
            workspaces.iter().flat_map(|plan| plan.copy.iter().chain(&plan.share)).map(String::as_str).collect();
        let engine = engine_of(world, project, name, &needed).map_err(&mut gathered).ok();
        let slice = slice_of(project, &ready.facts.options).map_err(&mut gathered).ok();
        match (engine, workspaces, repository, slice) {
            (Some(engine), Some(workspaces), Some((repository, head)), Some(slice)) if faults.is_empty() => {
                Ok(Some(Self { engine, workspaces, repository, head, slice }))
            }
            _ => Err(faults),
        }
    }

    /// Makes the hub ready, with all files as they are now. `worked` is how long the evaluation has run before.
    pub(super) fn slices<'a>(
        self,
        world: &'a World,
        project: &Project,
        ready: &ReadyEval,
        (run, worked): (i64, Duration),
    ) -> Result<Slices<'a>, Stopped> {
        let Self { engine, workspaces, repository, head, slice } = self;
        let hub = Hub::prepare(&project.root, &repository)?;
        let folder = repository.below(&project.root);
        hub.adopt_settings(&repository, &workspaces.ignored(&folder))?;
        hub.import(&repository, &head)?;
        let start = UserTree(&repository).snapshot(&hub, &head)?;
        not_in_snapshot(&hub, &start, &folder, &slice)?;
        let limits = ready.settings.limits.clone();
        let mut overrides = ready.overrides.clone();
        overrides.limits.clear();
        let unit = Bundle {
            format: BUNDLE_FORMAT,
            forkhestra: env!("CARGO_PKG_VERSION").into(),
            unit: String::new(),
            workspace: String::new(),
            folder,
            base: start.clone(),
            start,
            chain: None,
            steps: None,
            vars: Vec::new(),
            overrides,
            plan: Some(BundledPlan { config: project.digest.clone(), outline: ready.outline.clone().on_any_machine() }),
            setup: workspaces.setup.clone(),
            copy: workspaces.copy,
            share: workspaces.share,
            clean: false,
            ports: 0,
            needs: workspaces.needs,
            task: None,
            try_number: None,
            choice: None,
            slice: Some(slice),
        };
        let begun = world.uptime().saturating_sub(worked);
        let options = &ready.facts.options;
        Ok(Slices::new(SliceSettings {
            world,
            hub,
            engine: Rc::new(engine),
            run,
            unit,
            size: usize::try_from(options.slice).unwrap_or(usize::MAX),
            lanes: options.jobs,
            budget: Budget::new(&limits, &Limits::default(), begun),
        }))
    }
}

/// The suite and the prompts, as paths that hold on other machines.
fn slice_of(project: &Project, options: &EvalOptions) -> Result<BundledSlice, Vec<Diagnostic>> {
    let below = |path: &str| {
        Path::new(path).strip_prefix(&project.root).map(|path| path.display().to_string()).map_err(|_| {
            Diagnostic::error(
                "eval/elsewhere",
                format!("{path} is not in the project, so other machines do not get it"),
            )
            .help(format!("copy it to a directory below {}", project.root.display()))
        })
    };
    match (below(&options.suite), options.prompts.as_deref().map(below).transpose()) {
        (Ok(suite), Ok(prompts)) => {
            let repeat = options.repeat.and_then(NonZeroU32::new);
            Ok(BundledSlice { suite, prompts, cases: Vec::new(), repeat })
        }
        (suite, prompts) => Err(suite.err().into_iter().chain(prompts.err()).collect()),
    }
}

/// An error if git ignores the suite or the prompts, so that they are not in the snapshot.
fn not_in_snapshot(hub: &Hub, start: &str, folder: &str, slice: &BundledSlice) -> Result<(), Stopped> {
    let paths = std::iter::once(&slice.suite).chain(&slice.prompts);
    let missing = paths.filter(|path| !hub.has_path(start, &Path::new(folder).join(path)));
    let faults: Vec<Diagnostic> = missing
        .map(|path| {
            Diagnostic::error("eval/elsewhere", format!("git ignores {path}, so other machines do not get it"))
                .help("`git check-ignore -v PATH` names the rule")
        })
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.into()) }
}
