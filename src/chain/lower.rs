//! Lowers a tree of groups to a flat program with a cursor, so that one machine can run every chain.

use super::ir::{Item, Step};
use std::num::NonZeroU32;

/// One instruction of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Runs the step with this index (leaf position, from 0).
    Step(usize),
    /// Begins the first round of the group with this index.
    Enter(usize),
    /// Ends a round of this group in which every step succeeded.
    Leave(usize),
}

/// A group in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupSpan {
    /// The maximum number of rounds.
    pub rounds: u32,
    /// The index of the group's `Enter`.
    pub enter: usize,
    /// The index of the group's `Leave`.
    pub leave: usize,
    /// The index of the enclosing group, if any.
    pub parent: Option<usize>,
}

/// A flat program. Its indices are in bounds by construction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// The instructions, in order.
    pub ops: Vec<Op>,
    /// The groups, outer before inner.
    pub groups: Vec<GroupSpan>,
    /// For every step, the index of the innermost group around it.
    pub step_group: Vec<Option<usize>>,
}

impl Program {
    /// Whether two steps, given by index, are in a common group, so that each can run before the other in some round.
    #[must_use]
    pub fn shares_a_group(&self, one: usize, other: usize) -> bool {
        let around = |step: usize| {
            let innermost = self.step_group.get(step).copied().flatten();
            std::iter::successors(innermost, |group| self.groups.get(*group)?.parent)
        };
        around(one).any(|group| around(other).any(|another| another == group))
    }
}

/// Flattens the items into a program and returns it with the steps in leaf order.
#[must_use]
pub fn lower(items: &[Item]) -> (Program, Vec<&Step>) {
    let mut program = Program::default();
    let mut steps = Vec::new();
    flatten(items, None, &mut program, &mut steps);
    (program, steps)
}

fn flatten<'a>(items: &'a [Item], parent: Option<usize>, program: &mut Program, steps: &mut Vec<&'a Step>) {
    for item in items {
        match item {
            Item::Step(step) => {
                program.ops.push(Op::Step(steps.len()));
                program.step_group.push(parent);
                steps.push(step);
            }
            Item::Group(group) => {
                let index = program.groups.len();
                let enter = program.ops.len();
                program.groups.push(GroupSpan {
                    rounds: group.rounds.map_or(1, NonZeroU32::get),
                    enter,
                    leave: enter,
                    parent,
                });
                program.ops.push(Op::Enter(index));
                flatten(&group.items, Some(index), program, steps);
                program.groups[index].leave = program.ops.len();
                program.ops.push(Op::Leave(index));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::parse;
    use crate::source::Source;
    use std::path::Path;

    #[test]
    fn groups_become_enter_and_leave_around_their_steps() {
        let chain = parse(&Source::new("t", "a -> (b -> (c):2 -> d):3", Path::new("/"))).unwrap();
        let (program, steps) = lower(&chain.items);
        assert_eq!(
            program.ops,
            [
                Op::Step(0),
                Op::Enter(0),
                Op::Step(1),
                Op::Enter(1),
                Op::Step(2),
                Op::Leave(1),
                Op::Step(3),
                Op::Leave(0)
            ]
        );
        assert_eq!((program.groups[0].enter, program.groups[0].leave, program.groups[0].rounds), (1, 7, 3));
        assert_eq!(program.groups[1].parent, Some(0));
        assert_eq!(program.step_group, [None, Some(0), Some(1), Some(0)]);
        assert_eq!(steps.len(), 4);
    }
}
