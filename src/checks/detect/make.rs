//! Makefiles and justfiles.

use super::{Commands, Look, Stack};

pub(super) fn make(look: &Look<'_>) -> Option<(Stack, Commands)> {
    let makefile = ["GNUmakefile", "Makefile", "makefile"].iter().find_map(|name| look.content(name))?;
    let target = |name: &str| makefile.lines().any(|line| is_target(line, name)).then(|| format!("make {name}"));
    let test = target("test").or(target("check"));
    let build = target("build").or(Some("make".to_string()));
    let commands =
        Commands { diagnose: build.clone().or(test.clone()), build, test, lint: target("lint"), ..Commands::default() };
    Some((Stack::Make, commands))
}

pub(super) fn just(look: &Look<'_>) -> Option<(Stack, Commands)> {
    let justfile = ["justfile", "Justfile", ".justfile"].iter().find_map(|name| look.content(name))?;
    let recipe = |name: &str| justfile.lines().any(|line| is_recipe(line, name)).then(|| format!("just {name}"));
    let (build, test) = (recipe("build"), recipe("test").or(recipe("check")));
    let commands =
        Commands { diagnose: build.clone().or(test.clone()), build, test, lint: recipe("lint"), ..Commands::default() };
    Some((Stack::Just, commands))
}

/// Whether a line of a Makefile has this among its targets (`lint test : all`) and does not set a variable
/// (`build := out`).
fn is_target(line: &str, name: &str) -> bool {
    let Some((targets, rest)) = line.split_once(':').filter(|_| !line.starts_with(['\t', ' ', '#', '.'])) else {
        return false;
    };
    let is_variable = rest.trim_start_matches(':').starts_with('=') || targets.contains('=');
    !is_variable && targets.split_whitespace().any(|target| target == name)
}

/// Whether a line of a justfile begins this recipe (`@build arg='':`) and does not set a variable (`test := 'x'`).
fn is_recipe(line: &str, name: &str) -> bool {
    let line = line.strip_prefix('@').unwrap_or(line);
    let Some(rest) = line.strip_prefix(name).filter(|rest| rest.starts_with([':', ' '])) else { return false };
    !rest.trim_start().starts_with(":=") && rest.contains(':')
}
