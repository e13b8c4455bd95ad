//! How the judges of a plan affect its groups.

use super::{Plan, PlannedStep};
use crate::chain::{Limit, Op, Role};

impl Plan {
    /// Returns the role of the step at this index of the program, if it is an agent.
    fn role_at(&self, op: usize) -> Option<Role> {
        let Some(Op::Step(index)) = self.program.ops.get(op) else { return None };
        self.steps.get(*index)?.role()
    }

    /// Returns whether a group contains a judge at any depth. Then its rounds are judged.
    #[must_use]
    pub fn is_judged(&self, group: usize) -> bool {
        let span = self.program.groups[group];
        (span.enter..span.leave).any(|op| self.role_at(op) == Some(Role::Judge))
    }

    /// Returns the step with this number, from 1.
    #[must_use]
    pub fn step(&self, number: u32) -> Option<&PlannedStep> {
        self.steps.get((number as usize).checked_sub(1)?)
    }

    /// Returns the innermost group of the step with this number, from 1.
    #[must_use]
    pub fn group_of(&self, number: u32) -> Option<usize> {
        self.program.step_group.get((number as usize).checked_sub(1)?).copied().flatten()
    }

    /// Returns the index in the program of the step with this number, from 1.
    #[must_use]
    pub fn op_of(&self, number: u32) -> Option<usize> {
        let index = (number as usize).checked_sub(1)?;
        self.program.ops.iter().position(|op| *op == Op::Step(index))
    }

    /// Returns whether a step hands its work to a judge: it is the last worker before its group's judge, and runs once.
    #[must_use]
    pub fn submits(&self, step: u32) -> bool {
        let Some((op, group)) = self.op_of(step).zip(self.group_of(step)) else { return false };
        let once = self.step(step).is_some_and(|step| step.limit == Limit::Once);
        let next = (op + 1..self.program.groups[group].leave).find_map(|op| self.role_at(op));
        once && self.role_at(op) == Some(Role::Worker) && next == Some(Role::Judge)
    }

    /// Returns the number up to which steps have already done their work: a task in review starts with the steps that
    /// look at it.
    #[must_use]
    pub fn begins_after(&self) -> u32 {
        let in_review = self.task.as_ref().is_some_and(|task| task.status == "review");
        // The first such step: it is unknown whether later ones have run.
        let submits = (1..=u32::try_from(self.steps.len()).unwrap_or(0)).find(|step| self.submits(*step));
        if in_review { submits.unwrap_or(0) } else { 0 }
    }

    /// Returns the judges, by index, that have no worker before them in their group to fix what they reject.
    #[must_use]
    pub fn judged_before_any_work(&self) -> Vec<usize> {
        let judges = (0..self.steps.len()).filter(|index| self.steps[*index].role() == Some(Role::Judge));
        let idle = |index: &usize| {
            let Some(group) = self.program.step_group[*index] else { return false };
            let span = self.program.groups[group];
            let op = self.program.ops.iter().position(|op| *op == Op::Step(*index)).unwrap_or(span.leave);
            span.rounds > 1 && !(span.enter..op).any(|op| self.role_at(op) == Some(Role::Worker))
        };
        judges.filter(idle).collect()
    }

    /// Returns whether any group of the plan is judged.
    #[must_use]
    pub fn has_judged_group(&self) -> bool {
        (0..self.program.groups.len()).any(|group| self.is_judged(group))
    }
}
