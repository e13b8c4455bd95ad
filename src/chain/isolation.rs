//! What stands between an agent's program and the machine: words before its command, and a sandbox.

use crate::source::{Place, Text};

/// A ready-made sandbox. A later one is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sandbox {
    /// None.
    Off,
    /// bubblewrap: the project and a temporary folder can be written, the rest is read-only.
    Project,
    /// The same without a network.
    Offline,
}

impl Sandbox {
    /// Every one, by its name.
    pub const NAMES: [(&'static str, Self); 3] =
        [("none", Self::Off), ("project", Self::Project), ("offline", Self::Offline)];

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, sandbox)| *sandbox)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, sandbox)| *sandbox == self).map_or("", |(name, _)| name)
    }
}

/// The keys `wrap`, `sandbox` and `writable` of a config, a backend, an agent or a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Isolation {
    /// A program and its arguments, before the command; empty: none, whatever lower levels say.
    pub wrap: Option<Vec<Text>>,
    /// The sandbox, and where it is written.
    pub sandbox: Option<(Sandbox, Place)>,
    /// More paths that can be written in the sandbox.
    pub writable: Vec<Text>,
}

impl Isolation {
    /// These, and where they say nothing, those of `below`. Paths that can be written add up. Of a `project` over what the user has
    /// written only what is stricter counts.
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
