//! Finds and reads the config layers, for all commands.

use crate::agent::BUILT_IN_CHECKS;
use crate::chain::{Config, LayerKind, LayerSource, PROJECT_FILES, add_discovered_agents, load};
use crate::cli::options::Common;
use crate::cli::owners::strangers;
use crate::source::{Diagnostic, Files, Kind, Source, sha256};
use crate::world::World;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The built-in backends, engines and chains.
const BUILT_IN: [&str; 3] = [
    include_str!("../../forge/backends.json"),
    include_str!("../../forge/engines.json"),
    include_str!("../../forge/chains.json"),
];
/// The largest config file that is read, in bytes; `chain` has the exact limit.
const LARGEST: u64 = 2 << 20;

/// The project that a command works on, and its config.
#[derive(Debug, Clone)]
pub(super) struct Project {
    /// The base of paths on the command line: the shell's working directory, or `--cwd`.
    pub(super) shell: PathBuf,
    /// The project's root, in which runs work.
    pub(super) root: PathBuf,
    /// The config, merged from all layers.
    pub(super) config: Config,
    /// The digest of the project's own config file; `None` if it has none.
    pub(super) digest: Option<String>,
    /// The program and the arguments that prepare the workspace in which a run works; empty for none.
    pub(super) setup: Vec<String>,
    /// The judge that chooses one of several tries at a task, in a run that does this.
    pub(super) chooser: Option<String>,
}

impl Project {
    /// The project as the run sees it in which this judge chooses one of several tries at a task.
    pub(super) fn with_chooser(&self, judge: Option<String>) -> Self {
        Self { chooser: judge, setup: Vec::new(), ..self.clone() }
    }
}

/// The base of paths on the command line: the shell's working directory, or `--cwd`.
pub(super) fn shell(world: &World, common: &Common) -> PathBuf {
    common.cwd.as_ref().map_or_else(|| world.cwd().to_path_buf(), |folder| world.canonical(folder))
}

/// Finds the root and reads the layers. Never fails: the config collects all errors.
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
    // The repository counts only if its top is the root, or if the config was found by searching upward in it.
    let decides = repository.filter(|folder| *folder == root || root != shell);
    faults.extend(strangers(world, &root, decides));
    let own = sources.iter().find(|layer| layer.kind == LayerKind::Project);
    let digest = own.map(|layer| sha256(layer.source.text.as_bytes()));
    let mut config = load(&sources);
    add_discovered_agents(&mut config, &root, world, &BUILT_IN_CHECKS);
    faults.extend(root.to_str().is_none().then(|| no_utf8(&root)));
    config.faults.extend(faults);
    Project { shell, root, config, digest, setup: common.setup.clone(), chooser: common.chooser.clone() }
}

/// Reads one file on top of the built-in layer, instead of the other layers.
pub(super) fn single(world: &World, shell: &Path, path: &Path) -> Config {
    let path = shell.join(path);
    // The config of a project is in `forge/`, and its paths start at the directory above.
    let folder = path.parent().unwrap_or(shell);
    let base = if folder.ends_with("forge") { folder.parent().unwrap_or(folder) } else { folder };
    match read(world, &path, shell, base) {
        Ok(Some(source)) => {
            let [backends, engines, chains] = built_in(base);
            load(&[backends, engines, chains, LayerSource { kind: LayerKind::Project, source }])
        }
        Ok(None) => Config { faults: vec![missing(&path)], ..Config::default() },
        Err(fault) => Config { faults: vec![fault], ..Config::default() },
    }
}

fn built_in(root: &Path) -> [LayerSource; 3] {
    BUILT_IN.map(|text| LayerSource { kind: LayerKind::BuiltIn, source: Source::new("built-in", text, root) })
}

/// The nearest directory with a config, from here up to the top of the repository. Without one, or outside a
/// repository, the current directory: anybody may own the directories above.
fn find_root(files: &dyn Files, shell: &Path, repository: Option<&Path>) -> PathBuf {
    let holds_config = |folder: &&Path| PROJECT_FILES.iter().any(|file| files.kind(&folder.join(file)).is_ok());
    let mut inside = shell.ancestors().take_while(|folder| repository.is_some_and(|top| folder.starts_with(top)));
    inside.find(holds_config).unwrap_or(shell).to_path_buf()
}

/// The top of the repository around a directory. An empty `.git` does not count: a killed sandbox leaves one behind.
fn find_repository<'a>(files: &dyn Files, shell: &'a Path) -> Option<&'a Path> {
    // A worktree's `.git` is a file.
    let is_one = |folder: &&Path| match files.kind(&folder.join(".git")) {
        Ok(Kind::Folder) => files.kind(&folder.join(".git/HEAD")).is_ok(),
        Ok(_) => true,
        Err(_) => false,
    };
    shell.ancestors().find(is_one)
}

/// Reads a config file; `None` if it does not exist.
fn read(files: &dyn Files, path: &Path, shell: &Path, base: &Path) -> Result<Option<Arc<Source>>, Diagnostic> {
    match files.kind(path) {
        Ok(Kind::File { bytes, .. }) if bytes > LARGEST => return Err(unreadable(path, "it is larger than 1 MiB")),
        Ok(Kind::Folder) => return Err(unreadable(path, "it is a directory")),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        _ => {}
    }
    let bytes = files.read(path).map_err(|error| unreadable(path, &error.to_string()))?;
    let text = String::from_utf8(bytes)
        .map_err(|error| unreadable(path, &format!("it is not UTF-8 (byte {})", error.utf8_error().valid_up_to())))?;
    let name = path.strip_prefix(shell).unwrap_or(path).display().to_string();
    Ok(Some(Source::new(name, text.strip_prefix('\u{feff}').unwrap_or(&text), base)))
}

fn missing(path: &Path) -> Diagnostic {
    Diagnostic::error("config/unreadable", format!("there is no config {}", path.display()))
        .help("check the path; `forkhestra init` writes forge/chains.json")
}

fn unreadable(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("config/unreadable", format!("cannot read the config {}: {why}", path.display()))
        .help("fix it, or move it away; `forkhestra init` writes a new one")
}

/// The root must be UTF-8, because agents get paths in it as text.
fn no_utf8(root: &Path) -> Diagnostic {
    Diagnostic::error("config/root", format!("the path of this directory is not UTF-8: {}", root.display()))
        .help("rename the part that is not")
}

fn two_configs(first: &Path, second: &Path) -> Diagnostic {
    Diagnostic::error("config/two", format!("there are two configs: {} and {}", first.display(), second.display()))
        .help("keep one of them")
}

/// Reports a working directory that does not exist or is not a directory.
pub(super) fn no_folder(world: &World, common: &Common) -> Option<Diagnostic> {
    let shell = shell(world, common);
    let message = format!("the working directory {} does not exist or is not a directory", shell.display());
    let found = matches!(world.kind(&shell), Ok(Kind::Folder));
    (!found).then(|| Diagnostic::error("config/folder", message).help("name an existing directory with --cwd (-C)"))
}
