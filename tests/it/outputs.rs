//! Recorded outputs of real tools on small broken projects (tests/outputs): the first real error comes first.

use forkhestra::checks::{OutputErrors, joined};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The error that a careful engineer would name as the first one of an output.
#[derive(serde::Deserialize)]
struct Case {
    first: First,
    /// The number of errors that the output shows, where that is clear.
    count: Option<u32>,
}

#[derive(serde::Deserialize)]
struct First {
    path: Option<String>,
    line: Option<u32>,
    /// A part of the line that states the reason.
    says: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// Returns the directories of all cases.
fn cases() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("tests/outputs")];
    while let Some(folder) = folders.pop() {
        if folder.join("case.json").is_file() {
            found.push(folder);
            continue;
        }
        folders.extend(fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()));
    }
    found.sort();
    found
}

/// Returns what the tool printed. Large outputs are generated.
fn output(case: &Path) -> String {
    let stream = |name: &str| {
        let bytes = fs::read(case.join(name)).unwrap_or_else(|_| {
            Command::new("python3").arg(case.join("generate.py")).arg(name).output().unwrap().stdout
        });
        String::from_utf8_lossy(&bytes).into_owned()
    };
    joined(&[stream("stdout"), stream("stderr")])
}

/// Returns what is wrong with the errors found in an output; empty if they are right.
fn faults(folder: &Path) -> String {
    let case: Case = serde_json::from_str(&fs::read_to_string(folder.join("case.json")).unwrap()).unwrap();
    let output = output(folder);
    let errors = OutputErrors::of(&output);
    let mut faults = String::new();
    let (found, told) = (&errors.found, errors.summary(5));
    let first = told.lines().next().unwrap_or_default();
    if !first.contains(&case.first.says) {
        writeln!(faults, "  says {:?}\n  told {first:?}", case.first.says).unwrap();
    }
    let place = found.first().map(|first| (first.file.clone(), first.line)).unwrap_or_default();
    let is_path = match (&case.first.path, &place.0) {
        (Some(wanted), Some(found)) => wanted == found || found.ends_with(&format!("/{wanted}")),
        (Some(wanted), None) => first.contains(wanted.as_str()),
        (None, found) => found.is_none(),
    };
    if !is_path || case.first.line.is_some() && place.1 != case.first.line {
        writeln!(faults, "  at {:?}:{:?}, found {place:?}", case.first.path, case.first.line).unwrap();
    }
    // A compiler repeats an error of a shared file. Several tests that fail alike count separately.
    let (printed, apart) = (found.iter().map(|failure| failure.count).sum::<u32>(), found.len());
    let count = [printed, u32::try_from(apart).unwrap()];
    if case.count.is_some_and(|wanted| wanted > 0 && !count.contains(&wanted) && !found.is_empty()) {
        writeln!(faults, "  count {:?}, found {count:?}", case.count).unwrap();
    }
    faults
}

#[test]
fn the_first_real_error_of_every_recorded_output_is_told_first() {
    let cases = cases();
    let tools: std::collections::BTreeSet<_> = cases.iter().filter_map(|case| case.parent()).collect();
    assert!(cases.len() >= 120 && tools.len() >= 20, "{} of {}", cases.len(), tools.len());
    let mut wrong = String::new();
    for case in &cases {
        let faults = faults(case);
        if !faults.is_empty() {
            let name = case.strip_prefix(root().join("tests/outputs")).unwrap().display();
            writeln!(wrong, "{name}\n{faults}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{} cases\n{wrong}", wrong.matches("\n\n").count());
}
