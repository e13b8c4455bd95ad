//! Plans as JSON: for programs (`--dry-run --json`), and in canonical form for the digest.

use super::{Found, Hook, Kind, Limits, Plan, PlannedIsolation, PlannedPrompt, PlannedStep, Root};
use crate::chain::show_duration;
use crate::prompt::{Late, Segment, show};
use crate::source::{sha256, sha256_json};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Returns the whole plan. Late names appear as `{{name}}`. Values of the environment may be secret and are left out.
#[must_use]
pub fn to_json(plan: &Plan) -> Value {
    let root = match &plan.root {
        Root::Folder(folder) => json!(folder.display().to_string()),
        Root::Temporary => Value::Null,
    };
    json!({
        "chain": plan.chain,
        "name": plan.name,
        "root": root,
        "marker": plan.marker,
        "files": plan.files.iter().map(|(layer, name)| json!({ "layer": layer, "path": name })).collect::<Vec<_>>(),
        "digest": digest(plan),
        "limits": limits(&plan.limits),
        "hooks": plan.hooks.iter().map(|hook| json!({ "key": hook.kind.name(), "line": hook.line })).collect::<Vec<_>>(),
        "steps": plan.steps.iter().map(step_json).collect::<Vec<_>>(),
        "warnings": plan.warnings.iter().map(|warning| &warning.message).collect::<Vec<_>>(),
    })
}

fn limits(limits: &Limits) -> Value {
    json!({
        "time": limits.time.map(show_duration),
        "cost": limits.cost,
        "tokens": limits.tokens,
        "attempts": limits.attempts,
        "wait": show_duration(limits.wait),
        "stalledAfter": limits.stalled_after,
        "rejections": limits.rejections,
        "grace": show_duration(limits.grace),
    })
}

fn step_json(step: &PlannedStep) -> Value {
    let found = match &step.found {
        Found::Config(layer, place) => json!({ "in": layer, "at": place }),
        Found::Path => json!({ "in": "path" }),
    };
    let (kind, backend, optional) = match &step.kind {
        Kind::Agent { backend, .. } => ("agent", json!(backend), Value::Null),
        Kind::Check { optional, .. } => ("check", Value::Null, json!(optional)),
    };
    let paths = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
    let prompt = step.prompt.as_ref().map(|prompt| {
        let text = prompt.show();
        json!({
            "deliver": prompt.deliver,
            "level": step.level,
            "origin": prompt.origin,
            "template": prompt.around.as_ref().map(|around| around.template.origin()),
            "bytes": prompt.known_bytes(),
            "estimatedTokens": prompt.known_bytes().div_ceil(4),
            "late": prompt.late(),
            "unsubstituted": prompt.stayed,
            "text": text,
        })
    });
    json!({
        "step": step.number,
        "name": step.name,
        "kind": kind,
        "backend": backend,
        "optional": optional,
        "skipped": match &step.kind { Kind::Check { skipped, .. } => json!(skipped), Kind::Agent { .. } => Value::Null },
        "role": step.role(),
        "minScore": step.evaluates().flatten(),
        "permissions": step.permissions(),
        "iterations": iterations(step),
        "timeout": step.timeout.map(show_duration),
        "idleTimeout": step.idle_timeout.map(show_duration),
        "startTimeout": step.start_timeout.map(show_duration),
        "found": found,
        "hides": paths(&step.hides),
        "isolation": step.isolation.as_deref().map(isolation),
        "program": step.program.display().to_string(),
        "args": step.argv.iter().map(|arg| show(arg)).collect::<Vec<_>>(),
        "environment": {
            "set": step.env.set.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "settings": step.env.shown_settings(),
            "unset": step.env.unset,
        },
        "prompt": prompt,
        "continues": step.continuation.is_some(),
        "variants": step.variants.iter().map(variant).collect::<Vec<_>>(),
    })
}

/// Returns another way to run a step.
fn variant(step: &PlannedStep) -> Value {
    let (backend, model) = step.run_by();
    json!({
        "backend": backend,
        "model": model,
        "program": step.program.display().to_string(),
        "args": step.argv.iter().map(|arg| show(arg)).collect::<Vec<_>>(),
    })
}

fn isolation(isolation: &PlannedIsolation) -> Value {
    json!({
        "program": isolation.program.display().to_string(),
        "args": isolation.argv.iter().map(|arg| show(arg)).collect::<Vec<_>>(),
        "sandbox": isolation.sandbox.as_ref().map(|sandbox| sandbox.profile.name()),
    })
}

fn iterations(step: &PlannedStep) -> Value {
    if step.is_loop() { json!(step.iterations()) } else { Value::Null }
}

/// Returns the SHA-256 of what the run will do. Late names stay unexpanded and program paths are left out, so that a
/// different PATH, on another machine or another day, does not change the digest.
#[must_use]
pub fn digest(plan: &Plan) -> String {
    sha256_json(&Canonical(plan))
}

/// A plan as its digest sees it. Serialized step by step, since a chain may have thousands.
struct Canonical<'a>(&'a Plan);

impl Serialize for Canonical<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(plan) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("version", &1)?;
        map.serialize_entry("chain", &plan.chain)?;
        map.serialize_entry("marker", &plan.marker)?;
        map.serialize_entry("limits", &limits(&plan.limits))?;
        map.serialize_entry("steps", &CanonicalSteps(plan))?;
        if plan.commits_tasks {
            map.serialize_entry("commits", &true)?;
        }
        if !plan.hooks.is_empty() {
            let hook = |hook: &Hook| json!([hook.kind.name(), known_as(&hook.program, &plan.root), hook.arguments]);
            map.serialize_entry("hooks", &plan.hooks.iter().map(hook).collect::<Vec<_>>())?;
        }
        map.end()
    }
}

struct CanonicalSteps<'a>(&'a Plan);

impl Serialize for CanonicalSteps<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.steps.iter().map(|step| CanonicalStep(step, &self.0.root)))
    }
}

struct CanonicalStep<'a>(&'a PlannedStep, &'a Root);

impl Serialize for CanonicalStep<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(step, root) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &step.name)?;
        map.serialize_entry("check", &step.is_check())?;
        match &step.kind {
            Kind::Agent { backend, .. } => map.serialize_entry("backend", backend)?,
            Kind::Check { optional, .. } => map.serialize_entry("backend", optional)?,
        }
        map.serialize_entry("role", &step.role())?;
        map.serialize_entry("evaluates", &step.evaluates().map(|least| json!({ "least": least })))?;
        map.serialize_entry("iterations", &iterations(step))?;
        map.serialize_entry("timeout", &step.timeout.map(show_duration))?;
        map.serialize_entry("idleTimeout", &step.idle_timeout.map(show_duration))?;
        map.serialize_entry("program", &known_as(&step.program, root))?;
        map.serialize_entry("format", &step.format())?;
        map.serialize_entry("argv", &arguments(step))?;
        map.serialize_entry("set", &SetVariables(step))?;
        map.serialize_entry("unset", &step.env.unset)?;
        map.serialize_entry("deliver", &step.prompt.as_ref().map(|prompt| prompt.deliver))?;
        map.serialize_entry("prompt", &step.prompt.as_ref().map(prompt_json))?;
        map.end()
    }
}

/// Returns the name of a program in a digest: its path in the project, or else its file name.
fn known_as(program: &Path, root: &Root) -> String {
    below(program, root).unwrap_or_else(|| program.file_name().map_or(program, Path::new)).display().to_string()
}

/// The path of a program in the project; `None` if it is outside.
pub(super) fn below<'a>(program: &'a Path, root: &Root) -> Option<&'a Path> {
    match root {
        Root::Folder(root) => program.strip_prefix(root).ok(),
        Root::Temporary => None,
    }
}

/// The digests of the parts of a step that are long or may hold secrets.
pub(super) struct Digests {
    pub(super) arguments: String,
    pub(super) environment: String,
    pub(super) prompt: Option<String>,
}

pub(super) fn digests(step: &PlannedStep) -> Digests {
    let prompt = |prompt: &super::PlannedPrompt| json!([prompt.deliver, prompt_json(prompt)]);
    Digests {
        arguments: sha256(arguments(step).to_string()),
        environment: sha256_json(&EnvironmentChanges(step)),
        prompt: step.prompt.as_ref().map(|said| sha256(prompt(said).to_string())),
    }
}

/// Returns the arguments without those that pass on the cost limit, which belongs to the run and not to the agent.
fn arguments(step: &PlannedStep) -> Value {
    let is_budget = |arg: &[Segment]| arg.contains(&Segment::Late(Late::Budget));
    let names_budget = |index: usize| step.argv.get(index + 1).is_some_and(|next| is_budget(next) && next.len() == 1);
    let own = step.argv.iter().enumerate().filter(|(index, arg)| !is_budget(arg) && !names_budget(*index));
    // Which wrapper is used is part of the plan, but not where it is installed.
    let before = step.isolation.iter().flat_map(|isolation| {
        let name = isolation.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        std::iter::once(json!(name)).chain(isolation.argv.iter().map(|arg| pieces(arg)))
    });
    let own = own.map(|(_, arg)| pieces(arg));
    // What a step may be run with in its place is part of it, too.
    let others = step.variants.iter().map(|other| json!([other.run_by_words(), arguments(other)]));
    let continued = step.continuation.iter().map(|other| other.argv.iter().map(|arg| pieces(arg)).collect::<Value>());
    before.chain(own).chain(others).chain(continued).collect()
}

struct EnvironmentChanges<'a>(&'a PlannedStep);

impl Serialize for EnvironmentChanges<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("set", &SetVariables(self.0))?;
        map.serialize_entry("unset", &self.0.env.unset)?;
        map.end()
    }
}

/// The variables that a step sets, as pairs of a name and the pieces of its value.
struct SetVariables<'a>(&'a PlannedStep);

impl Serialize for SetVariables<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let step = self.0;
        let known = |segment: &Segment| match segment {
            Segment::Late(Late::Step) => Segment::Text(step.number.to_string()),
            Segment::Late(Late::MaxIterations) => Segment::Text(step.limit.most().to_string()),
            segment => segment.clone(),
        };
        let value = |value: &[Segment]| value.iter().map(known).map(CanonicalPiece).collect::<Vec<_>>();
        serializer.collect_seq(step.env.set.iter().map(|(name, segments)| (name, value(segments))))
    }
}

/// A text or a late name, kept apart, so that a late name differs from the same text in braces.
struct CanonicalPiece(Segment);

impl Serialize for CanonicalPiece {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match &self.0 {
            Segment::Text(text) => map.serialize_entry("text", text)?,
            Segment::Late(late) => map.serialize_entry("late", late.name())?,
        }
        map.end()
    }
}

/// Returns the pieces of a prompt; with a template, also the known text around them.
fn prompt_json(prompt: &PlannedPrompt) -> Value {
    match &prompt.around {
        None => pieces(&prompt.segments),
        Some(around) => {
            let lasting = PlannedPrompt { around: Some(Box::new(around.lasting())), ..prompt.clone() };
            json!([pieces(&prompt.segments), lasting.show()])
        }
    }
}

fn pieces(segments: &[Segment]) -> Value {
    segments.iter().map(|segment| json!(CanonicalPiece(segment.clone()))).collect()
}
