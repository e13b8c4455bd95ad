//! The layout of `.forkhestra/` and the transcripts of attempts: complete, never overwritten, for their owner only.

use super::error::JournalError;
use super::handle::Handle;
use rustix::buffer::spare_capacity;
use rustix::io::pread;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The file in an attempt's directory that says how long its run has been running.
const WORKED: &str = "worked";

/// The most that is read of a file that an agent could have enlarged, in bytes.
const LONGEST: u64 = 64 << 20;

pub(super) fn failed(path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    move |cause| JournalError::Write { path: path.to_path_buf(), cause }
}

/// Creates forkhestra's directory in a root, with its own `.gitignore`.
pub(super) fn prepare(root: &Path) -> Result<Handle, JournalError> {
    let ours = Handle::make(root)?;
    // A full disk may have left this file empty, and git would then commit everything here. Anything else in it was
    // written by a person, and is kept.
    if ours.read(".gitignore", 1).is_ok_and(|first| !first.is_empty()) {
        return Ok(ours);
    }
    ours.replace(".gitignore", b"*\n")?;
    Ok(ours)
}

/// Creates an empty database file, so that SQLite does not choose its mode and does not follow a link.
pub(super) fn prepare_database(ours: &Handle) -> Result<PathBuf, JournalError> {
    ours.open_or_create("state.db").map_err(|error| ours.refused("state.db", error))?;
    Ok(ours.path().join("state.db"))
}

/// Returns the highest number of a run that has left transcripts, or 0. They remain when a database is moved aside.
pub(super) fn highest_run(ours: &Path) -> i64 {
    let entries = fs::read_dir(ours.join("runs")).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|number| *number < i64::MAX / 2).max().unwrap_or(0)
}

/// Returns the highest attempt of each step in a run's directory, as (step, attempt).
pub(super) fn highest_attempts(run: &Path) -> Vec<(u32, u32)> {
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    };
    let steps = names(run).into_iter().filter_map(|name| {
        let step = name.split_once('-')?.0.parse().ok()?;
        // Any program could have created a directory with any name.
        let attempts = names(&run.join(&name)).into_iter().filter_map(|attempt| attempt.parse().ok());
        let highest = attempts.filter(|attempt| *attempt < u32::MAX / 2).max()?;
        Some((step, highest))
    });
    steps.collect()
}

/// Size, change time and inode of a file. No program can set the change time (stat(2), `st_ctime`).
pub(super) type FileStat = (u64, i64, i64, u64);

pub(super) fn stat_of(found: &fs::Metadata) -> FileStat {
    (found.len(), found.ctime(), found.ctime_nsec(), found.ino())
}

/// Returns a name that is not used yet.
fn free_name(folder: &Handle, name: &str) -> String {
    let free = |number: u32| format!("{name}.found-{number}");
    (1..=u32::MAX).map(free).find(|free| folder.inode(free).is_none()).unwrap_or_else(|| name.to_string())
}

/// The directory of one attempt. Its files are reached by handle, so that no other directory can take its place.
#[derive(Debug, Clone)]
pub struct AttemptFolder {
    path: PathBuf,
    /// `None` if the directory does not exist.
    handle: Option<Handle>,
}

impl AttemptFolder {
    /// Creates the directory in that of its step. A directory that is already there can only be forged: it is moved
    /// aside, and its new path is returned.
    pub(super) fn make(above: &Handle, attempt: u32) -> Result<(Self, Option<PathBuf>), JournalError> {
        let attempt = attempt.to_string();
        let (folder, found) = match above.make_new(&attempt) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let aside = free_name(above, &attempt);
                let again = above.rename(&attempt, &aside).and_then(|()| above.make_new(&attempt));
                (again, Some(above.path().join(aside)))
            }
            made => (made, None),
        };
        let folder = folder.map_err(|error| above.refused(&attempt, error))?;
        Ok((Self { path: folder.path().to_path_buf(), handle: Some(folder) }, found))
    }

    /// Returns the directory without creating anything.
    pub(super) fn at(ours: &Handle, run: i64, step: u32, name: &str, attempt: u32) -> Self {
        let names = ["runs".into(), run.to_string(), format!("{step}-{name}"), attempt.to_string()];
        let path = names.iter().fold(ours.path().to_path_buf(), |path, name| path.join(name));
        Self { path, handle: ours.below(names.iter().map(String::as_str)).ok() }
    }

    /// The handle of the directory, if it exists.
    pub(super) fn handle(&self) -> Option<&Handle> {
        self.handle.as_ref()
    }

    /// The handle of the directory, for writing.
    pub(super) fn writable(&self) -> Result<&Handle, JournalError> {
        let missing = || JournalError::Write { path: self.path.clone(), cause: ErrorKind::NotFound.into() };
        self.handle.as_ref().ok_or_else(missing)
    }

    /// The path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the attempt's prompt.
    #[must_use]
    pub fn prompt_path(&self) -> PathBuf {
        self.path.join("prompt.md")
    }

    /// Writes the prompt: the exact bytes that are delivered.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_prompt(&self, prompt: &str) -> Result<(), JournalError> {
        self.write("prompt.md", prompt)
    }

    /// The path of the JSON Schema of the final message.
    #[must_use]
    pub fn schema_path(&self) -> PathBuf {
        self.path.join("schema.json")
    }

    /// Writes the JSON Schema of the final message.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_schema(&self, schema: &str) -> Result<(), JournalError> {
        self.write("schema.json", schema)
    }

    /// Writes the final message of a structured backend.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_final(&self, message: &str) -> Result<(), JournalError> {
        self.write("final.md", message)
    }

    /// Writes the whole diff of which a prompt shows a part.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_diff(&self, diff: &str) -> Result<(), JournalError> {
        self.write("diff.patch", diff)
    }

    /// Writes the verdict, in its normal form.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_verdict(&self, verdict: &str) -> Result<(), JournalError> {
        self.write("verdict.json", verdict)
    }

    /// Returns the prompt as it was delivered; empty if there is none.
    #[must_use]
    pub fn prompt(&self) -> String {
        self.handle().and_then(|folder| folder.text("prompt.md", LONGEST)).unwrap_or_default()
    }

    /// Writes the reason why there is no prompt.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_error(&self, why: &str) -> Result<(), JournalError> {
        self.write("error.txt", why)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), JournalError> {
        self.writable()?.write(name, text.as_bytes())
    }

    /// Creates the file that says how long the run has been running. It outlives this process.
    #[must_use]
    pub fn work_file(&self) -> Option<WorkFile> {
        self.handle()?.create(WORKED).ok().map(WorkFile)
    }

    /// Returns how long the run has been running according to that file, in milliseconds.
    #[must_use]
    pub fn worked_ms(&self) -> Option<u64> {
        self.handle()?.text(WORKED, LONGEST)?.trim().parse().ok()
    }

    /// Opens `stdout.log` or `stderr.log` for writing.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn transcript(&self, name: &str) -> Result<Transcript, JournalError> {
        let folder = self.writable()?;
        let file = folder.create(name).map_err(|error| folder.refused(name, error))?;
        Ok(Transcript { file, path: self.path.join(name), bytes: 0 })
    }

    /// Returns what a power cut must not destroy: outputs, final message and their names. Empty without output, of
    /// which the lengths are given.
    pub(super) fn to_sync(&self, stdout_bytes: u64, stderr_bytes: u64) -> Vec<File> {
        // A final message is read from standard output.
        let outputs = [("stdout.log", stdout_bytes), ("stderr.log", stderr_bytes), ("final.md", stdout_bytes)];
        let named = outputs.into_iter().filter(|(_, bytes)| *bytes > 0).filter_map(|(name, _)| self.open(name).ok());
        let mut full: Vec<File> = named.filter(|file| file.metadata().is_ok_and(|found| found.len() > 0)).collect();
        if !full.is_empty() {
            full.extend(self.handle().and_then(Handle::for_sync));
        }
        full
    }

    /// Returns what is missing of the outputs, given their recorded lengths: `stdout.log holds 0 of 12 bytes`.
    #[must_use]
    pub fn missing(&self, stdout_bytes: u64, stderr_bytes: u64) -> Option<String> {
        let outputs = [("stdout.log", stdout_bytes), ("stderr.log", stderr_bytes)];
        let missing = outputs.into_iter().filter_map(|(name, bytes)| {
            if bytes == 0 {
                return None;
            }
            let held = self.open(name).and_then(|file| file.metadata()).map_or(0, |found| found.len());
            (held < bytes).then(|| format!("{name} holds {held} of {bytes} bytes"))
        });
        Some(missing.collect::<Vec<_>>().join(", ")).filter(|words| !words.is_empty())
    }

    /// Returns the beginning of a file of the attempt, at most `most` bytes, and whether there is more of it. A file
    /// that does not exist is empty.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn beginning(&self, name: &str, most: u64) -> Result<(Vec<u8>, bool), JournalError> {
        let read = || {
            let mut bytes = Vec::new();
            self.open(name)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
            let more = bytes.len() as u64 > most;
            bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            Ok((bytes, more))
        };
        match read() {
            Err(cause) if io::Error::kind(&cause) == ErrorKind::NotFound => Ok((Vec::new(), false)),
            other => other.map_err(|cause| JournalError::Read { path: self.path.join(name), cause }),
        }
    }

    fn open(&self, name: &str) -> io::Result<File> {
        self.handle().ok_or(io::Error::from(ErrorKind::NotFound))?.open(name)
    }

    /// Returns all that an attempt printed, standard output before standard error: of a stream over 16 MiB, its
    /// beginning and its end. Invalid UTF-8 becomes U+FFFD here, and only here.
    #[must_use]
    pub fn whole_output(&self) -> [String; 2] {
        const HALF: u64 = 8 << 20;
        ["stdout.log", "stderr.log"].map(|name| {
            let read = || {
                let file = self.open(name)?;
                let length = file.metadata()?.len();
                let size = |bytes: u64| usize::try_from(bytes).unwrap_or(0);
                let mut bytes = vec![0; size(length.min(2 * HALF))];
                let first = bytes.len().min(size(HALF));
                file.read_exact_at(&mut bytes[..first], 0)?;
                let rest = bytes.len() - first;
                file.read_exact_at(&mut bytes[first..], length - rest as u64)?;
                Ok::<_, io::Error>(bytes)
            };
            match String::from_utf8(read().unwrap_or_default()) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            }
        })
    }

    /// Returns the last output of the attempt, for feedback: the final message if there is one, else the ends of stdout
    /// and of stderr, each of at most `most` bytes. Invalid UTF-8 becomes U+FFFD here, and only here; so does NUL,
    /// which no argument can hold.
    #[must_use]
    pub fn last_words(&self, most: u64) -> [String; 2] {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}");
        if let Some(Ok(message)) = self.handle().map(|folder| folder.read("final.md", LONGEST)) {
            return [text(&message), String::new()];
        }
        ["stdout.log", "stderr.log"].map(|name| {
            let end = self.open(name).and_then(|file| {
                let length = file.metadata()?.len();
                let mut end = vec![0; usize::try_from(length.min(most)).unwrap_or(0)];
                file.read_exact_at(&mut end, length.saturating_sub(most))?;
                Ok(end)
            });
            text(&end.unwrap_or_default())
        })
    }
}

/// A log file that is being written.
#[derive(Debug)]
pub struct Transcript {
    file: File,
    path: PathBuf,
    bytes: u64,
}

impl Transcript {
    /// Appends bytes as they are.
    ///
    /// # Errors
    /// When they cannot be written to the disk.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        self.file.write_all(bytes).map_err(failed(&self.path))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// The number of bytes that it holds.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads back from an offset, to catch up with what could not be shown at once. The bytes are appended, at most as
    /// many as there is room for; none if they cannot be read.
    pub fn read_back(&self, offset: u64, into: &mut Vec<u8>) {
        if into.len() < into.capacity() {
            let _ = pread(&self.file, spare_capacity(into), offset);
        }
    }
}

/// The file that says how long a run has been running, written while an attempt is in progress.
#[derive(Debug)]
pub struct WorkFile(File);

impl WorkFile {
    /// Overwrites the time with one of the same length, so that a reader always finds a complete number.
    pub fn write(&self, ms: u64) {
        // If this fails, a resume loses a few seconds of the time worked.
        let _ = self.0.write_all_at(format!("{ms:020}\n").as_bytes(), 0);
    }
}
