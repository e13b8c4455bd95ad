//! The options of a run other than its chain, prompt and variables, in two forms: as typed (reused by `resume`) and
//! parsed. A new option of this kind is a field of both types.

use crate::chain::{Limits, Permissions, bad_duration, parse_duration, parse_limit};
use crate::checks::{Profile, Scope};
use crate::source::{Diagnostic, Place, Source};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// The options of a run other than its chain, prompt and variables, as typed on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Overrides {
    /// The value of `--timeout`.
    pub timeout: Option<String>,
    /// The value of `--permissions`.
    #[serde(default)]
    pub permissions: Option<String>,
    /// The value of `--backend`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// The value of `--model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The value of `--idle-timeout`.
    pub idle_timeout: Option<String>,
    /// The value of each `--limit`.
    pub limits: Vec<String>,
    /// The value of `--profile`.
    #[serde(default)]
    pub profile: Option<String>,
    /// The value of `--scope`.
    #[serde(default)]
    pub scope: Option<String>,
    /// The value of `--base`.
    #[serde(default)]
    pub base: Option<String>,
}

/// The same options, parsed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSettings {
    /// The timeout of every iteration.
    pub timeout: Option<Duration>,
    /// The idle timeout of every agent.
    pub idle_timeout: Option<Duration>,
    /// The limits of the run.
    pub limits: Limits,
    /// The permissions of all agents that run on a backend.
    pub permissions: Option<Permissions>,
    /// How thoroughly the work is verified.
    pub profile: Profile,
    /// Whether that profile was set explicitly; then agents must keep to its budget.
    pub budgeted: bool,
    /// The size of the work, if specified.
    pub scope: Option<Scope>,
}

impl Overrides {
    /// Parses the options; `folder` is the directory in which they were typed.
    ///
    /// # Errors
    /// Every option that cannot be parsed.
    pub fn settings(&self, folder: &Path) -> Result<RunSettings, Vec<Diagnostic>> {
        let time = |option: &str, text: &Option<String>| {
            let Some(text) = text else { return Ok(None) };
            let source = Source::new(option, text.as_str(), folder);
            parse_duration(text)
                .map(Some)
                .map_err(|fault| vec![bad_duration(&Place::whole(&source), &format!("`{option}`"), text, fault)])
        };
        Ok(RunSettings {
            timeout: time("--timeout", &self.timeout)?,
            idle_timeout: time("--idle-timeout", &self.idle_timeout)?,
            limits: limits("--limit", &self.limits, folder)?,
            permissions: self.permissions.as_deref().and_then(Permissions::named),
            profile: self.profile.as_deref().and_then(Profile::named).unwrap_or_default(),
            budgeted: self.profile.is_some(),
            scope: self.scope.as_deref().and_then(Scope::named),
        })
    }
}

/// Parses the values of this option, `--limit` or `--limit-each`; a later one overrides an earlier one of the same
/// name. `folder` is the directory in which they were typed.
///
/// # Errors
/// Every limit that cannot be parsed.
pub fn limits(option: &str, texts: &[String], folder: &Path) -> Result<Limits, Vec<Diagnostic>> {
    let (mut limits, mut faults) = (Limits::default(), Vec::new());
    for text in texts {
        match parse_limit(&Source::new(option, text.as_str(), folder)) {
            Ok(limit) => limits = limit.or(limits),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(limits) } else { Err(faults) }
}
