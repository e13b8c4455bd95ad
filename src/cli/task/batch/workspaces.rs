//! The settings of the workspaces of a batch, checked.

use super::errors;
use crate::chain::WorkspaceNeeds;
use crate::cli::config::Project;
use crate::cli::work::workspaces;
use crate::context::Repository;
use crate::hub::UserTree;
use crate::plan::path_of;
use crate::prompt::{Vars, expand_config};
use crate::source::{Diagnostic, Text};
use crate::unit::{Needs, is_label};
use crate::world::World;
use indexmap::IndexMap;
use std::path::{Component, Path, PathBuf};

/// What the workspaces of a batch are made with.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct WorkspacePlan {
    /// The directory of the workspaces.
    pub(in crate::cli) folder: PathBuf,
    /// The program and the arguments that prepare a workspace; empty for none.
    pub(in crate::cli) setup: Vec<String>,
    /// Ignored files that each gets a copy of; paths from the root.
    pub(in crate::cli) copy: Vec<String>,
    /// Ignored directories that each gets a link to; paths from the root.
    pub(in crate::cli) share: Vec<String>,
    /// How many ports each gets.
    pub(in crate::cli) ports: u16,
    /// Whether those of tasks that have landed are kept.
    pub(in crate::cli) keep: bool,
    /// What a machine must have in addition.
    pub(in crate::cli) needs: Needs,
}

impl WorkspacePlan {
    /// Checks the settings of a project. Without a repository, what only git knows is not checked.
    ///
    /// # Errors
    /// All errors in them.
    pub(in crate::cli) fn of(
        world: &World,
        project: &Project,
        repository: Option<&Repository>,
    ) -> Result<Self, Vec<Diagnostic>> {
        let settings = &project.config.workspace;
        let hub = project.root.join(".forkhestra/hub.git");
        let mut faults = Vec::new();
        let mut plan = Self {
            folder: PathBuf::new(),
            setup: settings.setup_words().unwrap_or_default(),
            copy: paths(project, repository, settings.copy.as_deref(), &mut faults),
            share: paths(project, repository, settings.share.as_deref(), &mut faults),
            ports: settings.ports.and_then(|ports| u16::try_from(ports.get()).ok()).unwrap_or(0),
            keep: settings.keep == Some(true),
            needs: needs(settings.needs.as_ref(), &mut faults),
        };
        match settings.root.as_ref().map(|root| folder(world, root)).transpose() {
            Ok(root) => match workspaces(world, &hub, root.as_deref()) {
                Ok(folder) => match repository.filter(|repository| is_below(world, &folder, &repository.top)) {
                    Some(repository) => faults.push(errors::workspaces_inside(&folder, &repository.top)),
                    None => plan.folder = folder,
                },
                Err(fault) => faults.push(fault),
            },
            Err(found) => faults.extend(found),
        }
        if faults.is_empty() { Ok(plan) } else { Err(faults) }
    }

    /// What git has to ignore in a workspace, as paths from its top.
    pub(in crate::cli) fn ignored(&self, folder: &str) -> Vec<String> {
        let below = Path::new(folder);
        self.copy.iter().chain(&self.share).map(|path| below.join(path).display().to_string()).collect()
    }
}

/// What the config says that a machine must have. Nothing is looked up here: it may be another machine.
pub(in crate::cli) fn needs(given: Option<&WorkspaceNeeds>, faults: &mut Vec<Diagnostic>) -> Needs {
    let Some(given) = given else { return Needs::default() };
    let mut names = |texts: &[Text], is_right: fn(&str) -> bool, what: &str| -> Vec<String> {
        faults.extend(texts.iter().filter(|text| !is_right(&text.value)).map(|text| errors::not_a_name(text, what)));
        texts.iter().map(|text| text.value.clone()).collect()
    };
    let is_program = |text: &str| !text.is_empty() && !text.contains(['/', '\0']);
    let is_variable = |text: &str| !text.is_empty() && !text.contains(['=', '\0', '$', ' ']);
    Needs {
        programs: names(&given.programs, is_program, "the name of a program on PATH"),
        variables: names(&given.variables, is_variable, "the name of an environment variable"),
        labels: names(&given.labels, is_label, "a label: letters, digits, `-`, `_`, `.` and `:`, at most 63"),
    }
}

fn is_below(world: &World, folder: &Path, top: &Path) -> bool {
    world.canonical(folder).starts_with(top) || folder.starts_with(top)
}

/// The directory that a config names.
fn folder(world: &World, root: &Text) -> Result<PathBuf, Vec<Diagnostic>> {
    let value = expand_config(root, &Vars::placeholders(IndexMap::new()), world)?;
    // The directory need not exist yet, so `..` is resolved in the text.
    let mut path = PathBuf::new();
    for part in path_of(&value, &root.at.source.base, world).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    Ok(path)
}

/// The paths of a list in the config, each of which must exist, lie in the root, and not be tracked by git.
fn paths(
    project: &Project,
    repository: Option<&Repository>,
    given: Option<&[Text]>,
    faults: &mut Vec<Diagnostic>,
) -> Vec<String> {
    let mut all = Vec::new();
    for text in given.into_iter().flatten() {
        let path = Path::new(&text.value);
        let is_inside = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let why = if text.value.is_empty() || !is_inside {
            "must be a path inside of the project"
        } else if !project.root.join(path).exists() {
            "does not exist"
        } else if repository.is_some_and(|repository| UserTree(repository).has_tracked(&project.root.join(path))) {
            "is tracked by git, so each workspace has it already"
        } else {
            all.push(text.value.clone());
            continue;
        };
        faults.push(errors::workspace_path(text, why));
    }
    all
}
