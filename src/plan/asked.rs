//! An agent that is asked many things: its plan is built once, and each prompt is put into a copy of it.

use super::context::{Faults, Request};
use super::prompt::{PromptRules, unsubstituted_in};
use super::secrets::no_secret;
use super::{Kind, Plan, PlannedPrompt};
use crate::chain::{Delivery, lower};
use crate::prompt::{Segment, Vars, expand_prose};
use crate::source::{Diagnostic, Env, Place};

/// An agent of an evaluation that is asked many things.
#[derive(Debug)]
pub struct AskedAgent {
    /// The plan of any of its prompts, without the warnings about that prompt.
    plan: Plan,
    /// How a prompt is delivered.
    prompt: PlannedPrompt,
    /// What stands before each prompt: the instructions, for a backend that has no other place for them.
    head: String,
    /// Where the agent is defined.
    at: Place,
    /// Where the agent is named.
    named_at: Place,
    grouped: bool,
    slash_commands: bool,
}

impl AskedAgent {
    /// Returns the agent of a plan that was built for this request, whatever its prompt was. `None` if a plan with
    /// another prompt could differ in more than the prompt and the warnings about it. It does not for one agent of an
    /// evaluation that has a prompt, no template and no variables.
    #[must_use]
    pub fn of(plan: &Plan, request: &Request<'_>, env: &dyn Env) -> Option<Self> {
        let (chain, config) = (request.chain, request.config);
        let (program, steps) = lower(&chain.items);
        let ([written], [step], Some(text)) = (steps.as_slice(), plan.steps.as_slice(), &plan.prompt) else {
            return None;
        };
        let Kind::Agent { backend, .. } = &step.kind else { return None };
        let prompt = step.prompt.as_ref().filter(|prompt| prompt.around.is_none())?;
        let Some(Segment::Text(first)) = prompt.segments.first() else { return None };
        let head = first.strip_suffix(text.as_str())?.to_string();
        // With variables, what is delivered is not the text of the prompt.
        let has_variables = !(request.given.is_empty() && chain.vars.is_empty() && chain.secrets.is_empty());
        // Each prompt replaces the last argument.
        let is_last = prompt.deliver != Delivery::Arg || step.argv.last() == Some(&prompt.segments);
        if request.part.is_none() || has_variables || !is_last {
            return None;
        }
        let mut plan = plan.clone();
        let own: Vec<Diagnostic> = unsubstituted_in(prompt, &Vars::default(), env).collect();
        plan.warnings.retain(|warning| !own.contains(warning));
        let backend = backend.as_ref().and_then(|name| config.backends.get(name));
        Some(Self {
            plan,
            prompt: prompt.clone(),
            head,
            at: config.agents.get(&step.name).map_or(&written.name.at, |entry| &entry.at).clone(),
            named_at: written.name.at.clone(),
            grouped: program.step_group.first().is_some_and(Option::is_some),
            slash_commands: backend.is_some_and(|backend| backend.value.slash_commands == Some(true)),
        })
    }

    /// Returns the warnings of the plan of a prompt, which must not be empty.
    ///
    /// # Errors
    /// All reasons why the agent cannot be given this prompt.
    pub fn check(&self, text: &str, env: &dyn Env) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let prompt = self.planned(text)?;
        let mut warnings = self.plan.warnings.clone();
        warnings.extend(unsubstituted_in(&prompt, &Vars::default(), env));
        Ok(warnings)
    }

    /// Returns the plan of a prompt, which must not be empty: the same as [`build`](super::build) returns.
    ///
    /// # Errors
    /// All reasons why the agent cannot be given this prompt.
    pub fn plan(&self, text: &str, env: &dyn Env) -> Result<Plan, Vec<Diagnostic>> {
        let prompt = self.planned(text)?;
        let mut plan = self.plan.clone();
        plan.prompt = Some(text.to_string());
        plan.warnings.extend(unsubstituted_in(&prompt, &Vars::default(), env));
        if let Some(step) = plan.steps.first_mut() {
            if let Some(last) = step.argv.last_mut().filter(|_| prompt.deliver == Delivery::Arg) {
                last.clone_from(&prompt.segments);
            }
            step.prompt = Some(prompt);
        }
        Ok(plan)
    }

    /// Checks a prompt, and returns how it is delivered.
    fn planned(&self, text: &str) -> Result<PlannedPrompt, Vec<Diagnostic>> {
        let (text, stayed) = expand_prose(text, &Vars::default());
        let mut prompt = PlannedPrompt { stayed, ..self.prompt.clone() };
        if let Some(first) = prompt.segments.first_mut() {
            *first = Segment::Text(format!("{}{text}", self.head));
        }
        let rules = PromptRules {
            at: &self.at,
            marker: &self.plan.marker,
            grouped: self.grouped,
            slash_commands: self.slash_commands,
        };
        let mut faults = Faults::default();
        rules.check(&prompt, &mut faults);
        if faults.0.is_empty() {
            let argument = (prompt.deliver == Delivery::Arg).then_some("an argument");
            let kept = argument.into_iter().chain(["a prompt"]);
            faults.0.extend(kept.filter_map(|what| no_secret(&self.named_at, what, &text)));
        }
        if faults.0.is_empty() { Ok(prompt) } else { Err(faults.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::{Config, LayerKind, LayerSource, PromptSource, load, parse};
    use crate::plan::tests::{Fake, world};
    use crate::plan::{Part, RunSettings, build};
    use crate::source::{Source, Text};
    use indexmap::IndexMap;
    use std::path::Path;

    /// A config with an agent of each backend and each delivery, and the names of the agents.
    fn config() -> (Config, Vec<String>) {
        let built_in = Source::new("built-in", include_str!("../../forge/backends.json"), Path::new("/root"));
        let built_in = LayerSource { kind: LayerKind::BuiltIn, source: built_in };
        let backends = load(std::slice::from_ref(&built_in)).backends;
        let mut agents: Vec<String> = ["arg", "stdin", "file"]
            .iter()
            .map(|deliver| {
                format!(r#""{deliver}": {{"command": "x", "deliver": "{deliver}", "args": ["-a"], "wrap": ["x"]}}"#)
            })
            .collect();
        for (name, _) in backends.iter() {
            agents.push(format!(r#""of-{name}": {{"backend": "{name}", "systemPrompt": "sys.md"}}"#));
        }
        agents.push(r#""more": {"backend": ["claude", "codex"], "model": ["a", "b"]}"#.into());
        let text = format!(
            r#"{{"agents": {{{}}}, "checks": {{"test": {{"run": "x"}}}},
                "chains": {{"with-variable": {{"vars": {{"A": "b"}}, "steps": [{{"agent": "stdin"}}]}}}}}}"#,
            agents.join(",")
        );
        let project = Source::new("forge/chains.json", text, Path::new("/root"));
        let config = load(&[built_in, LayerSource { kind: LayerKind::Project, source: project }]);
        let names = config.agents.keys().cloned().chain(["x".to_string()]).collect();
        (config, names)
    }

    /// A world with the programs of all backends, and instructions that give a warning where they are in a prompt.
    fn all_programs() -> Fake {
        let mut world = world(&[("/root/sys.md", "Instructions. {{NAME}}")]);
        let words = include_str!("../../forge/backends.json").split('"').filter(|word| word.len() < 20);
        world.0.extend(words.map(|name| (&*format!("/bin/{name}*").leak(), Vec::new())));
        world
    }

    /// Plans a chain with a prompt, and returns the agent of the plan.
    fn planned(
        (world, config): (&Fake, &Config),
        (chain, part): (&str, Option<Part>),
        prompt: &str,
    ) -> (Result<Plan, Vec<Diagnostic>>, Option<AskedAgent>) {
        let typed = || parse(&Source::new("suite.json", chain, Path::new("/root"))).unwrap();
        let chain = config.chains.get(chain).map_or_else(typed, |entry| entry.value.clone());
        let at = Place::whole(&Source::new("the prompt", "", Path::new("/root")));
        let inline = Some(Text { value: prompt.into(), at });
        let request = Request {
            chain: &chain,
            config,
            root: Path::new("/root"),
            prompt: &PromptSource { inline, file: None },
            given: &IndexMap::new(),
            settings: &RunSettings::default(),
            task: None,
            part,
            own_program: Path::new("/bin/forkhestra"),
        };
        let plan = build(&request, world, world);
        let asked = plan.as_ref().ok().and_then(|plan| AskedAgent::of(plan, &request, world));
        (plan, asked)
    }

    #[test]
    fn the_plan_of_an_asked_agent_is_the_one_that_would_be_built_with_every_backend_and_prompt() {
        let ((config, names), world) = (config(), all_programs());
        let long = "x".repeat(130_000);
        let prompts = [
            "p",
            "/clear now",
            "a\nFORKHESTRA_COMPLETE\nb",
            "a\0b",
            "a\0secret:0\0b",
            "${NAME} $${NAME} ${HOME} {{NAME}} {{NAME}} {{name}}",
            &long,
        ];
        let (mut refused, mut warned) = (0, 0);
        for (name, part) in names.iter().flat_map(|name| [(name, Part::Answers), (name, Part::Evaluates)]) {
            let chain = format!("({name})");
            let planned = |prompt: &str| planned((&world, &config), (&chain, Some(part)), prompt);
            for first in ["?", "{{NAME}} ${NAME}"] {
                let (plan, asked) = planned(first);
                let asked = asked.unwrap_or_else(|| panic!("{name} can be planned: {plan:?}"));
                for prompt in prompts {
                    let (expected, _) = planned(prompt);
                    refused += u32::from(expected.is_err());
                    warned += u32::from(expected.as_ref().is_ok_and(|plan| plan.warnings.len() > 1));
                    assert_eq!(asked.plan(prompt, &world), expected, "{name}: {prompt:.40}");
                    assert_eq!(asked.check(prompt, &world), expected.map(|plan| plan.warnings), "{name}: {prompt:.40}");
                }
            }
        }
        assert!(refused > 40 && warned > 40, "{refused} {warned}");
    }

    #[test]
    fn anything_but_one_agent_of_an_evaluation_without_variables_needs_a_plan_for_each_prompt() {
        let ((config, _), world) = (config(), all_programs());
        for (chain, part) in [
            ("(stdin)", None),
            ("(stdin -> arg)", Some(Part::Answers)),
            ("with-variable", Some(Part::Answers)),
            ("test", Some(Part::Answers)),
        ] {
            let (plan, asked) = planned((&world, &config), (chain, part), "?");
            assert!(plan.is_ok() && asked.is_none(), "{chain}: {plan:?}");
        }
    }
}
