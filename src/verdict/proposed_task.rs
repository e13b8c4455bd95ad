//! A task that a planner proposes.

use serde::{Deserialize, Deserializer, Serialize};

/// A task that a planner proposes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProposedTask {
    /// What is to be done, in one line.
    pub title: String,
    /// Path of the file with the full specification, relative to the root.
    #[serde(default)]
    pub spec: Option<String>,
    /// Titles of the tasks that have to be done first.
    #[serde(default, deserialize_with = "texts")]
    pub after: Vec<String>,
    /// The requirements of the task.
    #[serde(default, deserialize_with = "or_default")]
    pub needs: Needs,
}

impl ProposedTask {
    /// Creates a proposed task. `tests` shows that it is done.
    #[must_use]
    pub fn new(title: String, spec: Option<String>, after: Vec<String>, tests: Option<String>) -> Self {
        Self { title, spec, after, needs: Needs { tests } }
    }
}

/// The requirements of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Needs {
    /// The tests that show that the task is done, described or as a command.
    #[serde(default)]
    pub tests: Option<String>,
}

/// Reads a list of strings. One string is a list of one, and null is an empty list.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Texts {
        Many(Vec<String>),
        One(String),
    }
    Ok(match Option::<Texts>::deserialize(deserializer)? {
        Some(Texts::Many(texts)) => texts,
        Some(Texts::One(text)) => vec![text],
        None => Vec::new(),
    })
}

/// Reads a value, or its default for null.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
