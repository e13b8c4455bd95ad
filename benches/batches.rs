//! The overhead of a unit of work in addition to its agent, in trees of two sizes: `benches/run.sh --bench batches`.
//! The floor is a clone of the hub with its checkout, in the same run.

#![expect(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used, reason = "a bench, not the program")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Files of a tree, tasks of a batch, and how often it is measured.
const SIZES: [(usize, u32, usize); 2] = [(2_000, 8, 3), (100_000, 2, 1)];

fn main() {
    let program = std::env::var("FORKHESTRA_BENCH_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_forkhestra").into());
    println!("milliseconds per unit of work in addition to its agent, one lane");
    for (files, tasks, rounds) in SIZES {
        // In memory, where that is possible: on a disk, its write-back decides.
        let memory = Path::new("/dev/shm");
        let place = tempfile::tempdir_in(if memory.is_dir() { memory } else { Path::new(".") }).unwrap();
        let project = place.path().join("project");
        tree(&project, files);
        let batch = |tasks: u32| {
            for task in 0..tasks {
                call(&program, &["-q", "task", "add", &format!("Task {task}")], &project);
            }
            let began = Instant::now();
            call(&program, &["-q", "task", "run", "--jobs", "1", "--unverified"], &project);
            began.elapsed().as_secs_f64() * 1000.0
        };
        // The first batch makes the hub.
        batch(1);
        let (mut floor, mut one, mut all) = (f64::MAX, f64::MAX, f64::MAX);
        for _ in 0..rounds {
            floor = floor.min(checkout(&project.join(".forkhestra/hub.git"), &place.path().join("floor")));
            one = one.min(batch(1));
            all = all.min(batch(1 + tasks));
        }
        let unit = (all - one) / f64::from(tasks);
        println!("{files:>7} files: clone and checkout {floor:>7.0}, a unit {unit:>7.0}, {:.2} x", unit / floor);
    }
}

fn tree(project: &Path, files: usize) {
    for file in 0..files {
        let folder = project.join(format!("src/{}", file / 100));
        if file % 100 == 0 {
            fs::create_dir_all(&folder).unwrap();
        }
        fs::write(folder.join(format!("{file}.txt")), format!("line of file {file}\n").repeat(20)).unwrap();
    }
    fs::create_dir(project.join("forge")).unwrap();
    let work = "echo work > file-$FORKHESTRA_TASK.txt";
    let config = format!(
        r#"{{ "workspace": {{ "root": "../workspaces" }}, "agents": {{ "worker": {{ "command": ["sh", "-c", "{work}"] }} }},
             "chains": {{ "task": "worker" }} }}"#
    );
    fs::write(project.join("forge/chains.json"), config).unwrap();
    for words in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["config", "user.name", "bench"],
        &["config", "user.email", "bench@localhost"],
        &["add", "--all"],
        &["commit", "--quiet", "--message", "begin"],
    ] {
        call("git", words, project);
    }
}

/// Milliseconds for a bare clone of the hub and a checkout.
fn checkout(hub: &Path, to: &Path) -> f64 {
    let _ = fs::remove_dir_all(to);
    let began = Instant::now();
    let (hub, to) = (hub.display().to_string(), to.display().to_string());
    let words = ["clone", "--quiet", "--shared", "--branch", "forkhestra/line", "--", &hub, &to];
    call("git", &words, Path::new("."));
    began.elapsed().as_secs_f64() * 1000.0
}

fn call(program: &str, words: &[&str], folder: &Path) {
    let mut command = Command::new(program);
    let status = command.args(words).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{program} {words:?}");
}
