//! Hooks while a run is under way. They are run beside it, so that nothing waits for them, and what becomes of them changes nothing.

use super::driver::Driver;
use crate::chain::HookKind;
use crate::engine::{Event, EventKind, WaitReason};
use crate::proc::{ByHand, Interrupts};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The longest that a hook may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// A shorter wait is not worth a word.
const WORTH_A_WORD_MS: u64 = 60_000;

/// The hooks of one run that are at work.
#[derive(Debug, Default)]
pub(super) struct HooksBeside {
    interrupts: Interrupts,
    running: Vec<JoinHandle<()>>,
    /// What was called since the last attempt that counts: each once in a row of waits.
    called: Vec<HookKind>,
}

impl Drop for HooksBeside {
    /// Nothing outlives the run.
    fn drop(&mut self) {
        self.interrupts.end_all();
        for hook in self.running.drain(..) {
            // A hook that failed has said so itself.
            let _ = hook.join();
        }
    }
}

impl Driver<'_> {
    /// Runs what is to be run when this has happened.
    pub(super) fn call_hooks(&mut self, event: &Event) {
        let wanted: &[HookKind] = match &event.event {
            EventKind::AttemptFinished { outcome, .. } if outcome.counts() => return self.hooks.called.clear(),
            EventKind::WaitStarted { reason: WaitReason::Login, .. } => &[HookKind::Human, HookKind::Wait],
            EventKind::WaitStarted { wait_ms, .. } if *wait_ms >= WORTH_A_WORD_MS => &[HookKind::Wait],
            _ => return,
        };
        for kind in wanted.iter().filter(|kind| !self.hooks.called.contains(kind)).copied().collect::<Vec<_>>() {
            self.hooks.called.push(kind);
            let json = serde_json::to_string(event).unwrap_or_default() + "\n";
            for hook in self.cast.plan.hooks.iter().filter(|hook| hook.kind == kind).cloned() {
                let (root, json, interrupts) =
                    (self.cast.root.to_path_buf(), json.clone(), self.hooks.interrupts.clone());
                let lifeline = self.cast.world.lifeline();
                let run = move || {
                    let by_hand = ByHand {
                        lifeline: &lifeline,
                        program: &hook.program,
                        arguments: &hook.arguments,
                        folder: &root,
                        timeout: PATIENCE,
                        input: json.as_bytes(),
                        interrupts: &interrupts,
                    };
                    let _ = by_hand.run(&mut |_| {});
                };
                // Where the machine has no room for a thread, the hook is left out: the wait itself is in the journal.
                self.hooks.running.extend(Builder::new().spawn(run));
            }
        }
    }
}
