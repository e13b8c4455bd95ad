//! Finds the processes of an agent where orphans do not come to us (`Containment::Lineage`): by their session, by who
//! forked them, by the token in their environment, and by the agent's pipes that they still hold.
//!
//! A process escapes only if it escapes all four. docs/signals.md says when that is.

use super::system::{PipeEnd, Process, all, has_variable, write_ends};
use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;

/// What is known of the processes of an agent.
#[derive(Debug)]
pub(super) struct Lineage {
    /// The session that the agent starts in. We lead it, so this is our own process id, too.
    session: i32,
    /// Our host; `None` if it had ended when we began.
    host: Option<i32>,
    /// The `id`s of the processes that were found, also of those that have ended.
    members: HashSet<u64>,
    /// The variable that marks the agent's environment, as `NAME=value`.
    token: Option<Vec<u8>>,
    /// The agent's output.
    output: Option<Output>,
}

/// The pipes of an agent's output.
#[derive(Debug)]
pub(super) struct Output {
    /// Their writing ends.
    pub(super) ends: Vec<PipeEnd>,
    /// Their reading ends. As long as we hold them, no other pipe can get the same identity.
    #[expect(dead_code, reason = "held, never read")]
    pub(super) readers: [OwnedFd; 2],
}

impl Lineage {
    /// Knows no process yet. `lifeline` leads the session.
    pub(super) fn new(lifeline: i32, host: Option<i32>) -> Self {
        Self { session: lifeline, host, members: HashSet::new(), token: None, output: None }
    }

    /// Begins again for the next agent.
    pub(super) fn expect(&mut self, output: Output) {
        self.forget();
        self.output = Some(output);
    }

    /// Sets the variable that marks the agent's environment.
    pub(super) fn mark(&mut self, token: Option<Vec<u8>>) {
        self.token = token;
    }

    /// Forgets an agent that has ended.
    pub(super) fn forget(&mut self) {
        self.members.clear();
        (self.token, self.output) = (None, None);
    }

    /// Takes note of processes that have been forked since the last look.
    pub(super) fn look(&mut self) {
        self.add_relatives(&all());
    }

    /// Returns every process of the agent that is alive, or a zombie.
    pub(super) fn find(&mut self) -> Vec<Process> {
        let table = all();
        let marked: Vec<u64> = table.values().filter(|process| self.is_marked(process)).map(|known| known.id).collect();
        self.members.extend(marked);
        self.add_relatives(&table);
        table.into_values().filter(|process| self.members.contains(&process.id)).collect()
    }

    fn is_marked(&self, process: &Process) -> bool {
        // What our host has started is not below the agent.
        let is_of_the_host = self.host == Some(process.parent);
        if self.is_other(process) || is_of_the_host || process.zombie || self.members.contains(&process.id) {
            return false;
        }
        let has_token = || self.token.as_ref().is_some_and(|token| has_variable(process.pid, &|found| found == token));
        let is_ours = |end: &PipeEnd| self.output.as_ref().is_some_and(|output| output.ends.contains(end));
        let holds_output = || write_ends(process.pid).iter().any(is_ours);
        has_token() || holds_output()
    }

    /// Whether a process is never part of the tree: we, our host, and the first process, which adopts the orphans of
    /// everybody.
    fn is_other(&self, process: &Process) -> bool {
        process.pid <= 1 || process.pid == self.session || self.host == Some(process.pid)
    }

    /// Adds the processes of the session, and those that a known process has forked.
    fn add_relatives(&mut self, table: &HashMap<i32, Process>) {
        loop {
            let is_new = |process: &&Process| {
                let forked = process.forked_by.is_some_and(|parent| self.members.contains(&parent));
                (process.session == self.session || forked)
                    && !self.is_other(process)
                    && !self.members.contains(&process.id)
            };
            let new: Vec<u64> = table.values().filter(is_new).map(|process| process.id).collect();
            if new.is_empty() {
                return;
            }
            self.members.extend(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, session: i32, forked_by: Option<u64>) -> (i32, Process) {
        let id = u64::try_from(pid).unwrap() * 10;
        let process = Process {
            pid,
            parent,
            session,
            name: "p".into(),
            zombie: false,
            stopped: false,
            start_time: 1,
            id,
            forked_by,
        };
        (pid, process)
    }

    fn known(lineage: &Lineage) -> Vec<u64> {
        let mut members: Vec<u64> = lineage.members.iter().copied().collect();
        members.sort_unstable();
        members
    }

    #[test]
    fn a_process_of_the_session_and_what_it_forks_into_other_sessions_are_found() {
        let mut lineage = Lineage::new(12, Some(11));
        lineage.add_relatives(&HashMap::from([
            // The host, the lifeline and its agent.
            process(11, 1, 11, None),
            process(12, 11, 12, Some(110)),
            process(13, 12, 12, Some(120)),
            // A daemon, and its child.
            process(14, 13, 14, Some(130)),
            process(15, 14, 15, Some(140)),
            // Another child of the host.
            process(16, 11, 16, Some(110)),
        ]));
        assert_eq!(known(&lineage), [130, 140, 150]);
    }

    #[test]
    fn the_first_process_and_the_kernel_are_never_part_of_it() {
        let mut lineage = Lineage::new(12, Some(11));
        lineage.add_relatives(&HashMap::from([process(0, 0, 12, None), process(1, 0, 12, Some(0))]));
        assert!(known(&lineage).is_empty());
    }

    #[test]
    fn a_marked_orphan_is_found_if_the_host_has_ended_and_what_a_living_host_has_started_is_not() {
        let (_, ours) = process(i32::try_from(std::process::id()).unwrap(), 1, 14, None);
        for (host, parent, found) in [(None, 1, true), (Some(11), 1, true), (Some(11), 11, false)] {
            let mut lineage = Lineage::new(12, host);
            lineage.mark(Some(b"CARGO_PKG_NAME=forkhestra".to_vec()));
            assert_eq!(lineage.is_marked(&Process { parent, ..ours.clone() }), found, "{host:?}, {parent}");
        }
    }

    #[test]
    fn an_orphan_that_was_seen_while_its_parent_lived_stays_known_and_so_does_what_it_forks_later() {
        let mut lineage = Lineage::new(12, Some(11));
        lineage.add_relatives(&HashMap::from([process(13, 12, 12, Some(120)), process(14, 13, 14, Some(130))]));
        // Its parent is gone, and init has adopted it.
        lineage.add_relatives(&HashMap::from([process(14, 1, 14, None), process(17, 14, 17, Some(140))]));
        assert_eq!(known(&lineage), [130, 140, 170]);
        lineage.forget();
        assert!(known(&lineage).is_empty());
    }
}
