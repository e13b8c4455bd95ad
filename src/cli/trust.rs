//! `"trust": "ask"` of a person's own config: what a project's config says is run only after the person has agreed to it.

use crate::chain::{LayerKind, Sandbox};
use crate::cli::args::Common;
use crate::cli::config::Project;
use crate::cli::verdict::in_an_iteration;
use crate::context::config_digest;
use crate::journal::{forget_tampering, tampered};
use crate::report::print_error;
use crate::source::{Diagnostic, Files, sha256};
use crate::world::World;
use std::path::PathBuf;

/// Why nothing of the project's config is run: nobody has agreed to it, or an agent of an earlier run has changed it.
pub(super) fn untrusted(world: &World, common: &Common, project: &Project, accepted: bool) -> Option<Diagnostic> {
    distrusted(world, common, project).or_else(|| unsettled(project, accepted))
}

/// Why a check is not run by hand: it would be outside of the sandbox that the person wants for everything of a project.
pub(super) fn outside_the_sandbox(world: &World, project: &Project) -> Option<Diagnostic> {
    (project.config.demanded_sandbox() > Sandbox::Off && !in_an_iteration(world)).then(|| {
        Diagnostic::error("run/outside", "your own config asks for a sandbox, and this would run outside of it")
            .help("run it as a chain, in the sandbox: forkhestra run verify, forkhestra run test")
    })
}

/// Why nothing of the project's config is run: the person wants to be asked, and has not agreed. Asks on a terminal.
pub(super) fn distrusted(world: &World, common: &Common, project: &Project) -> Option<Diagnostic> {
    // Whoever began the run has agreed; what an agent changes is the guard's to notice.
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
        if !world.stdin_is_terminal() {
            return Some(unknown(&file.source.name));
        }
        let root = project.root.display();
        print_error(&format!(
            "{} in {root} is new to you, or has changed. It can run any command as you.\nLook at it: forkhestra list; forkhestra NAME --dry-run\nTrust it? [y/N] ",
            file.source.name
        ));
        if !world.read_line().trim().eq_ignore_ascii_case("y") {
            return Some(unknown(&file.source.name));
        }
    }
    let line = format!("{digest} {}\n", project.root.display());
    let remembered = if trusted.is_empty() { world.create(&known, &line) } else { world.append(&known, &line) };
    remembered.err().map(|error| {
        Diagnostic::error("config/untrusted", format!("cannot remember that: {}: {error}", known.display()))
            .help("make the folder writable")
    })
}

/// The config as it is, in this folder: the same words elsewhere run other files.
fn digest(project: &Project, text: &str) -> String {
    sha256([project.root.as_os_str().as_encoded_bytes(), &[0], text.as_bytes()].concat())
}

/// The file of what the person has agreed to: a digest and a folder in each line.
fn known(world: &World) -> Option<PathBuf> {
    Some(world.state_home()?.join("forkhestra/trusted"))
}

fn unknown(name: &str) -> Diagnostic {
    Diagnostic::error(
        "config/untrusted",
        format!("{name} is new to you, or has changed, and your own config says `trust: ask`"),
    )
    .help("look at it (forkhestra list; forkhestra NAME --dry-run), then say --trust once")
}

fn no_folder() -> Diagnostic {
    Diagnostic::error("config/untrusted", "there is no folder to remember what you trust")
        .help("set HOME, or XDG_STATE_HOME")
}

/// Config that an agent of an earlier run has changed is not taken for granted, unless somebody says so.
pub(super) fn unsettled(project: &Project, accepted: bool) -> Option<Diagnostic> {
    let found = tampered(&project.root)?;
    let still =
        |(path, digest): &&(String, String)| (config_digest(&project.root.join(path)) == *digest) != found.at_work;
    let files: Vec<&str> = found.files.iter().filter(still).map(|(path, _)| path.as_str()).collect();
    if files.is_empty() || accepted {
        forget_tampering(&project.root);
        return None;
    }
    let how = if found.at_work { "while it was at work," } else { "by" };
    let message =
        format!("{} was changed {how} `{}` in run {}, which no agent may", files.join(", "), found.agent, found.run);
    Some(
        Diagnostic::error("run/tampered", message)
            .help("put it back (git checkout …), or look at it and take it as it is: --accept-changes"),
    )
}
