//! The time to start, compared to a baseline in the same run: `benches/run.sh`. Warm, and the minimum of many starts.
//! Never a test with a time limit.

#![expect(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used, reason = "a bench, not the program")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const RUNS: usize = 400;

fn main() {
    let program = std::env::var("FORKHESTRA_BENCH_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_forkhestra").into());
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("forge")).unwrap();
    let steps = r#"{ "agent": "true", "iterations": 3, "prompt": "Work on ${FEATURE}." },"#.repeat(5);
    let config = format!(r#"{{ "chains": {{ "five": {{ "steps": [{steps}] }} }} }}"#);
    std::fs::write(place.path().join("forge/chains.json"), config).unwrap();
    let best = |program: &str, arguments: &[&str]| best_of(program, arguments, place.path());
    // Measured alternately, so that a busy moment of the machine affects all alike.
    let floor = best("/bin/true", &[]);
    let help = best(&program, &["--help"]);
    let dry_run = best(&program, &["--chain", "five", "FEATURE=login", "--dry-run"]);
    let floor = floor.min(best("/bin/true", &[]));
    println!("{:<28} {:>7.3} ms", "/bin/true", floor);
    for (name, took) in [("--help", help), ("--dry-run of five steps", dry_run)] {
        println!("{name:<28} {took:>7.3} ms  {:.2} x", took / floor);
    }
}

/// Returns the shortest time from spawn to wait, in milliseconds.
fn best_of(program: &str, arguments: &[&str], folder: &Path) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..RUNS {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        let status = command.status().unwrap();
        best = best.min(began.elapsed().as_secs_f64() * 1000.0);
        assert!(status.success(), "{program} {arguments:?}");
    }
    best
}
