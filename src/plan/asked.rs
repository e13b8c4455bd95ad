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
    /// The plan of one of its prompts, which has no warnings of its own.
    plan: Plan,
    /// That prompt.
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
    /// Returns the agent of a plan that was built for this request. `None` if another prompt could change more than
    /// the prompt and its warnings: if the chain is more than one agent, or has variables.
    #[must_use]
    pub fn of(plan: &Plan, request: &Request<'_>, env: &dyn Env) -> Option<Self> {
        let (chain, config) = (request.chain, request.config);
        let has_variables = !(request.given.is_empty() && chain.vars.is_empty() && chain.secrets.is_empty());
        let (program, named) = lower(&chain.items);
        let ([step], [named], Some(typed)) = (plan.steps.as_slice(), named.as_slice(), &plan.prompt) else {
            return None;
        };
        let Kind::Agent { backend, .. } = &step.kind else { return None };
        let prompt = step.prompt.as_ref().filter(|prompt| prompt.around.is_none())?;
        let Some(Segment::Text(first)) = prompt.segments.first() else { return None };
        let head = first.strip_suffix(typed.as_str())?.to_string();
        let is_last = prompt.deliver != Delivery::Arg || step.argv.last() == Some(&prompt.segments);
        let has_warnings = unsubstituted_in(prompt, &Vars::default(), env).next().is_some();
        if request.part.is_none() || has_variables || has_warnings || !is_last {
            return None;
        }
        let backend = backend.as_ref().and_then(|name| config.backends.get(name));
        Some(Self {
            prompt: prompt.clone(),
            head,
            at: config.agents.get(&step.name).map_or(&named.name.at, |entry| &entry.at).clone(),
            named_at: named.name.at.clone(),
            grouped: program.step_group.first().is_some_and(Option::is_some),
            slash_commands: backend.is_some_and(|backend| backend.value.slash_commands == Some(true)),
            plan: plan.clone(),
        })
    }

    /// Returns the warnings of a prompt, which must not be empty.
    ///
    /// # Errors
    /// All reasons why the agent cannot be given this prompt.
    pub fn check(&self, typed: &str, env: &dyn Env) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        let prompt = self.planned(typed)?;
        let mut warnings = self.plan.warnings.clone();
        warnings.extend(unsubstituted_in(&prompt, &Vars::default(), env));
        Ok(warnings)
    }

    /// Returns the plan of a prompt, which must not be empty: the same as [`build`](super::build) returns.
    ///
    /// # Errors
    /// All reasons why the agent cannot be given this prompt.
    pub fn plan(&self, typed: &str, env: &dyn Env) -> Result<Plan, Vec<Diagnostic>> {
        let prompt = self.planned(typed)?;
        let mut plan = self.plan.clone();
        plan.prompt = Some(typed.to_string());
        plan.warnings.extend(unsubstituted_in(&prompt, &Vars::default(), env));
        if let Some(step) = plan.steps.first_mut() {
            if let Some(last) = step.argv.last_mut().filter(|_| prompt.deliver == Delivery::Arg) {
                last.clone_from(&prompt.segments);
            }
            step.prompt = Some(prompt);
        }
        Ok(plan)
    }

    fn planned(&self, typed: &str) -> Result<PlannedPrompt, Vec<Diagnostic>> {
        let (text, stayed) = expand_prose(typed, &Vars::default());
        let mut prompt = PlannedPrompt { stayed, ..self.prompt.clone() };
        if let Some(first) = prompt.segments.first_mut() {
            *first = Segment::Text(format!("{}{text}", self.head));
        }
        let mut faults = Faults::default();
        let rules = PromptRules {
            at: &self.at,
            marker: &self.plan.marker,
            grouped: self.grouped,
            slash_commands: self.slash_commands,
        };
        rules.check(&prompt, &mut faults);
        if faults.0.is_empty() {
            let argument = (prompt.deliver == Delivery::Arg).then_some("an argument");
            let kept = argument.into_iter().chain(["a prompt"]);
            let secrets = kept.filter_map(|what| no_secret(&self.named_at, what, &text));
            faults.0.extend(secrets);
        }
        if faults.0.is_empty() { Ok(prompt) } else { Err(faults.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::{Config, LayerKind, LayerSource, PromptSource, load, parse};
    use crate::plan::tests::world;
    use crate::plan::{Part, RunSettings, build};
    use crate::source::{Source, Text};
    use indexmap::IndexMap;
    use std::path::Path;

    /// Agents of every backend and every way to get a prompt, and a plain program.
    fn config() -> (Config, Vec<String>) {
        let built_in = Source::new("built-in", include_str!("../../forge/backends.json"), Path::new("/root"));
        let built_in = LayerSource { kind: LayerKind::BuiltIn, source: built_in };
        let backends: Vec<String> =
            load(std::slice::from_ref(&built_in)).backends.iter().map(|(name, _)| name.to_string()).collect();
        let mut agents: Vec<String> = backends
            .iter()
            .map(|backend| format!(r#""of-{backend}": {{"backend": "{backend}", "systemPrompt": "sys.md"}}"#))
            .collect();
        agents.extend(
            ["arg", "stdin", "file"]
                .map(|deliver| format!(r#""{deliver}": {{"command": "x", "deliver": "{deliver}"}}"#)),
        );
        let text = format!(r#"{{"agents": {{{}}}, "chains": {{}}}}"#, agents.join(","));
        let project = Source::new("forge/chains.json", text, Path::new("/root"));
        let config = load(&[built_in, LayerSource { kind: LayerKind::Project, source: project }]);
        let names = config.agents.keys().cloned().chain(["x".to_string()]).collect();
        (config, names)
    }

    #[test]
    fn the_plan_of_an_asked_agent_is_the_one_that_would_be_built_with_every_backend_and_prompt() {
        let (config, names) = config();
        let programs: Vec<&'static str> =
            include_str!("../../forge/backends.json").split('"').filter(|word| word.len() < 20).collect();
        let mut world = world(&[("/root/sys.md", "Instructions.")]);
        world.0.extend(programs.into_iter().map(|name| (&*format!("/bin/{name}*").leak(), Vec::new())));
        let long = "x".repeat(130_000);
        let prompts = [
            "p",
            "?",
            "/clear now",
            "a\nFORKHESTRA_COMPLETE\nb",
            "a\0b",
            "a\0secret:0\0b",
            "${NAME} $${NAME} ${HOME} {{NAME}} {{NAME}} {{name}}",
            &long,
        ];
        let (mut refused, mut warned) = (0, 0);
        for (name, part) in names.iter().flat_map(|name| [(name, Part::Answers), (name, Part::Evaluates)]) {
            let chain = parse(&Source::new("suite.json", format!("({name})"), Path::new("/root"))).unwrap();
            let planned = |prompt: &str| {
                let at = Place::whole(&Source::new("the prompt", "", Path::new("/root")));
                let inline = Some(Text { value: prompt.into(), at });
                let request = Request {
                    chain: &chain,
                    config: &config,
                    root: Path::new("/root"),
                    prompt: &PromptSource { inline, file: None },
                    given: &IndexMap::new(),
                    settings: &RunSettings::default(),
                    task: None,
                    part: Some(part),
                    own_program: Path::new("/bin/forkhestra"),
                };
                let plan = build(&request, &world, &world);
                let asked = plan.as_ref().ok().and_then(|plan| AskedAgent::of(plan, &request, &world));
                (plan, asked)
            };
            let (first, asked) = planned("?");
            let asked = asked.unwrap_or_else(|| panic!("{name} has a plan: {first:?}"));
            for prompt in prompts {
                let (expected, _) = planned(prompt);
                refused += u32::from(expected.is_err());
                warned += u32::from(expected.as_ref().is_ok_and(|plan| plan.warnings.len() > 1));
                assert_eq!(asked.plan(prompt, &world), expected, "{name}: {prompt:.40}");
                assert_eq!(asked.check(prompt, &world), expected.map(|plan| plan.warnings), "{name}: {prompt:.40}");
            }
        }
        assert!(refused > 20 && warned > 20, "{refused} {warned}");
    }
}
