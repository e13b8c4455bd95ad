//! What a worker needs before it begins: the hub, the directory of its workspaces, ignored files, and ports.

use super::args::WorkArgs;
use crate::agent::find_on_path;
use crate::cli::respond::Stopped;
use crate::hub::{Hub, PortBlock, Workspace, is_hub_url, project_of_url};
use crate::source::{Diagnostic, Env, sha256};
use crate::unit::{Bundle, Needs};
use crate::world::{World, parked_variable};
use std::path::{Path, PathBuf};

/// What this machine lacks of what a unit needs, in words.
pub(in crate::cli) fn missing(world: &World, needs: &Needs) -> Vec<String> {
    needs.missing(|name| find_on_path(name, world, world).is_some(), |name| world.var(name).is_some())
}

/// Opens a hub on this machine, or the mirror of one on another machine.
pub(in crate::cli) fn open(world: &World, hub: &str) -> Result<Hub, Stopped> {
    if !is_hub_url(hub) {
        let path = world.cwd().join(hub);
        return if path.join("HEAD").is_file() { Ok(Hub::at(&path)) } else { Err(no_hub(&path).into()) };
    }
    let digest = sha256(hub.as_bytes());
    let name = format!("{}-{}.git", project_of_url(hub), digest.get(..8).unwrap_or(&digest));
    let path = world.own_cache().ok_or_else(no_home)?.join("hubs").join(name);
    world.make_own_cache();
    Ok(Hub::mirror(hub, &path)?)
}

/// The directory with the ignored files that a unit needs.
pub(super) fn files(hub: &Hub, bundle: &Bundle, args: &WorkArgs) -> Result<PathBuf, Diagnostic> {
    let needed: Vec<&str> = bundle.copy.iter().chain(&bundle.share).map(String::as_str).collect();
    match &args.files {
        Some(folder) => Ok(folder.clone()),
        None if (hub.is_mirror() || args.bundle.is_some()) && !needed.is_empty() => Err(Diagnostic::error(
            "work/files",
            format!("unit {} needs files that are not in its commit: {}", bundle.unit, needed.join(", ")),
        )
        .help("name a directory of this machine that has them: --files DIR")),
        None => Ok(root_of(hub.path()).to_path_buf()),
    }
}

/// The directory of the workspaces of this worker.
pub(super) fn folder(world: &World, args: &WorkArgs, hub: &Hub) -> Result<PathBuf, Diagnostic> {
    match &args.workspaces {
        Some(folder) => Ok(folder.clone()),
        None if hub.is_mirror() || args.bundle.is_some() => {
            let name = hub.path().file_stem().unwrap_or_default();
            Ok(world.own_cache().ok_or_else(no_home)?.join("workspaces").join(name))
        }
        None => workspaces(world, hub.path(), None),
    }
}

/// The directory of the workspaces of a hub, below `root` or the user's cache.
pub(in crate::cli) fn workspaces(world: &World, hub: &Path, root: Option<&Path>) -> Result<PathBuf, Diagnostic> {
    let project = root_of(hub);
    let name = project.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let digest = sha256(project.as_os_str().as_encoded_bytes());
    let below = format!("{name}-{}", digest.get(..8).unwrap_or(&digest));
    let root = match root {
        Some(root) => root.to_path_buf(),
        None => world.own_cache().ok_or_else(no_home)?.join("workspaces"),
    };
    Ok(root.join(below))
}

/// The user's root, to which a hub belongs.
fn root_of(hub: &Path) -> &Path {
    hub.ancestors().nth(2).unwrap_or(hub)
}

/// Leases the ports of a unit, for as long as this process lives.
pub(super) fn lease_ports(world: &World, bundle: &Bundle) -> Result<Option<PortBlock>, Stopped> {
    if bundle.ports == 0 {
        return Ok(None);
    }
    let cache = world.own_cache().ok_or_else(no_home)?;
    let lease = PortBlock::lease(&cache.join("ports"), bundle.ports)?;
    let none = || {
        Diagnostic::error("work/ports", format!("no {} ports in a row are free", bundle.ports))
            .help("end the programs that listen on ports from 20000 on, or ask for fewer: `workspace.ports`")
    };
    Ok(Some(lease.ok_or_else(none)?))
}

/// The surroundings of a run in a workspace.
pub(super) fn in_workspace(
    world: &World,
    (workspace, folder): (&Workspace, &Path),
    ports: Option<&PortBlock>,
    try_number: Option<u32>,
) -> World {
    let mut variables = vec![("FORKHESTRA_WORKSPACE", workspace.top.clone().into_os_string()), parked_variable(folder)];
    variables.extend(try_number.map(|number| ("FORKHESTRA_TRY", number.to_string().into())));
    variables.extend(ports.map(|ports| ("FORKHESTRA_PORT", ports.first.to_string().into())));
    world.with_variables(&variables)
}

pub(super) fn no_hub(path: &Path) -> Diagnostic {
    Diagnostic::error("work/no-hub", format!("there is no hub at {}", path.display()))
        .help("a project's hub is its .forkhestra/hub.git; the first `forkhestra task run --jobs N` creates it")
}

pub(super) fn no_home() -> Diagnostic {
    Diagnostic::error("work/workspaces", "there is no directory for workspaces: HOME is not set")
        .help("set HOME or XDG_CACHE_HOME, or the key `workspace.root` of the config")
}
