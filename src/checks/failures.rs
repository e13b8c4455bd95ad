//! What the output of a failed build or test says: file, line, message, each once with its count (K-10). What no reader knows is
//! told by its last lines.

use serde::Serialize;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The file, as it was printed.
    pub file: Option<String>,
    /// Its line, from 1.
    pub line: Option<u32>,
    /// Its column, from 1.
    pub column: Option<u32>,
    /// The tool's own code for it: `E0308`, `TS2322`.
    pub code: Option<String>,
    /// In its words.
    pub message: String,
    /// How often it was printed.
    pub count: u32,
}

/// Everything that readers of rustc, tsc, jest, vitest, pytest, go, gcc and clang find, in the order of the output.
#[must_use]
pub fn failures(output: &str) -> Vec<Failure> {
    let mut found: Vec<Failure> = Vec::new();
    let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
    for (index, line) in lines.iter().enumerate() {
        let next = lines.get(index + 1).copied().unwrap_or_default();
        let plain = plain(line);
        let failure = rustc(&plain, next)
            .or_else(|| tsc(&plain))
            .or_else(|| pytest(&plain))
            .or_else(|| jest(&plain))
            .or_else(|| placed(&plain));
        let Some(failure) = failure else { continue };
        let same = |known: &&mut Failure| {
            (&known.file, known.line, &known.code, &known.message)
                == (&failure.file, failure.line, &failure.code, &failure.message)
        };
        match found.iter_mut().find(same) {
            Some(known) => known.count += 1,
            None => found.push(failure),
        }
    }
    found
}

/// The first of them in words, or the last lines of an output that no reader knows.
#[must_use]
pub fn summary(output: &str, most: usize) -> String {
    const LAST_LINES: usize = 20;
    let found = failures(output);
    let mut text = String::new();
    for failure in found.iter().take(most) {
        let place = match (&failure.file, failure.line) {
            (Some(file), Some(line)) => format!("{file}:{line}: "),
            (Some(file), None) => format!("{file}: "),
            _ => String::new(),
        };
        let code = failure.code.as_ref().map_or_else(String::new, |code| format!("[{code}] "));
        let count = if failure.count > 1 { format!(" (×{})", failure.count) } else { String::new() };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{place}{code}{}{count}", failure.message);
    }
    if found.len() > most {
        let _ = writeln!(text, "… and {} more", found.len() - most);
    }
    if found.is_empty() {
        let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines.len().saturating_sub(LAST_LINES);
        text = lines[last..].join("\n");
    }
    text.trim_end().to_string()
}

/// What is wrong, in a form that tells it from other failures: without numbers, which change by themselves.
#[must_use]
pub fn signature(output: &str) -> String {
    summary(output, usize::MAX).chars().filter(|next| !next.is_ascii_digit()).collect()
}

/// A short digest of each error that was read, without places, which move; at most so many as a screen has lines.
#[must_use]
pub fn error_digests(output: &str) -> Vec<String> {
    const MOST: usize = 200;
    let digest = |failure: &Failure| {
        let words: String = failure.message.chars().filter(|next| !next.is_ascii_digit()).collect();
        let mut hash = DefaultHasher::new();
        (&failure.file, &failure.code, words).hash(&mut hash);
        format!("{:08x}", hash.finish() & 0xffff_ffff)
    };
    failures(output).iter().take(MOST).map(digest).collect()
}

/// Without escape sequences.
fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(next) = characters.next() {
        if next == '\u{1b}' {
            if characters.next() == Some('[') {
                let _ = characters.by_ref().find(char::is_ascii_alphabetic);
            }
        } else {
            plain.push(next);
        }
    }
    plain
}

fn failure(file: Option<&str>, line: Option<u32>, column: Option<u32>, code: Option<&str>, message: &str) -> Failure {
    let text = |text: &str| text.trim().to_string();
    Failure { file: file.map(text), line, column, code: code.map(text), message: text(message), count: 1 }
}

/// `error[E0308]: mismatched types`, and `  --> src/a.rs:1:2` below it.
fn rustc(line: &str, next: &str) -> Option<Failure> {
    let rest = line.strip_prefix("error")?;
    let (code, message) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once("]: ").map(|(code, message)| (Some(code), message))?,
        None => (None, rest.strip_prefix(": ")?),
    };
    if message.starts_with("could not compile")
        || message.starts_with("aborting due to")
        || message.starts_with("test failed")
    {
        return None;
    }
    let next = plain(next);
    let place = next.trim_start().strip_prefix("--> ").and_then(|place| {
        let mut parts = place.rsplitn(3, ':');
        let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some((parts.next()?.to_string(), line, column))
    });
    Some(match place {
        Some((file, line, column)) => failure(Some(&file), Some(line), Some(column), code, message),
        None => failure(None, None, None, code, message),
    })
}

/// `a.ts(1,2): error TS2322: …` and `a.ts:1:2 - error TS2322: …`.
fn tsc(line: &str) -> Option<Failure> {
    let (before, rest) = line.split_once("error TS")?;
    let (code, message) = rest.split_once(": ")?;
    let before = before.trim_end().trim_end_matches([':', '-']).trim_end();
    let (file, place) = match before.strip_suffix(')') {
        Some(before) => before.rsplit_once('(')?,
        None => before.match_indices(':').nth_back(1).map(|(colon, _)| (&before[..colon], &before[colon + 1..]))?,
    };
    let (line, column) = place.split_once([',', ':'])?;
    let (line, column) = (line.parse().ok()?, column.parse().ok()?);
    Some(failure(Some(file), Some(line), Some(column), Some(&format!("TS{code}")), message))
}

/// `FAILED tests/test_a.py::test_b - AssertionError: …`, `ERROR tests/…`.
fn pytest(line: &str) -> Option<Failure> {
    let rest = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR "))?;
    let (what, why) = rest.split_once(" - ").unwrap_or((rest, "failed"));
    let file =
        what.split("::").next().filter(|file| Path::new(file).extension().is_some_and(|suffix| suffix == "py"))?;
    Some(failure(Some(file), None, None, None, &format!("{what}: {why}")))
}

/// `FAIL src/a.test.ts` and `● suite › case`; go's `--- FAIL: TestX (0.00s)`.
fn jest(line: &str) -> Option<Failure> {
    if let Some(name) = line.trim_start().strip_prefix("--- FAIL: ") {
        return Some(failure(None, None, None, None, &format!("{} failed", name.split(' ').next()?)));
    }
    if let Some(name) = line.trim_start().strip_prefix("● ").filter(|name| name.contains('›')) {
        return Some(failure(None, None, None, None, &format!("{} failed", name.trim())));
    }
    let rest = line.trim_start().strip_prefix("FAIL ")?;
    let file = rest
        .split_whitespace()
        .next()
        .filter(|file| file.contains('.') && file.contains('/') || file.contains(".test."))?;
    Some(failure(Some(file), None, None, None, "its tests failed"))
}

/// `a.c:1:2: error: …` of gcc and clang, `./a.go:1:2: …` of go.
fn placed(line: &str) -> Option<Failure> {
    let (file, rest) = line.split_once(':')?;
    let suffix = file.rsplit_once('.').map(|(_, suffix)| suffix)?;
    let (number, rest) = rest.split_once(':')?;
    let line = number.trim().parse().ok()?;
    let (column, rest) = match rest.split_once(':') {
        Some((column, rest)) if column.trim().parse::<u32>().is_ok() => (column.trim().parse().ok(), rest),
        _ => (None, rest),
    };
    let message = rest.trim();
    let error = message.strip_prefix("error: ").or_else(|| message.strip_prefix("fatal error: "));
    match (error, suffix) {
        (Some(message), _) => Some(failure(Some(file), Some(line), column, None, message)),
        (None, "go") if !file.contains(' ') => Some(failure(Some(file), Some(line), column, None, message)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(output: &str) -> String {
        summary(output, 5)
    }

    /// T2-13, T2-14.
    #[test]
    fn failures_of_the_usual_tools_are_read_with_their_places() {
        for (output, expected) in [
            ("error[E0308]: mismatched types\n  --> src/a.rs:3:9\n", "src/a.rs:3: [E0308] mismatched types"),
            ("error: expected `;`\n --> src/a.rs:1:2\nerror: could not compile `x`", "src/a.rs:1: expected `;`"),
            ("src/a.ts(3,9): error TS2322: Type 'x'.", "src/a.ts:3: [TS2322] Type 'x'."),
            ("src/a.ts:3:9 - error TS2322: Type 'x'.", "src/a.ts:3: [TS2322] Type 'x'."),
            ("FAIL src/a.test.ts\n  ● suite › case\n", "src/a.test.ts: its tests failed\nsuite › case failed"),
            (
                "FAILED tests/test_a.py::test_b - assert 1 == 2",
                "tests/test_a.py: tests/test_a.py::test_b: assert 1 == 2",
            ),
            ("./a.go:3:9: undefined: x", "./a.go:3: undefined: x"),
            ("--- FAIL: TestX (0.00s)", "TestX failed"),
            ("a.c:3:9: error: expected ';'\na.c:4:1: warning: unused", "a.c:3: expected ';'"),
            ("\u{1b}[31ma.c:3:9: error: x\u{1b}[0m", "a.c:3: x"),
            ("a.c:3:9: error: x\na.c:3:9: error: x", "a.c:3: x (×2)"),
            ("one\n\ntwo", "one\ntwo"),
            ("", ""),
        ] {
            assert_eq!(told(output), expected, "{output}");
        }
        let many: String = (0..7)
            .map(|line| line.to_string())
            .fold(String::new(), |text, line| text + "a.c:" + &line + ":1: error: e" + &line + "\n");
        assert!(told(&many).ends_with("… and 2 more"));
    }

    proptest::proptest! {
        #[test]
        fn any_output_is_read_without_a_panic(output in "(error\\[|error: |error TS|--> |FAIL |FAILED |● |:1:|\\(1,2\\)|\u{1b}\\[|\n|\\PC){0,40}") {
            let _ = (failures(&output), summary(&output, 3));
        }
    }
}
