//! Whether what decides about the work was changed by those whose work it is: tests, their skips, CI files, scripts, our own config.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a file has of tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tests {
    /// How many.
    pub tests: u32,
    /// How many of them are skipped.
    pub skipped: u32,
}

/// What decides about the work, at one moment. Paths are those from the root.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deciding {
    /// Files with tests.
    pub tests: BTreeMap<String, Tests>,
    /// Files that say what is built and tested, and a digest of each.
    pub commands: BTreeMap<String, String>,
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
    let touched = changed(&before.commands, &now.commands);
    Tampering {
        voided: changed(&before.config, &now.config),
        weakened,
        touched: touched
            .into_iter()
            .map(|path| format!("{path}, which says what is built and tested, was changed"))
            .chain(moved)
            .collect(),
    }
}

fn count(tests: u32) -> String {
    if tests == 1 { "1 test".into() } else { format!("{tests} tests") }
}

/// Whether a file by its name holds nothing but tests.
#[must_use]
pub fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    let folders = path.split('/').rev().skip(1);
    folders.into_iter().any(|folder| matches!(folder, "tests" | "test" | "__tests__" | "spec"))
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("Test")
        || name.contains(".test.")
        || name.contains(".spec.")
}

/// Whether a file says what is built and tested.
#[must_use]
pub fn says_commands(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    path.starts_with(".github/workflows/")
        || path.starts_with(".circleci/")
        || matches!(
            path,
            ".gitlab-ci.yml"
                | "azure-pipelines.yml"
                | ".travis.yml"
                | "Jenkinsfile"
                | "package.json"
                | "Makefile"
                | "justfile"
                | "pytest.ini"
                | "tox.ini"
                | "setup.cfg"
                | "noxfile.py"
                | "build.rs"
                | ".cargo/config.toml"
        )
        || name.starts_with("jest.config.")
        || name.starts_with("vitest.config.")
        || name == "conftest.py"
}

/// The part of such a file that does: of a package.json its scripts.
#[must_use]
pub fn commands_of(path: &str, text: &str) -> String {
    if path != "package.json" {
        return text.to_string();
    }
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    [&value["scripts"], &value["jest"], &value["vitest"]].map(ToString::to_string).join("\n")
}

/// Whether a line begins a test, or skips one.
type IsTest = fn(&str) -> bool;

/// The tests of a source file; none for a file of no language that is known here.
#[must_use]
pub fn tests_of(path: &str, text: &str) -> Option<Tests> {
    let extension = path.rsplit('.').next().filter(|extension| path.len() > extension.len())?;
    let (tests, skips): (IsTest, IsTest) = match extension {
        "rs" => (
            |line| {
                line.starts_with("#[") && line.trim_end_matches(']').ends_with("test")
                    || line.starts_with("#[") && line.contains("::test(")
            },
            |line| line.starts_with("#[ignore"),
        ),
        "py" => (
            |line| line.starts_with("def test") || line.starts_with("async def test"),
            |line| {
                line.starts_with("@pytest.mark.skip")
                    || line.starts_with("@pytest.mark.xfail")
                    || line.starts_with("@unittest.skip")
                    || line.starts_with("pytest.skip(")
            },
        ),
        "js" | "jsx" | "ts" | "tsx" | "mjs" | "cjs" | "mts" | "cts" => (
            |line| {
                starts_any(line, &["it(", "test(", "it.each", "test.each", "it.only(", "test.only("]) || skips_js(line)
            },
            skips_js,
        ),
        "go" => (|line| line.starts_with("func Test") || line.starts_with("func Fuzz"), |line| line.contains("t.Skip")),
        "java" | "kt" => (
            |line| line.starts_with("@Test") || line.starts_with("@ParameterizedTest"),
            |line| line.starts_with("@Disabled") || line.starts_with("@Ignore"),
        ),
        _ => return None,
    };
    let count = |wanted: fn(&str) -> bool| {
        u32::try_from(text.lines().map(str::trim).filter(|line| wanted(line)).count()).unwrap_or(u32::MAX)
    };
    Some(Tests { tests: count(tests), skipped: count(skips) })
}

fn starts_any(line: &str, words: &[&str]) -> bool {
    words.iter().any(|word| line.starts_with(word))
}

fn skips_js(line: &str) -> bool {
    starts_any(
        line,
        &["it.skip(", "test.skip(", "xit(", "xtest(", "it.todo(", "test.todo(", "describe.skip(", "xdescribe("],
    )
}

/// How many tests ran, as the output of cargo, pytest, jest or vitest says; none where it does not.
#[must_use]
pub fn tests_run(output: &str) -> Option<u32> {
    let mut sum = None;
    for line in output.lines().map(str::trim) {
        let of_cargo = line.starts_with("test result:");
        let of_jest = line.starts_with("Tests:") || line.starts_with("Tests ");
        let of_pytest = line.starts_with('=') && line.ends_with('=') && line.contains(" in ");
        if !of_cargo && !of_jest && !of_pytest {
            continue;
        }
        let words: Vec<&str> =
            line.split(|next: char| !next.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let ran = words.windows(2).filter(|pair| matches!(pair[1], "passed" | "failed"));
        let ran: u32 = ran.filter_map(|pair| pair[0].parse::<u32>().ok()).sum();
        sum = Some(sum.unwrap_or(0) + ran);
    }
    sum
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

    #[test]
    fn tests_are_counted_in_the_usual_languages() {
        let count = |path: &str, text: &str| tests_of(path, text).map(|tests| (tests.tests, tests.skipped));
        assert_eq!(
            count("a.rs", "#[test]\n    #[ignore]\n#[rt::test(flavor = \"x\")]\nfn a() {}\n#[cfg(test)]"),
            Some((2, 1))
        );
        assert_eq!(count("a.py", "def test_a():\n@pytest.mark.skip\n  async def test_b():\n"), Some((2, 1)));
        assert_eq!(count("a.test.ts", "  it('x', () => {})\n it.skip('y')\nxdescribe('z')"), Some((3, 2)));
        assert_eq!(count("a_test.go", "func TestA(t *testing.T) {\n t.Skip()"), Some((1, 1)));
        assert_eq!(count("A.java", "@Test\n@Disabled"), Some((1, 1)));
        assert_eq!(count("notes.md", "#[test]"), None);
        assert_eq!(count("Makefile", ""), None);
    }

    #[test]
    fn what_ran_is_read_from_the_usual_words() {
        assert_eq!(
            tests_run("test result: ok. 3 passed; 1 failed; 0 ignored\ntest result: ok. 2 passed; 0 failed"),
            Some(6)
        );
        assert_eq!(tests_run("===== 2 failed, 5 passed, 1 skipped in 0.2s ====="), Some(7));
        assert_eq!(tests_run("Tests:       1 failed, 4 passed, 5 total"), Some(5));
        assert_eq!(tests_run("all good"), None);
    }

    #[test]
    fn of_a_package_only_the_scripts_decide() {
        let digest = |text: &str| commands_of("package.json", text);
        assert_eq!(
            digest(r#"{"scripts": {"test": "x"}, "version": "1"}"#),
            digest(r#"{"scripts": {"test": "x"}, "version": "2"}"#)
        );
        assert_ne!(digest(r#"{"scripts": {"test": "x"}}"#), digest(r#"{"scripts": {"test": "true"}}"#));
        assert!(
            says_commands(".github/workflows/ci.yml")
                && says_commands("web/jest.config.js")
                && !says_commands("src/a.rs")
        );
    }
}
