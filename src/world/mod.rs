//! Everything ambient: the working directory, variables, files, the clocks, our own program. It is passed in, so that
//! tests can fake it.
#![expect(clippy::disallowed_methods, reason = "the owner of what is ambient")]

mod disk;
mod machine;
mod parked;
mod stdin;
mod uptime;

pub use disk::Disk;
pub use parked::{parked_until, parked_variable, write_parked};
pub use stdin::Stdin;
pub use uptime::Uptime;

use crate::source::{Env, Files, Kind};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use uptime::UptimeOf;

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

    /// Returns the date and time in UTC this long ago, in RFC 3339 with milliseconds.
    #[must_use]
    pub fn timestamp_before(&self, age: Duration) -> String {
        let now = self.timestamp().parse().unwrap_or(jiff::Timestamp::MIN);
        format!("{:.3}", now.checked_sub(age).unwrap_or(jiff::Timestamp::MIN))
    }

    /// Returns how many milliseconds have passed since a time in RFC 3339, by the wall clock; 0 for an invalid time or
    /// one in the future.
    #[must_use]
    pub fn milliseconds_since_time(&self, then: &str) -> u64 {
        let Ok((now, then)) = self.timestamp().parse().and_then(|now: jiff::Timestamp| Ok((now, then.parse()?))) else {
            return 0;
        };
        let then: jiff::Timestamp = then;
        u64::try_from(now.as_millisecond() - then.as_millisecond()).unwrap_or(0)
    }

    /// Returns how many milliseconds ago a file was written to; `None` if there is no such file.
    #[must_use]
    pub fn milliseconds_since_touch(&self, path: &Path) -> Option<u64> {
        let touched = jiff::Timestamp::try_from(fs::metadata(path).ok()?.modified().ok()?).ok()?;
        Some(self.milliseconds_since_time(&touched.to_string()))
    }

    /// Removes the files of our own directory that nobody has written to for this long. What cannot be removed stays.
    pub fn remove_older(&self, folder: &Path, age: Duration) {
        let old = |path: &Path| self.milliseconds_since_touch(path).is_some_and(|ms| u128::from(ms) > age.as_millis());
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| old(&entry.path())) {
            let _ = fs::remove_file(entry.path());
        }
    }

    /// Returns how many whole days have passed since a time in RFC 3339; none for an invalid time.
    #[must_use]
    pub fn days_since(&self, then: &str) -> Option<u64> {
        let (now, then): (jiff::Timestamp, jiff::Timestamp) = (self.timestamp().parse().ok()?, then.parse().ok()?);
        u64::try_from((now.as_second() - then.as_second()) / 86_400).ok()
    }

    /// Sets the command line's choice of color. It outranks the environment for us, but not for the programs that we
    /// start.
    pub fn set_color(&mut self, choice: &str) {
        self.environment.push((crate::source::COLOR.into(), choice.into()));
    }

    /// Returns the same surroundings with these variables, for us and for the programs that we start.
    #[must_use]
    pub fn with_variables(&self, variables: &[(&str, OsString)]) -> Self {
        let mut environment = self.environment.clone();
        for (name, value) in variables {
            environment.retain(|(known, _)| known != name);
            environment.push(((*name).into(), value.clone()));
        }
        Self {
            cwd: self.cwd.clone(),
            environment,
            own_program: self.own_program.clone(),
            executable: self.executable.as_ref().and_then(|file| file.try_clone().ok()),
        }
    }

    /// Returns our directory for what can be made again; `None` if there is no home (XDG Base Directory Specification).
    #[must_use]
    pub fn own_cache(&self) -> Option<PathBuf> {
        Some(self.base_folder("XDG_CACHE_HOME", ".cache")?.join("forkhestra"))
    }

    /// Makes that directory, for its owner only: a workspace has what the project has, and a mirror of a hub has logs.
    /// Best effort: what is then written there says what is wrong.
    pub fn make_own_cache(&self) {
        let Some(path) = self.own_cache() else { return };
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        let _ = fs::set_permissions(path, Permissions::from_mode(0o700));
    }

    /// Whether standard output is a terminal.
    #[must_use]
    pub fn stdout_is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// The files that the user asks us to write, and those of others.
    #[must_use]
    pub fn disk(&self) -> Disk {
        Disk::new()
    }

    /// Standard input.
    #[must_use]
    pub fn stdin(&self) -> Stdin {
        Stdin::new()
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
        let mut head = Vec::with_capacity(bytes);
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
