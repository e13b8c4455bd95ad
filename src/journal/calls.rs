//! What an agent records by calling one of our verbs: a file of its attempt, named by the attempt's token. The host reads it when
//! the attempt is over, and only then does it mean anything.
#![expect(clippy::disallowed_methods, reason = "the owner of .forkhestra/")]

use super::error::JournalError;
use super::folders::AttemptFolder;
use super::store::token_digest;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The most of a result file or of recorded calls that is read, in bytes.
const MOST: u64 = 1 << 20;

/// What came of recording a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// It is written down.
    Yes,
    /// The attempt of this token is over, or never was.
    Stale,
}

/// A part of a token's digest, for names that nobody knows before the attempt.
fn tag(token: &str) -> String {
    token_digest(token.as_bytes())[..16].to_string()
}

fn calls_file(token: &str) -> String {
    format!("calls-{}.jsonl", tag(token))
}

fn result_file(token: &str) -> String {
    format!("result-{}.json", tag(token))
}

fn artifacts_folder(token: &str) -> String {
    format!("artifacts-{}", tag(token))
}

/// The word of an attempt, by which a plain program vouches for its verdict: nobody knows it before the attempt.
#[must_use]
pub fn word_of_attempt(token: &str) -> String {
    // Of another part of the digest than the names of files, which others may see.
    format!("k{}", &token_digest(token.as_bytes())[40..45])
}

impl AttemptFolder {
    /// Where the agent may leave its result: nobody knows the name before the attempt.
    #[must_use]
    pub fn result_path(&self, token: &str) -> PathBuf {
        self.path().join(result_file(token))
    }

    /// Where the agent may leave files of other protocols, likewise.
    #[must_use]
    pub fn artifacts_path(&self, token: &str) -> PathBuf {
        self.path().join(artifacts_folder(token))
    }

    /// Makes the folder of those files.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_artifacts(&self, token: &str) -> Result<(), JournalError> {
        let folder = self.writable()?;
        let name = artifacts_folder(token);
        folder.make_below([name.as_str()]).map(drop).map_err(|error| folder.refused(&name, error))
    }

    /// From now on calls with this token are recorded; the first line says who may decide what.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn open_calls(&self, token: &str, role: &str) -> Result<(), JournalError> {
        self.writable()?.write(&calls_file(token), format!("{{\"role\":\"{role}\"}}\n").as_bytes())
    }

    /// What was recorded, and an end to it: a later call is stale.
    #[must_use]
    pub fn take_calls(&self, token: &str) -> String {
        let Some(folder) = self.handle() else { return String::new() };
        // A file that somebody removed holds no call.
        let _ = folder.rename(&calls_file(token), "calls.jsonl");
        folder.text("calls.jsonl", MOST).unwrap_or_default()
    }

    /// The result file, if the agent left one; the handoff files of carbon and helium have names of their own. It is kept under a
    /// plain name.
    #[must_use]
    pub fn take_result(&self, token: &str) -> Option<String> {
        let folder = self.handle()?;
        let left = result_file(token);
        // What cannot be renamed is read where it is.
        let kept = if folder.rename(&left, "result.json").is_ok() { "result.json" } else { left.as_str() };
        folder.text(kept, MOST).or_else(|| {
            let artifacts = folder.below([artifacts_folder(token).as_str()]).ok()?;
            ["builder_result.json", "inspector_result.json"].iter().find_map(|name| artifacts.text(name, MOST))
        })
    }
}

/// The text of a plain file, at most so much of it; what is no text becomes U+FFFD.
fn read_text(path: &Path) -> Option<String> {
    let file = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file).and_then(|_| File::open(path).ok())?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The role of the attempt that a token belongs to; none when it is stale. `result` is its result file's path.
#[must_use]
pub fn role_of_call(result: &Path, token: &str) -> Option<String> {
    let text = read_text(&result.parent()?.join(calls_file(token)))?;
    let first = text.lines().next()?.strip_prefix("{\"role\":\"")?;
    Some(first.trim_end_matches("\"}").to_string())
}

/// Writes one call down, in one write.
///
/// # Errors
/// When the file cannot be written.
pub fn record_call(result: &Path, token: &str, line: &str) -> Result<Recorded, JournalError> {
    let Some(folder) = result.parent() else { return Ok(Recorded::Stale) };
    let path = folder.join(calls_file(token));
    match OpenOptions::new().append(true).open(&path) {
        Ok(mut file) => {
            let written = file.write_all(line.as_bytes());
            written.map(|()| Recorded::Yes).map_err(|cause| JournalError::Write { path, cause })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Recorded::Stale),
        Err(cause) => Err(JournalError::Write { path, cause }),
    }
}
