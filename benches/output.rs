//! Compares one gibibyte of agent output through the whole program, with its log, to `cat | tee`: `benches/run.sh
//! --bench output`.

#![expect(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used, reason = "a bench, not the program")]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const SIZE: usize = 1 << 30;
const ROUNDS: usize = 5;

fn main() {
    let program = std::env::var("FORKHESTRA_BENCH_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_forkhestra").into());
    // A directory that git ignores: every other file of a repository is snapshotted before an agent starts.
    std::fs::create_dir_all("target").unwrap();
    let place = tempfile::tempdir_in("target").unwrap();
    let folder = &place.path().join("project");
    std::fs::create_dir(folder).unwrap();
    let line = b"   Compiling forkhestra v0.1.0 (/home/me/project), and other things that agents say all day\n";
    let piece: Vec<u8> = line.iter().copied().cycle().take(1 << 20).collect();
    let mut file = File::create(place.path().join("output")).unwrap();
    (0..SIZE >> 20).for_each(|_| file.write_all(&piece).unwrap());
    file.sync_all().unwrap();
    std::fs::create_dir(folder.join("forge")).unwrap();
    let config = r#"{ "agents": { "a": { "command": ["cat", "../output"] } }, "chains": {} }"#;
    std::fs::write(folder.join("forge/chains.json"), config).unwrap();
    let (mut tee, mut ours, mut peak) = (f64::MAX, f64::MAX, 0.0_f64);
    for _ in 0..ROUNDS {
        tee = tee.min(seconds("sh", &["-c", "cat ../output | tee log > /dev/null"], folder).0);
        std::fs::remove_file(folder.join("log")).unwrap();
        let (took, memory) = seconds(&program, &["a"], folder);
        std::fs::remove_dir_all(folder.join(".forkhestra")).unwrap();
        (ours, peak) = (ours.min(took), peak.max(memory));
    }
    println!("1 GiB of output to a log and to /dev/null, best of {ROUNDS}");
    println!("  cat | tee    {tee:>6.3} s");
    println!("  forkhestra   {ours:>6.3} s  {:.2} x its rate, peak resident {peak:.1} MB", tee / ours);
}

/// Returns the time, and the peak memory of the process itself in megabytes.
fn seconds(program: &str, arguments: &[&str], folder: &Path) -> (f64, f64) {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let (status, mut peak) = (format!("/proc/{}/status", child.id()), 0.0_f64);
    let ended = loop {
        if let Ok(text) = std::fs::read_to_string(&status)
            && let Some(line) = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))
        {
            peak = peak.max(line.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1000.0);
        }
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    };
    assert!(ended.success());
    (began.elapsed().as_secs_f64(), peak)
}
