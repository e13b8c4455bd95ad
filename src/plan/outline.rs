//! A plan without its texts. The journal keeps it to describe a run later, and to detect what has changed since.

use super::{Kind, Limits, Plan, PlannedStep, json};
use crate::chain::{Accounting, Format, OutputRules, Permissions, Role, show_duration};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a run was planned to be. It holds digests of prompts and environment values, not the values themselves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outline {
    /// The chain, written in the chain language.
    pub chain: String,
    /// The chain's name in the config.
    pub name: Option<String>,
    /// The line that an agent prints to end its loop.
    pub marker: String,
    /// The limits of the whole run.
    pub limits: Limits,
    /// The steps, in leaf order.
    pub steps: Vec<OutlineStep>,
}

impl Outline {
    /// Returns the step with this number, from 1.
    #[must_use]
    pub fn step(&self, number: u32) -> Option<&OutlineStep> {
        self.steps.get((number as usize).checked_sub(1)?)
    }
}

/// A step of an outline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutlineStep {
    /// The step's name.
    pub name: String,
    /// The command line of a check, for display; `None` for an agent.
    pub check: Option<String>,
    /// Whether a failure of this check is only reported.
    pub optional: bool,
    /// The backend that runs the agent.
    pub backend: Option<String>,
    /// The model that the agent is configured to use, if any.
    #[serde(default)]
    pub model: Option<String>,
    /// How the backend writes a command in `allowedTools`; `None` if it has no such list.
    #[serde(default)]
    pub allows: Option<String>,
    /// The format of the step's output.
    pub format: Format,
    /// How its output is read, if that is a format of its backend only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Box<OutputRules>>,
    /// The formats of the other ways to run it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<(Format, Option<OutputRules>)>,
    /// What the step reports about its usage; `None` for one that uses no tokens or money.
    #[serde(default)]
    pub accounting: Option<Accounting>,
    /// What the agent may do without asking.
    pub permissions: Option<Permissions>,
    /// The agent's role; `None` for a check.
    #[serde(default)]
    pub role: Option<Role>,
    /// Whether the step hands its work to a judge.
    #[serde(default)]
    pub submits: bool,
    /// The highest number of iterations of a loop; `None` for a step that runs once.
    pub iterations: Option<u32>,
    /// The longest time that an iteration may take.
    pub timeout: Option<String>,
    /// The longest time that an iteration may print nothing and use no CPU time.
    pub idle_timeout: Option<String>,
    /// The longest time until an iteration prints its first bytes.
    #[serde(default)]
    pub start_timeout: Option<String>,
    /// The path of the program: below the root, relative to it, with `./` before it. A name alone stands for a program
    /// of that name in any directory.
    pub program: String,
    /// The digest of the arguments.
    pub arguments: String,
    /// The digest of the changes to the environment.
    pub environment: String,
    /// Where the prompt comes from; with a template, also where the template comes from.
    #[serde(default)]
    pub origin: Option<String>,
    /// The digest of the prompt.
    pub prompt: Option<String>,
}

impl OutlineStep {
    /// Returns the format of its output when it is run in this way, and the rules of that format if it is not known.
    #[must_use]
    pub fn output_of(&self, variant: u32) -> (Format, Option<&OutputRules>) {
        match variant.checked_sub(1).and_then(|index| self.variants.get(index as usize)) {
            Some((format, rules)) => (*format, rules.as_ref()),
            None => (self.format, self.rules.as_deref()),
        }
    }

    /// Whether a message from a person reaches the step: it is an agent with a prompt, which the message is added to.
    #[must_use]
    pub fn takes_messages(&self) -> bool {
        self.check.is_none() && self.prompt.is_some()
    }
}

/// Returns the outline of a plan.
#[must_use]
pub fn outline(plan: &Plan) -> Outline {
    Outline {
        chain: plan.chain.clone(),
        name: plan.name.clone(),
        marker: plan.marker.clone(),
        limits: plan.limits.clone(),
        steps: plan.steps.iter().map(|planned| step(plan, planned)).collect(),
    }
}

fn step(plan: &Plan, step: &PlannedStep) -> OutlineStep {
    let (check, optional) = match &step.kind {
        Kind::Agent { .. } => (None, false),
        Kind::Check { optional, line, .. } => (Some(line.clone()), *optional),
    };
    let (backend, model, allows) = match &step.kind {
        Kind::Agent { backend, model, allows, .. } => (backend.clone(), model.clone(), allows.clone()),
        Kind::Check { .. } => (None, None, None),
    };
    let digests = json::digests(step);
    OutlineStep {
        name: step.name.clone(),
        check,
        optional,
        backend,
        model,
        allows,
        format: step.format().unwrap_or_default(),
        rules: step.rules().cloned().map(Box::new),
        variants: step.variants.iter().map(|step| (step.format().unwrap_or_default(), step.rules().cloned())).collect(),
        accounting: step.accounting(),
        permissions: step.permissions(),
        role: step.role(),
        submits: u32::try_from(step.number).is_ok_and(|number| plan.submits(number)),
        iterations: step.is_loop().then(|| step.iterations()),
        timeout: step.timeout.map(show_duration),
        idle_timeout: step.idle_timeout.map(show_duration),
        start_timeout: step.start_timeout.map(show_duration),
        program: match json::below(&step.program, &plan.root) {
            Some(inside) => format!("./{}", inside.display()),
            None => step.program.display().to_string(),
        },
        arguments: digests.arguments,
        environment: digests.environment,
        origin: step.prompt.as_ref().map(|prompt| match &prompt.around {
            Some(around) => format!("{}, in {}", prompt.origin, around.template.origin()),
            None => prompt.origin.clone(),
        }),
        prompt: digests.prompt,
    }
}

impl Outline {
    /// The outline as it holds on any machine: programs outside of the root have a name, but no directory.
    #[must_use]
    pub fn on_any_machine(mut self) -> Self {
        for step in &mut self.steps {
            if let Some(name) = Path::new(&step.program).file_name().filter(|_| step.program.starts_with('/')) {
                step.program = name.to_string_lossy().into_owned();
            }
        }
        self
    }

    /// Returns whether a run of this outline can resume as `other`: only the counts of steps and groups may differ.
    #[must_use]
    pub fn has_the_shape_of(&self, other: &Self) -> bool {
        shape(&self.chain) == shape(&other.chain)
    }

    /// Returns what is different in `now`, one line per change, for display.
    #[must_use]
    pub fn changes(&self, now: &Self) -> Vec<String> {
        let differ =
            |what: String, before: &str, now: &str| (before != now).then(|| format!("{what}: {before} is now {now}"));
        let level = |step: &OutlineStep| step.permissions.map_or("none", Permissions::name);
        let some = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".into());
        let mut changes = vec![
            differ("chain".into(), &self.chain, &now.chain),
            differ("marker".into(), &self.marker, &now.marker),
            differ("limits".into(), &self.limits.words(), &now.limits.words()),
        ];
        for (number, (before, now)) in self.steps.iter().zip(&now.steps).enumerate() {
            let of = |what: &str| format!("{} of step {} ({})", what, number + 1, now.name);
            changes.extend([
                differ(of("backend"), &some(&before.backend), &some(&now.backend)),
                differ(of("permissions"), level(before), level(now)),
                differ(of("command"), &some(&before.check), &some(&now.check)),
                Some(())
                    .filter(|()| !is_program(&before.program, &now.program))
                    .and_then(|()| differ(of("program"), &before.program, &now.program)),
                (before.optional != now.optional).then(|| of("optional")),
                // An outline from before timeouts had a default has none, which is not a change.
                before.timeout.as_ref().and_then(|timeout| differ(of("timeout"), timeout, &some(&now.timeout))),
                differ(of("idleTimeout"), &some(&before.idle_timeout), &some(&now.idle_timeout)),
                (before.arguments != now.arguments).then(|| of("arguments")),
                (before.environment != now.environment).then(|| of("environment")),
                (before.prompt != now.prompt).then(|| of("prompt")),
            ]);
        }
        changes.into_iter().flatten().collect()
    }
}

/// Whether a program that is now at `path` is the one that an outline names.
fn is_program(named: &str, path: &str) -> bool {
    let is_elsewhere = !named.contains('/') && path.starts_with('/');
    named == path || is_elsewhere && Path::new(path).file_name().is_some_and(|name| name == named)
}

/// Returns the text of a chain without its counts. A last part of digits is always a count.
fn shape(chain: &str) -> String {
    let mut shape = String::new();
    let mut rest = chain;
    while let Some(colon) = rest.find(':') {
        let (before, after) = rest.split_at(colon);
        let digits = after[1..].len() - after[1..].trim_start_matches(|next: char| next.is_ascii_digit()).len();
        let ends = after[1 + digits..].chars().next().is_none_or(|next| !next.is_ascii_alphanumeric());
        let is_count = digits > 0 && ends && !after[1 + digits..].starts_with(['_', '.', ':']);
        shape.push_str(before);
        if is_count {
            rest = &after[1 + digits..];
        } else {
            shape.push(':');
            rest = &after[1..];
        }
    }
    shape + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_of_a_chain_is_its_text_without_counts() {
        for (chain, shaped) in [
            ("a:3 -> b", "a -> b"),
            ("(tasks:manager:3 -> x:9):12 -> y", "(tasks:manager -> x) -> y"),
            ("tasks:2fast:3", "tasks:2fast"),
        ] {
            assert_eq!(shape(chain), shaped);
        }
    }

    #[test]
    fn a_program_that_is_known_by_name_may_be_in_any_directory() {
        for (named, path, same) in [
            ("claude", "/opt/bin/claude", true),
            ("claude", "/opt/bin/codex", false),
            ("/usr/bin/claude", "/opt/bin/claude", false),
            ("./agent.sh", "./agent.sh", true),
            ("agent.sh", "./agent.sh", false),
        ] {
            assert_eq!(is_program(named, path), same, "{named} {path}");
        }
    }
}
