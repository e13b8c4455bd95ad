//! What all steps of a plan share while it is being built.

use super::TaskFacts;
use super::settings::RunSettings;
use crate::chain::{Chain, Config, LayerKind, PromptSource};
use crate::prompt::{Late, Segment, Vars, expand_config, text};
use crate::source::{Diagnostic, Env, Files, Source, Text};
use indexmap::IndexMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest single argument that Linux accepts, in bytes without the closing NUL (`MAX_ARG_STRLEN`, execve(2)).
pub(super) const LONGEST_ARGUMENT: usize = 131_071;
/// The longest text that may be a path, in bytes.
pub(super) const LONGEST_PATH: usize = 4_096;

/// What a plan is built from.
#[derive(Debug)]
pub struct Request<'a> {
    /// The chain to run.
    pub chain: &'a Chain,
    /// The merged config.
    pub config: &'a Config,
    /// The directory in which the run works.
    pub root: &'a Path,
    /// The prompt of the command line. `--prompt-file -` arrives here as an inline text.
    pub prompt: &'a PromptSource,
    /// The `NAME=value` arguments, each with its own source.
    pub given: &'a IndexMap<String, (String, Arc<Source>)>,
    /// The other options of the command line.
    pub settings: &'a RunSettings,
    /// The task to work on.
    pub task: Option<&'a TaskFacts>,
    /// The agent's part in an evaluation, if this is one.
    pub part: Option<Part>,
    /// The path of forkhestra itself, which runs the demo's agents.
    pub own_program: &'a Path,
}

impl Request<'_> {
    /// Returns whether this is the built-in chain `plan`, run without a task.
    pub(super) fn proposes_tasks(&self) -> bool {
        let chains = &self.config.chains;
        let is_ours = |name: &str| chains.get(name).is_some_and(|entry| entry.layer == LayerKind::BuiltIn);
        self.task.is_none() && self.chain.name.as_deref().is_some_and(|name| name == "plan" && is_ours(name))
    }
}

/// The part of an agent in an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// It answers: its output is the result and decides nothing.
    Answers,
    /// It judges: its verdict is an evaluation.
    Evaluates,
}

/// What all steps of a plan share while it is being built.
pub(super) struct Context<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) files: &'a dyn Files,
    pub(super) env: &'a dyn Env,
    pub(super) vars: Vars,
    pub(super) marker: String,
    pub(super) shown: String,
}

impl Context<'_> {
    /// Returns the chain as agents see it: its name, or else its text.
    pub(super) fn chain_name(&self) -> &str {
        self.request.chain.name.as_deref().unwrap_or(&self.shown)
    }
}

/// Collects errors, so that planning can continue after one.
#[derive(Default)]
pub(super) struct Faults(pub(super) Vec<Diagnostic>);

impl Faults {
    pub(super) fn one<T>(&mut self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|fault| self.0.push(fault)).ok()
    }

    pub(super) fn many<T>(&mut self, result: Result<T, Vec<Diagnostic>>) -> Option<T> {
        result.map_err(|faults| self.0.extend(faults)).ok()
    }
}

/// Resolves a written path: `~` is the home directory, and a relative path starts at `base`.
#[must_use]
pub fn path_of(written: &str, base: &Path, env: &dyn Env) -> PathBuf {
    let home = || env.var("HOME").and_then(|home| home.into_string().ok());
    base.join(Path::new(shellexpand::tilde_with_context(written, home).as_ref()))
}

/// Returns the variables that every program of a run has in its environment.
pub(super) fn own_environment(context: &Context<'_>) -> Vec<(String, Vec<Segment>)> {
    let mut own = vec![
        ("FORKHESTRA_RUN".into(), vec![Segment::Late(Late::Run)]),
        ("FORKHESTRA_CHAIN".into(), text(context.chain_name())),
        ("FORKHESTRA_STEP".into(), vec![Segment::Late(Late::Step)]),
        ("FORKHESTRA_ITERATION".into(), vec![Segment::Late(Late::Iteration)]),
        ("FORKHESTRA_MAX_ITERATIONS".into(), vec![Segment::Late(Late::MaxIterations)]),
        ("FORKHESTRA_ROUND".into(), vec![Segment::Late(Late::Round)]),
        ("FORKHESTRA_MARKER".into(), text(&context.marker)),
        ("FORKHESTRA_TOKEN".into(), vec![Segment::Late(Late::Token)]),
        ("FORKHESTRA_RESULT".into(), vec![Segment::Late(Late::Result)]),
    ];
    if let Some(task) = context.request.task {
        own.push(("FORKHESTRA_TASK".into(), text(&task.id)));
    }
    own
}

/// Resolves a path from a config: expands variables and `~`; a relative path starts at the config's base directory.
pub(super) fn named_path(context: &Context<'_>, name: &Text, faults: &mut Faults) -> Option<PathBuf> {
    let value = faults.many(expand_config(name, &context.vars, context.env))?;
    Some(path_of(&value, &name.at.source.base, context.env))
}
