//! What we do to our own process.

use rustix::process::{Signal, getpid, kill_process, set_child_subreaper};

/// From now on orphans of our tree come to us, should their lifeline be killed; a living lifeline keeps its own.
pub fn adopt_orphans() {
    // Best effort: without it the token in the environment is what finds them.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Stops us, as Ctrl-Z would have done had we not listened to it; whoever stopped us sends SIGCONT.
pub fn stop_ourselves() {
    let _ = kill_process(getpid(), Signal::STOP);
}
