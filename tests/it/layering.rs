//! Imports run one way (docs/design.md). Reads the `crate::` paths of every room and fails on any arrow that is not drawn.

use std::fs;
use std::path::Path;

/// Every room with the rooms that it may know. `run` is two rooms in one folder: the pure half, which much may know, and the
/// driver, which only `cli` may.
const ARROWS: [(&str, &[&str]); 21] = [
    ("exit", &[]),
    ("source", &[]),
    ("marker", &["source"]),
    ("chain", &["source", "marker"]),
    ("prompt", &["source", "marker", "chain"]),
    ("agent", &["source", "marker", "chain"]),
    ("checks", &["source", "marker", "chain"]),
    ("verdict", &["source", "marker", "chain"]),
    ("plan", &["source", "marker", "chain", "prompt", "agent", "checks", "verdict"]),
    ("run (pure)", &["source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan"]),
    ("task", &["source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "run"]),
    ("journal", &["source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "run", "task"]),
    ("report", &["source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "run", "task"]),
    ("proc", &["source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "run", "task"]),
    ("context", &["source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "run", "task"]),
    ("world", &["source"]),
    (
        "run (driver)",
        &[
            "source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "run", "task", "journal",
            "report", "proc", "context", "world",
        ],
    ),
    (
        "eval",
        &[
            "source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "run", "task", "journal",
            "report", "proc", "context", "world",
        ],
    ),
    (
        "cli",
        &[
            "source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "run", "task", "journal",
            "report", "proc", "context", "world", "eval", "exit",
        ],
    ),
    ("main", &["cli", "proc", "world", "report", "exit"]),
    (
        "lib",
        &[
            "agent", "chain", "checks", "cli", "context", "eval", "exit", "journal", "marker", "plan", "proc",
            "prompt", "report", "run", "source", "task", "verdict", "world",
        ],
    ),
];

const DRIVER: [&str; 18] = [
    "templates.rs",
    "start.rs",
    "work.rs",
    "cast.rs",
    "lane.rs",
    "lanes.rs",
    "guard.rs",
    "hooks.rs",
    "idle.rs",
    "tape.rs",
    "attempt.rs",
    "driver.rs",
    "signals.rs",
    "stage.rs",
    "timers.rs",
    "fill.rs",
    "told.rs",
    "reading.rs",
];
/// What pure rooms may not name.
const EFFECTS: [&str; 8] =
    ["std::fs", "std::env::", "std::process", "Instant::now", "SystemTime", "tokio", "println!", "rusqlite"];
const PURE: [&str; 10] =
    ["task", "source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "run (pure)"];

fn room_of(path: &Path) -> String {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["run", file] if DRIVER.contains(file) => "run (driver)".into(),
        // Presents both halves.
        ["run", "mod.rs"] => "run (driver)".into(),
        ["run", ..] => "run (pure)".into(),
        [file] => file.trim_end_matches(".rs").into(),
        [room, ..] => (*room).into(),
        [] => String::new(),
    }
}

fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The code of a file without its tests.
fn code(path: &Path) -> Option<String> {
    if path.file_stem()?.to_str()?.ends_with("tests") {
        return None;
    }
    let text = fs::read_to_string(path).unwrap();
    // Tests stand last in a file.
    let code = text.rsplit_once("#[cfg(test)]").map_or(text.as_str(), |(code, _)| code);
    Some(code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n"))
}

fn wrong_arrows(source: &Path) -> Vec<String> {
    let (mut files, mut wrong) = (Vec::new(), Vec::new());
    sources(source, &mut files);
    for path in files {
        let Some(code) = code(&path) else { continue };
        let inside = path.strip_prefix(source).unwrap();
        let room = room_of(inside);
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == room) else {
            wrong.push(format!("{}: the room {room} is not drawn", inside.display()));
            continue;
        };
        for prefix in ["crate::", "forkhestra::"] {
            for (index, _) in code.match_indices(prefix) {
                let rest = &code[index + prefix.len()..];
                let known = rest.split(|next: char| !next.is_alphanumeric() && next != '_').next().unwrap_or_default();
                let own = room.split(' ').next() == Some(known);
                let driver = known == "run"
                    && !["cli", "eval", "run (driver)"].contains(&room.as_str())
                    && names_the_driver(rest);
                if !known.is_empty() && (driver || !own && !allowed.contains(&known)) {
                    wrong.push(format!("{}: {room} may not know {known}", inside.display()));
                }
            }
        }
        // Grouped imports would hide arrows from this reading.
        let hidden = ["crate::{", "super::super", "use std::{"].into_iter().filter(|form| code.contains(form));
        wrong.extend(hidden.map(|form| format!("{}: `{form}` hides arrows; one path a line", inside.display())));
        let effects = EFFECTS.iter().filter(|effect| PURE.contains(&room.as_str()) && code.contains(**effect));
        wrong.extend(effects.map(|effect| format!("{}: {room} is pure and names {effect}", inside.display())));
    }
    wrong
}

/// Whether what is imported from `run` is the driver's.
fn names_the_driver(rest: &str) -> bool {
    let import = rest.split(';').next().unwrap_or_default();
    ["drive", "Cast", "Failure", "Ended", "Lanes", "Numbers", "work_in_lanes"]
        .iter()
        .any(|name| import.split(|c: char| !c.is_alphanumeric()).any(|word| word == *name))
}

#[test]
fn imports_run_one_way_and_pure_rooms_name_no_effect() {
    let wrong = wrong_arrows(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_arrow_the_wrong_way_is_found() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("chain")).unwrap();
    fs::write(root.path().join("chain/mod.rs"), "use crate::plan::Plan;\nfn f() { std::fs::read(\"x\"); }\n").unwrap();
    assert_eq!(
        wrong_arrows(root.path()),
        ["chain/mod.rs: chain may not know plan", "chain/mod.rs: chain is pure and names std::fs"]
    );
}
