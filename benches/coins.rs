//! How often `eval improve` calls a prompt better, if the answers are chance: `benches/run.sh --bench coins`.
//! Real evaluations with a real program. The test of the same with fixed seeds is in `src/eval/machine/tests.rs`.

#![expect(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used, reason = "a bench, not the program")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const EVALUATIONS: usize = 200;

/// Passes half of the time, and with a careful prompt eight times of ten.
const COIN: &str = r#"
most=5
case "$(cat)" in *careful*) most=8 ;; esac
[ $((RANDOM % 10)) -lt $most ] && echo yes || echo no
"#;

/// The second of three rewrites can be the better prompt.
const REWRITER: &str = r#"
echo x >> rewrites.txt
count=$(wc -l < rewrites.txt)
[ $((count % 3)) = 2 ] && [ -e better ] && echo "Be careful, version $count." && exit
echo "Answer, version $count."
"#;

fn main() {
    let program = std::env::var("FORKHESTRA_BENCH_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_forkhestra").into());
    let program = fs::canonicalize(program).unwrap();
    let cases: Vec<String> = (0..10)
        .map(|number| {
            format!(
                r#"{{"id": "{number}", "text": "case {number}", "criteria": [{{"type": "regex", "pattern": "yes"}}]}}"#
            )
        })
        .collect();
    println!("ten cases, three generations, {EVALUATIONS} evaluations");
    for (better, repeat) in [(false, 1), (false, 5), (true, 5)] {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        fs::create_dir(folder.join("forge")).unwrap();
        let agents = r#"{"agents": {"coin": {"command": "bash coin.sh", "deliver": "stdin"},
            "rewriter": {"command": "bash rewriter.sh", "deliver": "stdin"}}, "chains": {}}"#;
        fs::write(folder.join("forge/chains.json"), agents).unwrap();
        fs::write(folder.join("coin.sh"), COIN).unwrap();
        fs::write(folder.join("rewriter.sh"), REWRITER).unwrap();
        if better {
            fs::write(folder.join("better"), "").unwrap();
        }
        let suite = format!(
            r#"{{"taskType": "t", "prompt": "Answer.", "executor": "coin", "improver": "rewriter", "cases": [{}]}}"#,
            cases.join(",")
        );
        fs::write(folder.join("suite.json"), suite).unwrap();
        let claims = (0..EVALUATIONS).filter(|_| is_claimed(&program, folder, repeat)).count();
        let share = 100 * claims / EVALUATIONS;
        let what = if better { "one rewrite passes 80 % instead of 50 %" } else { "no rewrite changes anything" };
        println!("  {what}, --repeat {repeat}: a prompt is called better in {claims} ({share} %)");
    }
}

/// Whether one evaluation calls a prompt better.
fn is_claimed(program: &Path, folder: &Path, repeat: u32) -> bool {
    let _ = fs::remove_file(folder.join("rewrites.txt"));
    let mut command = Command::new(program);
    command.args(["-q", "eval", "improve", "suite.json", "--fresh", "--json", "-j", "2", "--repeat"]);
    let output = command.arg(repeat.to_string()).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    result["proof"]["proven"].as_bool().unwrap_or(false)
}
