//! The backends that `doctor` looks for: whether they are installed, and their version, options and credentials.

use crate::agent::{OWN_PROGRAM, find_command};
use crate::chain::{Backend, LayerKind};
use crate::cli::config::Project;
use crate::proc::capture;
use crate::report::{DoctorFinding, Health};
use crate::source::Files;
use crate::world::World;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::Path;

/// Checks every backend of the config. Those that the project's own config names are started only if `tries` is set.
pub(in crate::cli) fn clis(world: &World, project: &Project, tries: bool) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for (name, entry) in project.config.backends.iter() {
        let Some(program) = entry.value.program.as_ref().filter(|program| program.value != OWN_PROGRAM) else {
            continue;
        };
        let base = &program.at.source.base;
        let found = find_command(&program.value, base, &program.at, world, world);
        let (health, words) = if let Ok(path) = found {
            if tries || entry.layer != LayerKind::Project {
                probe(world, project, &entry.value, &path)
            } else {
                // Looking at a checkout must not run programs that it names.
                (
                    Health::Good,
                    format!("{}; named by the project's config: `doctor --try` gets its version", path.display()),
                )
            }
        } else {
            let install = entry.value.install.as_ref().map_or_else(String::new, |how| format!("; install it: {how}"));
            (Health::Absent, format!("not on PATH{install}"))
        };
        findings.push(DoctorFinding { name: name.to_string(), health, words });
    }
    findings
}

fn probe(world: &World, project: &Project, backend: &Backend, path: &Path) -> (Health, String) {
    let of = |words: &Option<Vec<String>>, default: &str| words.clone().unwrap_or_else(|| vec![default.into()]);
    let shown = path.display();
    let Some(answer) = capture(path, &of(&backend.version, "--version"), &project.root) else {
        return (Health::Bad, format!("{shown} does not print its version"));
    };
    let version = version_in(&(answer.stdout + "\n" + &answer.stderr)).unwrap_or_default();
    let mut words = vec![format!("{version} {shown}").trim().to_string()];
    if let Some([first, last]) = backend.known_good.as_deref()
        && let Some(known) = outside(&version, first, last)
    {
        words.push(known);
    }
    let help = capture(path, &of(&backend.help, "--help"), &project.root);
    let help = help.map_or_else(String::new, |answer| answer.stdout + &answer.stderr);
    let missing: Vec<&str> = options(backend).into_iter().filter(|option| !help.contains(option)).collect();
    if !missing.is_empty() {
        words.push(format!("its help does not list {}, which forkhestra uses", missing.join(" ")));
    }
    if let Some(credentials) = &backend.credentials {
        let found = credentials.iter().find(|place| has(world, place));
        words.push(found.map_or_else(
            || format!("no credentials found ({})", credentials.join(", ")),
            |place| format!("credentials: {place}"),
        ));
    }
    (if missing.is_empty() { Health::Good } else { Health::Bad }, words.join("; "))
}

/// Whether a variable is set or a file exists. The credentials themselves are not read.
fn has(world: &World, place: &str) -> bool {
    use crate::source::Env;
    if !place.contains('/') {
        return world.var(place).is_some_and(|value| !value.is_empty());
    }
    let home = || world.var("HOME").and_then(|home| home.into_string().ok());
    world.kind(Path::new(shellexpand::tilde_with_context(place, home).as_ref())).is_ok()
}

/// Returns the first word that looks like a version: it starts with a digit and has a dot.
fn version_in(answer: &str) -> Option<String> {
    let is_version = |word: &&str| word.contains('.') && word.starts_with(|first: char| first.is_ascii_digit());
    let words = answer.split(|next: char| next.is_whitespace() || matches!(next, '(' | ')' | ',' | '/'));
    let word = words.map(|word| word.trim_start_matches('v').trim_end_matches('.')).find(is_version)?;
    Some(word.to_string())
}

fn outside(version: &str, first: &str, last: &str) -> Option<String> {
    if compare(version, first) == Ordering::Less {
        return Some(format!("older than {first}, the first version known to work"));
    }
    (compare(version, last) == Ordering::Greater).then(|| format!("newer than {last}, the last version known to work"))
}

fn compare(one: &str, other: &str) -> Ordering {
    let numbers = |version: &str| {
        let parts = version.split(|next: char| !next.is_ascii_digit()).filter(|part| !part.is_empty());
        parts.map(|part| part.parse().unwrap_or(u64::MAX)).take(3).collect::<Vec<u64>>()
    };
    numbers(one).cmp(&numbers(other))
}

/// The long options that every run uses. Options of single keys are not checked: the help hides some of them.
fn options(backend: &Backend) -> Vec<&str> {
    let words = [&backend.arguments, &backend.last, &backend.system_prompt];
    let words = words.into_iter().flatten().flatten();
    let words = words.chain(backend.permissions.values().flat_map(|level| &level.arguments));
    let words = words.chain(backend.mcp.iter().flat_map(|server| &server.arguments));
    let options = words.filter(|word| word.starts_with("--"));
    let options = options.map(|word| word.split('=').next().unwrap_or(word));
    options.collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_a_program_says_and_compared_by_its_numbers() {
        for (said, expected) in [
            ("2.1.197 (Claude Code)\n", "2.1.197"),
            ("codex-cli 0.169.0\n", "0.169.0"),
            ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates.\n", "1.0.102"),
            ("aider v0.86.2", "0.86.2"),
        ] {
            assert_eq!(version_in(said).as_deref(), Some(expected));
        }
        assert_eq!(outside("2.1.197", "2.1.197", "2.1.329"), None);
        assert_eq!(
            outside("2.1.99", "2.1.197", "2.1.329").unwrap(),
            "older than 2.1.197, the first version known to work"
        );
        assert_eq!(outside("10.0.0", "9.9.9", "9.9.9").unwrap(), "newer than 9.9.9, the last version known to work");
    }
}
