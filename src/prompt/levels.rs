//! The five levels of a prompt (seed 004): command line, step, chain, agent default, none.

use super::errors;
use crate::chain::Said;
use crate::source::{Diagnostic, Files, Kind, Place, Text};
use std::io::ErrorKind;
use std::path::Path;

/// Where a prompt comes from, highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// `--prompt`, `--prompt-file`.
    CommandLine,
    /// The step's `prompt`, `promptFile`.
    Step,
    /// The chain's `prompt`, `promptFile`.
    Chain,
    /// The agent's `defaultPrompt`, `defaultPromptFile`.
    Agent,
    /// Nobody said anything.
    None,
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::CommandLine => "the command line",
            Self::Step => "the step",
            Self::Chain => "the chain",
            Self::Agent => "the agent's default",
            Self::None => "no level",
        })
    }
}

/// The prompt that won.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick<'a> {
    /// No prompt: none was given, or an empty one masks the rest.
    Silent,
    /// An inline prompt.
    Inline(&'a Text),
    /// A prompt file.
    File(&'a Text),
}

/// The first level that says anything; at one level inline beats file.
#[must_use]
pub fn pick<'a>(command_line: &'a Said, step: &'a Said, chain: &'a Said, agent: &'a Said) -> (Level, Pick<'a>) {
    let levels =
        [(Level::CommandLine, command_line), (Level::Step, step), (Level::Chain, chain), (Level::Agent, agent)];
    for (level, said) in levels {
        if let Some(text) = &said.inline {
            return (level, if text.value.is_empty() { Pick::Silent } else { Pick::Inline(text) });
        }
        if let Some(file) = &said.file {
            return (level, Pick::File(file));
        }
    }
    (Level::None, Pick::Silent)
}

/// Reads a prompt file whole; `at` is where its name was written.
///
/// # Errors
/// One diagnostic for a file that is missing, unreadable, a folder, or not UTF-8 (V-40).
pub fn read_prompt_file(files: &dyn Files, path: &Path, at: &Place) -> Result<String, Diagnostic> {
    if matches!(files.kind(path), Ok(Kind::Folder)) {
        return Err(errors::prompt_is_a_folder(at, path));
    }
    let bytes = files.read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => errors::prompt_not_found(at, path),
        _ => errors::prompt_unreadable(at, path, &error),
    })?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").map_or(bytes.clone(), <[u8]>::to_vec);
    String::from_utf8(bytes).map_err(|error| errors::prompt_not_utf8(at, path, error.utf8_error().valid_up_to()))
}
