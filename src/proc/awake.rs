//! Keeping the machine awake while something is under way, where systemd can (systemd-inhibit(1)).
#![expect(clippy::disallowed_methods, reason = "the spawner")]

use super::ask::outside;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often and how long is looked whether the lock was given back.
const LOOKS: u32 = 20;
const LOOK: Duration = Duration::from_millis(10);

/// Holds the lock until it is dropped. Whoever kills us gives it back, too: its holder reads our pipe, and ends with it.
#[derive(Debug)]
pub struct Awake(Child);

impl Awake {
    /// Takes the lock; none where there is no systemd. One that is refused (polkit) changes nothing.
    #[must_use]
    pub fn take(why: &str, root: &Path) -> Option<Self> {
        let mut holder = Command::new(outside(Path::new("systemd-inhibit"), root));
        holder.args(["--what=idle:sleep", "--who=forkhestra", "--mode=block"]).arg(format!("--why={why}")).arg("cat");
        holder.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        holder.spawn().ok().map(Self)
    }
}

impl Drop for Awake {
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
