//! Resolves the name of a step: agents of the config, checks of the config, built-in checks, built-in agents, backends,
//! and programs on PATH, in this order. The name of a backend is an agent even if it is not configured.

use super::errors;
use super::find::{find_not_executable, find_on_path};
use crate::chain::{Agent, Check, Config, Entry, LayerKind, Step, StepTarget, looks_like_a_count, show};
use crate::source::{Diagnostic, Env, Files, nearest};
use std::path::PathBuf;

/// Names that are checks even before they are configured, so that `test` is never /usr/bin/test.
pub const BUILT_IN_CHECKS: [&str; 6] = ["build", "test", "lint", "syntax", "verify", "diagnose"];

/// What a name refers to.
#[derive(Debug)]
pub enum Found<'a> {
    /// An agent of the config, or a built-in one.
    Agent(&'a Entry<Agent>),
    /// A check of the config.
    Check(&'a Entry<Option<Check>>),
    /// A built-in check that is not configured: the project's own command is detected.
    BuiltInCheck,
    /// A program on PATH that is not in a config.
    Program(PathBuf),
}

/// Looks up the name of a step.
///
/// # Errors
/// One diagnostic for a name that is unknown, or that is not of the kind that the step requires.
pub fn lookup<'a>(step: &Step, config: &'a Config, files: &dyn Files, env: &dyn Env) -> Result<Found<'a>, Diagnostic> {
    let name = step.name.value.as_str();
    let agent = config.agents.get(name);
    let check = config.checks.get(name);
    let project_agent = agent.filter(|entry| entry.layer != LayerKind::BuiltIn);
    match step.wants {
        StepTarget::Check => {
            return match check {
                Some(check) => Ok(Found::Check(check)),
                None if BUILT_IN_CHECKS.contains(&name) => Ok(Found::BuiltInCheck),
                None => Err(unknown_check(step, config)),
            };
        }
        StepTarget::Either => {
            if let Some(check) = check.filter(|_| project_agent.is_none()) {
                return Ok(Found::Check(check));
            }
        }
        StepTarget::Agent => {}
    }
    if let Some(agent) = project_agent {
        return Ok(Found::Agent(agent));
    }
    if BUILT_IN_CHECKS.contains(&name) && step.wants == StepTarget::Either {
        return Ok(Found::BuiltInCheck);
    }
    if let Some(agent) = agent {
        return Ok(Found::Agent(agent));
    }
    match find_on_path(name, files, env) {
        Some(path) => Ok(Found::Program(path)),
        None if check.is_some() || BUILT_IN_CHECKS.contains(&name) => {
            Err(errors::check_named_as_agent(&step.name.at, name))
        }
        None => Err(match find_not_executable(name, files, env) {
            Some(path) => errors::not_executable(&step.name.at, &path),
            None => unknown(step, config),
        }),
    }
}

fn unknown(step: &Step, config: &Config) -> Diagnostic {
    let name = step.name.value.as_str();
    if let Some(chain) = config.chains.get(name) {
        return errors::chain_as_step(&step.name.at, name, &show(&chain.value.items));
    }
    let known = config.agents.keys().chain(config.checks.keys()).chain(config.chains.keys()).map(String::as_str);
    let near = nearest(name, known.chain(BUILT_IN_CHECKS));
    let is_known = |name: &str| config.agents.contains_key(name) || config.checks.contains_key(name);
    match name.rsplit_once(':') {
        // `coder:x`: what comes before the colon is right.
        Some((step_name, count)) if is_known(step_name) && !looks_like_a_count(name) && !near_has_a_colon(near) => {
            errors::no_count(&step.name.at, name, step_name, count)
        }
        _ => errors::unknown_name(&step.name.at, name, near, looks_like_a_count(name)),
    }
}

fn near_has_a_colon(near: Option<&str>) -> bool {
    near.is_some_and(|near| near.contains(':'))
}

fn unknown_check(step: &Step, config: &Config) -> Diagnostic {
    let name = step.name.value.as_str();
    let known = config.checks.keys().map(String::as_str).chain(BUILT_IN_CHECKS);
    errors::unknown_check(&step.name.at, name, nearest(name, known))
}
