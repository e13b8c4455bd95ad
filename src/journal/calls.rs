//! What an agent records by calling a command of forkhestra: a file of its attempt, named after the attempt's token.
//! The host reads it when the attempt has ended; only then does it take effect.
#![expect(clippy::disallowed_methods, reason = "the owner of .forkhestra/")]

use super::error::JournalError;
use super::folders::AttemptFolder;
use crate::chain::Role;
use crate::source::sha256;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The most that is read of a result file or of recorded calls, in bytes.
const MOST: u64 = 1 << 20;

/// The agent that may record calls with a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// Its role, which says what it may decide.
    pub role: Role,
    /// Whether it may propose tasks.
    #[serde(default)]
    pub proposes: bool,
}

/// The result of recording a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// The call was recorded.
    Yes,
    /// The attempt of this token has ended, or never existed.
    Stale,
}

/// A part of a token's digest, for file names that cannot be known before the attempt.
fn tag(token: &str) -> String {
    token_digest(token.as_bytes())[..16].to_string()
}

fn calls_file(tag: &str) -> String {
    format!("calls-{tag}.jsonl")
}

fn result_file(tag: &str) -> String {
    format!("result-{tag}.json")
}

fn artifacts_folder(tag: &str) -> String {
    format!("artifacts-{tag}")
}

/// Returns the digest by which the journal recognizes an attempt's token without storing it.
#[must_use]
pub fn token_digest(token: &[u8]) -> String {
    sha256(token)
}

/// The word of an attempt, with which a plain program confirms its verdict. It cannot be known before the attempt.
#[must_use]
pub fn word_of_attempt(token: &str) -> String {
    // From a different part of the digest from the one in the file's name, which other programs may see.
    format!("k{}", &token_digest(token.as_bytes())[40..45])
}

/// What the agent of an attempt records and leaves, by its token.
#[derive(Debug, Clone)]
pub struct AttemptCalls<'a> {
    folder: &'a AttemptFolder,
    /// A part of the digest of the token, for file names that cannot be known before the attempt.
    tag: String,
}

impl<'a> AttemptCalls<'a> {
    /// The calls of the attempt with this directory and this token.
    #[must_use]
    pub fn of(folder: &'a AttemptFolder, token: &str) -> Self {
        Self { folder, tag: tag(token) }
    }

    /// Where the agent may leave its result. The name cannot be known before the attempt.
    #[must_use]
    pub fn result_path(&self) -> PathBuf {
        self.folder.path().join(result_file(&self.tag))
    }

    /// Where the agent may leave the files of other protocols. The name cannot be known before the attempt.
    #[must_use]
    pub fn artifacts_path(&self) -> PathBuf {
        self.folder.path().join(artifacts_folder(&self.tag))
    }

    /// Creates the directory for those files.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn make_artifacts(&self) -> Result<(), JournalError> {
        let folder = self.folder.writable()?;
        let name = artifacts_folder(&self.tag);
        folder.make_below([name.as_str()]).map(drop).map_err(|error| folder.refused(&name, error))
    }

    /// Starts to record calls. The first line says who may record what.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn open(&self, caller: Caller) -> Result<(), JournalError> {
        let line = serde_json::to_string(&caller).unwrap_or_default() + "\n";
        self.folder.writable()?.write(&calls_file(&self.tag), line.as_bytes())
    }

    /// Returns the recorded calls, one per line, and stops recording: a later call is stale.
    #[must_use]
    pub fn take(&self) -> String {
        let Some(folder) = self.folder.handle() else { return String::new() };
        // If the file was removed, there are no calls.
        let _ = folder.rename(&calls_file(&self.tag), "calls.jsonl");
        let text = folder.text("calls.jsonl", MOST).unwrap_or_default();
        // The first line says who may call.
        text.split_once('\n').map(|(_, calls)| calls.to_string()).unwrap_or_default()
    }

    /// Returns the result file, if the agent left one, and keeps it under a plain name. The handoff files of carbon and
    /// helium have their own names.
    #[must_use]
    pub fn take_result(&self) -> Option<String> {
        let folder = self.folder.handle()?;
        let left = result_file(&self.tag);
        let result = match folder.rename(&left, "result.json") {
            Ok(()) => folder.text("result.json", MOST),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            // A file that cannot be renamed is read where it is.
            Err(_) => folder.text(&left, MOST),
        };
        result.or_else(|| {
            let artifacts = folder.below([artifacts_folder(&self.tag).as_str()]).ok()?;
            ["builder_result.json", "inspector_result.json"].iter().find_map(|name| artifacts.text(name, MOST))
        })
    }
}

/// Returns the text of a regular file, at most `MOST` bytes of it. Invalid UTF-8 becomes U+FFFD.
fn read_text(path: &Path) -> Option<String> {
    let file = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file).and_then(|_| File::open(path).ok())?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns who calls with this token; `None` if the token is stale. `result` is the path of its result file.
#[must_use]
pub fn caller(result: &Path, token: &str) -> Option<Caller> {
    let text = read_text(&result.parent()?.join(calls_file(&tag(token))))?;
    serde_json::from_str(text.lines().next()?).ok()
}

/// Records one call, in a single write.
///
/// # Errors
/// When the file cannot be written.
pub fn record_call(result: &Path, token: &str, line: &str) -> Result<Recorded, JournalError> {
    let Some(folder) = result.parent() else { return Ok(Recorded::Stale) };
    let path = folder.join(calls_file(&tag(token)));
    match OpenOptions::new().append(true).open(&path) {
        Ok(mut file) => {
            let written = file.write_all(line.as_bytes());
            written.map(|()| Recorded::Yes).map_err(|cause| JournalError::Write { path, cause })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Recorded::Stale),
        Err(cause) => Err(JournalError::Write { path, cause }),
    }
}
