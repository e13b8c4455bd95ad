//! The command that a step's program is wrapped in: the arguments of `wrap`, and the sandbox as a bubblewrap command
//! line (bwrap(1)).

use super::context::{Context, Faults, LONGEST_PATH, path_of};
use super::{EnvDelta, errors};
use crate::agent::{find_all_on_path, find_command};
use crate::chain::{self, Sandbox};
use crate::prompt::{Late, Segment, Vars, expand_config, text};
use crate::source::{Kind, Place, Text};
use std::path::{Path, PathBuf};

/// The program that creates the sandbox.
const BUBBLEWRAP: &str = "bwrap";

/// Where the sockets of services and other programs are. Through them a program could leave the sandbox.
const SOCKETS: [&str; 2] = ["/tmp", "/run"];

/// Paths through which root, even without capabilities, controls the kernel (core(5), proc(5)).
const KERNEL: [&str; 5] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"];

/// The parts of `/run` that must stay visible: host name resolution, and the programs of NixOS.
const NEEDED_OF_RUN: [&str; 5] = [
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
    "/run/current-system",
    "/run/wrappers",
];

/// The directories of the project that a sandboxed program may not change, because later runs read them: the config,
/// and forkhestra's own files.
const READ_ONLY: [&str; 2] = ["forge", ".forkhestra"];

/// The command that a step's program is wrapped in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedIsolation {
    /// The program that is started instead of the step's own.
    pub program: PathBuf,
    /// The arguments of that program. The step's program and its arguments follow them.
    pub argv: Vec<Vec<Segment>>,
    /// The sandbox, if there is one.
    pub sandbox: Option<Sandboxed>,
}

/// A planned sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandboxed {
    /// The kind of sandbox.
    pub profile: Sandbox,
    /// The path of bubblewrap.
    pub bubblewrap: PathBuf,
    /// The paths that can be written, in addition to the project and a private temporary directory.
    pub writable: Vec<PathBuf>,
}

impl Sandboxed {
    /// Returns a description for display.
    #[must_use]
    pub fn words(&self) -> String {
        let network = if self.profile == Sandbox::Offline { "no network" } else { "the network is open" };
        let mut writes = vec!["the project".to_string(), "a private /tmp".into()];
        writes.extend(self.writable.iter().map(|path| path.display().to_string()));
        format!("{} (bubblewrap): can write to {}; {network}", self.profile.name(), writes.join(", "))
    }
}

/// Resolves the isolation keys of the agent or check, its backend and the config, in `levels`, the nearest first.
/// `theirs` says whether the project's config can change what the step runs.
pub(super) fn isolate(
    context: &Context<'_>,
    levels: &[&chain::Isolation],
    run: Option<&Path>,
    (at, theirs): (&Place, bool),
    faults: &mut Faults,
) -> Option<PlannedIsolation> {
    let config = context.request.config;
    let own = &config.own_isolation;
    let is_project = |place: &Place| config.is_project(place);
    let demanded = config.demanded_sandbox();
    let chosen = levels.iter().find_map(|level| level.sandbox.as_ref());
    let sandbox = chosen.map_or(Sandbox::Off, |(sandbox, _)| *sandbox);
    // An exception counts only if the user makes it, and if the project's config cannot change what the step runs.
    if let Some((_, place)) = chosen.filter(|(_, place)| sandbox < demanded && (is_project(place) || theirs)) {
        faults.0.push(errors::sandbox_is_lifted(place, sandbox, demanded));
    }
    let mut writable: Vec<&Text> = levels.iter().rev().flat_map(|level| &level.writable).collect();
    if demanded > Sandbox::Off {
        let opened = writable.iter().filter(|path| is_project(&path.at));
        faults.0.extend(opened.map(|path| errors::sandbox_is_opened(&path.at, &path.value)));
    }
    writable.dedup();
    // A project's chain must not fill in variables that the user's own config leaves open.
    let none = Vars::default();
    let vars_of = |text: &Text| if is_project(&text.at) { &context.vars } else { &none };
    let writable: Vec<PathBuf> = writable
        .into_iter()
        .filter_map(|path| {
            let value = faults.many(expand_config(path, vars_of(path), context.env))?;
            Some(path_of(&value, &path.at.source.base, context.env))
        })
        .collect();

    // The user's own `wrap` for all commands stays, whatever a project adds.
    let wrap = levels.iter().find_map(|level| level.wrap.as_ref());
    let is_theirs = wrap.is_none_or(|words| words.first().is_none_or(|word| is_project(&word.at)));
    let outermost = own.wrap.iter().filter(|own| is_theirs && wrap != Some(*own)).flatten();
    let mut words = Vec::new();
    for word in outermost.chain(wrap.into_iter().flatten()) {
        words.extend(faults.many(expand_config(word, vars_of(word), context.env)).map(|value| (value, word)));
    }
    // A project's wrapper would run outside the sandbox.
    if let Some((value, word)) = words.iter().find(|(_, word)| demanded > Sandbox::Off && is_project(&word.at)) {
        faults.0.push(errors::wrap_outside_the_sandbox(&word.at, value));
    }
    let mut command: Vec<Vec<Segment>> = words.iter().skip(1).map(|(value, _)| text(value.as_str())).collect();
    let mut program = words.first().and_then(|(value, word)| {
        let found = find_command(value, &word.at.source.base, &word.at, context.files, context.env);
        faults.one(found)
    });
    let mut sandboxed = None;
    if sandbox > Sandbox::Off {
        // The target of a link is protected, but the link itself is not: a program that may write to the project could
        // replace it.
        let links = [".git", "forge", ".forkhestra"].map(|name| context.request.root.join(name));
        faults.0.extend(
            links.iter().filter(|path| context.files.is_link(path)).map(|path| errors::link_in_the_sandbox(at, path)),
        );
        let place = chosen.map_or(at, |(_, place)| place);
        // A `bwrap` in a directory of the project may come from an agent.
        let mut found = find_all_on_path(BUBBLEWRAP, context.files, context.env);
        found.retain(|path| !path.starts_with(context.request.root));
        let found = found.into_iter().next();
        let bubblewrap = faults.one(found.ok_or_else(|| errors::no_bubblewrap(place, sandbox)))?;
        match program {
            None => program = Some(bubblewrap.clone()),
            Some(_) => command.push(text(bubblewrap.display().to_string())),
        }
        let made = Sandboxed { profile: sandbox, bubblewrap, writable };
        command.extend(bubblewrap_words(context, &made, run));
        sandboxed = Some(made);
    }
    Some(PlannedIsolation { program: program?, argv: command, sandbox: sandboxed })
}

/// Reports variables that bubblewrap's own loader would read (ld.so(8)): the wrapper has the same environment.
pub(super) fn check_environment(isolation: Option<&PlannedIsolation>, env: &EnvDelta, at: &Place, faults: &mut Faults) {
    let is_loaders = |name: &str| name.starts_with("LD_") || name == "GLIBC_TUNABLES" || name == "GCONV_PATH";
    if isolation.is_some() {
        let names = env.set.iter().map(|(name, _)| name.as_str()).filter(|name| is_loaders(name));
        faults.0.extend(names.map(|name| errors::loader_variable(at, name)));
    }
}

/// Returns the arguments of bubblewrap up to the command. On the same path, later ones override earlier ones.
fn bubblewrap_words(context: &Context<'_>, sandbox: &Sandboxed, program: Option<&Path>) -> Vec<Vec<Segment>> {
    let root = context.request.root;
    let mut words = Words(Vec::new());
    // Killing bubblewrap kills everything: its program is the first process of a PID namespace (pid_namespaces(7)).
    words.flags(&["--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]);
    words.flags(&["--unshare-cgroup-try", "--cap-drop", "ALL"]);
    if sandbox.profile == Sandbox::Offline {
        words.flags(&["--unshare-net"]);
    }
    words.flags(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    for path in KERNEL.map(Path::new) {
        words.bind("--ro-bind-try", path);
    }
    for folder in SOCKETS {
        words.flags(&["--tmpfs", folder]);
    }
    for path in NEEDED_OF_RUN.map(Path::new) {
        words.bind("--ro-bind-try", path);
    }
    // The programs that run must stay visible, even in a directory that is hidden above.
    let run = [Some(context.request.own_program), program];
    for path in run.into_iter().flatten().filter(|path| SOCKETS.iter().any(|folder| path.starts_with(folder))) {
        words.bind("--ro-bind", path);
    }
    words.bind("--bind", root);
    let (git, is_file) = git_folder(context);
    if is_file {
        // A program that could rewrite this file could make the next run open any directory.
        words.bind("--ro-bind-try", &root.join(".git"));
    }
    if let Some(git) = git {
        // A directory that is a mount point cannot be moved away.
        words.bind("--bind", &git);
        for name in ["config", "config.worktree"] {
            words.bind("--ro-bind-try", &git.join(name));
        }
        let hooks = git.join("hooks");
        match context.files.kind(&hooks) {
            Ok(_) => words.bind("--ro-bind", &hooks),
            Err(_) => words.flags(&["--tmpfs", &hooks.display().to_string()]),
        }
    }
    for name in READ_ONLY {
        words.bind("--ro-bind-try", &root.join(name));
    }
    for path in &sandbox.writable {
        words.bind("--bind-try", path);
    }
    let attempt = vec![Segment::Late(Late::Folder)];
    words.0.extend([text("--bind"), attempt.clone(), attempt]);
    words.flags(&["--setenv", "TMPDIR", "/tmp", "--chdir"]);
    words.0.push(text(root.display().to_string()));
    words.flags(&["--"]);
    words.0
}

/// Returns the directory of the project's repository, and whether `.git` is a file. Then the project is a linked
/// working tree, whose common directory is trusted only if it names the working tree in return
/// (gitrepository-layout(5)).
fn git_folder(context: &Context<'_>) -> (Option<PathBuf>, bool) {
    let files = context.files;
    let mut found = context.request.root.ancestors().map(|folder| folder.join(".git"));
    let Some((git, kind)) = found.find_map(|path| files.kind(&path).ok().map(|kind| (path, kind))) else {
        return (None, false);
    };
    if matches!(kind, Kind::Folder) {
        return (Some(git), false);
    }
    let line = |path: &Path, prefix: &str| {
        let bytes = files.head(path, LONGEST_PATH).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim().to_string();
        Some(PathBuf::from(text.strip_prefix(prefix)?.trim()))
    };
    let base = git.parent().unwrap_or(Path::new("/"));
    let common = || {
        let own = plain(&base.join(line(&git, "gitdir:")?));
        let common = plain(&own.join(line(&own.join("commondir"), "")?));
        let names_back = line(&own.join("gitdir"), "").is_some_and(|back| plain(&own.join(back)) == git);
        let is_repository = ["HEAD", "objects", "refs"].iter().all(|name| files.kind(&common.join(name)).is_ok());
        (names_back && is_repository && own.starts_with(common.join("worktrees"))).then_some(common)
    };
    (common(), true)
}

/// Resolves `..` in a path. It must not cross links; git writes such paths without them.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// The arguments of a command.
struct Words(Vec<Vec<Segment>>);

impl Words {
    fn flags(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(|word| text(*word)));
    }

    fn bind(&mut self, how: &str, path: &Path) {
        let path = path.display().to_string();
        self.0.extend([text(how), text(path.as_str()), text(path)]);
    }
}
