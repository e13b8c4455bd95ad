//! Calls of git: on the hub, on a fresh clone, and on a person's repository without changing it.

use super::{Hub, HubError};
use crate::proc::GitCall;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// How long a call may take. A clone or a checkout of a large repository takes minutes.
const PATIENCE: Duration = Duration::from_mins(30);

/// The answer of a call whose exit code has a meaning.
pub(super) struct GitAnswer {
    pub(super) code: i32,
    pub(super) stdout: String,
    /// Its warnings.
    pub(super) stderr: String,
}

fn call(
    words: &[&str],
    folder: &Path,
    variables: &[(&str, &OsStr)],
    is_personal: bool,
    input: &[u8],
) -> Result<GitAnswer, HubError> {
    let git = GitCall { arguments: words, folder, variables, is_personal, input, patience: PATIENCE };
    let failed = |why: &str| {
        // The value after `-c` is no command.
        let is_option = |index: usize| words[index].starts_with('-') || index > 0 && words[index - 1] == "-c";
        let command = (0..words.len()).find(|index| !is_option(*index)).map_or("", |index| words[index]);
        HubError::Git { command: command.to_string(), why: why.trim().to_string() }
    };
    let answer = git.run().ok_or_else(|| failed("it did not run, or was interrupted"))?;
    match answer.code {
        Some(code @ (0 | 1)) if code == 0 || answer.stderr.is_empty() => {
            Ok(GitAnswer { code, stdout: answer.stdout, stderr: answer.stderr })
        }
        _ => Err(failed(&answer.stderr)),
    }
}

fn successful(answer: &GitAnswer, words: &[&str]) -> Result<String, HubError> {
    let command = || words.first().map(|word| (*word).to_string()).unwrap_or_default();
    match answer.code {
        0 => Ok(answer.stdout.trim_end_matches('\n').to_string()),
        code => Err(HubError::Git { command: command(), why: format!("exit code {code}") }),
    }
}

/// Calls git outside of any repository, or on a fresh one of our own. No settings of a person apply.
pub(super) fn outside(words: &[&str], folder: &Path) -> Result<String, HubError> {
    call(words, folder, &[], false, &[]).and_then(|answer| successful(&answer, words))
}

/// Asks git in a person's repository, with the person's settings. Nothing is written, not even a refreshed index, and
/// nothing that the repository configures is run.
pub(super) fn personal(words: &[&str], folder: &Path) -> Result<String, HubError> {
    personal_with(words, folder, &[])
}

/// Like [`personal`], with variables.
pub(super) fn personal_with(words: &[&str], folder: &Path, variables: &[(&str, &OsStr)]) -> Result<String, HubError> {
    let safe = ["--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
    // A split index would be written next to the person's own, wherever ours is.
    let whole = ["-c", "core.splitIndex=false"];
    let all = [&safe[..], &whole, words].concat();
    call(&all, folder, variables, true, &[]).and_then(|answer| successful(&answer, words))
}

impl Hub {
    /// Calls git on the hub. Returns its standard output without the last line break.
    pub(super) fn ask(&self, words: &[&str]) -> Result<String, HubError> {
        self.ask_with(words, &[], &[])
    }

    /// Like [`Hub::ask`], with variables and an input.
    pub(super) fn ask_with(
        &self,
        words: &[&str],
        variables: &[(&str, &OsStr)],
        input: &[u8],
    ) -> Result<String, HubError> {
        self.answer(words, variables, input).and_then(|answer| successful(&answer, words))
    }

    /// Calls git on the hub, for a command whose exit code 1 is an answer.
    pub(super) fn answer(
        &self,
        words: &[&str],
        variables: &[(&str, &OsStr)],
        input: &[u8],
    ) -> Result<GitAnswer, HubError> {
        let own = [("GIT_DIR", self.path.as_os_str())];
        call(words, &self.path, &[&own[..], variables].concat(), false, input)
    }

    /// Calls git on a working tree, with the hub's objects and settings and an index of our own. Nothing in the tree's
    /// own `.git` is read, so nothing that an agent has configured there runs.
    pub(super) fn in_tree(&self, words: &[&str], tree: &Path, index: &Path) -> Result<String, HubError> {
        self.in_tree_with(words, tree, index, &[]).and_then(|answer| successful(&answer, words))
    }

    /// Like [`Hub::in_tree`], with variables. Returns the whole answer.
    pub(super) fn in_tree_with(
        &self,
        words: &[&str],
        tree: &Path,
        index: &Path,
        more: &[(&str, &OsStr)],
    ) -> Result<GitAnswer, HubError> {
        let own = [
            ("GIT_DIR", self.path.as_os_str()),
            ("GIT_WORK_TREE", tree.as_os_str()),
            ("GIT_INDEX_FILE", index.as_os_str()),
        ];
        call(words, tree, &[&own[..], more].concat(), false, &[])
    }
}
