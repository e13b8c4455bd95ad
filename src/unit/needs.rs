//! What a machine must have for a unit of work, in addition to what its plan shows.

use serde::{Deserialize, Serialize};

/// What a machine must have for a unit of work. Names only: the value of a variable is never part of a unit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Needs {
    /// Programs that are found on PATH.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    /// Environment variables that are set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// Labels that a worker has which looks for units itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

impl Needs {
    /// Returns whether nothing is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns what a machine lacks, in words. Labels are left out.
    #[must_use]
    pub fn missing(&self, has_program: impl Fn(&str) -> bool, has_variable: impl Fn(&str) -> bool) -> Vec<String> {
        let programs = self.programs.iter().filter(|name| !has_program(name));
        let variables = self.variables.iter().filter(|name| !has_variable(name));
        let programs = programs.map(|name| format!("the program `{name}`"));
        programs.chain(variables.map(|name| format!("the variable {name}"))).collect()
    }

    /// Returns the labels that a worker with these labels lacks.
    #[must_use]
    pub fn missing_labels(&self, labels: &[String]) -> Vec<&str> {
        self.labels.iter().filter(|label| !labels.contains(label)).map(String::as_str).collect()
    }
}

/// Returns whether a text can be a label: letters, digits, `-`, `_`, `.` and `:`, at most 63. CI systems and clusters
/// accept such a text, too.
#[must_use]
pub fn is_label(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    (1..=63).contains(&text.len()) && text.bytes().all(is_sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_lacks_is_named() {
        let needs = Needs {
            programs: vec!["git".into(), "docker".into()],
            variables: vec!["HOME".into(), "DATABASE_URL".into()],
            labels: vec!["gpu".into(), "big".into()],
        };
        let missing = needs.missing(|name| name == "git", |name| name == "HOME");
        assert_eq!(missing, ["the program `docker`", "the variable DATABASE_URL"]);
        assert_eq!(needs.missing_labels(&["big".into()]), ["gpu"]);
        assert!(!needs.is_empty() && Needs::default().is_empty());
    }

    #[test]
    fn a_label_is_one_word() {
        assert!(is_label("gpu") && is_label("os:linux-6.1"));
        assert!(!is_label("") && !is_label("a b") && !is_label("ä") && !is_label(&"x".repeat(64)));
    }
}
