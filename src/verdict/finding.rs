//! One thing that a judge objects to.

use serde::{Deserialize, Serialize};

/// How serious a finding is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The finding has to be fixed.
    #[default]
    #[serde(alias = "blocker", alias = "major", alias = "critical", alias = "high", alias = "medium")]
    Blocking,
    /// The finding is only a remark.
    #[serde(alias = "nit", alias = "low", alias = "info")]
    Minor,
}

/// One thing that a judge objects to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// What is wrong, in one line.
    #[serde(alias = "description")]
    pub title: String,
    /// Path of the file, relative to the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line number in the file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Short name of the rule that is broken, or the number of an earlier finding, such as `F2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// How serious the finding is.
    #[serde(default)]
    pub severity: Severity,
}
