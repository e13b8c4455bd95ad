//! The diagnostics of batches.

use crate::source::{Diagnostic, Text, counted};
use std::path::Path;

pub(super) fn no_repository(root: &Path) -> Diagnostic {
    Diagnostic::error("batch/no-repository", format!("{} is in no git repository", root.display()))
        .help("workspaces are made from commits: git init && git add -A && git commit -m begin; or leave out --jobs")
}

pub(super) fn no_commit() -> Diagnostic {
    Diagnostic::error("batch/no-commit", "the repository has no commit")
        .help("workspaces are made from a commit: git add -A && git commit -m begin")
}

pub(super) fn uncommitted(files: &[String]) -> Diagnostic {
    let shown: Vec<&str> = files.iter().take(5).map(String::as_str).collect();
    let more = if files.len() > 5 { format!(" and {} more", files.len() - 5) } else { String::new() };
    Diagnostic::error("batch/uncommitted", format!("uncommitted changes: {}{more}", shown.join(", ")))
        .help("commit them, or include them in the workspaces: --with-changes")
}

pub(super) fn not_in_objects(paths: &[String]) -> Diagnostic {
    Diagnostic::error("batch/incomplete", format!("a workspace would lack: {}", paths.join(", ")))
        .help("submodules and files of Git LFS are not part of a commit. Work on these tasks without --jobs")
}

pub(super) fn old_git(version: &str) -> Diagnostic {
    Diagnostic::error("batch/git", format!("{version} is too old"))
        .help("merging without a working tree needs git 2.38")
}

pub(super) fn waits_outside(task: &str, before: &[&str]) -> Diagnostic {
    let (are, those) = if before.len() == 1 { ("is", "that task") } else { ("are", "those tasks") };
    let before = before.join(", ");
    Diagnostic::error("batch/waits", format!("task {task} waits for {before}, which {are} not in the batch"))
        .help(format!("name {those}, too, or leave out the tasks to work on all of them"))
}

pub(super) fn no_check(chain: &str) -> Diagnostic {
    Diagnostic::error(
        "batch/no-check",
        format!("the chain `{chain}` has no check, so nothing could be verified before it lands"),
    )
    .help("add a check to the chain, such as `test`, or land without verification: --unverified")
}

pub(super) fn no_landing_check() -> Diagnostic {
    Diagnostic::error("batch/no-check", "`landing.checks` names no check, so nothing could be verified before it lands")
        .help("name a check in `landing.checks`, remove the key to use the checks of the chain, or land without verification: --unverified")
}

pub(super) fn unknown_landing_check(text: &Text, near: Option<&str>) -> Diagnostic {
    let help = near.map_or_else(|| "configure it in `checks`".into(), |near| format!("did you mean `{near}`?"));
    Diagnostic::error("check/unknown", format!("no check is named `{}`", text.value))
        .at(&text.at, "unknown check")
        .help(format!("{help}{} `forkhestra list` shows the checks", if near.is_some() { "" } else { ";" }))
}

pub(super) fn no_judge(chain: &str) -> Diagnostic {
    Diagnostic::error(
        "batch/no-judge",
        format!("the chain `{chain}` has no judge, so nobody could choose one of several tries"),
    )
    .help("add a judge to the chain, such as `reviewer`, or leave out --tries")
}

pub(super) fn unused_backend(chain: &str, backend: &str) -> Diagnostic {
    Diagnostic::error("batch/unused-backend", format!("no agent of the chain `{chain}` would use {backend}"))
        .help("its agents have a `command` or a `backend` of their own. Remove that, or use a number: --tries 3")
}

pub(super) fn line_apart(commits: usize, branch: &str) -> Diagnostic {
    Diagnostic::error(
        "batch/apart",
        format!("`{branch}` lacks {} of earlier batches, and has changed since", counted(commits, "landed commit")),
    )
    .help("merge them first: git fetch .forkhestra/hub.git forkhestra/line && git merge FETCH_HEAD")
}

pub(super) fn shared_line_apart(hub: &str, commits: usize) -> Diagnostic {
    Diagnostic::error(
        "batch/apart",
        format!("{} here and those of the hub {hub} are not in one line", counted(commits, "landed commit")),
    )
    .help(
        "keep them in a branch, then start again in a fresh clone: \
         git fetch .forkhestra/hub.git forkhestra/line && git branch landed FETCH_HEAD",
    )
}

pub(super) fn shared_line_moved(hub: &str) -> Diagnostic {
    Diagnostic::error("batch/apart", format!("somebody has pushed to forkhestra/line of the hub {hub} meanwhile"))
        .help("start the batch again; it continues with what is left")
}

pub(super) fn no_thread(error: &std::io::Error) -> Diagnostic {
    Diagnostic::error("run/failed", format!("cannot start a thread: {error}"))
        .help("the system may have reached its limit of processes: see `ulimit -u`")
}

pub(super) fn own_task(id: &str) -> Diagnostic {
    Diagnostic::error("task/clash", format!("this project has a task {id} of its own, and the hub has another one"))
        .help("work on the hub's tasks in a clone of its own, or delete yours: forkhestra task delete ID")
}

pub(super) fn taken(hub: &str, holder: &str) -> Diagnostic {
    Diagnostic::error("hub/taken", format!("{holder} works on the tasks of the hub {hub}"))
        .help("--wait waits until it ends, and takes over if it has been silent for two minutes")
}

pub(super) fn overtaken(run: i64, hub: &str) -> Diagnostic {
    Diagnostic::error("hub/overtaken", format!("another batch has landed work in the hub {hub} since run {run} ended"))
        .help(format!("start a new batch, which continues with what is left: forkhestra task run --jobs N --hub {hub}"))
}

pub(super) fn workspace_path(text: &Text, why: &str) -> Diagnostic {
    Diagnostic::error("batch/workspace-path", format!("`{}` {why}", text.value))
        .at(&text.at, "is named here")
        .help("`copy` and `share` name files and directories of this project that git ignores, such as `.env`")
}

pub(super) fn not_a_name(text: &Text, what: &str) -> Diagnostic {
    Diagnostic::error("batch/needs", format!("`{}` is not {what}", text.value)).at(&text.at, "here")
}

pub(super) fn machine_lacks(missing: &[String]) -> Diagnostic {
    Diagnostic::error("batch/needs", format!("this machine lacks {}", missing.join(", ")))
        .help("the config says that the work needs it: `workspace.needs`. Install or set it, or use other machines: --on ENGINE")
}

pub(super) fn workspaces_inside(folder: &Path, top: &Path) -> Diagnostic {
    Diagnostic::error(
        "batch/workspace-root",
        format!("the directory of the workspaces, {}, is inside of the repository {}", folder.display(), top.display()),
    )
    .help("tools such as cargo and node would find the project around a workspace: set `workspace.root` to a directory outside of it")
}

pub(super) fn not_a_check(text: &Text) -> Diagnostic {
    Diagnostic::error("landing/check", format!("`{}` is an agent, not a check", text.value))
        .at(&text.at, "is named here")
        .help("`landing.checks` names checks; `forkhestra list` shows them")
}

pub(super) fn never_began(run: i64) -> Diagnostic {
    Diagnostic::error("resume/empty", format!("batch {run} was interrupted before it started")).help("start a new one")
}

pub(super) fn no_hub(root: &Path) -> Diagnostic {
    Diagnostic::error("batch/no-hub", format!("there is no hub in {}/.forkhestra", root.display()))
        .help("without it the work of the batch is gone; start a new one")
}

pub(super) fn unknown_engine(name: &str, near: Option<&str>, known: &[&str]) -> Diagnostic {
    let known = format!("engines: {}", known.join(", "));
    let help = near.map_or_else(|| known.clone(), |near| format!("did you mean `{near}`? {known}"));
    Diagnostic::error("engine/unknown", format!("there is no engine `{name}`")).help(help)
}

pub(super) fn engine_without_work(program: &Text) -> Diagnostic {
    Diagnostic::error(
        "engine/no-work",
        "the job would not know its work: `submit` contains neither ${WORK} nor ${UNIT}",
    )
    .at(&program.at, "this command")
    .help("${WORK} is replaced by the command line that the job has to run")
}

pub(super) fn hub_is_relative(hub: &Text) -> Diagnostic {
    Diagnostic::error("engine/hub", format!("`{}` is neither a URL nor an absolute path", hub.value))
        .at(&hub.at, "the hub")
        .help("a job begins in another directory: begin the path with a slash")
}

pub(super) fn engine_without_files(engine: &str, hub: &str, needed: &[&str]) -> Diagnostic {
    Diagnostic::error(
        "engine/files",
        format!("workspaces on other machines would lack {}, which git ignores", needed.join(", ")),
    )
    .help(format!(
        "the hub is reached as {hub}, without this project. Put these files into a directory of the other machines, and name it: `engines.{engine}.files`"
    ))
}

pub(super) fn secret_would_travel(what: &str, variable: &str) -> Diagnostic {
    Diagnostic::error(
        "engine/secret",
        format!("{what} contains the value of {variable}, which would be stored on other machines"),
    )
    .help("refer to the variable by its name, and set it on those machines")
}
