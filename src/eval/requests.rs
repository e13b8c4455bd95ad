//! What an evaluation asks its agents: the exact prompt, and the plan of the agent that gets it.

use super::candidate::Guards;
use super::errors;
use super::feedback::{CaseFeedback, listed};
use super::prompts::{Prompts, declares_text, filled, with_text};
use super::suite::{Case, Suite};
use super::tokens::{allowed, tokens};
use crate::chain::{Chain, Config, Group, Item, Limit, PromptSource, Step, StepTarget, looks_like_a_count};
use crate::plan::{Part, Plan, Request, RunSettings, build, outline};
use crate::prompt::{Level, show};
use crate::source::{Diagnostic, Place, Source, Text};
use crate::world::World;
use indexmap::IndexMap;
use sha2::{Digest, Sha256};
use std::path::Path;

/// Arguments with which an agent continues an earlier session of its own.
const SESSIONS: [&str; 9] =
    ["--continue", "-c", "--resume", "-r", "resume", "--session-id", "--session", "-s", "--restore-chat-history"];

/// What an evaluation needs to build its prompts and to find its agents.
#[derive(Debug)]
pub struct EvalContext<'a> {
    /// The host environment.
    pub world: &'a World,
    /// The merged config.
    pub config: &'a Config,
    /// The directory in which agents work.
    pub root: &'a Path,
    /// The suite to evaluate.
    pub suite: &'a Suite,
    /// The three prompts of the evaluation.
    pub prompts: &'a Prompts,
    /// The other settings of the command line; its limits take precedence over the suite's.
    pub settings: &'a RunSettings,
}

impl EvalContext<'_> {
    /// The prompt that asks the executor about a case.
    ///
    /// # Errors
    /// The reason why the template cannot be filled in.
    pub fn execute_prompt(&self, prompt: &str, case: &Case) -> Result<String, String> {
        let prompt = with_text(prompt, &case.text, declares_text(&self.suite.prompt));
        let values = [
            ("prompt", prompt.as_str()),
            ("task_type", &self.suite.task_type),
            ("text", &case.text),
            ("format_requirements", self.format_requirements()),
        ];
        filled(&self.prompts.execute, &values).map_err(|error| error.to_string())
    }

    /// The three prompts as they are written.
    #[must_use]
    pub fn templates(&self) -> [String; 3] {
        let Prompts { execute, evaluate, improve } = self.prompts;
        [execute, evaluate, improve]
            .map(|template| template.render(&|_| None).map_or_else(|_| String::new(), |text| text.text()))
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
        let source = Source::new("the prompt", "", self.root);
        let step = Step {
            name: agent.clone(),
            wants: StepTarget::Agent,
            limit: Limit::Once,
            args: Vec::new(),
            prompt: PromptSource::default(),
            timeout: None,
            idle_timeout: None,
        };
        // In a group, an agent that fails is retried in place.
        let group = Group { items: vec![Item::Step(step)], rounds: None, at: agent.at.clone() };
        let chain = Chain {
            name: None,
            at: agent.at.clone(),
            description: None,
            prompt: PromptSource::default(),
            vars: IndexMap::new(),
            secrets: IndexMap::new(),
            items: vec![Item::Group(group)],
        };
        let said =
            PromptSource { inline: Some(Text { value: prompt.to_string(), at: Place::whole(&source) }), file: None };
        let request = Request {
            chain: &chain,
            config: self.config,
            root: self.root,
            prompt: &said,
            given: &IndexMap::new(),
            settings: self.settings,
            task: None,
            part: Some(part),
            own_program: self.world.own_program(),
        };
        let plan = build(&request, self.world, self.world).map_err(|faults| {
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
        let (mut executor, mut smallest) = (None, usize::MAX);
        for case in &suite.cases {
            match self.execute_prompt(&suite.prompt, case) {
                Ok(prompt) => {
                    smallest = smallest.min(tokens(&prompt));
                    executor = keep(self.plan(&suite.executor, Part::Answers, &prompt)).or(executor);
                }
                Err(why) => drop(keep(Err(vec![errors::not_filled_in(&why)]))),
            }
        }
        let evaluator = suite.evaluator.as_ref().and_then(|agent| keep(self.plan(agent, Part::Evaluates, "?")));
        if improves {
            keep(self.plan(suite.rewriter(), Part::Answers, "?"));
        }
        if let (Some(executor), Some(evaluator), Some(agent)) = (&executor, &evaluator, &suite.evaluator)
            && let Some(word) = shared_session(executor, evaluator)
        {
            faults.push(errors::same_session(&agent.at, &suite.executor.value, &agent.value, &word));
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

/// Returns a key for a plan of one agent: the same for the same prompt to the same agent.
pub(super) fn key_of(plan: &Plan) -> String {
    let outline = outline(plan);
    let asked = outline.steps.first().map(|step| {
        let role = step.role.map(crate::chain::Role::name);
        serde_json::json!([step.name, role, step.backend, step.program, step.arguments, step.environment, step.prompt])
    });
    let digest = Sha256::digest(asked.unwrap_or_default().to_string());
    digest.iter().fold(String::new(), |mut hex, byte| {
        use std::fmt::Write;
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
