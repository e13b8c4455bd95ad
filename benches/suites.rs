//! The time and the memory of a case in a large suite: `benches/run.sh --bench suites`. It takes about ten minutes.

#![expect(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used, reason = "a bench, not the program")]

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SIZES: [u32; 2] = [1_000, 100_000];

fn main() {
    let program = std::env::var("FORKHESTRA_BENCH_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_forkhestra").into());
    let place = tempfile::tempdir_in(".").unwrap();
    let folder = place.path();
    fs::create_dir(folder.join("forge")).unwrap();
    fs::write(
        folder.join("forge/chains.json"),
        r#"{"agents": {"answers": {"command": "true", "deliver": "stdin"}}, "chains": {}}"#,
    )
    .unwrap();
    println!("an evaluation of a trivial executor, -j 2");
    let mut first = None;
    for cases in SIZES {
        write_suite(folder, cases);
        let (each, peak) = measured(&program, folder, cases);
        let ratio = each / *first.get_or_insert(each);
        println!("  {cases:>7} cases  {each:>6.3} ms each, {ratio:.2} x  {peak:>5.1} MiB");
    }
}

fn write_suite(folder: &Path, cases: u32) {
    let mut rows = String::from("id,text\n");
    for number in 0..cases {
        writeln!(rows, "case{number},input number {number} of the table").unwrap();
    }
    fs::write(folder.join("cases.csv"), rows).unwrap();
    let suite = r#"{"taskType": "t", "prompt": "Say {text}", "executor": "answers", "casesFile": "cases.csv",
        "defaults": {"criteria": [{"type": "length", "max": 9}]}}"#;
    fs::write(folder.join("suite.json"), suite).unwrap();
}

/// Returns the milliseconds for each case, and the peak memory in MiB.
fn measured(program: &str, folder: &Path, cases: u32) -> (f64, f64) {
    let mut command = Command::new(fs::canonicalize(program).unwrap());
    command.args(["-q", "eval", "run", "suite.json", "--fresh", "-j", "2"]).current_dir(folder);
    let began = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (status, mut peak) = (format!("/proc/{}/status", child.id()), 0.0_f64);
    let ended = loop {
        if let Ok(text) = fs::read_to_string(&status)
            && let Some(line) = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))
        {
            peak = peak.max(line.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1024.0);
        }
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(ended.success());
    (began.elapsed().as_secs_f64() * 1000.0 / f64::from(cases), peak)
}
