//! Whether what decides about the work was changed by those whose work it is: tests, their skips, CI files, scripts, our own config.

use super::test_files::{Tests, is_test_file};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What decides about the work, at one moment. Paths are those from the root.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deciding {
    /// Files with tests.
    pub tests: BTreeMap<String, Tests>,
    /// Files that say what is built and tested, and a digest of each.
    pub commands: BTreeMap<String, String>,
    /// Files that the lines of checks and of such files name, and a digest of each. One that is made later is part of the work.
    #[serde(default)]
    pub named: BTreeMap<String, String>,
    /// Our config and templates, and a digest of each.
    pub config: BTreeMap<String, String>,
}

/// What was done to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tampering {
    /// Config and templates that were changed: the iteration does not count.
    pub voided: Vec<String>,
    /// Tests that are weaker than they were, in words.
    pub weakened: Vec<String>,
    /// Other files that decide, in words.
    pub touched: Vec<String>,
}

/// The most that is named of a kind.
const NAMED: usize = 10;

/// Compares what decides now with what decided at the run's start.
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
            weakened.push(format!("{path}, a file of {}, is gone", count(had.tests)));
        } else if left.tests < had.tests {
            weakened.push(format!("{path} has {}, it had {}", count(left.tests), had.tests));
        }
        if left.skipped > had.skipped {
            weakened.push(format!("{path} skips {}, it skipped {}", count(left.skipped), had.skipped));
        }
    }
    let sum = |deciding: &Deciding| {
        deciding.tests.values().map(|tests| tests.tests - tests.skipped.min(tests.tests)).sum::<u32>()
    };
    // Tests that moved to another file are not gone; a file of nothing but tests is named all the same.
    let mut moved = Vec::new();
    if sum(now) >= sum(before) {
        moved = weakened
            .extract_if(.., |words| words.ends_with("is gone"))
            .map(|words| words + ", perhaps to another file")
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
            .map(|path| format!("{path}, which says what is built, tested or judged, was changed"))
            .chain(moved)
            .collect(),
    }
}

fn count(tests: u32) -> String {
    if tests == 1 { "1 test".into() } else { format!("{tests} tests") }
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
        assert_eq!(weakened(&[("src/a.rs", 3, 0)], &[("src/a.rs", 2, 0)]), ["src/a.rs has 2 tests, it had 3"]);
        assert_eq!(weakened(&[("src/a.rs", 1, 0)], &[("src/a.rs", 0, 0)]), ["src/a.rs has 0 tests, it had 1"]);
        assert_eq!(weakened(&[("tests/a.rs", 1, 0)], &[]), ["tests/a.rs, a file of 1 test, is gone"]);
        assert_eq!(weakened(&[("a.py", 3, 0)], &[("a.py", 3, 1)]), ["a.py skips 1 test, it skipped 0"]);
        assert!(weakened(&[("a.py", 3, 0)], &[("b.py", 4, 0)]).is_empty(), "tests that moved are not gone");
        assert!(weakened(&[("a.py", 3, 0)], &[("a.py", 4, 0)]).is_empty());
    }
}
