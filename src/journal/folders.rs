//! The layout of `.forkhestra/` and the transcripts of attempts: every byte, never overwritten, for their owner only.
#![expect(clippy::disallowed_methods, reason = "the owner of .forkhestra/")]

use super::error::JournalError;
use super::store::Journal;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// In an attempt's folder: how long its run has been at work.
const WORKED: &str = "worked";

/// The folder in the root that is ours.
pub(super) const FOLDER: &str = ".forkhestra";

pub(super) fn failed(path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    move |cause| JournalError::Write { path: path.to_path_buf(), cause }
}

/// Makes a folder and those above it, for its owner only.
pub(super) fn make_folder(path: &Path) -> Result<(), JournalError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed(path))
}

/// A new file for its owner only; an existing one is never touched.
pub(super) fn make_file(path: &Path) -> Result<File, JournalError> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path).map_err(failed(path))
}

/// Makes our folder in a root, with its own `.gitignore`.
pub(super) fn prepare(root: &Path) -> Result<PathBuf, JournalError> {
    let folder = root.join(FOLDER);
    make_folder(&folder)?;
    let ignore = folder.join(".gitignore");
    // Another run may be making it just now.
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&ignore) {
        Ok(mut file) => file.write_all(b"*\n").map_err(failed(&ignore))?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(cause) => return Err(failed(&ignore)(cause)),
    }
    Ok(folder)
}

/// Makes an empty database file, so that SQLite does not choose its mode.
pub(super) fn prepare_database(path: &Path) -> Result<(), JournalError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(cause) => Err(failed(path)(cause)),
    }
}

/// The highest number of a run that has left transcripts; 0 without any. A database that was moved aside leaves them.
pub(super) fn highest_run(ours: &Path) -> i64 {
    let entries = fs::read_dir(ours.join("runs")).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|number| *number < i64::MAX / 2).max().unwrap_or(0)
}

/// The highest attempt of each step in a run's folder, as (step, attempt).
pub(super) fn highest_attempts(run: &Path) -> Vec<(u32, u32)> {
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    };
    let steps = names(run).into_iter().filter_map(|name| {
        let step = name.split_once('-')?.0.parse().ok()?;
        // Anybody could have made a folder of any name.
        let attempts = names(&run.join(&name)).into_iter().filter_map(|attempt| attempt.parse().ok());
        let highest = attempts.filter(|attempt| *attempt < u32::MAX / 2).max()?;
        Some((step, highest))
    });
    steps.collect()
}

/// Size, time of the last change and inode of a file: nobody sets that time (stat(2), `st_ctime`).
pub(super) type Stat = (u64, i64, i64, u64);

pub(super) fn stat_of(found: &fs::Metadata) -> Stat {
    (found.len(), found.ctime(), found.ctime_nsec(), found.ino())
}

/// A name beside a path that nothing has yet.
fn free_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let free = |number: u32| path.with_file_name(format!("{name}.found-{number}"));
    let mut names = (1..=u32::MAX).map(free);
    names.find(|path| fs::symlink_metadata(path).is_err()).unwrap_or_else(|| path.to_path_buf())
}

/// The folder of one attempt.
#[derive(Debug, Clone)]
pub struct AttemptFolder {
    path: PathBuf,
}

impl AttemptFolder {
    /// `runs/RUN/STEP-AGENT/ATTEMPT` in our folder, made anew. What lies there already is nobody's doing but a forger's: it is put
    /// aside, and its new place returned.
    pub(super) fn make(
        ours: &Path,
        run: i64,
        step: u32,
        name: &str,
        attempt: u32,
    ) -> Result<(Self, Option<PathBuf>), JournalError> {
        let path = Self::path_of(ours, run, step, name, attempt);
        if let Some(above) = path.parent() {
            make_folder(above)?;
        }
        let create = || DirBuilder::new().mode(0o700).create(&path);
        let found = match create() {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let aside = free_name(&path);
                fs::rename(&path, &aside).and_then(|()| create()).map_err(failed(&path))?;
                Some(aside)
            }
            made => made.map(|()| None).map_err(failed(&path))?,
        };
        Ok((Self { path }, found))
    }

    /// The same without making anything.
    pub(super) fn at(ours: &Path, run: i64, step: u32, name: &str, attempt: u32) -> Self {
        Self { path: Self::path_of(ours, run, step, name, attempt) }
    }

    pub(super) fn path_of(ours: &Path, run: i64, step: u32, name: &str, attempt: u32) -> PathBuf {
        ours.join("runs").join(run.to_string()).join(format!("{step}-{name}")).join(attempt.to_string())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where its prompt is.
    #[must_use]
    pub fn prompt_path(&self) -> PathBuf {
        self.path.join("prompt.md")
    }

    /// Writes the prompt, the exact bytes that are delivered.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_prompt(&self, prompt: &str) -> Result<(), JournalError> {
        self.write("prompt.md", prompt)
    }

    /// Writes the final message of a structured backend.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_final(&self, message: &str) -> Result<(), JournalError> {
        self.write("final.md", message)
    }

    /// Writes the whole diff that a prompt shows a part of.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_diff(&self, diff: &str) -> Result<(), JournalError> {
        self.write("diff.patch", diff)
    }

    /// Writes what was decided, in its normal form.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_verdict(&self, verdict: &str) -> Result<(), JournalError> {
        self.write("verdict.json", verdict)
    }

    /// The prompt as it was delivered; empty without one.
    #[must_use]
    pub fn prompt(&self) -> String {
        fs::read(self.prompt_path())
            .map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Writes why there is no prompt.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_error(&self, why: &str) -> Result<(), JournalError> {
        self.write("error.txt", why)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), JournalError> {
        let path = self.path.join(name);
        make_file(&path)?.write_all(text.as_bytes()).map_err(failed(&path))
    }

    /// Opens the file that says how long the run has been at work: it outlives us.
    #[must_use]
    pub fn work_file(&self) -> Option<WorkFile> {
        make_file(&self.path.join(WORKED)).ok().map(WorkFile)
    }

    /// What that file says, in milliseconds.
    #[must_use]
    pub fn worked_ms(&self) -> Option<u64> {
        fs::read_to_string(self.path.join(WORKED)).ok()?.trim().parse().ok()
    }

    /// Opens `stdout.log` or `stderr.log` for writing.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn transcript(&self, name: &str) -> Result<Transcript, JournalError> {
        let path = self.path.join(name);
        Ok(Transcript { file: make_file(&path)?, path, bytes: 0 })
    }

    /// All that an attempt printed, standard output before standard error: of a stream over 16 MiB its beginning and its end. What is no
    /// text becomes U+FFFD here, and only here.
    #[must_use]
    pub fn whole_output(&self) -> [String; 2] {
        const HALF: u64 = 8 << 20;
        ["stdout.log", "stderr.log"].map(|name| {
            let read = || {
                let file = File::open(self.path.join(name))?;
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

    /// What the attempt said last, for feedback: the final message where there is one, else the ends of stdout and of stderr,
    /// each of at most `most` bytes. What is no text becomes U+FFFD here, and only here; so does NUL, which no argument takes.
    #[must_use]
    pub fn last_words(&self, most: u64) -> [String; 2] {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}");
        if let Ok(message) = fs::read(self.path.join("final.md")) {
            return [text(&message), String::new()];
        }
        ["stdout.log", "stderr.log"].map(|name| {
            let end = File::open(self.path.join(name)).and_then(|file| {
                let length = file.metadata()?.len();
                let mut end = vec![0; usize::try_from(length.min(most)).unwrap_or(0)];
                file.read_exact_at(&mut end, length.saturating_sub(most))?;
                Ok(end)
            });
            text(&end.unwrap_or_default())
        })
    }
}

impl Journal {
    /// Makes the folder of an attempt; returns where something that lay there already was put.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn attempt(
        &self,
        run: i64,
        step: u32,
        name: &str,
        attempt: u32,
    ) -> Result<(AttemptFolder, Option<PathBuf>), JournalError> {
        AttemptFolder::make(&self.folder, run, step, name, attempt)
    }

    /// The folder of an attempt, whether it exists or not.
    #[must_use]
    pub fn attempt_folder(&self, run: i64, step: u32, name: &str, attempt: u32) -> AttemptFolder {
        AttemptFolder::at(&self.folder, run, step, name, attempt)
    }

    /// Keeps a report beside a run's transcripts; an earlier one gives way. Returns where.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_report(&self, run: i64, format: &str, text: &str) -> Result<PathBuf, JournalError> {
        let folder = self.run_folder(run);
        make_folder(&folder)?;
        let path = folder.join(format!("report.{format}"));
        let _ = fs::remove_file(&path);
        make_file(&path)?.write_all(text.as_bytes()).map_err(failed(&path))?;
        Ok(path)
    }

    /// The highest attempt of each step that has left a folder: nothing is ever overwritten, not even what the database has
    /// lost.
    #[must_use]
    pub fn highest_attempts(&self, run: i64) -> Vec<(u32, u32)> {
        highest_attempts(&self.run_folder(run))
    }

    /// The folder of a run's transcripts, whether it exists or not.
    #[must_use]
    pub fn run_folder(&self, run: i64) -> PathBuf {
        self.folder.join("runs").join(run.to_string())
    }
}

/// A log that grows.
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
    /// When the disk does not take them.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        self.file.write_all(bytes).map_err(failed(&self.path))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// How many bytes it holds.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads back from an offset, to catch up with what could not be shown at once; returns how many bytes it read.
    pub fn read_back(&self, offset: u64, into: &mut [u8]) -> usize {
        self.file.read_at(into, offset).unwrap_or(0)
    }
}

/// How long a run has been at work, written while an attempt is under way.
#[derive(Debug)]
pub struct WorkFile(File);

impl WorkFile {
    /// Writes it, over what was there before, of one length: whoever reads it finds a whole number.
    pub fn write(&self, ms: u64) {
        // Its loss costs a resume a few seconds of the time that was worked.
        let _ = self.0.write_all_at(format!("{ms:020}\n").as_bytes(), 0);
    }
}
