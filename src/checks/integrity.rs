//! Detects changes by workers to the files that decide about their work: tests (also skipped ones), CI files, scripts,
//! and forkhestra's own config.

use super::test_files::{Tests, is_test_file};
use crate::source::counted;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The files that decide about the work, at one point in time. Paths are relative to the root.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deciding {
    /// Files with tests, and the number of their tests and skips.
    pub tests: BTreeMap<String, Tests>,
    /// Files that define what is built and tested, with a digest of each.
    pub commands: BTreeMap<String, String>,
    /// Files named in command lines of checks and of the files in `commands`, with a digest of each. A file that is
    /// created later is part of the work.
    #[serde(default)]
    pub named: BTreeMap<String, String>,
    /// The config and the templates of forkhestra, with a digest of each.
    pub config: BTreeMap<String, String>,
}

/// The changes to files that decide about the work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tampering {
    /// Paths of config files and templates that were changed, so that the iteration does not count.
    pub voided: Vec<String>,
    /// Descriptions of tests that became weaker.
    pub weakened: Vec<String>,
    /// Descriptions of changes to other files that decide.
    pub touched: Vec<String>,
}

/// How many changes of each kind are named at most.
const NAMED: usize = 10;

/// Compares the files that decide with their state at the start of the run.
#[must_use]
pub fn tampering(before: &Deciding, now: &Deciding) -> Tampering {
    let changed = |before: &BTreeMap<String, String>, now: &BTreeMap<String, String>| -> Vec<String> {
        let gone = before.keys().filter(|path| !now.contains_key(*path));
        let other = now.iter().filter(|(path, digest)| before.get(*path) != Some(digest)).map(|(path, _)| path);
        gone.chain(other).take(NAMED).cloned().collect()
    };
    let mut weakened = Vec::new();
    for (path, had) in &before.tests {
        let has = now.tests.get(path);
        let left = has.copied().unwrap_or_default();
        if has.is_none() && is_test_file(path) {
            weakened.push(format!("{path}, a file with {}, is gone", count(had.tests)));
        } else if left.tests < had.tests {
            weakened.push(format!("{path} has {}; it had {}", count(left.tests), had.tests));
        }
        if left.skipped > had.skipped {
            weakened.push(format!("{path} skips {}; it skipped {}", count(left.skipped), had.skipped));
        }
    }
    let sum = |deciding: &Deciding| {
        deciding.tests.values().map(|tests| tests.tests - tests.skipped.min(tests.tests)).sum::<u32>()
    };
    // Tests that moved to another file are not gone, but the file that they were in is named even so.
    let mut moved = Vec::new();
    if sum(now) >= sum(before) {
        moved = weakened
            .extract_if(.., |words| words.ends_with("is gone"))
            .map(|words| words + "; its tests may be in another file now")
            .collect();
        weakened.retain(|words| words.contains(" skips "));
    }
    weakened.truncate(NAMED);
    moved.truncate(NAMED);
    let mut touched = changed(&before.commands, &now.commands);
    let known = now.named.iter().filter(|(path, _)| before.named.contains_key(*path));
    let named = changed(&before.named, &known.map(|(path, digest)| (path.clone(), digest.clone())).collect());
    touched.extend(named.into_iter().filter(|path| !before.commands.contains_key(path)));
    touched.truncate(NAMED);
    Tampering {
        voided: changed(&before.config, &now.config),
        weakened,
        touched: touched
            .into_iter()
            .map(|path| format!("{path} was changed; the build, the tests or the review depend on it"))
            .chain(moved)
            .collect(),
    }
}

fn count(tests: u32) -> String {
    counted(tests, "test")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deciding(tests: &[(&str, u32, u32)]) -> Deciding {
        let tests = tests
            .iter()
            .map(|(path, tests, skipped)| ((*path).to_string(), Tests { tests: *tests, skipped: *skipped }));
        Deciding { tests: tests.collect(), ..Deciding::default() }
    }

    fn weakened(before: &[(&str, u32, u32)], now: &[(&str, u32, u32)]) -> Vec<String> {
        tampering(&deciding(before), &deciding(now)).weakened
    }

    #[test]
    fn fewer_tests_new_skips_and_files_that_are_gone_are_told() {
        assert_eq!(weakened(&[("src/a.rs", 3, 0)], &[("src/a.rs", 2, 0)]), ["src/a.rs has 2 tests; it had 3"]);
        assert_eq!(weakened(&[("src/a.rs", 1, 0)], &[("src/a.rs", 0, 0)]), ["src/a.rs has 0 tests; it had 1"]);
        assert_eq!(weakened(&[("tests/a.rs", 1, 0)], &[]), ["tests/a.rs, a file with 1 test, is gone"]);
        assert_eq!(weakened(&[("a.py", 3, 0)], &[("a.py", 3, 1)]), ["a.py skips 1 test; it skipped 0"]);
        assert!(weakened(&[("a.py", 3, 0)], &[("b.py", 4, 0)]).is_empty(), "tests that moved are not gone");
        assert!(weakened(&[("a.py", 3, 0)], &[("a.py", 4, 0)]).is_empty());
    }
}
