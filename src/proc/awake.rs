//! Keeps the machine awake while something is in progress, if the system has a program for that.
#![expect(clippy::disallowed_methods, reason = "this module starts processes")]

use super::command::outside;
use super::system::keep_awake;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often to check whether the lock was released.
const LOOKS: u32 = 20;
/// How long to wait between two checks.
const LOOK: Duration = Duration::from_millis(10);

/// Holds the lock until it is dropped. It is also released if we are killed: its holder exits when our pipe closes.
#[derive(Debug)]
pub struct SleepInhibitor(Child);

impl SleepInhibitor {
    /// Takes the lock, or returns `None` without such a program. A lock that is refused (polkit) changes nothing.
    #[must_use]
    pub fn take(why: &str, root: &Path) -> Option<Self> {
        let (program, arguments) = keep_awake(why);
        let mut holder = Command::new(outside(Path::new(program), root));
        holder.args(arguments).arg("cat");
        holder.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        holder.spawn().ok().map(Self)
    }
}

impl Drop for SleepInhibitor {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        for _ in 0..LOOKS {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
