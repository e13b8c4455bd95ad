//! Counts how many tests ran, from the output of the usual tools.

use regex::Regex;
use std::sync::LazyLock;

/// Lines that contain the number of tests that ran. A comment names the tool of each pattern.
static PASSED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = [
        // cargo test
        r"^test result: .*?(\d+) passed; (\d+) failed",
        // nextest
        r"^Summary \[.*\] +(\d+) tests? run",
        // pytest, with bars or without
        r"^(?:=+ )?(?:.*?(\d+) failed, )?(?:.*?(\d+) passed)?.* in [\d.]+ ?s",
        // jest, vitest
        r"^Tests:? +(?:.*?(\d+) failed)?[,| ]*(?:.*?(\d+) passed)?",
        // mocha
        r"^(\d+) passing",
        r"^(\d+) failing",
        // node --test
        r"^(?:#|ℹ) pass (\d+)",
        r"^(?:#|ℹ) fail (\d+)",
        // unittest
        r"^Ran (\d+) tests? in",
        // rspec, minitest
        r"^(\d+) examples?, \d+ failures?",
        r"^(\d+) runs, \d+ assertions",
        // ExUnit
        r"^(?:\d+ doctests?, )?(\d+) tests?, \d+ failures?",
        // PHPUnit
        r"^OK \((\d+) tests?,",
        r"^Tests: (\d+), Assertions:",
        // the totals of JUnit under Maven
        r"^\[(?:INFO|ERROR|WARNING)\] Tests run: (\d+), .*Skipped: \d+$",
        // dotnet
        r"Failed: +(\d+), Passed: +(\d+)",
        // gtest
        r"^\[==========\] (\d+) tests? from .* ran",
    ];
    patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
});

/// Returns how many tests ran; none if the output does not say.
#[must_use]
pub fn tests_run(output: &str) -> Option<u32> {
    let mut sum: Option<u32> = None;
    let mut go = 0;
    for line in output.lines().map(str::trim) {
        go += u32::from(line.starts_with("--- PASS: ") || line.starts_with("--- FAIL: "));
        if line.contains("no tests ran") || line.contains("no tests to run") {
            sum = Some(sum.unwrap_or(0));
        }
        // Most lines have no number, so they are skipped quickly.
        if !line.contains(|next: char| next.is_ascii_digit()) {
            continue;
        }
        let found = PASSED.iter().find_map(|pattern| {
            let captures = pattern.captures(line)?;
            let numbers: Vec<u32> =
                captures.iter().skip(1).flatten().filter_map(|number| number.as_str().parse().ok()).collect();
            (!numbers.is_empty()).then(|| numbers.iter().sum::<u32>())
        });
        sum = match (sum, found) {
            (sum, None) => sum,
            (sum, Some(found)) => Some(sum.unwrap_or(0).saturating_add(found)),
        };
    }
    sum.or_else(|| (go > 0).then_some(go))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_is_read_from_the_usual_words() {
        let table = [
            ("test result: ok. 3 passed; 1 failed; 0 ignored\ntest result: ok. 2 passed; 0 failed; 0 ignored", Some(6)),
            ("     Summary [   0.005s] 5 tests run: 5 passed, 0 skipped", Some(5)),
            ("===== 2 failed, 5 passed, 1 skipped in 0.2s =====", Some(7)),
            ("5 passed in 0.10s", Some(5)),
            ("1 failed, 4 passed in 0.10s", Some(5)),
            ("Tests:       1 failed, 4 passed, 5 total", Some(5)),
            ("      Tests  1 failed | 4 passed (5)", Some(5)),
            ("  5 passing (3ms)\n  1 failing", Some(6)),
            ("# tests 5\n# pass 4\n# fail 1", Some(5)),
            ("ℹ pass 4\nℹ fail 0", Some(4)),
            ("Ran 5 tests in 0.001s\n\nOK", Some(5)),
            ("5 examples, 1 failure", Some(5)),
            ("5 runs, 7 assertions, 0 failures", Some(5)),
            ("3 doctests, 5 tests, 0 failures", Some(5)),
            ("OK (5 tests, 9 assertions)", Some(5)),
            ("[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 0", Some(5)),
            ("Passed!  - Failed:     0, Passed:     5, Skipped:     0, Total:     5", Some(5)),
            ("[==========] 5 tests from 2 test suites ran. (0 ms total)", Some(5)),
            ("=== RUN   TestA\n--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL", Some(2)),
            ("no tests ran in 0.01s", Some(0)),
            ("all good", None),
            ("Compiling in 3 s", None),
        ];
        for (output, expected) in table {
            assert_eq!(tests_run(output), expected, "{output}");
        }
    }
}
