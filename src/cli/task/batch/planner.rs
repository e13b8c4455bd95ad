//! Plans the units of a batch, and records in the tasks what becomes of them.

use super::Ready;
use crate::batch::{PlannedUnit, UnitPlanner, UnitPurpose, UnitToStart};
use crate::chain::{Chain, PromptSource, parse};
use crate::cli::respond::Stopped;
use crate::cli::run::chain::{TypedVars, named, split};
use crate::cli::run::setup::CHOOSER;
use crate::cli::run::{Typed, planned, said_by};
use crate::cli::task::facts::facts_of;
use crate::journal::{Journal, JournalError};
use crate::plan::{Outline, Overrides, Plan, digest, outline};
use crate::source::{Diagnostic, Place, Source, Text};
use crate::task::{Change, Status, Task};
use crate::unit::{BUNDLE_FORMAT, Bundle, BundledChoice, BundledPlan, BundledTask, TrailEntry};
use std::cell::RefCell;
use std::path::Path;

/// Plans the units of one batch.
pub(super) struct Planner<'a> {
    ready: &'a Ready<'a>,
    chain: Chain,
    given: TypedVars,
    verification: Option<(String, Outline, String)>,
    journal: RefCell<Journal>,
    /// The root, relative to the top of the repository.
    folder: String,
}

impl<'a> Planner<'a> {
    /// Prepares the planning of a batch's units.
    ///
    /// # Errors
    /// When the chain or the checks cannot be planned any more.
    pub(super) fn new(ready: &'a Ready<'a>, root: &Path) -> Result<Self, Stopped> {
        let chain = named(&ready.facts.chain, &ready.project.config)?;
        let (given, _) = split(&ready.vars, &ready.project.shell)?;
        let folder = crate::context::Repository::of(root).map_or_else(String::new, |found| found.below(root));
        let journal = RefCell::new(Journal::open(root)?);
        let mut planner = Self { ready, chain, given, verification: None, journal, folder };
        if let Some(checks) = &ready.facts.verification {
            let plan = planner.verification(checks)?;
            planner.verification = Some((checks.clone(), outline(&plan), digest(&plan)));
        }
        Ok(planner)
    }

    fn verification(&self, checks: &str) -> Result<Plan, Vec<Diagnostic>> {
        let Ready { world, project, .. } = *self.ready;
        let chain = parse(&Source::new("the verification", checks, &project.shell))?;
        let prompt = PromptSource::default();
        let typed = Typed { prompt, overrides: self.of_verification(), task: None };
        planned(world, project, &chain, &TypedVars::default(), &typed)
    }

    /// The options of a verification: those that say what a check runs and how long it may take.
    fn of_verification(&self) -> Overrides {
        let Overrides { timeout, profile, .. } = self.ready.overrides.clone();
        Overrides { timeout, profile, ..Overrides::default() }
    }

    /// Plans the choice among several tries at a task.
    fn choice(&self, bundle: Bundle, task: Option<&Task>, tries: &str) -> PlannedUnit {
        let Ready { world, project, ref overrides, .. } = *self.ready;
        let said = task.and_then(|task| said_by(&facts_of(task), project).inline);
        let task = said.map_or_else(String::new, |text| text.value);
        let prompt = format!(
            "Several tries were made at the same task, each on its own. Each has passed its checks and its review. \
             Choose the one that is best for the project: correct first, then tested, then simple.\n\n\
             ## The task\n\n{task}\n\n{tries}## Your answer\n\n\
             Give your reasons in a few sentences. End with one line that names the try by its number:\n\n\
             CHOICE: N\n\nChange no files.\n"
        );
        let judge = self.ready.facts.judge.clone().unwrap_or_default();
        let overrides = Overrides { limits: Vec::new(), base: None, ..overrides.clone() };
        let bundle = Bundle {
            steps: Some(CHOOSER.to_string()),
            overrides: overrides.clone(),
            // The judge builds nothing.
            setup: Vec::new(),
            copy: Vec::new(),
            share: Vec::new(),
            ports: 0,
            choice: Some(BundledChoice { judge: judge.clone(), prompt: prompt.clone() }),
            ..bundle
        };
        let (project, source) = (project.with_chooser(Some(judge)), Source::new("the choice", CHOOSER, &project.shell));
        let text = Text { value: prompt, at: Place::whole(&Source::new("the choice", "", &project.shell)) };
        let typed = Typed { prompt: PromptSource { inline: Some(text), file: None }, overrides, task: None };
        let plan = parse(&source).and_then(|chain| planned(world, &project, &chain, &TypedVars::default(), &typed));
        // What cannot be planned is refused by its worker, who reports why.
        let (outline, digest) =
            plan.map_or_else(|_| (Outline::default(), String::new()), |plan| (outline(&plan), digest(&plan)));
        self.with_plan(bundle, outline, digest)
    }

    fn with_plan(&self, mut bundle: Bundle, outline: Outline, digest: String) -> PlannedUnit {
        let config = self.ready.project.digest.clone();
        let made = || BundledPlan { config, outline: outline.clone().on_any_machine() };
        bundle.plan = (!outline.steps.is_empty()).then(made);
        PlannedUnit { bundle, outline, digest }
    }

    /// Records a new status of a task, unless it has it.
    fn moved(&self, task: &str, to: Status, notes: &str) -> Result<(), JournalError> {
        let journal = self.journal.borrow();
        let Some(known) = journal.tasks().get(task)?.filter(|known| known.status != to) else { return Ok(()) };
        let change = Change { from: known.status, to, actor: "host".into(), notes: notes.into(), rejection: false };
        // A person may have decided about the task at the same moment: that decision stands.
        let _ = journal.tasks().change_status(task, &change, &self.ready.world.timestamp())?;
        Ok(())
    }

    /// Plans the run of a task as it is now. One that cannot be planned any more is refused by its worker, who reports
    /// why.
    fn outline_of(&self, typed: &Typed) -> (Outline, String) {
        let Ready { world, project, .. } = *self.ready;
        planned(world, project, &self.chain, &self.given, typed)
            .map_or_else(|_| (Outline::default(), String::new()), |plan| (outline(&plan), digest(&plan)))
    }
}

impl UnitPlanner for Planner<'_> {
    fn status(&self, task: &str) -> Result<Option<Status>, JournalError> {
        Ok(self.journal.borrow().tasks().get(task)?.map(|task| task.status))
    }

    fn unit(&self, unit: &UnitToStart<'_>) -> Result<PlannedUnit, JournalError> {
        let UnitToStart { name, purpose, base, start } = *unit;
        let facts = &self.ready.facts;
        let mut bundle = Bundle {
            format: BUNDLE_FORMAT,
            forkhestra: env!("CARGO_PKG_VERSION").into(),
            unit: name.to_string(),
            workspace: name.to_string(),
            folder: self.folder.clone(),
            base: base.to_string(),
            start: start.to_string(),
            chain: None,
            steps: None,
            vars: Vec::new(),
            overrides: self.of_verification(),
            plan: None,
            setup: self.ready.workspaces.setup.clone(),
            copy: self.ready.workspaces.copy.clone(),
            share: self.ready.workspaces.share.clone(),
            clean: false,
            ports: self.ready.workspaces.ports,
            needs: self.ready.workspaces.needs.clone(),
            task: None,
            try_number: None,
            choice: None,
            slice: None,
        };
        // The units of a task share a workspace, and so do all verifications.
        if let Some((workspace, _)) = name.rsplit_once('-') {
            bundle.workspace = workspace.to_string();
        }
        let journal = self.journal.borrow();
        let known = purpose.task().map(|id| journal.tasks().get(id)).transpose()?.flatten();
        if let UnitPurpose::Choice { tries, .. } = purpose {
            return Ok(self.choice(bundle, known.as_ref(), tries));
        }
        let Some(task) = known else {
            let (checks, outline, digest) = self.verification.clone().unwrap_or_default();
            bundle.steps = Some(checks);
            bundle.clean = self.ready.project.config.landing.clean == Some(true);
            return Ok(self.with_plan(bundle, outline, digest));
        };
        let trail = journal.tasks().trail(&task.id)?;
        bundle.overrides = Overrides { limits: Vec::new(), ..self.ready.overrides.clone() };
        if let UnitPurpose::Task { try_number, backend, .. } = purpose {
            bundle.try_number = try_number;
            bundle.overrides.backend = backend.map(str::to_string).or(bundle.overrides.backend);
        }
        if start != base {
            bundle.overrides.base.get_or_insert_with(|| base.to_string());
        }
        let of_task = facts_of(&task);
        let typed = Typed {
            prompt: said_by(&of_task, self.ready.project),
            overrides: Overrides { base: None, ..bundle.overrides.clone() },
            task: Some(of_task),
        };
        let (outline, digest) = self.outline_of(&typed);
        bundle.chain = Some(facts.chain.clone());
        bundle.vars.clone_from(&self.ready.vars);
        bundle.task = Some(BundledTask {
            id: task.id,
            title: task.title,
            spec: task.spec,
            tests: task.tests,
            added: task.added,
            trail: trail.into_iter().map(|row| TrailEntry { at: row.at, change: row.change, by: None }).collect(),
        });
        Ok(self.with_plan(bundle, outline, digest))
    }

    fn rejected(&self, task: &str, feedback: &str, has_failed: bool) -> Result<(), JournalError> {
        let journal = self.journal.borrow();
        let Some(known) = journal.tasks().get(task)? else { return Ok(()) };
        let to = if has_failed { Status::Failed } else { Status::InProgress };
        let change =
            Change { from: known.status, to, actor: "host".into(), notes: feedback.to_string(), rejection: true };
        // A person may have decided about the task at the same moment: that decision stands.
        let _ = journal.tasks().change_status(task, &change, &self.ready.world.timestamp())?;
        Ok(())
    }

    fn tried(&self, task: &str) -> Result<(), JournalError> {
        let notes = format!("{} tries are made at it", self.ready.facts.tries.len());
        self.moved(task, Status::InProgress, &notes)
    }

    fn chosen(&self, task: &str, try_number: u32, reason: &str) -> Result<(), JournalError> {
        let of = self.ready.facts.tries.len();
        self.moved(task, Status::Completed, &format!("try {try_number} of {of} was chosen: {reason}"))
    }

    fn message(&self, task: &str, run: Option<i64>) -> String {
        let title =
            self.ready.facts.tasks.iter().find(|known| known.id == task).map_or("", |known| known.title.as_str());
        let run = run.map_or_else(String::new, |run| format!("Forkhestra-Run: {run}\n"));
        format!("{title}\n\nForkhestra-Task: {task}\n{run}")
    }
}
