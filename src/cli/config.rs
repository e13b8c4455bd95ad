//! Finding and reading the config layers, for all verbs.

use crate::chain::{Config, LayerKind, LayerSource, PROJECT_FILES, load};
use crate::cli::args::Common;
use crate::cli::owners::strangers;
use crate::source::{Diagnostic, Files, Kind, Source};
use crate::world::World;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The agent CLIs that we know, and our own chains.
const BUILT_IN: [&str; 2] = [include_str!("../../forge/backends.json"), include_str!("../../forge/chains.json")];
/// The largest file that is read at all; `chain` has the exact bound.
const LARGEST: u64 = 2 << 20;

/// Where we stand and what is configured there.
#[derive(Debug)]
pub(super) struct Project {
    /// The shell's folder, or `--cwd`: where paths on the command line start.
    pub(super) shell: PathBuf,
    /// The folder that the run works in.
    pub(super) root: PathBuf,
    /// All layers.
    pub(super) config: Config,
}

/// Where paths on the command line start: the shell's folder, or `--cwd`.
pub(super) fn shell(world: &World, common: &Common) -> PathBuf {
    common.cwd.as_ref().map_or_else(|| world.cwd().to_path_buf(), |folder| world.canonical(folder))
}

/// Finds the root and reads the layers. Never fails: every fault is in the config.
pub(super) fn project(world: &World, common: &Common) -> Project {
    let shell = shell(world, common);
    let repository = find_repository(world, &shell);
    let root = if common.cwd.is_some() { shell.clone() } else { find_root(world, &shell, repository) };
    let mut sources = built_in(&root).to_vec();
    let mut faults = Vec::new();
    let user = world.config_home().map(|home| home.join("forkhestra/chains.json"));
    let project = PROJECT_FILES.map(|file| root.join(file));
    let both = project.iter().all(|path| world.kind(path).is_ok());
    if both {
        faults.push(two_configs(&project[0], &project[1]));
    }
    let user = user.into_iter().map(|path| (LayerKind::User, path));
    for (kind, path) in user.chain(project.into_iter().map(|path| (LayerKind::Project, path))) {
        let base = match kind {
            LayerKind::User => path.parent().unwrap_or(&root),
            _ => &root,
        };
        match read(world, &path, &shell, base) {
            Ok(Some(source)) => sources.push(LayerSource { kind, source }),
            Ok(None) => {}
            Err(fault) => faults.push(fault),
        }
    }
    // A repository around a folder that nothing was found by has no say in it.
    let decides = repository.filter(|folder| *folder == root || root != shell);
    faults.extend(strangers(world, &root, decides));
    let mut config = load(&sources);
    faults.extend(root.to_str().is_none().then(|| no_utf8(&root)));
    config.faults.extend(faults);
    Project { shell, root, config }
}

/// Reads one file instead of the layers, on top of the built-in one.
pub(super) fn single(world: &World, shell: &Path, path: &Path) -> Config {
    let path = shell.join(path);
    // As the project's own it would stand in `forge/`, and its paths would start above that.
    let folder = path.parent().unwrap_or(shell);
    let base = if folder.ends_with("forge") { folder.parent().unwrap_or(folder) } else { folder };
    match read(world, &path, shell, base) {
        Ok(Some(source)) => {
            let [backends, chains] = built_in(base);
            load(&[backends, chains, LayerSource { kind: LayerKind::Project, source }])
        }
        Ok(None) => Config { faults: vec![unreadable(&path, "it does not exist")], ..Config::default() },
        Err(fault) => Config { faults: vec![fault], ..Config::default() },
    }
}

fn built_in(root: &Path) -> [LayerSource; 2] {
    BUILT_IN.map(|text| LayerSource { kind: LayerKind::BuiltIn, source: Source::new("built-in", text, root) })
}

/// The nearest folder upward, to the repository's root, that holds a config; without one, or outside a repository, where we
/// stand: what lies above may be anybody's.
fn find_root(files: &dyn Files, shell: &Path, repository: Option<&Path>) -> PathBuf {
    let holds_config = |folder: &&Path| PROJECT_FILES.iter().any(|file| files.kind(&folder.join(file)).is_ok());
    let mut inside = shell.ancestors().take_while(|folder| repository.is_some_and(|top| folder.starts_with(top)));
    inside.find(holds_config).unwrap_or(shell).to_path_buf()
}

/// The top of the repository around a folder. An empty `.git` is none: a sandbox that was killed leaves such.
fn find_repository<'a>(files: &dyn Files, shell: &'a Path) -> Option<&'a Path> {
    // A worktree's `.git` is a file.
    let is_one = |folder: &&Path| match files.kind(&folder.join(".git")) {
        Ok(Kind::Folder) => files.kind(&folder.join(".git/HEAD")).is_ok(),
        Ok(_) => true,
        Err(_) => false,
    };
    shell.ancestors().find(is_one)
}

/// A config file; none where there is none.
fn read(files: &dyn Files, path: &Path, shell: &Path, base: &Path) -> Result<Option<Arc<Source>>, Diagnostic> {
    match files.kind(path) {
        Ok(Kind::File { bytes, .. }) if bytes > LARGEST => return Err(unreadable(path, "it is larger than 1 MiB")),
        Ok(Kind::Folder) => return Err(unreadable(path, "it is a folder")),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        _ => {}
    }
    let bytes = files.read(path).map_err(|error| unreadable(path, &error.to_string()))?;
    let text = String::from_utf8(bytes)
        .map_err(|error| unreadable(path, &format!("it is not UTF-8 (byte {})", error.utf8_error().valid_up_to())))?;
    let name = path.strip_prefix(shell).unwrap_or(path).display().to_string();
    Ok(Some(Source::new(name, text.strip_prefix('\u{feff}').unwrap_or(&text), base)))
}

fn unreadable(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("config/unreadable", format!("cannot read the config {}: {why}", path.display()))
        .help("mend or remove it; `forkhestra init` writes a new one")
}

/// Agents are told paths in it as text.
fn no_utf8(root: &Path) -> Diagnostic {
    Diagnostic::error("config/root", format!("the path of this folder is not UTF-8: {}", root.display()))
        .help("rename the part of it that is not")
}

fn two_configs(first: &Path, second: &Path) -> Diagnostic {
    Diagnostic::error("config/two", format!("there are two configs: {} and {}", first.display(), second.display()))
        .help("keep one of them")
}

/// What is wrong with the folder to work in.
pub(super) fn no_folder(world: &World, common: &Common) -> Option<Diagnostic> {
    let shell = shell(world, common);
    let message = format!("the working directory {} is not a folder", shell.display());
    let found = matches!(world.kind(&shell), Ok(Kind::Folder));
    (!found).then(|| Diagnostic::error("config/folder", message).help("name an existing folder with --cwd (-C)"))
}
