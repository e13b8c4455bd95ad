//! A tree of groups becomes a flat program with a cursor, so that there is one machine.

use super::ir::{Item, Step};
use std::num::NonZeroU32;

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Runs the step of this index (leaf position, from 0).
    Step(usize),
    /// Begins the first round of the group of this index.
    Enter(usize),
    /// The round of this group went well to its end.
    Leave(usize),
}

/// A group in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupSpan {
    /// Up to how many rounds.
    pub rounds: u32,
    /// The index of its `Enter`.
    pub enter: usize,
    /// The index of its `Leave`.
    pub leave: usize,
    /// The group around it.
    pub parent: Option<usize>,
}

/// The flat program; indexes are in bounds by construction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// The instructions.
    pub ops: Vec<Op>,
    /// The groups, outer before inner.
    pub groups: Vec<GroupSpan>,
    /// For every step, the innermost group around it.
    pub step_group: Vec<Option<usize>>,
}

impl Program {
    /// Whether two steps stand in a common group, by their indices: then the one comes before the other in some round.
    #[must_use]
    pub fn shares_a_group(&self, one: usize, other: usize) -> bool {
        let around = |step: usize| {
            let innermost = self.step_group.get(step).copied().flatten();
            std::iter::successors(innermost, |group| self.groups.get(*group)?.parent)
        };
        around(one).any(|group| around(other).any(|another| another == group))
    }
}

/// Flattens the items; the steps come out in leaf order.
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
