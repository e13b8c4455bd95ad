//! All that is ambient: the working directory, variables, files, the clock, our own program. Passed in, so that tests can
//! fake it. It also writes the files that the user asked for.
#![expect(clippy::disallowed_methods, reason = "the owner of what is ambient")]

mod stdin;

use crate::source::{Env, Files, Kind};
use rustix::rand::{GetRandomFlags, getrandom};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What the program finds when it starts.
#[derive(Debug)]
pub struct World {
    cwd: PathBuf,
    environment: Vec<(OsString, OsString)>,
    own_program: PathBuf,
    /// Our own executable, held open: the lifeline is this very program, even if the file is replaced meanwhile.
    executable: Option<File>,
}

impl World {
    /// Looks around.
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

    /// What the command line says of colour stands above the environment, for us and not for what we start.
    pub fn set_color(&mut self, choice: &str) {
        self.environment.push((crate::source::COLOR.into(), choice.into()));
    }

    /// Where the shell stands.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// A path from where the shell stands, without `.`, `..` and links where it exists.
    #[must_use]
    pub fn canonical(&self, path: &Path) -> PathBuf {
        let path = self.cwd.join(path);
        fs::canonicalize(&path).unwrap_or(path)
    }

    /// All variables.
    #[must_use]
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// Our own program's path, for people.
    #[must_use]
    pub fn own_program(&self) -> &Path {
        &self.own_program
    }

    /// What is executed to become a lifeline.
    #[must_use]
    pub fn lifeline(&self) -> PathBuf {
        match &self.executable {
            Some(file) => PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())),
            None => self.own_program.clone(),
        }
    }

    /// Where temporary folders are made.
    #[must_use]
    pub fn temporary(&self) -> PathBuf {
        self.var("TMPDIR").filter(|folder| !folder.is_empty()).map_or_else(|| "/tmp".into(), PathBuf::from)
    }

    /// The folder of the user's configuration (XDG Base Directory Specification: a relative one counts as unset).
    #[must_use]
    pub fn config_home(&self) -> Option<PathBuf> {
        self.base_folder("XDG_CONFIG_HOME", ".config")
    }

    /// Where users keep what programs remember for them (XDG Base Directory).
    #[must_use]
    pub fn state_home(&self) -> Option<PathBuf> {
        self.base_folder("XDG_STATE_HOME", ".local/state")
    }

    fn base_folder(&self, variable: &str, usual: &str) -> Option<PathBuf> {
        let absolute = |folder: OsString| Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute());
        self.var(variable).and_then(absolute).or_else(|| Some(self.var("HOME").and_then(absolute)?.join(usual)))
    }

    /// The monotonic clock; it stands still while the machine sleeps.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::now()
    }

    /// The clock that counts the machine's sleep.
    #[must_use]
    pub fn uptime_clock(&self) -> Uptime {
        Uptime(match self.test_seam("FORKHESTRA_TEST_SLEPT_FILE") {
            Some(file) => UptimeOf::MachineAndFile(file.into()),
            None => UptimeOf::Machine,
        })
    }

    /// What it shows now.
    #[must_use]
    pub fn uptime(&self) -> Duration {
        self.uptime_clock().now()
    }

    /// The time since an earlier instant, in milliseconds; 0 under the still clock of the tests.
    #[must_use]
    pub fn milliseconds_since(&self, earlier: Instant) -> u64 {
        if self.test_seam("FORKHESTRA_TEST_STILL_CLOCK").is_some() {
            return 0;
        }
        u64::try_from(self.now().duration_since(earlier).as_millis()).unwrap_or(u64::MAX)
    }

    /// The time of day in UTC, RFC 3339 with milliseconds.
    #[must_use]
    pub fn timestamp(&self) -> String {
        if self.test_seam("FORKHESTRA_TEST_STILL_CLOCK").is_some() {
            return "2026-01-01T00:00:00.000Z".into();
        }
        format!("{:.3}", jiff::Timestamp::now())
    }

    /// Whether the clock of the tests stands still: then nothing moves on the terminal.
    #[must_use]
    pub fn is_still(&self) -> bool {
        self.test_seam("FORKHESTRA_TEST_STILL_CLOCK").is_some()
    }

    /// Every file below a folder, in order; links are not followed.
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

    /// The time of day so long ago, RFC 3339.
    #[must_use]
    pub fn timestamp_before(&self, age: Duration) -> String {
        let now = self.timestamp().parse().unwrap_or(jiff::Timestamp::MIN);
        format!("{:.3}", now.checked_sub(age).unwrap_or(jiff::Timestamp::MIN))
    }

    /// How many whole days have passed since a time, RFC 3339; none for what is no time.
    #[must_use]
    pub fn days_since(&self, then: &str) -> Option<u64> {
        let (now, then): (jiff::Timestamp, jiff::Timestamp) = (self.timestamp().parse().ok()?, then.parse().ok()?);
        u64::try_from((now.as_second() - then.as_second()) / 86_400).ok()
    }

    /// A path as it is reached from where the shell stands.
    #[must_use]
    pub fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.cwd).unwrap_or(path).display().to_string()
    }

    /// This time, unless a test shortens it: `FORKHESTRA_TEST_NAME_MS`.
    #[must_use]
    pub fn shortened(&self, name: &str, time: Duration) -> Duration {
        let seam = self.test_seam(&format!("FORKHESTRA_TEST_{name}_MS"));
        seam.and_then(|text| text.to_str()?.parse().ok()).map_or(time, Duration::from_millis)
    }

    /// After how many commits a test wants us dead.
    #[must_use]
    pub fn abort_after(&self) -> Option<u32> {
        self.test_seam("FORKHESTRA_TEST_ABORT_AFTER_WRITES")?.to_str()?.parse().ok()
    }

    /// A time by chance, shorter than `most`; none at all where there is no chance.
    #[must_use]
    pub fn jitter(&self, most: Duration) -> Duration {
        let mut byte = [0; 1];
        if getrandom(&mut byte, GetRandomFlags::empty()).is_err() {
            Duration::ZERO
        } else {
            most * u32::from(byte[0]) / 256
        }
    }

    /// Now, by the clock on the wall, which may be set at any time.
    #[must_use]
    pub fn moment(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }

    /// The time zone of this machine (tzset(3)).
    #[must_use]
    pub fn time_zone(&self) -> jiff::tz::TimeZone {
        jiff::tz::TimeZone::system()
    }

    /// A variable that only test builds look at.
    fn test_seam(&self, name: &str) -> Option<OsString> {
        if cfg!(feature = "test-fakes") { self.var(name).filter(|value| value != "0") } else { None }
    }

    /// A word that nobody guesses, for an attempt.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn token(&self) -> io::Result<String> {
        let mut bytes = [0; 16];
        // So few come whole (getrandom(2)).
        getrandom(&mut bytes, GetRandomFlags::empty())?;
        Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
    }

    /// Whether a signal was ignored when we were started, by nohup for example (proc(5), `SigIgn`).
    #[must_use]
    pub fn ignores(&self, signal: i32) -> bool {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
        mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
    }

    /// The user whom something belongs to, by number; none when there is nothing. Of a link, whom the link belongs to.
    #[must_use]
    pub fn owner(&self, path: &Path) -> Option<u32> {
        fs::symlink_metadata(path).ok().map(|found| MetadataExt::uid(&found))
    }

    /// Whether files can be made in a folder.
    #[must_use]
    pub fn can_write(&self, folder: &Path) -> bool {
        rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
    }

    /// Makes a new folder for a demonstration, which stays.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_temporary_folder(&self) -> io::Result<PathBuf> {
        Ok(tempfile::Builder::new().prefix("forkhestra-demo-").tempdir_in(self.temporary())?.keep())
    }

    /// A folder for what is not kept; it is removed when it is dropped.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn scratch_folder(&self) -> io::Result<tempfile::TempDir> {
        tempfile::Builder::new().prefix("forkhestra-").tempdir_in(self.temporary())
    }

    /// Writes a file that the user asked for, and the folders above it; an existing one is never touched.
    ///
    /// # Errors
    /// `AlreadyExists` among what the operating system says.
    pub fn create(&self, path: &Path, content: &str) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        OpenOptions::new().write(true).create_new(true).open(path)?.write_all(content.as_bytes())
    }
}

impl World {
    /// Tries whether a file can be made; nothing of it stays.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn try_out(&self, path: &Path) -> io::Result<()> {
        OpenOptions::new().write(true).create_new(true).open(path)?;
        fs::remove_file(path)
    }

    /// Appends to a file that the user named, which is made if it is not there.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn append(&self, path: &Path, text: &str) -> io::Result<()> {
        self.appender(path)?.write_all(text.as_bytes())
    }

    /// The same for what comes bit by bit.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn appender(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().create(true).append(true).open(path)
    }

    /// Writes a file that the user asked for; one that is there is replaced, whole or not at all.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn write(&self, path: &Path, content: &str) -> io::Result<()> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => self.replace(path, content),
            // A pipe or a device is written to, and stays what it is.
            Ok(metadata) if !metadata.is_dir() => {
                OpenOptions::new().write(true).open(path)?.write_all(content.as_bytes())
            }
            Ok(_) => Err(io::ErrorKind::IsADirectory.into()),
            Err(_) => self.create(path, content),
        }
    }

    /// Replaces a file that the user asked to be written: whole or not at all, with the permissions that it has.
    ///
    /// # Errors
    /// What the operating system says.
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

/// The time since the machine started, its sleep included (`CLOCK_BOOTTIME` of `clock_gettime(2)`). Nobody sets it.
#[derive(Debug, Clone)]
pub struct Uptime(UptimeOf);

#[derive(Debug, Clone)]
enum UptimeOf {
    Machine,
    /// A test's machine has slept for as many milliseconds as this file says.
    MachineAndFile(PathBuf),
    #[cfg(test)]
    Fake(FakeMachine),
}

impl Uptime {
    /// What it shows.
    #[must_use]
    pub fn now(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
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

    /// How long somebody who waits may leave it unread: no timer of the runtime goes on while the machine sleeps.
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

/// A machine whose time is a number.
#[cfg(test)]
#[derive(Debug, Clone, Default)]
pub(crate) struct FakeMachine(std::sync::Arc<std::sync::Mutex<Duration>>);

#[cfg(test)]
impl FakeMachine {
    /// It sleeps for so long.
    pub(crate) fn sleep(&self, time: Duration) {
        *self.0.lock().unwrap() += time;
    }

    fn uptime(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

#[cfg(test)]
impl Uptime {
    /// The clock of a machine that a test moves.
    pub(crate) fn fake() -> (Self, FakeMachine) {
        let machine = FakeMachine::default();
        (Self(UptimeOf::Fake(machine.clone())), machine)
    }
}

/// Opens what is read whole: a named pipe in a project would be waited for without end. A shell's `<(…)` lies in `/dev/fd`.
fn open(path: &Path) -> io::Result<File> {
    let is_ours_to_wait_for = path.starts_with("/dev") || path.starts_with("/proc");
    let kind = fs::metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_dir() && !is_ours_to_wait_for {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no ordinary file (a named pipe, a socket or a device)",
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
