//! Everything ambient: the working directory, variables, files, the clocks, our own program. It is passed in, so that
//! tests can fake it. It also writes the files that the user requested.
#![expect(clippy::disallowed_methods, reason = "the owner of what is ambient")]

mod ages;
mod cache;
mod machine;
mod parked;
mod stdin;
mod variables;

use crate::source::{Env, Files, Kind};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The surroundings that the program finds when it starts.
#[derive(Debug)]
pub struct World {
    cwd: PathBuf,
    environment: Vec<(OsString, OsString)>,
    own_program: PathBuf,
    /// Our own executable, held open: the lifeline has to be this same program, even if the file is replaced meanwhile.
    executable: Option<File>,
}

impl World {
    /// Reads the surroundings.
    ///
    /// # Errors
    /// When the working directory or our own executable cannot be found.
    pub fn look() -> io::Result<Self> {
        Ok(Self {
            cwd: std::env::current_dir()?,
            environment: std::env::vars_os().collect(),
            own_program: std::env::current_exe()?,
            executable: File::open("/proc/self/exe").ok(),
        })
    }

    /// The working directory in which the program was started.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Returns the absolute form of a path, which may be relative to the working directory. If the path exists, the
    /// result has no `.`, `..` or links.
    #[must_use]
    pub fn canonical(&self, path: &Path) -> PathBuf {
        let path = self.cwd.join(path);
        fs::canonicalize(&path).unwrap_or(path)
    }

    /// All environment variables.
    #[must_use]
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// The path of our own program, for display.
    #[must_use]
    pub fn own_program(&self) -> &Path {
        &self.own_program
    }

    /// The path that is executed to start a lifeline.
    #[must_use]
    pub fn lifeline(&self) -> PathBuf {
        match &self.executable {
            Some(file) => PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())),
            None => self.own_program.clone(),
        }
    }

    /// The directory in which temporary directories are created.
    #[must_use]
    pub fn temporary(&self) -> PathBuf {
        self.var("TMPDIR").filter(|folder| !folder.is_empty()).map_or_else(|| "/tmp".into(), PathBuf::from)
    }

    /// The directory of the user's configuration (XDG Base Directory Specification: a relative one counts as unset).
    #[must_use]
    pub fn config_home(&self) -> Option<PathBuf> {
        self.base_folder("XDG_CONFIG_HOME", ".config")
    }

    /// The directory in which programs keep state for the user (XDG Base Directory Specification).
    #[must_use]
    pub fn state_home(&self) -> Option<PathBuf> {
        self.base_folder("XDG_STATE_HOME", ".local/state")
    }

    /// The directory in which programs keep data for the user (XDG Base Directory Specification).
    #[must_use]
    pub fn data_home(&self) -> Option<PathBuf> {
        self.base_folder("XDG_DATA_HOME", ".local/share")
    }

    fn base_folder(&self, variable: &str, usual: &str) -> Option<PathBuf> {
        let absolute = |folder: OsString| Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute());
        self.var(variable).and_then(absolute).or_else(|| Some(self.var("HOME").and_then(absolute)?.join(usual)))
    }

    /// The current time of the monotonic clock, which stops while the machine sleeps.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::now()
    }

    /// The clock that includes the machine's sleep.
    #[must_use]
    pub fn uptime_clock(&self) -> Uptime {
        Uptime(match self.test_seam("FORKHESTRA_TEST_SLEPT_FILE") {
            Some(file) => UptimeOf::MachineAndFile(file.into()),
            None => UptimeOf::Machine,
        })
    }

    /// The time since the machine started, including its sleep.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.uptime_clock().now()
    }

    /// The time since an earlier instant, in milliseconds; 0 while the tests' clock stands still.
    #[must_use]
    pub fn milliseconds_since(&self, earlier: Instant) -> u64 {
        if self.test_seam("FORKHESTRA_TEST_STILL_CLOCK").is_some() {
            return 0;
        }
        u64::try_from(self.now().duration_since(earlier).as_millis()).unwrap_or(u64::MAX)
    }

    /// The current date and time in UTC, in RFC 3339 with milliseconds.
    #[must_use]
    pub fn timestamp(&self) -> String {
        if self.test_seam("FORKHESTRA_TEST_STILL_CLOCK").is_some() {
            return "2026-01-01T00:00:00.000Z".into();
        }
        format!("{:.3}", jiff::Timestamp::now())
    }

    /// Whether the tests' clock stands still; then nothing moves on the terminal.
    #[must_use]
    pub fn is_still(&self) -> bool {
        self.test_seam("FORKHESTRA_TEST_STILL_CLOCK").is_some()
    }

    /// Returns every file below a directory, sorted by path; links are not followed.
    #[must_use]
    pub fn files_below(&self, folder: &Path) -> Vec<PathBuf> {
        let (mut found, mut open) = (Vec::new(), vec![folder.to_path_buf()]);
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(entry.path()),
                    Ok(kind) if kind.is_file() => found.push(entry.path()),
                    _ => {}
                }
            }
        }
        found.sort();
        found
    }

    /// Returns a path relative to the working directory; a path that is not below it is unchanged.
    #[must_use]
    pub fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.cwd).unwrap_or(path).display().to_string()
    }

    /// Returns this time, unless a test shortens it with `FORKHESTRA_TEST_NAME_MS`.
    #[must_use]
    pub fn shortened(&self, name: &str, time: Duration) -> Duration {
        let seam = self.test_seam(&format!("FORKHESTRA_TEST_{name}_MS"));
        seam.and_then(|text| text.to_str()?.parse().ok()).map_or(time, Duration::from_millis)
    }

    /// After how many commits a test wants this process to abort.
    #[must_use]
    pub fn abort_after(&self) -> Option<u32> {
        self.test_seam("FORKHESTRA_TEST_ABORT_AFTER_WRITES")?.to_str()?.parse().ok()
    }

    /// Returns a random time shorter than `most`; zero if the system has no random bytes.
    #[must_use]
    pub fn jitter(&self, most: Duration) -> Duration {
        let mut byte = [0; 1];
        if getrandom::fill(&mut byte).is_err() { Duration::ZERO } else { most * u32::from(byte[0]) / 256 }
    }

    /// The current time of the wall clock, which may be set at any moment.
    #[must_use]
    pub fn moment(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }

    /// The time zone of this machine (tzset(3)).
    #[must_use]
    pub fn time_zone(&self) -> jiff::tz::TimeZone {
        jiff::tz::TimeZone::system()
    }

    /// Returns the value of a variable that only test builds read.
    fn test_seam(&self, name: &str) -> Option<OsString> {
        if cfg!(feature = "test-fakes") { self.var(name).filter(|value| value != "0") } else { None }
    }

    /// Returns a random token for an attempt: 32 hexadecimal digits.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn token(&self) -> io::Result<String> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
    }

    /// The machine's name (uname(2), `nodename`), as far as it can be part of a line of text.
    #[must_use]
    pub fn machine(&self) -> String {
        machine::name()
    }

    /// The system: its name, its release and its machine type, such as `Linux 6.1.0 x86_64` (uname(2)).
    #[must_use]
    pub fn system(&self) -> String {
        machine::system()
    }

    /// Whether a signal was ignored when we were started, for example by nohup.
    #[must_use]
    pub fn ignores(&self, signal: i32) -> bool {
        machine::ignores(signal)
    }

    /// Returns the user ID of a path's owner; none if the path does not exist. For a link, this is the owner of the
    /// link itself.
    #[must_use]
    pub fn owner(&self, path: &Path) -> Option<u32> {
        fs::symlink_metadata(path).ok().map(|found| MetadataExt::uid(&found))
    }

    /// Whether files can be created in a directory.
    #[must_use]
    pub fn can_write(&self, folder: &Path) -> bool {
        rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
    }

    /// Creates a new directory for a demonstration, which is not removed.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn make_temporary_folder(&self) -> io::Result<PathBuf> {
        Ok(tempfile::Builder::new().prefix("forkhestra-demo-").tempdir_in(self.temporary())?.keep())
    }

    /// Creates a temporary directory, which is removed when the returned value is dropped.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn scratch_folder(&self) -> io::Result<tempfile::TempDir> {
        tempfile::Builder::new().prefix("forkhestra-").tempdir_in(self.temporary())
    }

    /// Creates a directory that the user requested, and the directories above it.
    ///
    /// # Errors
    /// When it cannot be created, or exists and is not an empty directory.
    pub fn make_empty(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)?;
        match fs::read_dir(path)?.next() {
            Some(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "the directory is not empty")),
            None => Ok(()),
        }
    }

    /// Creates a file that the user requested, and the directories above it. An existing file is never touched.
    ///
    /// # Errors
    /// `AlreadyExists`, or any other error of the operating system.
    pub fn create(&self, path: &Path, content: &str) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        OpenOptions::new().write(true).create_new(true).open(path)?.write_all(content.as_bytes())
    }

    /// Creates an empty file and its directory, for their owner only.
    ///
    /// # Errors
    /// `AlreadyExists`, or any other error of the operating system.
    pub fn create_private(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(drop)
    }
}

impl World {
    /// Checks whether a file can be created, by creating and removing it.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn try_out(&self, path: &Path) -> io::Result<()> {
        OpenOptions::new().write(true).create_new(true).open(path)?;
        fs::remove_file(path)
    }

    /// Appends to a file that the user named; the file is created if it does not exist.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn append(&self, path: &Path, text: &str) -> io::Result<()> {
        self.appender(path)?.write_all(text.as_bytes())
    }

    /// Opens a file that the user named, to append to it piece by piece; the file is created if it does not exist.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn appender(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().create(true).append(true).open(path)
    }

    /// Writes a file that the user requested. An existing file is replaced as a whole, or not at all.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn write(&self, path: &Path, content: &str) -> io::Result<()> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => self.replace(path, content),
            // A pipe or a device is written to, not replaced.
            Ok(metadata) if !metadata.is_dir() => {
                OpenOptions::new().write(true).open(path)?.write_all(content.as_bytes())
            }
            Ok(_) => Err(io::ErrorKind::IsADirectory.into()),
            Err(_) => self.create(path, content),
        }
    }

    /// Replaces a file that the user asked to be written, as a whole or not at all. Its permissions are kept.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn replace(&self, path: &Path, content: &str) -> io::Result<()> {
        let path = fs::canonicalize(path)?;
        let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(content.as_bytes())?;
        file.as_file().set_permissions(fs::metadata(&path)?.permissions())?;
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// A clock that shows the time since the machine started, including its sleep (`clock_gettime(2)`).
/// It cannot be set.
#[derive(Debug, Clone)]
pub struct Uptime(UptimeOf);

#[derive(Debug, Clone)]
enum UptimeOf {
    Machine,
    /// For tests: the machine has also slept for as many milliseconds as this file specifies.
    MachineAndFile(PathBuf),
    #[cfg(test)]
    Fake(FakeMachine),
}

impl Uptime {
    /// Returns the time that the clock shows.
    #[must_use]
    pub fn now(&self) -> Duration {
        let now = rustix::time::clock_gettime(machine::UPTIME);
        let (seconds, nanoseconds) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
        let uptime = Duration::new(seconds.unwrap_or(0), nanoseconds.unwrap_or(0));
        match &self.0 {
            UptimeOf::Machine => uptime,
            UptimeOf::MachineAndFile(file) => {
                let slept = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
                uptime + Duration::from_millis(slept.unwrap_or(0))
            }
            #[cfg(test)]
            UptimeOf::Fake(machine) => machine.uptime(),
        }
    }

    /// The longest time that a wait may go without a look at this clock: the runtime's timers do not advance while the
    /// machine sleeps.
    #[must_use]
    pub fn glance(&self) -> Duration {
        match self.0 {
            UptimeOf::MachineAndFile(_) => Duration::from_millis(20),
            UptimeOf::Machine => Duration::from_secs(30),
            #[cfg(test)]
            UptimeOf::Fake(_) => Duration::from_secs(30),
        }
    }
}

/// A simulated machine whose uptime is a number.
#[cfg(test)]
#[derive(Debug, Clone, Default)]
pub(crate) struct FakeMachine(std::sync::Arc<std::sync::Mutex<Duration>>);

#[cfg(test)]
impl FakeMachine {
    /// Simulates that the machine sleeps for this long.
    pub(crate) fn sleep(&self, time: Duration) {
        *self.0.lock().unwrap() += time;
    }

    fn uptime(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

#[cfg(test)]
impl Uptime {
    /// Returns the clock of a simulated machine, and the machine.
    pub(crate) fn fake() -> (Self, FakeMachine) {
        let machine = FakeMachine::default();
        (Self(UptimeOf::Fake(machine.clone())), machine)
    }
}

/// Opens a file that is read as a whole. A named pipe in a project is refused, because a read could wait forever; a
/// shell's `<(…)`, which is in `/dev/fd`, is allowed.
fn open(path: &Path) -> io::Result<File> {
    let is_ours_to_wait_for = path.starts_with("/dev") || path.starts_with("/proc");
    let kind = fs::metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_dir() && !is_ours_to_wait_for {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a named pipe, a socket or a device, not a regular file",
        ));
    }
    File::open(path)
}

impl Files for World {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        open(path)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn head(&self, path: &Path, bytes: usize) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        open(path)?.take(bytes as u64).read_to_end(&mut head)?;
        Ok(head)
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    fn is_link(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn kind(&self, path: &Path) -> io::Result<Kind> {
        let metadata = fs::metadata(path)?;
        Ok(if metadata.is_dir() {
            Kind::Folder
        } else if metadata.is_file() {
            let executable = rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
            Kind::File { executable, bytes: metadata.len() }
        } else {
            Kind::Other
        })
    }
}

impl Env for World {
    fn is_root(&self) -> bool {
        rustix::process::geteuid().is_root()
    }

    fn var(&self, name: &str) -> Option<OsString> {
        let of = |known: &OsString| known == OsStr::new(name);
        self.environment.iter().find(|(known, _)| of(known)).map(|(_, value)| value.clone())
    }
}
