//! Tasks in a hub that several people share: one ref each, to which every change is added as a commit, by a
//! compare-and-swap. `git log` of a ref shows who has decided what.

use super::hub_git::{HubGit, RefChange};
use super::remote::HubRemote;
use super::{HubError, git};
use crate::unit::SharedTask;
use std::ffi::OsStr;
use std::path::Path;

/// The prefix of the refs of tasks.
const TASKS: &str = "refs/forkhestra/tasks/";
/// The prefix of the refs of the work on tasks.
const WORK: &str = "refs/forkhestra/work/";
/// The file of a task in the tree of its commits.
const FILE: &str = "task.json";
/// The email address of whoever has none.
const NO_EMAIL: &str = "forkhestra@localhost";

/// A task as the hub has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTask {
    /// The last commit on its ref.
    pub commit: String,
    /// The task.
    pub task: SharedTask,
}

/// A change of a task.
#[derive(Debug, Clone)]
pub struct TaskChange<'a> {
    /// The task as it is to be.
    pub task: &'a SharedTask,
    /// Its commit in the hub; `None` if it is new.
    pub old: Option<&'a str>,
    /// The commit with the work on it that the hub has; `None` for none.
    pub old_work: Option<&'a str>,
    /// What has happened to it, in one line.
    pub event: String,
}

/// Who makes a change, as in a commit of git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The name; `None` if git knows none.
    pub name: Option<String>,
    /// The email address.
    email: String,
}

impl Person {
    /// The person whom git knows in a directory.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        let known = |key: &str| git::personal(&["config", "--get", key], folder).ok().filter(|text| !text.is_empty());
        let email = known("user.email").unwrap_or_else(|| NO_EMAIL.into());
        Self { name: known("user.name"), email }
    }

    fn variables(&self) -> [(&'static str, &OsStr); 4] {
        let (name, email) = (OsStr::new(self.name.as_deref().unwrap_or("forkhestra")), OsStr::new(&self.email));
        [
            ("GIT_AUTHOR_NAME", name),
            ("GIT_AUTHOR_EMAIL", email),
            ("GIT_COMMITTER_NAME", name),
            ("GIT_COMMITTER_EMAIL", email),
        ]
    }
}

/// The tasks in a hub that several people share.
#[derive(Debug, Clone, Copy)]
pub struct HubTasks<'a>(pub(super) &'a HubGit);

impl HubTasks<'_> {
    /// Returns all tasks, in the order in which they were added.
    ///
    /// # Errors
    /// When the hub cannot be reached, or has a task that this version does not understand.
    pub fn all(self) -> Result<Vec<FoundTask>, HubError> {
        HubRemote(self.0).fetch_all(TASKS)?;
        let told =
            self.0.ask(&["for-each-ref", "--sort=version:refname", "--format=%(objectname) %(refname)", TASKS])?;
        let refs: Vec<(&str, &str)> = told.lines().filter_map(|line| line.split_once(' ')).collect();
        let names: Vec<String> = refs.iter().map(|(commit, _)| format!("{commit}:{FILE}\n")).collect();
        let texts = if refs.is_empty() { String::new() } else { self.read(&names.concat())? };
        let (mut tasks, mut rest) = (Vec::new(), texts.as_str());
        for (commit, name) in refs {
            let id = name.strip_prefix(TASKS).unwrap_or(name);
            // A line with the size in bytes, the text, and a line break.
            let (head, below) = rest.split_once('\n').unwrap_or((rest, ""));
            let size = head.rsplit_once(' ').and_then(|(_, size)| size.parse::<usize>().ok());
            let text = size.and_then(|size| below.get(..size)).unwrap_or_default();
            rest = below.get(text.len() + 1..).unwrap_or_default();
            let bad = |cause| HubError::Task { task: id.to_string(), cause };
            tasks.push(FoundTask { commit: commit.to_string(), task: SharedTask::parse(text).map_err(bad)? });
        }
        tasks.sort_by(|one, other| one.task.added.cmp(&other.task.added));
        Ok(tasks)
    }

    /// Returns the objects with these names, a line each, as git-cat-file(1) prints them with `--batch`.
    fn read(self, names: &str) -> Result<String, HubError> {
        let words = ["cat-file", "--batch=%(objectname) %(objectsize)"];
        // Not `ask`, which removes the last line break.
        self.0.answer(&words, &[], names.as_bytes()).map(|answer| answer.stdout)
    }

    /// Adds or changes tasks, with the work on them, all of them or none. Returns `false` if somebody else has changed
    /// one of them at the same moment.
    ///
    /// # Errors
    /// When git fails, or the hub cannot be reached.
    pub fn put(self, tasks: &[TaskChange<'_>], person: &Person) -> Result<bool, HubError> {
        HubRemote(self.0).swap_all(&self.changes(tasks, person)?)
    }

    /// Creates the commits of changed tasks. Returns the refs that have to change, all of them or none.
    ///
    /// # Errors
    /// When git fails.
    pub fn changes(self, tasks: &[TaskChange<'_>], person: &Person) -> Result<Vec<RefChange>, HubError> {
        let mut changes = Vec::new();
        for TaskChange { task, old, old_work, event } in tasks {
            let blob = self.0.ask_with(&["hash-object", "-w", "--stdin"], &[], task.text().as_bytes())?;
            let tree = self.0.ask_with(&["mktree"], &[], format!("100644 blob {blob}\t{FILE}\n").as_bytes())?;
            let new = self.commit_by(person, &tree, *old, &format!("task {}: {event}\n", task.id))?;
            changes.push((format!("{TASKS}{}", task.id), new, old.map(str::to_string)));
            if let Some(work) = task.work.as_ref().filter(|work| Some(work.as_str()) != *old_work) {
                changes.push((format!("{WORK}{}", task.id), work.clone(), old_work.map(str::to_string)));
            }
        }
        Ok(changes)
    }

    /// Returns the IDs of the tasks of a shared hub, as this copy of it knows them.
    ///
    /// # Errors
    /// When git fails.
    pub fn known(self) -> Result<Vec<String>, HubError> {
        let told = self.0.ask(&["for-each-ref", "--format=%(refname)", TASKS])?;
        Ok(told.lines().filter_map(|name| name.strip_prefix(TASKS)).map(str::to_string).collect())
    }

    /// Fetches the work on a task from the hub. Returns whether it is this commit.
    ///
    /// # Errors
    /// When git fails, or the hub cannot be reached.
    pub fn fetch_work(self, id: &str, commit: &str) -> Result<bool, HubError> {
        Ok(HubRemote(self.0).refresh_ref(&format!("{WORK}{id}"))? && self.0.has(commit))
    }

    /// Creates a commit in a repository whose settings are not ours. Returns its ID.
    pub(super) fn commit_by(
        self,
        person: &Person,
        tree: &str,
        parent: Option<&str>,
        message: &str,
    ) -> Result<String, HubError> {
        let mut words = vec!["commit-tree", tree];
        words.extend(parent.into_iter().flat_map(|parent| ["-p", parent]));
        words.extend(["-F", "-"]);
        self.0.ask_with(&words, &person.variables(), message.as_bytes())
    }
}
