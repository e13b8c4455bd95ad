//! Hooks: commands that are run when something has happened.

use super::context::{Context, Faults};
use super::errors;
use super::secrets::no_secret;
use crate::agent::find_command;
use crate::chain::{HookKind, Run, Sandbox};
use crate::prompt::expand_config;
use crate::source::{Diagnostic, Place};
use std::path::PathBuf;

/// A resolved hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// When the hook runs.
    pub kind: HookKind,
    /// The command line, for display.
    pub line: String,
    /// The path of the program.
    pub program: PathBuf,
    /// The arguments of the program.
    pub arguments: Vec<String>,
}

/// Resolves all hooks of the config.
///
/// # Errors
/// Programs that do not exist, and variables without a value.
pub(super) fn hooks(context: &Context<'_>) -> Result<Vec<Hook>, Vec<Diagnostic>> {
    let (config, mut faults, mut hooks) = (&context.request.config.hooks, Faults::default(), Vec::new());
    for (kind, run) in config {
        let find = |program: &str, at: &Place| {
            find_command(program, &at.source.base, at, context.files, context.env).map_err(|fault| vec![fault])
        };
        let at = match run {
            Run::Shell(line) => Some(&line.at),
            Run::Words(words) => words.first().map(|word| &word.at),
        };
        // Hooks run outside the sandbox, like the run that they report on.
        let config = context.request.config;
        if let Some(at) = at.filter(|at| config.demanded_sandbox() > Sandbox::Off && config.is_project(at)) {
            faults.0.push(errors::hook_outside_the_sandbox(at, kind.name()));
        }
        let (line, program, arguments) = match run {
            Run::Shell(line) => {
                (line.value.clone(), faults.many(find("/bin/sh", &line.at)), vec!["-c".into(), line.value.clone()])
            }
            Run::Words(words) => {
                let line = shlex::try_join(words.iter().map(|word| word.value.as_str())).unwrap_or_default();
                let expanded = |word| expand_config(word, &context.vars, context.env);
                let mut values = words.iter().filter_map(|word| faults.many(expanded(word))).collect::<Vec<_>>();
                let Some(first) = words.first().filter(|_| !values.is_empty()) else { continue };
                let program = faults.many(find(&values.remove(0), &first.at));
                (line, program, values)
            }
        };
        let at = at.filter(|_| program.is_some());
        faults.0.extend(at.and_then(|at| arguments.iter().find_map(|word| no_secret(at, "a hook", word))));
        hooks.extend(program.map(|program| Hook { kind: *kind, line, program, arguments }));
    }
    if faults.0.is_empty() { Ok(hooks) } else { Err(faults.0) }
}
