//! `"trust": "ask"` of a user's own config: the config of a project is used only after the user has agreed to it.

use crate::chain::{LayerKind, Sandbox};
use crate::cli::config::Project;
use crate::cli::options::Common;
use crate::cli::verdict::in_an_iteration;
use crate::context::config_digest;
use crate::journal::{forget_tampering, tampered};
use crate::report::print_error;
use crate::source::{Diagnostic, Files, sha256};
use crate::world::World;
use std::path::PathBuf;

/// Reports a project's config that the user has not agreed to, or that an agent of an earlier run has changed.
pub(super) fn untrusted(world: &World, common: &Common, project: &Project, accepted: bool) -> Option<Diagnostic> {
    distrusted(world, common, project).or_else(|| unsettled(project, accepted))
}

/// Reports a check that would run by hand, outside the sandbox that the user wants for everything in a project.
pub(super) fn outside_the_sandbox(world: &World, project: &Project) -> Option<Diagnostic> {
    (project.config.demanded_sandbox() > Sandbox::Off && !in_an_iteration(world)).then(|| {
        Diagnostic::error("run/outside", "your own config requires a sandbox, and this would run outside of it")
            .help("run it as a chain, in the sandbox: forkhestra run verify, forkhestra run test")
    })
}

/// Reports a project's config that the user wants to be asked about and has not agreed to. Asks on a terminal.
pub(super) fn distrusted(world: &World, common: &Common, project: &Project) -> Option<Diagnostic> {
    // The user who started the run has agreed; changes by an agent are detected elsewhere.
    if !project.config.asks_for_trust || in_an_iteration(world) {
        return None;
    }
    let file = project.config.files.iter().find(|file| file.kind == LayerKind::Project)?;
    let digest = digest(project, &file.source.text);
    let Some(known) = known(world) else { return Some(no_folder()) };
    let trusted = world.read(&known).unwrap_or_default();
    if String::from_utf8_lossy(&trusted).lines().any(|line| line.split(' ').next() == Some(&digest)) {
        return None;
    }
    if !common.trust {
        if !world.stdin().is_terminal() {
            return Some(unknown(&file.source.name));
        }
        let root = project.root.display();
        print_error(&format!(
            "{} in {root} is new to you or has changed. It can run any command as you.\nLook at it: forkhestra list; forkhestra NAME --dry-run\nTrust it? [y/N] ",
            file.source.name
        ));
        if !world.stdin().read_line().trim().eq_ignore_ascii_case("y") {
            return Some(unknown(&file.source.name));
        }
    }
    let line = format!("{digest} {}\n", project.root.display());
    let remembered =
        if trusted.is_empty() { world.disk().create(&known, &line) } else { world.disk().append(&known, &line) };
    remembered.err().map(|error| {
        Diagnostic::error("config/untrusted", format!("cannot save your answer: {}: {error}", known.display()))
            .help("make the directory writable")
    })
}

/// The digest of the config and its directory: the same text elsewhere runs other files.
fn digest(project: &Project, text: &str) -> String {
    sha256([project.root.as_os_str().as_encoded_bytes(), &[0], text.as_bytes()].concat())
}

/// The file of the configs that the user has agreed to: a digest and a directory in each line.
fn known(world: &World) -> Option<PathBuf> {
    Some(world.state_home()?.join("forkhestra/trusted"))
}

fn unknown(name: &str) -> Diagnostic {
    Diagnostic::error(
        "config/untrusted",
        format!("{name} is new to you or has changed, and your own config sets `trust: ask`"),
    )
    .help("look at it (forkhestra list; forkhestra NAME --dry-run), then pass --trust once")
}

fn no_folder() -> Diagnostic {
    Diagnostic::error("config/untrusted", "there is no directory to store what you trust")
        .help("set HOME or XDG_STATE_HOME")
}

/// Reports config that an agent of an earlier run has changed, unless the user accepts it.
pub(super) fn unsettled(project: &Project, accepted: bool) -> Option<Diagnostic> {
    let found = tampered(&project.root)?;
    let still =
        |(path, digest): &&(String, String)| (config_digest(&project.root.join(path)) == *digest) != found.at_work;
    let files: Vec<&str> = found.files.iter().filter(still).map(|(path, _)| path.as_str()).collect();
    if files.is_empty() || accepted {
        forget_tampering(&project.root);
        return None;
    }
    let how = if found.at_work { "during the work of" } else { "by" };
    let was = if files.len() == 1 { "was" } else { "were" };
    let message = format!(
        "{} {was} changed {how} the agent `{}` in run {}; agents may not change forkhestra's config or templates",
        files.join(", "),
        found.agent,
        found.run
    );
    Some(
        Diagnostic::error("run/tampered", message)
            .help("restore it (git checkout …), or look at it and accept it as it is: --accept-changes"),
    )
}
