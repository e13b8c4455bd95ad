//! What an agent may ask of its agent CLI, one row a key: from it the keys of `agents` and of `backends` are checked, read, refined, and
//! passed on to the program. A new row is all that such a key needs, beside the words for it in `backends.json`.

use crate::source::Place;
use indexmap::IndexMap;

/// What the value of such a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CliValueKind {
    /// A string.
    Text,
    /// A path, from the config's folder.
    File,
    /// A whole number from 1.
    Count,
    /// Strings.
    Texts,
}

/// A key of `agents`, and the key of the same name in `backends`.
#[derive(Debug, Clone, Copy)]
pub struct CliKey {
    /// As it is written.
    pub name: &'static str,
    /// What it may hold.
    pub kind: CliValueKind,
    /// For the schema, the editor and the person in it.
    pub about: &'static str,
    /// About the words by which an agent CLI is told.
    pub about_words: &'static str,
}

/// All of them.
pub const CLI_KEYS: [CliKey; 6] = [
    CliKey {
        name: "model",
        kind: CliValueKind::Text,
        about: "The model, as the agent CLI names it.",
        about_words: "The arguments that choose `model`, `{}`.",
    },
    CliKey {
        name: "maxTurns",
        kind: CliValueKind::Count,
        about: "The agent CLI's own limit on turns.",
        about_words: "The arguments that set `maxTurns`, `{}`.",
    },
    CliKey {
        name: "allowedTools",
        kind: CliValueKind::Texts,
        about: "Tools the agent CLI may use without asking.",
        about_words: "The arguments that allow tools: `{}` is all of them with commas; a word with `{each}` is repeated for each.",
    },
    CliKey {
        name: "disallowedTools",
        kind: CliValueKind::Texts,
        about: "Tools the agent CLI may not use.",
        about_words: "The same for tools that are not allowed.",
    },
    CliKey {
        name: "mcpConfig",
        kind: CliValueKind::File,
        about: "A file of MCP servers for the agent CLI.",
        about_words: "The arguments that name `mcpConfig`, `{}`.",
    },
    CliKey {
        name: "settings",
        kind: CliValueKind::File,
        about: "A settings file for the agent CLI.",
        about_words: "The arguments that name `settings`, `{}`.",
    },
];

/// What an agent asks for with such a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliValue {
    /// Its words, one but for a list.
    pub values: Vec<String>,
    /// Where it stands.
    pub at: Place,
}

/// What an agent asks of its agent CLI, by key.
pub type CliValues = IndexMap<&'static str, CliValue>;
