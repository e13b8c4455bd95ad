//! The isolation of an agent's program from the machine: a wrapper before its command, and a sandbox.

use crate::source::{Place, Text, names};

/// A ready-made sandbox. Later variants are stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sandbox {
    /// No sandbox.
    Off,
    /// Under bubblewrap, the project and a temporary directory are writable and the rest is read-only.
    Project,
    /// The same as `Project`, without network access.
    Offline,
}

names!(Sandbox { Off = "none", Project = "project", Offline = "offline" });

/// The keys `wrap`, `sandbox` and `writable` of a config, a backend, an agent or a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Isolation {
    /// A program and its arguments, placed before the command. Empty means no wrapper, whatever lower levels set.
    pub wrap: Option<Vec<Text>>,
    /// The sandbox, and where it is set.
    pub sandbox: Option<(Sandbox, Place)>,
    /// Additional paths that are writable in the sandbox.
    pub writable: Vec<Text>,
}

impl Isolation {
    /// Returns these settings, with what they leave unset taken from `below`. The writable paths of both are kept. The
    /// settings of a `project` cannot weaken the user's own.
    #[must_use]
    pub fn over(self, below: Self, project: bool) -> Self {
        let held = project && below.sandbox.as_ref().is_some_and(|(sandbox, _)| *sandbox > Sandbox::Off);
        let is_weaker = |own: &Self| match (&own.sandbox, &below.sandbox) {
            (Some((own, _)), Some((below, _))) => own < below,
            _ => false,
        };
        let sandbox = if held && is_weaker(&self) { None } else { self.sandbox };
        let wrap = if project && below.wrap.as_ref().is_some_and(|words| !words.is_empty()) { None } else { self.wrap };
        let mut writable = below.writable;
        writable.extend(if held { Vec::new() } else { self.writable });
        Self { wrap: wrap.or(below.wrap), sandbox: sandbox.or(below.sandbox), writable }
    }
}
