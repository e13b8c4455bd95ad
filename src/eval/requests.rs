//! What an evaluation asks its agents: the exact prompt, and the plan of the agent that gets it.

use super::candidate::Guards;
use super::criteria::command::CommandCriterion;
use super::errors;
use super::feedback::{CaseFeedback, listed};
use super::prompts::{Prompts, filled, with_values};
use super::suite::{Case, Suite};
use super::tokens::{allowed, tokens};
use super::trees::{CaseTrees, MeasuredFile, TreeRequest};
use crate::chain::{
    Agent, Chain, Check, Command, Config, Delivery, Entry, Format, Group, Isolation, Item, LayerKind, Limit,
    PromptSource, Run, Step, StepTarget, looks_like_a_count,
};
use crate::plan::{Part, Plan, PlannedPrompt, Request, RunSettings, build, outline};
use crate::prompt::{Level, Template, render_template, show, text};
use crate::source::{Diagnostic, KnownPrograms, Place, Source, Text, sha256};
use crate::world::World;
use indexmap::IndexMap;
use std::path::Path;
use std::time::Duration;

/// Arguments with which an agent continues an earlier session of its own.
const SESSIONS: [&str; 9] =
    ["--continue", "-c", "--resume", "-r", "resume", "--session-id", "--session", "-s", "--restore-chat-history"];

/// The hidden command that works on a tree.
const TREE_COMMAND: &str = "__tree";
/// The longest that the run of a chain in a tree may take.
const LONGEST_CHAIN: Duration = Duration::from_hours(24 * 7);

/// What an evaluation needs to build its prompts and to find its agents.
#[derive(Debug)]
pub struct EvalContext<'a> {
    /// The host environment.
    pub world: &'a World,
    /// Its files, with the programs as they were when they were first looked for.
    pub programs: KnownPrograms<'a>,
    /// The merged config.
    pub config: &'a Config,
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

    fn format_requirements(&self) -> &str {
        self.suite.format_requirements.as_deref().unwrap_or_default()
    }

    /// Returns the plan of one agent that is given one prompt.
    ///
    /// # Errors
    /// All errors that would stop it.
    pub fn plan(&self, agent: &Text, part: Part, prompt: &str) -> Result<Plan, Vec<Diagnostic>> {
        let plan =
            self.plan_of(agent, StepTarget::Agent, (self.config, Some(part)), Some(prompt)).map_err(|faults| {
                let is_unknown = faults.iter().any(|fault| fault.code == "agent/unknown");
                if is_unknown && is_chain(&agent.value) {
                    vec![errors::only_agents(&agent.at, &agent.value)]
                } else {
                    faults
                }
            })?;
        match plan.steps.as_slice() {
            [step] if step.level == Level::CommandLine => Ok(plan),
            _ => Err(vec![errors::only_agents(&agent.at, &agent.value)]),
        }
    }

    /// Returns the plan of the executor of a generation: an agent that is given a prompt, or a process that runs a
    /// chain in a tree.
    ///
    /// # Errors
    /// All errors that would stop it.
    pub fn executor_plan(&self, generation: u32, prompt: &str) -> Result<Plan, Vec<Diagnostic>> {
        let (executor, _) = self.suite.column(generation);
        if self.trees.is_some() { self.tree_plan(executor, prompt) } else { self.plan(executor, Part::Answers, prompt) }
    }

    /// Returns the plan of a process that runs a chain in a tree.
    fn tree_plan(&self, chain: &Text, request: &str) -> Result<Plan, Vec<Diagnostic>> {
        let word = |value: String| Text { value, at: chain.at.clone() };
        let agent = Agent {
            command: Some(Command::Words(vec![
                word(self.world.own_program().display().to_string()),
                word(TREE_COMMAND.into()),
            ])),
            deliver: Some(Delivery::Stdin),
            output: Some(Format::ClaudeStream),
            // Those of the chain's agents apply.
            timeout: Some(LONGEST_CHAIN),
            idle_timeout: Some(LONGEST_CHAIN),
            ..Agent::default()
        };
        let mut config = self.config.clone();
        let (at, layer) = (chain.at.clone(), LayerKind::Project);
        config.agents.insert(chain.value.clone(), Entry { value: agent, at, layer, faults: Vec::new() });
        self.plan_of(chain, StepTarget::Agent, (&config, Some(Part::Answers)), Some(request))
    }

    /// Returns the plan of a command that gets an output on standard input and judges it.
    ///
    /// # Errors
    /// All errors that would stop it.
    pub(super) fn command_plan(&self, command: &CommandCriterion, output: &str) -> Result<Plan, Vec<Diagnostic>> {
        let at = match &command.run {
            Run::Shell(line) => line.at.clone(),
            Run::Words(words) => words.first().map_or_else(|| self.suite.executor.at.clone(), |word| word.at.clone()),
        };
        let name = Text { value: "criteria".into(), at: at.clone() };
        let check = Check {
            description: None,
            run: command.run.clone(),
            env: IndexMap::new(),
            // Whether it passes is for the evaluation to say.
            optional: true,
            timeout: Some(command.timeout),
            isolation: Isolation::default(),
        };
        let mut config = self.config.clone();
        let entry = Entry { value: Some(check), at, layer: LayerKind::Project, faults: Vec::new() };
        config.checks.insert(name.value.clone(), entry);
        let mut plan = self.plan_of(&name, StepTarget::Check, (&config, None), None)?;
        if let [step] = plan.steps.as_mut_slice() {
            step.folder = Some(command.folder.clone());
            step.timeout = Some(command.timeout);
            step.prompt = Some(PlannedPrompt {
                segments: text(output),
                around: None,
                deliver: Delivery::Stdin,
                origin: "the output".into(),
                stayed: Vec::new(),
            });
        }
        Ok(plan)
    }

    /// Returns the plans of all commands that are criteria, each without an output.
    pub fn command_plans(&self) -> impl Iterator<Item = Plan> {
        self.suite.commands().filter_map(|command| self.command_plan(command, "?").ok())
    }

    /// Returns the plan of one step.
    fn plan_of(
        &self,
        name: &Text,
        wants: StepTarget,
        (config, part): (&Config, Option<Part>),
        prompt: Option<&str>,
    ) -> Result<Plan, Vec<Diagnostic>> {
        let source = Source::new("the prompt", "", self.root);
        let step = Step {
            name: name.clone(),
            wants,
            limit: Limit::Once,
            args: Vec::new(),
            prompt: PromptSource::default(),
            timeout: None,
            idle_timeout: None,
        };
        // In a group, an agent that fails is retried in place.
        let group = Group { items: vec![Item::Step(step)], rounds: None, at: name.at.clone() };
        let chain = Chain {
            name: None,
            at: name.at.clone(),
            description: None,
            prompt: PromptSource::default(),
            vars: IndexMap::new(),
            secrets: IndexMap::new(),
            items: vec![Item::Group(group)],
        };
        let inline = prompt.map(|prompt| Text { value: prompt.to_string(), at: Place::whole(&source) });
        let request = Request {
            chain: &chain,
            config,
            root: self.root,
            prompt: &PromptSource { inline, file: None },
            given: &IndexMap::new(),
            settings: self.settings,
            task: None,
            part,
            own_program: self.world.own_program(),
        };
        build(&request, &self.programs, self.world)
    }

    /// Checks everything that can be checked before anything is asked, and returns the warnings. `most_tokens`: the
    /// most tokens that a prompt may have, if it is to be improved.
    ///
    /// # Errors
    /// All errors.
    pub fn check(&self, improves: bool, most_tokens: usize) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let (suite, mut faults) = (self.suite, Vec::new());
        let mut warnings = Vec::new();
        let mut keep = |planned: Result<Plan, Vec<Diagnostic>>| match planned {
            Ok(plan) => {
                // An evaluator without other steps is expected here.
                let other = |warning: &&Diagnostic| warning.code != "plan/judge-first";
                let new = plan.warnings.iter().filter(|warning| !warnings.contains(*warning)).filter(other).cloned();
                warnings.extend(new.collect::<Vec<_>>());
                Some(plan)
            }
            Err(more) => {
                let new: Vec<Diagnostic> = more.into_iter().filter(|fault| !faults.contains(fault)).collect();
                faults.extend(new);
                None
            }
        };
        // The plan of each executor, of which it is enough to know one.
        let (mut executors, mut smallest): (IndexMap<&str, Plan>, usize) = (IndexMap::new(), usize::MAX);
        let columns = (0..).zip(&suite.columns);
        for ((generation, column), case) in
            columns.flat_map(|column| suite.cases.iter().map(move |case| (column, case)))
        {
            match self.execute_prompt(generation, &column.prompt, case) {
                Ok(prompt) => {
                    smallest = smallest.min(tokens(&prompt));
                    let plan = keep(self.executor_plan(generation, &prompt));
                    executors.extend(plan.map(|plan| (column.executor.value.as_str(), plan)));
                }
                Err(why) => drop(keep(Err(vec![errors::not_filled_in(&why)]))),
            }
        }
        for command in suite.commands() {
            keep(self.command_plan(command, "?"));
        }
        let evaluators: Vec<(&Text, Plan)> = (suite.evaluators.iter())
            .filter_map(|agent| Some((agent, keep(self.plan(agent, Part::Evaluates, "?"))?)))
            .collect();
        if improves {
            keep(self.plan(suite.rewriter(), Part::Answers, "?"));
        }
        if let Some(agent) = &suite.select_best {
            keep(self.plan(agent, Part::Answers, "?"));
        }
        for (agent, evaluator) in &evaluators {
            for (name, executor) in &executors {
                if let Some(word) = shared_session(executor, evaluator) {
                    faults.push(errors::same_session(&agent.at, name, &agent.value, &word));
                }
            }
        }
        if let Some((most, _)) = &self.settings.limits.tokens
            && usize::try_from(*most).is_ok_and(|most| most < smallest)
            && smallest < usize::MAX
        {
            faults.push(errors::budget_too_small(*most, smallest));
        }
        let own = tokens(&suite.prompt);
        if improves && own > most_tokens {
            faults.push(errors::prompt_too_long(most_tokens, own));
        }
        if faults.is_empty() { Ok(warnings) } else { Err(faults) }
    }
}

/// Whether a name is written like a chain of several steps, or with a count.
fn is_chain(name: &str) -> bool {
    name.contains(['>', '(', ')']) || looks_like_a_count(name)
}

/// Returns the arguments by which both agents would continue the same session, if there are any.
fn shared_session(one: &Plan, other: &Plan) -> Option<String> {
    let sessions = |plan: &Plan| -> Vec<String> {
        let Some(step) = plan.steps.first() else { return Vec::new() };
        let prompt = step.prompt.as_ref().map(|prompt| &prompt.segments);
        let words: Vec<String> = step.argv.iter().filter(|word| Some(*word) != prompt).map(|word| show(word)).collect();
        let named = words.iter().enumerate().filter_map(|(index, word)| {
            let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
            let value = value.or_else(|| words.get(index + 1).map(String::as_str)).unwrap_or_default();
            let takes_none = matches!(name, "--continue" | "-c");
            SESSIONS.contains(&name).then(|| if takes_none { name.to_string() } else { format!("{name} {value}") })
        });
        named.map(|session| format!("{}\n{session}", step.program.display())).collect()
    };
    let others = sessions(other);
    let shared = sessions(one).into_iter().find(|session| others.contains(session))?;
    shared.split_once('\n').map(|(_, words)| words.to_string())
}

/// Returns a key for a plan of one agent: the same for the same prompt to the same agent in the same repetition.
pub(super) fn key_of(plan: &Plan, repetition: u32) -> String {
    let outline = outline(plan);
    let asked = outline.steps.first().map(|step| {
        let role = step.role.map(crate::chain::Role::name);
        serde_json::json!([step.name, role, step.backend, step.program, step.arguments, step.environment, step.prompt])
    });
    let mut asked = asked.unwrap_or_default().to_string();
    if repetition > 1 {
        asked.push_str("\nrepetition ");
        asked.push_str(&repetition.to_string());
    }
    sha256(asked)
}
