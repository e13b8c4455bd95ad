//! The five levels of a prompt: command line, step, chain, agent default, none.

use super::errors;
use crate::chain::PromptSource;
use crate::source::{Diagnostic, Files, Kind, Place, Text};
use std::io::ErrorKind;
use std::path::Path;

/// Where a prompt comes from, highest level first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// `--prompt` or `--prompt-file`.
    CommandLine,
    /// The step's `prompt` or `promptFile`.
    Step,
    /// The chain's `prompt` or `promptFile`.
    Chain,
    /// The agent's `defaultPrompt` or `defaultPromptFile`.
    Agent,
    /// No level has a prompt.
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

/// The prompt that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChosenPrompt<'a> {
    /// No prompt: none was given, or an empty one masks the lower levels.
    Silent,
    /// An inline prompt.
    Inline(&'a Text),
    /// A prompt file.
    File(&'a Text),
}

/// Returns the first level that has a prompt. On the same level, an inline prompt takes precedence over a file.
#[must_use]
pub fn pick<'a>(
    command_line: &'a PromptSource,
    step: &'a PromptSource,
    chain: &'a PromptSource,
    agent: &'a PromptSource,
) -> (Level, ChosenPrompt<'a>) {
    let levels =
        [(Level::CommandLine, command_line), (Level::Step, step), (Level::Chain, chain), (Level::Agent, agent)];
    for (level, said) in levels {
        if let Some(text) = &said.inline {
            return (level, if text.value.is_empty() { ChosenPrompt::Silent } else { ChosenPrompt::Inline(text) });
        }
        if let Some(file) = &said.file {
            return (level, ChosenPrompt::File(file));
        }
    }
    (Level::None, ChosenPrompt::Silent)
}

/// Reads a whole prompt file; `at` is where its name was written.
///
/// # Errors
/// One diagnostic for a file that is missing, unreadable, a directory, or not UTF-8.
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
