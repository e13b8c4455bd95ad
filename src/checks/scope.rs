//! Estimates how large a task is, from the words of its prompt.

use serde::{Deserialize, Serialize};

/// The estimated size of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// A change of a word or a line, which needs no diagnosis first.
    Tiny,
    /// Any other task.
    #[default]
    Normal,
    /// A task that affects the whole project.
    Large,
}

/// Words that indicate a task that affects the whole project.
const HEAVY: [&str; 22] = [
    "architecture",
    "architectural",
    "migration",
    "migrate",
    "kubernetes",
    "k8s",
    "ci",
    "cd",
    "infrastructure",
    "refactor",
    "rewrite",
    "redesign",
    "auth",
    "authentication",
    "authorization",
    "security",
    "database",
    "schema",
    "api",
    "deployment",
    "microservice",
    "microservices",
];

/// Phrases that indicate a small task.
const SMALL: [&str; 12] = [
    "typo",
    "typos",
    "spelling",
    "one line",
    "one-line",
    "single line",
    "comment only",
    "comment",
    "rename variable",
    "rename a variable",
    "readme",
    "log message",
];

/// Phrases that indicate a new project.
const NEW: [&str; 9] = [
    "from scratch",
    "new project",
    "new app",
    "create an app",
    "build an app",
    "greenfield",
    "с нуля",
    "новый проект",
    "создай приложение",
];

/// The longest prompt of a small task, in words.
const SMALL_WORDS: usize = 80;
/// The length from which a prompt is that of a large task, in words.
const LARGE_WORDS: usize = 200;

impl Scope {
    /// Returns the scope with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [("tiny", Self::Tiny), ("normal", Self::Normal), ("large", Self::Large)]
            .into_iter()
            .find(|(known, _)| *known == name)
            .map(|(_, scope)| scope)
    }

    /// Estimates the scope of a prompt.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let words: Vec<String> = text
            .split(|next: char| !next.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        // Only whole words match: `specification` does not contain `ci`, nor `author` `auth`.
        let line = format!(" {} ", words.join(" "));
        let has =
            |phrases: &[&str]| phrases.iter().any(|phrase| line.contains(&format!(" {} ", phrase.replace('-', " "))));
        if has(&HEAVY) {
            Self::Large
        } else if has(&NEW) {
            Self::Normal
        } else if words.len() >= LARGE_WORDS {
            Self::Large
        } else if !words.is_empty() && words.len() <= SMALL_WORDS && has(&SMALL) {
            Self::Tiny
        } else {
            Self::Normal
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scope_is_told_by_whole_words() {
        let many = |count: usize| "word ".repeat(count);
        let table = [
            ("Fix a typo in the README".to_string(), Scope::Tiny),
            ("rename variable x to y".into(), Scope::Tiny),
            ("change one line".into(), Scope::Tiny),
            ("comment only".into(), Scope::Tiny),
            (String::new(), Scope::Normal),
            ("Rework the architecture".into(), Scope::Large),
            ("write the migration".into(), Scope::Large),
            ("deploy to k8s".into(), Scope::Large),
            ("set up CI/CD".into(), Scope::Large),
            (many(200), Scope::Large),
            (format!("fix a typo {}", many(80)), Scope::Normal),
            ("build an app from scratch, mind the typo".into(), Scope::Normal),
            ("создай приложение с нуля".into(), Scope::Normal),
            ("fix typo in specification by the author, rapid, capital".into(), Scope::Tiny),
            ("Add a button".into(), Scope::Normal),
        ];
        for (text, expected) in table {
            assert_eq!(Scope::of(&text), expected, "{text}");
        }
    }
}
