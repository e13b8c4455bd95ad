//! The demo of several tasks at once: a small project with six tasks, and a scripted agent that works on them. Two
//! tasks edit the same line, and two others pass their check alone but fail it together.

#![expect(clippy::disallowed_methods, reason = "an agent, not the runner: it works in its own directory")]

use crate::world::World;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// How long a task waits for the one that it should collide with.
const RENDEZVOUS: Duration = Duration::from_secs(5);

/// The tasks: ID, title, and the task that must have landed before.
const TASKS: [(&str, &str, Option<&str>); 6] = [
    ("world", "Greet the world in the file title", None),
    ("joy", "Greet with joy in the file title", None),
    ("rename", "Rename the function say to tell", None),
    ("goodbye", "Add bye.sh, which says goodbye", None),
    ("french", "Add a greeting in French", None),
    ("german", "Add a greeting in German", Some("french")),
];

/// The files of the project.
const FILES: [(&str, &str); 6] = [
    ("title", "hello\n"),
    ("lib.sh", "say() { echo \"$1\"; }\n"),
    ("greet.sh", ". ./lib.sh\nfor file in title words/*; do\n    say \"$(cat \"$file\")\"\ndone\n"),
    ("words/english", "good morning\n"),
    (
        "test.sh",
        "! grep '<<<<<<<' title || exit 1\nfor script in greet.sh bye.sh; do\n    [ ! -e $script ] || sh -eu $script || exit 1\ndone\n",
    ),
    (".gitignore", ".forkhestra/\n"),
];

/// Makes the project, works on its tasks with three lanes, and brings the result into its branch.
pub(super) fn play(world: &World) -> io::Result<String> {
    let project = world.cwd().join("project");
    for (name, text) in FILES {
        let path = project.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&project))?;
        fs::write(path, text)?;
    }
    fs::create_dir_all(project.join("forge"))?;
    let config = serde_json::json!({
        "workspace": { "root": world.cwd().join("workspaces") },
        "agents": { "worker": { "command": [world.own_program(), "__demo", "worker"] } },
        "checks": { "test": { "run": "sh test.sh" } },
        "chains": { "task": "worker -> test" },
    });
    fs::write(project.join("forge/chains.json"), format!("{config:#}\n"))?;
    let git = Path::new("git");
    call(git, &["init", "--quiet", "--initial-branch=main"], &project)?;
    for (key, value) in [("user.name", "forkhestra demo"), ("user.email", "demo@localhost")] {
        call(git, &["config", key, value], &project)?;
    }
    call(git, &["add", "--all"], &project)?;
    call(git, &["commit", "--quiet", "--message", "A program that greets"], &project)?;
    let own = world.own_program();
    for (id, title, after) in TASKS {
        let after: Vec<&str> = after.into_iter().flat_map(|before| ["--after", before]).collect();
        call(own, &[&["--quiet", "task", "add", title, "--id", id], &after[..]].concat(), &project)?;
    }
    show(own, &["task", "run", "--jobs", "3"], &project)?;
    show(own, &["task", "land", "--into", "main"], &project)?;
    show(git, &["log", "--oneline", "--graph"], &project)?;
    Ok(format!("\nThe project is in {}.\n", project.display()))
}

/// A program that works in the project, where a person calls it, and not an agent.
fn command(program: &Path, words: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command.env_remove("FORKHESTRA_TOKEN").env_remove("FORKHESTRA_RESULT");
    command
}

/// Runs a program. What it prints is shown only if it fails.
fn call(program: &Path, words: &[&str], folder: &Path) -> io::Result<()> {
    let ran = command(program, words, folder).output()?;
    if ran.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr).trim().to_string();
    Err(io::Error::other(format!("`{}` failed: {said}", words.join(" "))))
}

/// Runs a program, with its command line and everything that it prints.
fn show(program: &Path, words: &[&str], folder: &Path) -> io::Result<()> {
    let name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    crate::report::print(&format!("\n$ {name} {}\n", words.join(" ")))?;
    let ours = || io::Result::Ok(Stdio::from(io::stdout().as_fd().try_clone_to_owned()?));
    let status = command(program, words, folder).stdout(ours()?).stderr(ours()?).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("`{}` failed", words.join(" ")))) }
}

/// Works on the task of its workspace.
pub(super) fn work(world: &World) -> io::Result<String> {
    let task = super::variable(world, "FORKHESTRA_TASK");
    match task.as_str() {
        "world" => edit_title(world, "world", "joy", "hello, world\n"),
        "joy" => edit_title(world, "joy", "world", "hello!\n"),
        "rename" => {
            meet(world, "rename", "goodbye")?;
            rename()
        }
        "goodbye" => {
            let name = function()?;
            meet(world, "goodbye", "rename")?;
            fs::write("bye.sh", format!(". ./lib.sh\n{name} goodbye\n"))?;
            Ok(format!("bye.sh calls {name}.\n"))
        }
        language => {
            let greeting = if language == "french" { "bonjour\n" } else { "guten Morgen\n" };
            fs::write(Path::new("words").join(language), greeting)?;
            Ok(format!("I added words/{language}.\n"))
        }
    }
}

/// Edits the title, or resolves its conflict so that both edits hold.
fn edit_title(world: &World, task: &str, other: &str, title: &str) -> io::Result<String> {
    if fs::read_to_string("title")?.contains("<<<<<<<") {
        fs::write("title", "hello, world!\n")?;
        return Ok("I kept both edits of the title.\n".into());
    }
    meet(world, task, other)?;
    fs::write("title", title)?;
    Ok("I edited the title.\n".into())
}

/// Renames the function wherever it is called.
fn rename() -> io::Result<String> {
    let mut names = Vec::new();
    for name in ["lib.sh", "greet.sh", "bye.sh"] {
        let Ok(text) = fs::read_to_string(name) else { continue };
        fs::write(name, text.replace("say(", "tell(").replace("say ", "tell "))?;
        names.push(name);
    }
    Ok(format!("I renamed say to tell in {}.\n", names.join(", ")))
}

/// The name of the function in lib.sh.
fn function() -> io::Result<String> {
    let text = fs::read_to_string("lib.sh")?;
    Ok(text.split('(').next().unwrap_or_default().to_string())
}

/// Waits until another task has begun, too, so that neither knows the other's work.
fn meet(world: &World, task: &str, other: &str) -> io::Result<()> {
    let workspace = PathBuf::from(super::variable(world, "FORKHESTRA_WORKSPACE"));
    let begun = |task: &str| workspace.with_file_name(format!("begun-{task}"));
    fs::write(begun(task), "")?;
    let (start, other) = (world.uptime(), begun(other));
    while !other.exists() && world.uptime().saturating_sub(start) < RENDEZVOUS {
        sleep(Duration::from_millis(10));
    }
    Ok(())
}
