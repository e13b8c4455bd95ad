//! The overhead of a case of an evaluation, compared to an iteration of a loop: `benches/run.sh --bench evaluations`.

#![expect(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used, reason = "a bench, not the program")]

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const CASES: u32 = 1_000;
const ROUNDS: usize = 5;
/// A file system in memory (`shm_open(3)` of Linux).
const MEMORY: &str = "/dev/shm";

fn main() {
    let program = std::env::var("FORKHESTRA_BENCH_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_forkhestra").into());
    // In memory: on a disk, what its file system spends on new files hides the difference.
    let place = tempfile::tempdir_in(if Path::new(MEMORY).is_dir() { MEMORY } else { "." }).unwrap();
    let folder = place.path();
    fs::create_dir(folder.join("forge")).unwrap();
    fs::write(
        folder.join("forge/chains.json"),
        r#"{"agents": {"answers": {"command": "true", "deliver": "stdin"}}, "chains": {}}"#,
    )
    .unwrap();
    let mut cases = String::new();
    for number in 0..CASES {
        let comma = if number == 0 { "" } else { "," };
        write!(
            cases,
            r#"{comma}{{"id": "{number}", "text": "text {number}", "criteria": [{{"type": "length", "max": 9}}]}}"#
        )
        .unwrap();
    }
    let suite = format!(r#"{{"taskType": "t", "prompt": "p", "executor": "answers", "cases": [{cases}]}}"#);
    fs::write(folder.join("suite.json"), suite).unwrap();
    let chain = format!("answers:{CASES}");
    let script = format!("for ((i = 0; i < {CASES}; i++)); do /bin/true; done");
    let (mut bash, mut looped, mut one, mut two) = (f64::MAX, f64::MAX, f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        bash = bash.min(each(Command::new("bash").args(["-c", &script]), 0));
        looped = looped
            .min(each(&mut ours(&program, folder, &["-q", &chain, "-p", "p", "--limit", "stalledAfter=1000000"]), 1));
        one = one.min(each(&mut ours(&program, folder, &["-q", "eval", "run", "suite.json", "--fresh"]), 0));
        two = two.min(each(&mut ours(&program, folder, &["-q", "eval", "run", "suite.json", "--fresh", "-j", "2"]), 0));
    }
    println!("per case or iteration, {CASES} of them, best of {ROUNDS}");
    println!("  a bash loop of /bin/true   {bash:>6.3} ms");
    println!("  a loop                     {looped:>6.3} ms  bash + {:.3} ms", looped - bash);
    for (lanes, each) in [(1, one), (2, two)] {
        println!(
            "  an evaluation, -j {lanes}        {each:>6.3} ms  bash + {:.3} ms, {:.2} x an iteration of the loop",
            each - bash,
            each / looped
        );
    }
}

fn ours(program: &str, folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(fs::canonicalize(program).unwrap());
    command.args(words).current_dir(folder);
    command
}

/// Returns the milliseconds for each of [`CASES`].
fn each(command: &mut Command, code: i32) -> f64 {
    let began = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(code));
    began.elapsed().as_secs_f64() * 1000.0 / f64::from(CASES)
}
