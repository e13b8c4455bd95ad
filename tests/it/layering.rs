//! Imports go in one direction (docs/design.md). Reads the `crate::` paths of every module, and fails on any import
//! that is not listed.

use std::fs;
use std::path::Path;

/// Every directory or file in `src`, with the modules that it may import from.
const ARROWS: [(&str, &[&str]); 26] = [
    ("exit", &[]),
    ("source", &[]),
    ("marker", &["source"]),
    ("chain", &["source", "marker"]),
    ("prompt", &["source", "marker", "chain"]),
    ("agent", &["source", "marker", "chain"]),
    ("checks", &["source", "marker", "chain"]),
    ("verdict", &["source", "marker", "chain"]),
    ("plan", &["source", "marker", "chain", "prompt", "agent", "checks", "verdict"]),
    ("engine", &["source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan"]),
    ("task", &["source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "engine"]),
    ("unit", &["source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "engine", "task"]),
    ("journal", &["source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "engine", "task"]),
    ("report", &["source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "engine", "task"]),
    ("proc", &["source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "engine", "task"]),
    ("context", &["source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "engine", "task"]),
    ("world", &["source"]),
    (
        "runner",
        &[
            "source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "engine", "task", "journal",
            "proc", "context", "world",
        ],
    ),
    (
        "eval",
        &[
            "source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "engine", "task", "journal",
            "proc", "context", "world", "runner",
        ],
    ),
    ("hub", &["unit", "proc", "context"]),
    (
        "batch",
        &[
            "source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "engine", "task", "unit",
            "journal", "proc", "context", "world", "hub", "runner", "eval", "exit",
        ],
    ),
    // The machine of batches decides, too.
    ("batch/machine", &["source", "engine"]),
    // The state machine of evaluations decides, but has no effects.
    ("eval/machine", &["source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "engine"]),
    (
        "cli",
        &[
            "source", "marker", "chain", "prompt", "agent", "checks", "verdict", "plan", "engine", "task", "journal",
            "report", "proc", "context", "world", "unit", "hub", "runner", "eval", "batch", "exit",
        ],
    ),
    ("main", &["cli", "proc", "world", "report", "exit"]),
    (
        "lib",
        &[
            "agent", "batch", "chain", "checks", "cli", "context", "engine", "eval", "exit", "hub", "journal",
            "marker", "plan", "proc", "prompt", "report", "runner", "source", "task", "unit", "verdict", "world",
        ],
    ),
];

/// What pure modules may not use.
const EFFECTS: [&str; 8] =
    ["std::fs", "std::env::", "std::process", "Instant::now", "SystemTime", "tokio", "println!", "rusqlite"];
const PURE: [&str; 13] = [
    "unit",
    "batch/machine",
    "task",
    "source",
    "marker",
    "chain",
    "prompt",
    "agent",
    "checks",
    "verdict",
    "plan",
    "engine",
    "eval/machine",
];

fn module_of(path: &Path) -> String {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        [file] => file.trim_end_matches(".rs").into(),
        ["eval", "machine", ..] => "eval/machine".into(),
        ["batch", "machine", ..] => "batch/machine".into(),
        [module, ..] => (*module).into(),
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

/// Returns the code of a file without its tests.
fn code(path: &Path) -> Option<String> {
    if path.file_stem()?.to_str()?.ends_with("tests") {
        return None;
    }
    let text = fs::read_to_string(path).unwrap();
    // Tests are at the end of a file.
    let code = text.rsplit_once("#[cfg(test)]").map_or(text.as_str(), |(code, _)| code);
    Some(code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n"))
}

fn wrong_arrows(source: &Path) -> Vec<String> {
    let (mut files, mut wrong) = (Vec::new(), Vec::new());
    sources(source, &mut files);
    for path in files {
        let Some(code) = code(&path) else { continue };
        let inside = path.strip_prefix(source).unwrap();
        let module = module_of(inside);
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == module) else {
            wrong.push(format!("{}: the module {module} is not listed", inside.display()));
            continue;
        };
        for prefix in ["crate::", "forkhestra::"] {
            for (index, _) in code.match_indices(prefix) {
                let rest = &code[index + prefix.len()..];
                let known = rest.split(|next: char| !next.is_alphanumeric() && next != '_').next().unwrap_or_default();
                if !known.is_empty() && known != module && !allowed.contains(&known) {
                    wrong.push(format!("{}: {module} may not know {known}", inside.display()));
                }
            }
        }
        // Grouped imports would hide dependencies from this test.
        let hidden = ["crate::{", "super::super", "use std::{"].into_iter().filter(|form| code.contains(form));
        wrong.extend(hidden.map(|form| format!("{}: `{form}` hides arrows; one path a line", inside.display())));
        let effects = EFFECTS.iter().filter(|effect| PURE.contains(&module.as_str()) && code.contains(**effect));
        wrong.extend(effects.map(|effect| format!("{}: {module} is pure and names {effect}", inside.display())));
    }
    wrong
}

#[test]
fn imports_run_one_way_and_pure_modules_name_no_effect() {
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

/// Returns the types that a file gives methods to although it does not define them.
fn foreign_methods(code: &str) -> Vec<String> {
    let methods = regex::Regex::new(r"(?m)^impl(?:<[^>]*>)? (\w+)(?:<[^{]*>)? \{").unwrap();
    let defines = |name: &str| {
        ["struct", "enum"].iter().any(|kind| {
            code.match_indices(&format!("{kind} {name}")).any(|(at, found)| {
                !code[at + found.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
            })
        })
    };
    let own = methods.captures_iter(code).filter(|found| !found[0].contains(" for "));
    let names = own.map(|found| found[1].to_string());
    names.filter(|name| !defines(name)).collect()
}

#[test]
fn the_methods_of_a_type_are_in_the_file_that_defines_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let spread: Vec<_> = files
        .iter()
        .map(|file| (file.strip_prefix(&root).unwrap(), foreign_methods(&code(file).unwrap_or_default())))
        .filter(|(_, foreign)| !foreign.is_empty())
        .collect();
    assert!(spread.is_empty(), "{spread:?}");
    assert_eq!(foreign_methods("struct Plan;\nimpl Plan {\n}\nimpl<'a> Planner<'a> {\n}\n"), ["Planner"]);
}

#[test]
fn no_folder_holds_more_than_twenty_files() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let mut folders = std::collections::BTreeMap::new();
    for file in files {
        *folders.entry(file.parent().unwrap().to_path_buf()).or_insert(0) += 1;
    }
    assert!(folders.len() > 20);
    folders.retain(|_, files| *files > 20);
    assert!(folders.is_empty(), "{folders:?}");
}
