//! Finds the processes of an agent where orphans do not come to us (`Containment::Lineage`): by their session, by who
//! forked them, by the token in their environment, and by the agent's pipes that they still hold.
//!
//! A process escapes only if it leaves the session and its parent ends before we look, if its environment cannot be
//! read or was cleared, and if it has closed the agent's output: all three.

use super::system::{PipeEnd, Process, all, has_variable, write_ends};
use std::collections::{HashMap, HashSet};

/// What is known of the processes of an agent.
#[derive(Debug)]
pub(super) struct Lineage {
    /// The session that the agent starts in, which is ours.
    session: i32,
    /// Processes that are never part of it: us, and our host.
    others: [i32; 2],
    /// The `id`s of the processes that were found, also of those that have ended.
    members: HashSet<u64>,
    /// The variable that marks the agent's environment, as `NAME=value`.
    token: Option<Vec<u8>>,
    /// The writing ends of the agent's output.
    output: Vec<PipeEnd>,
}

impl Lineage {
    /// Knows no process yet. `lifeline` leads the session.
    pub(super) fn new(lifeline: i32, host: i32) -> Self {
        let (members, output) = (HashSet::new(), Vec::new());
        Self { session: lifeline, others: [lifeline, host], members, token: None, output }
    }

    /// Begins again for the next agent.
    pub(super) fn expect(&mut self, token: Option<Vec<u8>>, output: Vec<PipeEnd>) {
        self.members.clear();
        (self.token, self.output) = (token, output);
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
        if self.others.contains(&process.pid) || process.zombie {
            return false;
        }
        let has_token = || self.token.as_ref().is_some_and(|token| has_variable(process.pid, &|found| found == token));
        let holds_output = || write_ends(process.pid).iter().any(|end| self.output.contains(end));
        has_token() || holds_output()
    }

    /// Adds the processes of the session, and those that a known process has forked.
    fn add_relatives(&mut self, table: &HashMap<i32, Process>) {
        loop {
            let is_new = |process: &&Process| {
                let forked = process.forked_by.is_some_and(|parent| self.members.contains(&parent));
                (process.session == self.session || forked)
                    && !self.others.contains(&process.pid)
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
            cpu_ticks: 0,
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
        let mut lineage = Lineage::new(2, 1);
        lineage.add_relatives(&HashMap::from([
            // The host, the lifeline and its agent.
            process(1, 0, 1, None),
            process(2, 1, 2, Some(10)),
            process(3, 2, 2, Some(20)),
            // A daemon, and its child.
            process(4, 3, 4, Some(30)),
            process(5, 4, 5, Some(40)),
            // Another child of the host.
            process(6, 1, 6, Some(10)),
        ]));
        assert_eq!(known(&lineage), [30, 40, 50]);
    }

    #[test]
    fn an_orphan_that_was_seen_while_its_parent_lived_stays_known_and_so_does_what_it_forks_later() {
        let mut lineage = Lineage::new(2, 1);
        lineage.add_relatives(&HashMap::from([process(3, 2, 2, Some(20)), process(4, 3, 4, Some(30))]));
        // Its parent is gone, and init has adopted it.
        lineage.add_relatives(&HashMap::from([process(4, 1, 4, None), process(7, 4, 7, Some(40))]));
        assert_eq!(known(&lineage), [30, 40, 70]);
        lineage.expect(None, Vec::new());
        assert!(known(&lineage).is_empty());
    }
}
