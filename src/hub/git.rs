//! Calls of git: on the hub, on a fresh clone, and on a person's repository without changing it.

use super::HubError;
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
pub(super) fn call(
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
pub(super) fn answered(
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

/// Returns what a call printed, without the last line break; an error if it has answered "no" or has failed.
pub(super) fn successful(answer: &GitAnswer, words: &[&str]) -> Result<String, HubError> {
    match answer.code {
        0 => Ok(answer.stdout.trim_end_matches('\n').to_string()),
        code if answer.stderr.trim().is_empty() => Err(failed(words, &format!("exit code {code}"))),
        _ => Err(failed(words, &answer.stderr)),
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
