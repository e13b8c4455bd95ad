//! Hooks during a run. They run alongside it: nothing waits for them, and their results change nothing.

use super::context::RunContext;
use crate::chain::HookKind;
use crate::engine::{Event, EventKind, WaitReason};
use crate::proc::{ByHand, Interrupts};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The longest that a hook may run.
const PATIENCE: Duration = Duration::from_secs(30);
/// The shortest wait that calls a hook, in milliseconds.
const WORTH_A_WORD_MS: u64 = 60_000;

/// The hooks of one run that are currently running.
#[derive(Debug, Default)]
pub(super) struct RunningHooks {
    interrupts: Interrupts,
    running: Vec<JoinHandle<()>>,
    /// The hooks called since the last attempt that counts. In a series of waits each is called only once.
    called: Vec<HookKind>,
}

impl RunningHooks {
    /// Calls the hooks of a run that are configured for this event.
    pub(super) fn call(&mut self, context: &RunContext<'_>, event: &Event) {
        let wanted: &[HookKind] = match &event.event {
            EventKind::AttemptFinished { outcome, .. } if outcome.counts() => return self.called.clear(),
            EventKind::WaitStarted { reason: WaitReason::Login, .. } => &[HookKind::Human, HookKind::Wait],
            EventKind::WaitStarted { wait_ms, .. } if *wait_ms >= WORTH_A_WORD_MS => &[HookKind::Wait],
            _ => return,
        };
        for kind in wanted.iter().filter(|kind| !self.called.contains(kind)).copied().collect::<Vec<_>>() {
            self.called.push(kind);
            let json = serde_json::to_string(event).unwrap_or_default() + "\n";
            for hook in context.plan.hooks.iter().filter(|hook| hook.kind == kind).cloned() {
                let (root, json, interrupts) = (context.root.to_path_buf(), json.clone(), self.interrupts.clone());
                let lifeline = context.world.lifeline();
                let run = move || {
                    let by_hand = ByHand {
                        lifeline: &lifeline,
                        program: &hook.program,
                        arguments: &hook.arguments,
                        folder: &root,
                        timeout: PATIENCE,
                        input: json.as_bytes(),
                        interrupts: &interrupts,
                        without: &[],
                    };
                    let _ = by_hand.run(&mut |_| {});
                };
                // If the machine cannot start another thread, the hook is skipped: the wait itself is in the journal.
                self.running.extend(Builder::new().spawn(run));
            }
        }
    }
}

impl Drop for RunningHooks {
    /// Terminates the hooks, so that nothing outlives the run.
    fn drop(&mut self) {
        self.interrupts.end_all();
        for hook in self.running.drain(..) {
            // A failed hook changes nothing.
            let _ = hook.join();
        }
    }
}
