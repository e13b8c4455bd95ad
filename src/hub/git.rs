//! Calls of git: on the hub, on a fresh clone, and on a person's repository without changing it.

use super::{Hub, HubError};
use crate::proc::GitCall;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// How long a call may take. A clone or a checkout of a large repository takes minutes.
const PATIENCE: Duration = Duration::from_mins(30);
/// How much git may print, in bytes: a kept run, the answers of a slice, or the files of a large repository.
const MOST_OUTPUT: usize = 1 << 30;

/// The answer of a call that was not interrupted.
pub(super) struct GitAnswer {
    pub(super) code: i32,
    pub(super) stdout: String,
    /// Its warnings.
    pub(super) stderr: String,
}

/// Calls git. A call with the exit code 1 that says nothing has answered "no"; any other failure is an error.
fn call(
    words: &[&str],
    folder: &Path,
    variables: &[(&str, &OsStr)],
    is_personal: bool,
    input: &[u8],
) -> Result<GitAnswer, HubError> {
    let answer = answered(words, folder, variables, is_personal, input)?;
    if answer.code == 0 || answer.code == 1 && answer.stderr.is_empty() {
        return Ok(answer);
    }
    Err(failed(words, &answer.stderr))
}

/// Calls git. Returns its answer, whatever its exit code is, unless it was interrupted or a signal ended it.
fn answered(
    words: &[&str],
    folder: &Path,
    variables: &[(&str, &OsStr)],
    is_personal: bool,
    input: &[u8],
) -> Result<GitAnswer, HubError> {
    let git =
        GitCall { arguments: words, folder, variables, is_personal, input, patience: PATIENCE, kept: MOST_OUTPUT };
    let answer = git.run().ok_or_else(|| failed(words, "it did not run, or was interrupted"))?;
    if answer.is_truncated {
        return Err(failed(words, &format!("it printed more than {} MiB", MOST_OUTPUT >> 20)));
    }
    let code = answer.code.ok_or_else(|| failed(words, &format!("a signal ended it. {}", answer.stderr)))?;
    Ok(GitAnswer { code, stdout: answer.stdout, stderr: answer.stderr })
}

fn failed(words: &[&str], why: &str) -> HubError {
    // The value after `-c` is no command.
    let is_option = |index: usize| words[index].starts_with('-') || index > 0 && words[index - 1] == "-c";
    let command = (0..words.len()).find(|index| !is_option(*index)).map_or("", |index| words[index]);
    HubError::Git { command: command.to_string(), why: why.trim().to_string() }
}

fn successful(answer: &GitAnswer, words: &[&str]) -> Result<String, HubError> {
    match answer.code {
        0 => Ok(answer.stdout.trim_end_matches('\n').to_string()),
        code => Err(failed(words, &format!("exit code {code}"))),
    }
}

/// Calls git outside of any repository, or on a fresh one of our own. No settings of a person apply.
pub(super) fn outside(words: &[&str], folder: &Path) -> Result<String, HubError> {
    call(words, folder, &[], false, &[]).and_then(|answer| successful(&answer, words))
}

/// Calls git in a person's repository, with the person's settings, but without hooks, a file system monitor and
/// optional locks: a query writes nothing, not even a refreshed index. Filters that the repository configures run.
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
        call(words, tree, &[&self.for_tree(tree, index)[..], more].concat(), false, &[])
    }

    /// Like [`Hub::in_tree_with`], but returns the answer of a call that has failed, too.
    pub(super) fn in_tree_whatever(
        &self,
        words: &[&str],
        tree: &Path,
        index: &Path,
        more: &[(&str, &OsStr)],
    ) -> Result<GitAnswer, HubError> {
        answered(words, tree, &[&self.for_tree(tree, index)[..], more].concat(), false, &[])
    }

    /// The variables of a call on a working tree.
    fn for_tree<'a>(&'a self, tree: &'a Path, index: &'a Path) -> [(&'static str, &'a OsStr); 3] {
        [("GIT_DIR", self.path.as_os_str()), ("GIT_WORK_TREE", tree.as_os_str()), ("GIT_INDEX_FILE", index.as_os_str())]
    }
}
