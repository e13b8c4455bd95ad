//! What the command line says of a run beside its chain, its prompt and its variables: as it was typed, which a resume remembers, and as it
//! is meant. A new option of that kind is a field of each.

use crate::chain::{Limits, Permissions, bad_duration, parse_duration, parse_limit};
use crate::checks::{Profile, Scope};
use crate::source::{Diagnostic, Place, Source};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// What the command line of a run said beside its chain, its prompt and its variables, as it was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Overrides {
    /// `--timeout`.
    pub timeout: Option<String>,
    /// `--permissions`.
    #[serde(default)]
    pub permissions: Option<String>,
    /// `--backend`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// `--model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `--idle-timeout`.
    pub idle_timeout: Option<String>,
    /// Every `--limit`.
    pub limits: Vec<String>,
    /// `--profile`.
    #[serde(default)]
    pub profile: Option<String>,
    /// `--scope`.
    #[serde(default)]
    pub scope: Option<String>,
    /// `--base`.
    #[serde(default)]
    pub base: Option<String>,
}

/// The same as it is meant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSettings {
    /// The timeout of every iteration.
    pub timeout: Option<Duration>,
    /// The idle timeout of every agent.
    pub idle_timeout: Option<Duration>,
    /// The limits of the run.
    pub limits: Limits,
    /// The permissions of every agent CLI.
    pub permissions: Option<Permissions>,
    /// How much is verified.
    pub profile: Profile,
    /// Whether somebody asked for that profile: then agents are held to its budget.
    pub budgeted: bool,
    /// How large the work is, if somebody says so.
    pub scope: Option<Scope>,
}

impl Overrides {
    /// What is meant by them; `folder` is where they were typed.
    ///
    /// # Errors
    /// Those of them that mean nothing.
    pub fn settings(&self, folder: &Path) -> Result<RunSettings, Vec<Diagnostic>> {
        let time = |option: &str, text: &Option<String>| {
            let Some(text) = text else { return Ok(None) };
            let source = Source::new(option, text.as_str(), folder);
            parse_duration(text)
                .map(Some)
                .map_err(|fault| vec![bad_duration(&Place::whole(&source), option, text, fault)])
        };
        Ok(RunSettings {
            timeout: time("--timeout", &self.timeout)?,
            idle_timeout: time("--idle-timeout", &self.idle_timeout)?,
            limits: limits(&self.limits, folder)?,
            permissions: self.permissions.as_deref().and_then(Permissions::named),
            profile: self.profile.as_deref().and_then(Profile::named).unwrap_or_default(),
            budgeted: self.profile.is_some(),
            scope: self.scope.as_deref().and_then(Scope::named),
        })
    }
}

/// The limits of every `--limit`; a later one of a name wins. `folder` is where they were typed.
///
/// # Errors
/// Those of them that are none.
pub fn limits(texts: &[String], folder: &Path) -> Result<Limits, Vec<Diagnostic>> {
    let (mut limits, mut faults) = (Limits::default(), Vec::new());
    for text in texts {
        match parse_limit(&Source::new("--limit", text.as_str(), folder)) {
            Ok(limit) => limits = limit.or(limits),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(limits) } else { Err(faults) }
}
