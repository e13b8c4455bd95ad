//! Plans what an evaluation asks: its agents, chains in trees, and commands that judge.

use super::criteria::command::CommandCriterion;
use super::errors;
use crate::chain::{
    Agent, Chain, Check, Command, Config, Delivery, Entry, Format, Group, Isolation, Item, LayerKind, PromptSource,
    Run, Step, StepTarget, looks_like_a_count,
};
use crate::plan::{AskedAgent, Part, Plan, PlannedPrompt, Request, RunSettings, build, outline};
use crate::prompt::{Level, text};
use crate::source::{Diagnostic, KnownPrograms, Place, Source, Text, sha256};
use crate::world::World;
use indexmap::IndexMap;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// The hidden command that works on a tree.
const TREE_COMMAND: &str = "__tree";
/// The longest that the run of a chain in a tree may take.
const LONGEST_CHAIN: Duration = Duration::from_hours(24 * 7);

/// The prompt of a plan whose prompt does not matter.
pub const ANY_PROMPT: &str = "?";

/// Plans what an evaluation asks. What all prompts of an agent share is planned once, when it is first asked.
#[derive(Debug)]
pub struct EvalPlanner<'a> {
    world: &'a World,
    /// The files, with the programs as they were when they were first looked for.
    files: KnownPrograms<'a>,
    config: &'a Config,
    root: &'a Path,
    settings: &'a RunSettings,
    asked: AskedAgents,
}

/// The agents that were planned. Clones share them, so that all planners of an evaluation ask in the same way.
#[derive(Debug, Clone, Default)]
pub struct AskedAgents(Rc<RefCell<Vec<KnownAgent>>>);

/// An agent by name and part; `None` if every prompt needs a plan of its own, which may have errors.
#[derive(Debug)]
struct KnownAgent {
    name: Text,
    part: Part,
    asked: Option<Rc<AskedAgent>>,
}

impl<'a> EvalPlanner<'a> {
    /// Creates a planner. The agents are those of `config` and work in `root`. The limits of `settings` take
    /// precedence over those of the config. `asked`: the agents that earlier planners with the same values planned.
    #[must_use]
    pub fn new(
        world: &'a World,
        (config, root): (&'a Config, &'a Path),
        settings: &'a RunSettings,
        asked: AskedAgents,
    ) -> Self {
        Self { world, files: KnownPrograms::new(world, world), config, root, settings, asked }
    }

    /// Returns the plan of one agent that is given one prompt.
    ///
    /// # Errors
    /// All errors that would stop it.
    pub fn plan(&self, agent: &Text, part: Part, prompt: &str) -> Result<Plan, Vec<Diagnostic>> {
        match self.asked(agent, part).filter(|_| !prompt.is_empty()) {
            Some(asked) => asked.plan(prompt, self.world),
            None => self.agent_plan(agent, part, prompt, |plan, _| plan),
        }
    }

    /// Checks the prompt of an agent, and returns its warnings.
    ///
    /// # Errors
    /// All errors that would stop it.
    pub(super) fn check(&self, agent: &Text, part: Part, prompt: &str) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        match self.asked(agent, part).filter(|_| !prompt.is_empty()) {
            Some(asked) => asked.check(prompt, self.world),
            None => self.agent_plan(agent, part, prompt, |plan, _| plan.warnings),
        }
    }

    /// Returns what all prompts of an agent share; `None` if every prompt needs a plan of its own.
    fn asked(&self, agent: &Text, part: Part) -> Option<Rc<AskedAgent>> {
        let mut known = self.asked.0.borrow_mut();
        if let Some(known) = known.iter().find(|known| known.part == part && known.name == *agent) {
            return known.asked.clone();
        }
        let asked = |plan: Plan, request: &Request<'_>| AskedAgent::of(&plan, request, self.world);
        let asked = self.agent_plan(agent, part, ANY_PROMPT, asked).ok().flatten().map(Rc::new);
        known.push(KnownAgent { name: agent.clone(), part, asked: asked.clone() });
        asked
    }

    /// Plans one agent with one prompt, and returns what is made of the plan and its request.
    fn agent_plan<T>(
        &self,
        agent: &Text,
        part: Part,
        prompt: &str,
        made: impl FnOnce(Plan, &Request<'_>) -> T,
    ) -> Result<T, Vec<Diagnostic>> {
        let no_agent = || vec![errors::only_agents(&agent.at, &agent.value)];
        let made = |plan: Plan, request: &Request<'_>| match plan.steps.as_slice() {
            [step] if step.level == Level::CommandLine => Ok(made(plan, request)),
            _ => Err(no_agent()),
        };
        self.plan_of(agent, StepTarget::Agent, (self.config, Some(part)), Some(prompt), made).map_err(|faults| {
            let is_unknown = faults.iter().any(|fault| fault.code == "agent/unknown");
            if is_unknown && is_chain(&agent.value) { no_agent() } else { faults }
        })?
    }

    /// Returns the plan of a process that runs a chain in a tree.
    pub(super) fn tree_plan(&self, chain: &Text, request: &str) -> Result<Plan, Vec<Diagnostic>> {
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
        self.plan_of(chain, StepTarget::Agent, (&config, Some(Part::Answers)), Some(request), |plan, _| plan)
    }

    /// Returns the plan of a command that gets an output on standard input and judges it.
    ///
    /// # Errors
    /// All errors that would stop it.
    pub(super) fn command_plan(&self, command: &CommandCriterion, output: &str) -> Result<Plan, Vec<Diagnostic>> {
        let place = match &command.run {
            Run::Shell(line) => Some(&line.at),
            Run::Words(words) => words.first().map(|word| &word.at),
        };
        let nowhere = || Place::whole(&Source::new("criteria", "", self.root));
        let at = place.map_or_else(nowhere, Clone::clone);
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
        let mut plan = self.plan_of(&name, StepTarget::Check, (&config, None), None, |plan, _| plan)?;
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

    /// Plans one step, and returns what is made of the plan and its request.
    fn plan_of<T>(
        &self,
        name: &Text,
        wants: StepTarget,
        (config, part): (&Config, Option<Part>),
        prompt: Option<&str>,
        made: impl FnOnce(Plan, &Request<'_>) -> T,
    ) -> Result<T, Vec<Diagnostic>> {
        let source = Source::new("the prompt", "", self.root);
        let step = Item::Step(Step::once(name.clone(), wants));
        // In a group, an agent that fails is retried in place.
        let group = Group { items: vec![step], rounds: None, at: name.at.clone() };
        let chain = Chain::unnamed(vec![Item::Group(group)], name.at.clone());
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
        build(&request, &self.files, self.world).map(|plan| made(plan, &request))
    }
}

/// Whether a name is written like a chain of several steps, or with a count.
fn is_chain(name: &str) -> bool {
    name.contains(['>', '(', ')']) || looks_like_a_count(name)
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
