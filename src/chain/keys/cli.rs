//! The settings that an agent may make for its backend, one row per key. The keys of `agents` and of `backends` are
//! checked, read, refined and passed on to the program from this table. A new key needs only a row here and its
//! arguments in `backends.json`.

use crate::source::Place;
use indexmap::IndexMap;

/// The type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CliValueKind {
    /// A string.
    Text,
    /// A path relative to the base directory of the config.
    File,
    /// A whole number from 1.
    Count,
    /// A list of strings.
    Texts,
    /// A string, or strings of which one at a time is used.
    OneOrMore,
}

/// A key of `agents`, and the key of the same name in `backends`.
#[derive(Debug, Clone, Copy)]
pub struct CliKey {
    /// The key as it is written.
    pub name: &'static str,
    /// The type of its value.
    pub kind: CliValueKind,
    /// The description of the key of `agents` in the schema.
    pub about: &'static str,
    /// The description of the key of `backends` in the schema.
    pub about_words: &'static str,
}

/// All settings for backends.
pub const CLI_KEYS: [CliKey; 7] = [
    CliKey {
        name: "model",
        kind: CliValueKind::OneOrMore,
        about: "The model, as the backend names it. Of several, the next one is used after each round of its group that did not pass, and after each rejection in an earlier run of the task.",
        about_words: "The arguments that set `model`; `{}` is replaced by its value.",
    },
    CliKey {
        name: "maxTurns",
        kind: CliValueKind::Count,
        about: "The backend's own limit on turns.",
        about_words: "The arguments that set `maxTurns`; `{}` is replaced by its value.",
    },
    CliKey {
        name: "tools",
        kind: CliValueKind::Texts,
        about: "The built-in tools that the backend has at all. Default: all of them.",
        about_words: "The arguments that set `tools`, in the same form as those of `allowedTools`.",
    },
    CliKey {
        name: "allowedTools",
        kind: CliValueKind::Texts,
        about: "Tools that the backend may use without asking.",
        about_words: "The arguments that allow tools. `{}` is replaced by all of them, separated by commas; an argument with `{each}` is repeated for each.",
    },
    CliKey {
        name: "disallowedTools",
        kind: CliValueKind::Texts,
        about: "Tools that the backend may not use.",
        about_words: "The arguments that forbid tools, in the same form as those of `allowedTools`.",
    },
    CliKey {
        name: "mcpConfig",
        kind: CliValueKind::File,
        about: "A file of MCP servers for the backend.",
        about_words: "The arguments that set `mcpConfig`; `{}` is replaced by its value.",
    },
    CliKey {
        name: "settings",
        kind: CliValueKind::File,
        about: "A settings file for the backend.",
        about_words: "The arguments that set `settings`; `{}` is replaced by its value.",
    },
];

/// The value of one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliValue {
    /// The values: exactly one, unless the setting is a list.
    pub values: Vec<String>,
    /// Where the setting is made.
    pub at: Place,
}

/// An agent's settings for its backend, by key.
pub type CliValues = IndexMap<&'static str, CliValue>;
