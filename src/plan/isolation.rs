//! What stands between a step's program and the machine: the words of `wrap`, and the sandbox as a command line of bubblewrap
//! (bwrap(1)).

use super::context::{Context, Faults, LONGEST_PATH, path_of};
use super::{EnvDelta, errors};
use crate::agent::{find_all_on_path, find_command};
use crate::chain::{self, Sandbox};
use crate::prompt::{Late, Segment, Vars, expand_config, text};
use crate::source::{Kind, Place, Text};
use std::path::{Path, PathBuf};

/// The program of the sandbox.
const BUBBLEWRAP: &str = "bwrap";

/// Where sockets of services and of other programs are, by which a sandbox would be left.
const SOCKETS: [&str; 2] = ["/tmp", "/run"];

/// By what root, even without any capability, tells the kernel what to run (core(5), proc(5)).
const KERNEL: [&str; 5] = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"];

/// What has to be seen of `/run`: how names of hosts are found, and the programs of NixOS.
const NEEDED_OF_RUN: [&str; 5] = [
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
    "/run/current-system",
    "/run/wrappers",
];

/// What in the project acts by itself, so that a program in the sandbox may not change it: our config, and our own files.
const READ_ONLY: [&str; 2] = ["forge", ".forkhestra"];

/// What stands before a step's command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedIsolation {
    /// The program that is started instead of the step's own.
    pub program: PathBuf,
    /// Its arguments; the step's program and its arguments follow.
    pub argv: Vec<Vec<Segment>>,
    /// The sandbox, if it is one.
    pub sandbox: Option<Sandboxed>,
}

/// A sandbox as it is planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandboxed {
    /// Which one.
    pub profile: Sandbox,
    /// The program that makes it.
    pub bubblewrap: PathBuf,
    /// The paths that can be written, beside the project and a temporary folder of its own.
    pub writable: Vec<PathBuf>,
}

impl Sandboxed {
    /// For people.
    #[must_use]
    pub fn words(&self) -> String {
        let network = if self.profile == Sandbox::Offline { "no network" } else { "the network is open" };
        let mut writes = vec!["the project".to_string(), "a private /tmp".into()];
        writes.extend(self.writable.iter().map(|path| path.display().to_string()));
        format!("{} (bubblewrap): writes {}; {network}", self.profile.name(), writes.join(", "))
    }
}

/// What an agent's or a check's own keys, its backend's and the config's say, the nearest first. `theirs` says whether the project has a
/// say in what the step runs.
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
    // What the user excepts is the user's own, and not what the project makes of it.
    if let Some((_, place)) = chosen.filter(|(_, place)| sandbox < demanded && (is_project(place) || theirs)) {
        faults.0.push(errors::sandbox_is_lifted(place, sandbox, demanded));
    }
    let mut writable: Vec<&Text> = levels.iter().rev().flat_map(|level| &level.writable).collect();
    if demanded > Sandbox::Off {
        let opened = writable.iter().filter(|path| is_project(&path.at));
        faults.0.extend(opened.map(|path| errors::sandbox_is_opened(&path.at, &path.value)));
    }
    writable.dedup();
    // A chain of the project does not fill in what the user's own config leaves open.
    let none = Vars::default();
    let vars_of = |text: &Text| if is_project(&text.at) { &context.vars } else { &none };
    let writable: Vec<PathBuf> = writable
        .into_iter()
        .filter_map(|path| {
            let value = faults.many(expand_config(path, vars_of(path), context.env))?;
            Some(path_of(&value, &path.at.source.base, context.env))
        })
        .collect();

    // What the user's own config puts before every command stays, whatever a project adds.
    let wrap = levels.iter().find_map(|level| level.wrap.as_ref());
    let is_theirs = wrap.is_none_or(|words| words.first().is_none_or(|word| is_project(&word.at)));
    let outermost = own.wrap.iter().filter(|own| is_theirs && wrap != Some(*own)).flatten();
    let mut words = Vec::new();
    for word in outermost.chain(wrap.into_iter().flatten()) {
        words.extend(faults.many(expand_config(word, vars_of(word), context.env)).map(|value| (value, word)));
    }
    // It would stand outside of the sandbox.
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
        // What a link names is protected, and the link itself is not: whoever writes the project could put another in its place.
        let links = [".git", "forge", ".forkhestra"].map(|name| context.request.root.join(name));
        faults.0.extend(
            links.iter().filter(|path| context.files.is_link(path)).map(|path| errors::link_in_the_sandbox(at, path)),
        );
        let place = chosen.map_or(at, |(_, place)| place);
        // One in a folder of the project may be an agent's.
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

/// Variables that the loader of bubblewrap itself would heed (ld.so(8)): what stands before the command has the same environment.
pub(super) fn check_environment(isolation: Option<&PlannedIsolation>, env: &EnvDelta, at: &Place, faults: &mut Faults) {
    let is_loaders = |name: &str| name.starts_with("LD_") || name == "GLIBC_TUNABLES" || name == "GCONV_PATH";
    if isolation.is_some() {
        let names = env.set.iter().map(|(name, _)| name.as_str()).filter(|name| is_loaders(name));
        faults.0.extend(names.map(|name| errors::loader_variable(at, name)));
    }
}

/// The arguments of bubblewrap up to the command. A later one wins over an earlier one on the same path.
fn bubblewrap_words(context: &Context<'_>, sandbox: &Sandboxed, program: Option<&Path>) -> Vec<Vec<Segment>> {
    let root = context.request.root;
    let mut words = Words(Vec::new());
    // Whoever kills bubblewrap kills all: its program is the first process of a PID namespace (pid_namespaces(7)).
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
    // What is run stays where it is, in whatever folder.
    let run = [Some(context.request.own_program), program];
    for path in run.into_iter().flatten().filter(|path| SOCKETS.iter().any(|folder| path.starts_with(folder))) {
        words.bind("--ro-bind", path);
    }
    words.bind("--bind", root);
    let (git, is_file) = git_folder(context);
    if is_file {
        // Who could rewrite it would have any folder opened by the next run.
        words.bind("--ro-bind-try", &root.join(".git"));
    }
    if let Some(git) = git {
        // A folder that something is mounted on cannot be moved away.
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

/// The folder of the repository that the project is in, and whether `.git` is a file: then it is that of a linked working tree, whose
/// common folder is believed only when it names the working tree back (gitrepository-layout(5)).
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

/// The path without `..`, which may not cross links: git writes it without them.
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

/// Words of a command.
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
