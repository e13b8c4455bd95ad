//! The settings of several tasks at once: their workspaces, how their work lands, and what brings it to other machines.

use super::ir::Run;
use super::read::run;
use super::reader::Reader;
use crate::source::Text;
use std::num::NonZeroU32;
use std::time::Duration;

/// The value of `workspace.needs` in a config: what a machine must have in addition to the project's agents and checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceNeeds {
    /// Programs that are found on PATH.
    pub programs: Vec<Text>,
    /// Environment variables that are set.
    pub variables: Vec<Text>,
    /// Labels of the workers that may do the work.
    pub labels: Vec<Text>,
}

/// The value of `workspace` in a config.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceSettings {
    /// The command that prepares a workspace before each run in it.
    pub setup: Option<Run>,
    /// Ignored files that are copied into every workspace; paths from the root.
    pub copy: Option<Vec<Text>>,
    /// Ignored directories that every workspace gets a link to; paths from the root.
    pub share: Option<Vec<Text>>,
    /// How many ports each workspace gets.
    pub ports: Option<NonZeroU32>,
    /// The directory of the workspaces.
    pub root: Option<Text>,
    /// Whether the workspaces of tasks that have landed are kept.
    pub keep: Option<bool>,
    /// What a machine must have.
    pub needs: Option<WorkspaceNeeds>,
}

impl WorkspaceNeeds {
    fn read(reader: Reader<'_>) -> Self {
        let texts = |key| reader.texts(key).unwrap_or_default();
        Self { programs: texts("programs"), variables: texts("variables"), labels: texts("labels") }
    }
}

impl WorkspaceSettings {
    /// Reads the value of `workspace`.
    pub(super) fn read(reader: Reader<'_>) -> Self {
        Self {
            setup: reader.get("setup").and_then(run),
            copy: reader.texts("copy"),
            share: reader.texts("share"),
            ports: reader.count("ports"),
            root: reader.text("root"),
            keep: reader.flag("keep"),
            needs: reader.get("needs").map(WorkspaceNeeds::read),
        }
    }

    /// Returns these settings, with what they leave unset taken from `below`.
    pub(super) fn or(self, below: Self) -> Self {
        Self {
            setup: self.setup.or(below.setup),
            copy: self.copy.or(below.copy),
            share: self.share.or(below.share),
            ports: self.ports.or(below.ports),
            root: self.root.or(below.root),
            keep: self.keep.or(below.keep),
            needs: self.needs.or(below.needs),
        }
    }

    /// The program and the arguments that prepare a workspace.
    #[must_use]
    pub fn setup_words(&self) -> Option<Vec<String>> {
        Some(match self.setup.as_ref()? {
            Run::Shell(line) => vec!["sh".to_string(), "-c".into(), line.value.clone()],
            Run::Words(words) => words.iter().map(|word| word.value.clone()).collect(),
        })
    }
}

/// The value of `landing` in a config.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Landing {
    /// The checks that verify work before it lands; `None` for those of the chain.
    pub checks: Option<Vec<Text>>,
    /// How many tasks are merged at once, at most.
    pub together: Option<NonZeroU32>,
    /// Whether each verification gets a fresh workspace.
    pub clean: Option<bool>,
}

impl Landing {
    /// Reads the value of `landing`.
    pub(super) fn read(reader: Reader<'_>) -> Self {
        Self { checks: reader.texts("checks"), together: reader.count("together"), clean: reader.flag("clean") }
    }

    /// Returns these settings, with what they leave unset taken from `below`.
    pub(super) fn or(self, below: Self) -> Self {
        Self {
            checks: self.checks.or(below.checks),
            together: self.together.or(below.together),
            clean: self.clean.or(below.clean),
        }
    }
}

/// An entry of `engines` in a config: what brings work to other machines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineSettings {
    /// The command that starts a job; `None` if the workers fetch their work by themselves.
    pub submit: Option<Vec<Text>>,
    /// The command that lists the jobs that have not ended.
    pub list: Option<Vec<Text>>,
    /// The command that ends a job.
    pub cancel: Option<Vec<Text>>,
    /// Where the other machines find the hub.
    pub hub: Option<Text>,
    /// The program forkhestra on the other machines.
    pub program: Option<Text>,
    /// The directory on the other machines with the ignored files that the work needs.
    pub files: Option<Text>,
    /// The directory of the workspaces on the other machines.
    pub workspaces: Option<Text>,
    /// How often the jobs are listed.
    pub poll: Option<Duration>,
}

impl EngineSettings {
    /// Reads an entry of `engines`.
    pub(super) fn read(reader: Reader<'_>) -> Self {
        Self {
            submit: reader.texts("submit"),
            list: reader.texts("list"),
            cancel: reader.texts("cancel"),
            hub: reader.text("hub"),
            program: reader.text("program"),
            files: reader.text("files"),
            workspaces: reader.text("workspaces"),
            poll: reader.duration("poll"),
        }
    }

    /// Returns these settings, with what they leave unset taken from `below`.
    pub(super) fn or(self, below: Self) -> Self {
        Self {
            submit: self.submit.or(below.submit),
            list: self.list.or(below.list),
            cancel: self.cancel.or(below.cancel),
            hub: self.hub.or(below.hub),
            program: self.program.or(below.program),
            files: self.files.or(below.files),
            workspaces: self.workspaces.or(below.workspaces),
            poll: self.poll.or(below.poll),
        }
    }
}
