//! The overhead of an attempt without its agent, and the memory of a waiting run: `benches/run.sh --bench attempts`.

#![expect(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used, reason = "a bench, not the program")]

use forkhestra::engine::{At, AttemptOutcome, Event, EventKind, Finished};
use forkhestra::journal::{Commit, Journal, NewRun, Worker};
use forkhestra::plan::Outline;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ITERATIONS: u32 = 1_000;
const ROUNDS: usize = 5;
/// A file system in memory (`shm_open(3)` of Linux).
const MEMORY: &str = "/dev/shm";

fn main() {
    let program = std::env::var("FORKHESTRA_BENCH_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_forkhestra").into());
    let place = tempfile::tempdir_in(".").unwrap();
    let folder = place.path();
    // A disk's file system may search past each file that was deleted in the last seconds, by an earlier run of this
    // bench, for example. In memory it does not.
    let memory = tempfile::tempdir_in(if Path::new(MEMORY).is_dir() { MEMORY } else { "." }).unwrap();
    let chain = format!("true:{ITERATIONS}");
    let run = ["-q", &chain, "--limit", "stalledAfter=1000000"];
    let script = format!("for ((i = 0; i < {ITERATIONS}; i++)); do /bin/true; done");
    // Alternately, and the best of each, so that a busy moment of the machine affects all alike.
    let (mut floor, mut bash, mut ours, mut on_disk) = (f64::MAX, f64::MAX, f64::MAX, f64::MAX);
    let run_in = |folder: &Path| each(|| ended(Command::new(&program).args(run).arg("--cwd").arg(folder), 1));
    for _ in 0..ROUNDS {
        floor = floor.min(each(|| (0..ITERATIONS).for_each(|_| ended(&mut Command::new("/bin/true"), 0))));
        bash = bash.min(each(|| ended(Command::new("bash").arg("-c").arg(&script), 0)));
        ours = ours.min(run_in(memory.path()));
        on_disk = on_disk.min(run_in(folder));
    }
    println!("per iteration of /bin/true, {ITERATIONS} iterations, best of {ROUNDS}");
    println!("  spawn and wait                   {floor:>6.3} ms");
    println!("  a bash loop                      {bash:>6.3} ms  {:.2} x", bash / floor);
    println!("  forkhestra, in memory            {ours:>6.3} ms  bash + {:.3} ms", ours - bash);
    println!("  forkhestra, on this disk         {on_disk:>6.3} ms  bash + {:.3} ms", on_disk - bash);
    println!("of that");
    let help = each(|| (0..ITERATIONS).for_each(|_| ended(Command::new(&program).arg("--version"), 0)));
    println!("  exec of our own binary           {help:>6.3} ms");
    let (files, commits, fsync) = journal(folder);
    println!("  folder and logs                  {files:>6.3} ms");
    println!("  commits (2, no fsync)            {commits:>6.3} ms");
    println!("  one fsync, at most every 100 ms  {fsync:>6.3} ms");
    waiting(&program, folder);
}

/// Returns the milliseconds for each of [`ITERATIONS`].
fn each(round: impl FnOnce()) -> f64 {
    let began = Instant::now();
    round();
    began.elapsed().as_secs_f64() * 1000.0 / f64::from(ITERATIONS)
}

fn ended(command: &mut Command, code: i32) {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(code));
}

/// Measures the parts of the journal: the files of an attempt, its two commits, and a commit with an fsync.
fn journal(folder: &Path) -> (f64, f64, f64) {
    let mut journal = Journal::open(folder).unwrap();
    let outline = Outline {
        chain: "true:1000".into(),
        name: None,
        marker: String::new(),
        limits: forkhestra::plan::Limits::default(),
        steps: Vec::new(),
    };
    let worker = Worker { pid: 1, start_time: 1 };
    let run = journal.begin(NewRun { worker, started: "now", digest: "digest", outline: &outline }).unwrap();
    let at = At { step: 1, name: "true".into(), round: 1, iteration: 1, attempt: 1, lane: 1 };
    let files = each(|| {
        for attempt in 1..=ITERATIONS {
            let (folder, _) = journal.files().attempt(run, 1, "true", attempt).unwrap();
            folder.transcript("stdout.log").unwrap();
            folder.transcript("stderr.log").unwrap();
        }
    });
    let mut seq = 0;
    let mut append = |kind: EventKind, now: Instant| {
        seq += 1;
        let at = "2026-01-01T00:00:00Z".to_string();
        journal
            .append(Commit::of(&[Event { version: 1, run, seq, at, worked_ms: Some(0), unit: None, event: kind }]), now)
            .unwrap();
    };
    let started = || EventKind::AttemptStarted { at: at.clone(), pid: 1, start_time: 1 };
    let finished = || EventKind::AttemptFinished {
        at: at.clone(),
        outcome: AttemptOutcome::Unfinished,
        marker: false,
        finished: Finished::default(),
    };
    let still = Instant::now();
    append(finished(), still);
    let commits = each(|| (0..ITERATIONS * 2).for_each(|_| append(started(), still)));
    let now = |number: u32| still + Duration::from_secs(u64::from(number) + 1);
    let synced = each(|| (0..ITERATIONS).for_each(|number| append(finished(), now(number))));
    (files, commits, synced - commits / 2.0)
}

/// Measures the memory of a run whose agent works silently.
fn waiting(program: &str, folder: &Path) {
    let mut child = Command::new(program)
        .args(["-q", "sleep", "-p", "5", "--cwd"])
        .arg(folder)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    // Without the program that keeps the machine awake.
    let is_lifeline = |pid: &&str| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "fk-lifeline" && !children(pid).trim().is_empty()
    };
    let lifeline = loop {
        let children = children(&child.id().to_string());
        if let Some(lifeline) = children.split_whitespace().find(is_lifeline) {
            break lifeline.to_string();
        }
        assert!(child.try_wait().unwrap().is_none(), "the run is over");
    };
    std::thread::sleep(Duration::from_millis(500));
    println!("a run that waits, resident");
    for (name, pid) in [("forkhestra", child.id().to_string()), ("its lifeline", lifeline)] {
        println!(
            "  {name:<14} {:>5.1} MB, of them {:.1} MB its own",
            memory(&pid, "Rss:"),
            memory(&pid, "Private_Dirty:")
        );
    }
    child.wait().unwrap();
}

fn children(pid: &str) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default()
}

fn memory(pid: &str, name: &str) -> f64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = rollup.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1000.0
}
