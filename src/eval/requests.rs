//! What an evaluation asks: the prompt of each question, and the plan of its executor.

use super::candidate::Guards;
use super::feedback::{CaseFeedback, listed};
use super::planner::{ANY_PROMPT, EvalPlanner};
use super::prompts::{Prompts, filled, with_values};
use super::suite::{Case, Suite};
use super::tokens::allowed;
use super::trees::{CaseTrees, MeasuredFile, TreeRequest};
use crate::plan::{Part, Plan, RunSettings};
use crate::prompt::{Template, render_template};
use crate::source::Diagnostic;
use crate::world::World;
use std::path::Path;

/// What an evaluation needs to build its prompts and to find its agents.
#[derive(Debug)]
pub struct EvalContext<'a> {
    /// The host environment.
    pub world: &'a World,
    /// The directory in which agents work.
    pub root: &'a Path,
    /// The suite to evaluate.
    pub suite: &'a Suite,
    /// The prompts of the evaluation.
    pub prompts: &'a Prompts,
    /// The trees of the cases, if they have any.
    pub trees: Option<&'a CaseTrees>,
    /// The other settings of the command line; its limits take precedence over the suite's.
    pub settings: &'a RunSettings,
    /// What plans its agents.
    pub planner: EvalPlanner<'a>,
}

impl EvalContext<'_> {
    /// The prompt that asks the executor about a case, with the prompt of this generation. For a case that is a tree,
    /// it is a request in JSON.
    ///
    /// # Errors
    /// The reason why the template cannot be filled in.
    pub fn execute_prompt(&self, generation: u32, prompt: &str, case: &Case) -> Result<String, String> {
        let (executor, original) = self.suite.column(generation);
        if case.tree.is_some() {
            let ids = self.trees.and_then(|trees| trees.of(&case.id)).ok_or("its tree is not known")?;
            let file = self.measured_file(prompt);
            let request = TreeRequest {
                tree: ids.start.clone(),
                chain: executor.value.clone(),
                prompt: if file.is_some() { case.text.to_string() } else { with_values(prompt, case, original) },
                file,
            };
            return serde_json::to_string(&request).map_err(|error| error.to_string());
        }
        let prompt = with_values(prompt, case, original);
        let values = [
            ("prompt", prompt.as_str()),
            ("task_type", &self.suite.task_type),
            ("text", &case.text),
            ("format_requirements", self.format_requirements()),
        ];
        filled(&self.prompts.execute, &values).map_err(|error| error.to_string())
    }

    /// The file of each tree into which a prompt is written; `None` if the chain gets the prompt itself.
    pub(super) fn measured_file(&self, prompt: &str) -> Option<MeasuredFile> {
        let path = self.suite.into.clone()?;
        Some(MeasuredFile { path, text: format!("{}\n", prompt.trim_end()) })
    }

    /// The prompts as they are written; the one that compares outputs only if it is used.
    #[must_use]
    pub fn templates(&self) -> Vec<String> {
        let Prompts { execute, evaluate, improve, compare } = self.prompts;
        let compare = Some(compare).filter(|_| self.suite.select_best.is_some());
        let written = |template: &Template| {
            render_template(template, &|_| None).map_or_else(|_| String::new(), |text| text.text())
        };
        [execute, evaluate, improve].into_iter().chain(compare).map(written).collect()
    }

    /// The prompt that asks the evaluator about an output.
    pub(super) fn evaluate_prompt(&self, case: &Case, output: &str) -> Result<String, String> {
        let values = [
            ("task_type", self.suite.task_type.as_str()),
            ("output", output),
            ("expected_output", case.expected.as_deref().unwrap_or_default()),
            ("format_requirements", self.format_requirements()),
        ];
        filled(&self.prompts.evaluate, &values).map_err(|error| error.to_string())
    }

    /// The prompt that asks which of two outputs is better.
    pub(super) fn compare_prompt(&self, case: &Case, (first, second): (&str, &str)) -> Result<String, String> {
        let values = [
            ("task_type", self.suite.task_type.as_str()),
            ("text", &case.text),
            ("first_output", first),
            ("second_output", second),
            ("expected_output", case.expected.as_deref().unwrap_or_default()),
            ("format_requirements", self.format_requirements()),
        ];
        filled(&self.prompts.compare, &values).map_err(|error| error.to_string())
    }

    /// The prompt for the improver: of the evaluations, it contains issues and suggestions only.
    pub(super) fn improve_prompt(
        &self,
        prompt: &str,
        feedback: &CaseFeedback,
        guards: &Guards,
    ) -> Result<String, String> {
        let (original, most) = (guards.original_tokens, allowed(guards.original_tokens, guards.most_tokens));
        let values = [
            ("prompt", prompt),
            ("task_type", self.suite.task_type.as_str()),
            ("format_requirements", self.format_requirements()),
            ("issues", &listed(&feedback.issues)),
            ("suggestions", &listed(&feedback.suggestions)),
            ("original_tokens", &original.to_string()),
            ("max_allowed_tokens", &most.to_string()),
        ];
        filled(&self.prompts.improve, &values).map_err(|error| error.to_string())
    }

    /// Returns the plan of the executor of a generation: an agent that is given a prompt, or a process that runs a
    /// chain in a tree.
    ///
    /// # Errors
    /// All errors that would stop it.
    pub fn executor_plan(&self, generation: u32, prompt: &str) -> Result<Plan, Vec<Diagnostic>> {
        let (executor, _) = self.suite.column(generation);
        match self.trees {
            Some(_) => self.planner.tree_plan(executor, prompt),
            None => self.planner.plan(executor, Part::Answers, prompt),
        }
    }

    /// Checks a prompt of the executor of a generation, and returns its warnings.
    ///
    /// # Errors
    /// All errors that would stop it.
    pub(super) fn check_prompt(&self, generation: u32, prompt: &str) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let (executor, _) = self.suite.column(generation);
        match self.trees {
            Some(_) => self.planner.tree_plan(executor, prompt).map(|plan| plan.warnings),
            None => self.planner.check(executor, Part::Answers, prompt),
        }
    }

    /// Returns the plans of all commands that are criteria, each without an output.
    pub fn command_plans(&self) -> impl Iterator<Item = Plan> {
        self.suite.commands().filter_map(|command| self.planner.command_plan(command, ANY_PROMPT).ok())
    }

    fn format_requirements(&self) -> &str {
        self.suite.format_requirements.as_deref().unwrap_or_default()
    }
}
