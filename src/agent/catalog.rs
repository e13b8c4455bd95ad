//! The known backends. They are data (`forge/backends.json`, and `backends` of any config). The built-in entries were
//! verified by running the real programs (tests/real).

use super::errors;
use super::find::find_on_path;
use crate::chain::{Backend, Config, Entry};
use crate::source::{Diagnostic, Env, Files, Place, Text, nearest};

/// The program name that stands for forkhestra itself.
pub const OWN_PROGRAM: &str = "{self}";

/// A backend and its name in the config.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The key of its entry in `backends`.
    pub name: &'a str,
    /// The merged entry.
    pub backend: &'a Backend,
}

/// Returns the backend with this name or alias.
///
/// # Errors
/// The errors of its entry, or one diagnostic that suggests the most similar name.
pub fn backend<'a>(name: &Text, config: &'a Config) -> Result<Named<'a>, Vec<Diagnostic>> {
    match by_name(&name.value, config) {
        Some((named, entry)) if entry.faults.is_empty() => Ok(named),
        Some((_, entry)) => Err(entry.faults.clone()),
        None => {
            let known = config.backends.offered().map(|(name, _)| name);
            Err(vec![errors::unknown_backend(&name.at, &name.value, &names(config), nearest(&name.value, known))])
        }
    }
}

fn by_name<'a>(name: &str, config: &'a Config) -> Option<(Named<'a>, &'a Entry<Backend>)> {
    config.backends.called(name).map(|(name, entry)| (Named { name, backend: &entry.value }, entry))
}

/// Returns all names for a message, separated by commas.
fn names(config: &Config) -> String {
    config.backends.offered().map(|(name, _)| name).collect::<Vec<_>>().join(", ")
}

/// Returns the backend of agents that do not name one: that of the config, otherwise `FORKHESTRA_BACKEND`, otherwise
/// the first that is found on PATH, in the order of the catalog.
///
/// # Errors
/// The errors of its entry, or one diagnostic that says what to install or configure.
pub fn default_backend<'a>(
    config: &'a Config,
    files: &dyn Files,
    env: &dyn Env,
    asking: &Place,
) -> Result<Named<'a>, Vec<Diagnostic>> {
    if let Some(name) = &config.backend {
        return backend(name, config);
    }
    if let Some(name) = env.var("FORKHESTRA_BACKEND").filter(|name| !name.is_empty()) {
        let name = name.to_string_lossy().into_owned();
        return match by_name(&name, config) {
            Some((named, entry)) if entry.faults.is_empty() => Ok(named),
            Some((_, entry)) => Err(entry.faults.clone()),
            None => Err(vec![errors::unknown_backend_variable(&name, &names(config))]),
        };
    }
    let installed = |backend: &Backend| {
        let program = backend.program.as_ref().filter(|program| program.value != OWN_PROGRAM);
        program.is_some_and(|program| find_on_path(&program.value, files, env).is_some())
    };
    match config.backends.iter().find(|(_, entry)| installed(&entry.value)) {
        Some((name, entry)) if entry.faults.is_empty() => Ok(Named { name, backend: &entry.value }),
        Some((_, entry)) => Err(entry.faults.clone()),
        None => Err(vec![errors::no_backend(asking, &names(config))]),
    }
}
