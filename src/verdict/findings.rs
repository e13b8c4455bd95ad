//! Findings and answers in prose: `- src/a.rs:12: what happens`, `F3: fixed`.

use super::{Finding, Severity};
use serde::{Deserialize, Serialize};

/// How many findings of one verdict are kept at most.
const MOST: usize = 50;
/// Maximum length of a title, in Unicode scalars.
const TITLE: usize = 300;

/// A worker's answer to a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// Number of the finding, from 1.
    pub finding: u32,
    /// Whether the worker says that it has fixed the finding.
    pub fixed: bool,
    /// The text of the answer.
    pub words: String,
}

/// Returns the findings in a judge's text: every list item that begins with a file, or with `F` and a number.
#[must_use]
pub fn findings(text: &str) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('>')) {
        if let Some(finding) = item(line).and_then(finding_of)
            && !found.contains(&finding)
            && found.len() < MOST
        {
            found.push(finding);
        }
    }
    found
}

/// Returns the text of a list item, without its mark.
pub(super) fn item(line: &str) -> Option<&str> {
    let line = line.trim();
    let digits = line.trim_start_matches(|next: char| next.is_ascii_digit());
    let item = if digits.len() < line.len() {
        digits.strip_prefix(['.', ')'])?
    } else {
        line.strip_prefix(['-', '*', '+', '•']).filter(|rest| rest.starts_with([' ', '\t']))?
    };
    // A checkbox.
    let item = item.trim();
    Some(["[ ] ", "[x] ", "[X] "].iter().find_map(|tick| item.strip_prefix(tick)).unwrap_or(item).trim())
}

/// Characters for emphasis and code around a place, a number or a severity. In a title they are code, and are kept.
const MARKS: [char; 2] = ['`', '*'];

fn finding_of(item: &str) -> Option<Finding> {
    let (severity, rest) = severity_of(item.trim());
    let (number, rest) = match finding_number(rest.trim_start_matches(MARKS)) {
        Some((number, rest)) => (Some(number), rest.trim_start_matches([' ', ':', ',', '-', '—'])),
        None => (None, rest),
    };
    let place = place_of(rest);
    if place.is_none() && number.is_none() {
        return None;
    }
    let (file, line, title) = place.map_or((None, None, rest), |(file, line, title)| (Some(file), line, title));
    let (inner, title) = severity_of(title.trim());
    let severity = if inner == Some(Severity::Minor) { inner } else { severity };
    let title: String = title.trim().chars().take(TITLE).collect();
    let rule = number.map(|number| format!("F{number}"));
    let severity = severity.unwrap_or_default();
    title.chars().any(char::is_alphanumeric).then_some(Finding { title, file, line, rule, severity })
}

/// Splits off a severity: `minor: …`, `[blocking] …`, `(nit) …`, `**Minor**: …`. Text that is not marked has none.
fn severity_of(text: &str) -> (Option<Severity>, &str) {
    let bare = text.trim_start_matches(MARKS).trim_start_matches(['[', '(']).trim_start_matches(MARKS);
    let bracketed = text.trim_start_matches(MARKS).starts_with(['[', '(']);
    let word: String = bare.chars().take_while(char::is_ascii_alphabetic).collect();
    let rest = bare[word.len()..].trim_start_matches(MARKS).trim_start_matches([']', ')']);
    // `**Critical** a.py`.
    let bold = text.starts_with("**") && bare[word.len()..].starts_with("**");
    let marked = bracketed || bold || rest.trim_start().starts_with(':') || rest.trim_start().starts_with(['—', '–']);
    let severity = match word.to_lowercase().as_str() {
        "minor" | "nit" | "nitpick" | "info" | "low" | "optional" | "cosmetic" => Severity::Minor,
        "blocking" | "blocker" | "major" | "critical" | "high" | "medium" => Severity::Blocking,
        _ => return (None, text),
    };
    if marked {
        (Some(severity), rest.trim_start_matches([':', ' ', '-', '—', '–', '*', '`']))
    } else {
        (None, text)
    }
}

/// Returns the severity that an item itself states.
pub(super) fn marked_severity(item: &str) -> Option<Severity> {
    let (severity, rest) = severity_of(item.trim());
    if severity.is_some() {
        return severity;
    }
    // `F3: minor: …`, `src/a.rs:3: minor: …`.
    let rest = finding_number(rest.trim_start_matches(MARKS)).map_or(rest, |(_, rest)| rest);
    let inner = severity_of(rest.trim_start_matches([' ', ':', '-', '—'])).0;
    inner.or_else(|| severity_of(place_of(rest)?.2.trim()).0)
}

/// Returns whether a line is an item that its author calls blocking.
pub(super) fn is_marked_blocking(line: &str) -> bool {
    item(line).is_some_and(|item| marked_severity(item) == Some(Severity::Blocking))
}

/// Returns, for an item that names a place, whether it is marked minor.
pub(super) fn place_of_item(line: &str) -> Option<bool> {
    let item = item(line)?;
    finding_of(item)?.file?;
    Some(marked_severity(item) == Some(Severity::Minor))
}

/// Splits off the number of a finding: `F3: …`, `F3 (open) …`.
fn finding_number(text: &str) -> Option<(u32, &str)> {
    let rest = text.strip_prefix(['F', 'f'])?;
    let digits = rest.len() - rest.trim_start_matches(|next: char| next.is_ascii_digit()).len();
    let number = rest[..digits].parse().ok()?;
    let rest = rest[digits..].trim_start_matches(MARKS).trim_start();
    let rest = match rest.strip_prefix('(') {
        Some(inside) => inside.split_once(')').map_or(rest, |(_, rest)| rest),
        None => rest,
    };
    Some((number, rest.trim_start_matches([':', ' ', '-', '—', ','])))
}

/// Splits off a path before the title, with or without a line: it has an extension or a slash, and no blank.
fn place_of(text: &str) -> Option<(String, Option<u32>, &str)> {
    let text = text.trim_start_matches(MARKS);
    let end = text.find(|next: char| next.is_whitespace() || next == ',').unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let word = word.trim_end_matches([':', '-', '—', '.', '`', '*']).trim_matches(['(', ')', '[', ']', '`', '*']);
    let mut parts = word.split(':');
    let file = parts.next().filter(|file| looks_like_a_path(file))?;
    let digits = |part: &str| {
        part.trim_matches(MARKS).trim_start_matches(['L', 'l']).split('-').next().and_then(|part| part.parse().ok())
    };
    let line = parts.next().and_then(digits);
    let rest = rest.trim_start_matches([',', ' ']);
    let (line, rest) = match rest.strip_prefix("line ") {
        Some(after) if line.is_none() => {
            let length = after.len() - after.trim_start_matches(|next: char| next.is_ascii_digit()).len();
            (after[..length].parse().ok(), &after[length..])
        }
        _ => (line, rest),
    };
    Some((file.trim_end_matches(MARKS).to_string(), line, rest.trim_start_matches([':', ' ', '-', '—', '–'])))
}

fn looks_like_a_path(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty() && (1..=10).contains(&extension.len()) && extension.chars().all(char::is_alphanumeric)
    });
    !text.contains("//") && (extension || text.contains('/') && !name.is_empty())
}

/// Returns a worker's answers, one line each: `F3: fixed`, `F3: not fixed, because …`.
#[must_use]
pub fn answers(text: &str) -> Vec<Answer> {
    let answer = |line: &str| {
        let line = line.trim().trim_start_matches(['-', '*', ' ']);
        let (finding, words) = finding_number(line.trim_start_matches(MARKS))?;
        let words: String = words.trim().chars().take(TITLE).collect();
        let lower = words.to_lowercase();
        let fixed = ["fixed", "mended", "done", "implemented", "resolved"].iter().any(|word| lower.starts_with(word));
        (!words.is_empty()).then_some(Answer { finding, fixed, words })
    };
    text.lines().filter_map(answer).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_a_list_that_name_a_place_are_findings() {
        let text = "I looked at it.\n\
            1. `src/a.rs:12`: the sum is wrong\n\
            - **src/b.rs**, line 7 — leaks\n\
            - minor: src/c.rs:3 a name\n\
            - [nit] src/d.rs: a blank\n\
            * F2: still open\n\
            - this is only a remark\n\
            > - src/q.rs:1: quoted\n\
            + src/gone.rs:5-9 too long\n";
        let found: Vec<String> = findings(text)
            .iter()
            .map(|one| {
                let place = one.file.clone().unwrap_or_default();
                format!("{:?} {place} {:?} {:?} {}", one.severity, one.line, one.rule, one.title)
            })
            .collect();
        assert_eq!(
            found,
            [
                "Blocking src/a.rs Some(12) None the sum is wrong",
                "Blocking src/b.rs Some(7) None leaks",
                "Minor src/c.rs Some(3) None a name",
                "Minor src/d.rs None None a blank",
                "Blocking  None Some(\"F2\") still open",
                "Blocking src/gone.rs Some(5) None too long",
            ]
        );
    }

    #[test]
    fn the_code_of_a_finding_and_of_an_answer_stays_as_it_was_written() {
        let found = findings("- `src/sum.py:2`: multiplies, `a * b`, and takes no `**kwargs`");
        assert_eq!(found[0].title, "multiplies, `a * b`, and takes no `**kwargs`");
        assert_eq!((found[0].file.as_deref(), found[0].line), (Some("src/sum.py"), Some(2)));
        let said = answers("**F1**: fixed, now `2 * 3` and `c*d`");
        assert_eq!(said[0].words, "fixed, now `2 * 3` and `c*d`");
    }

    #[test]
    fn answers_name_their_finding() {
        let said = answers("F1: fixed\n- **F2**: not fixed, because the test asks for it\nF3:\nFoo: no\n");
        assert_eq!(said.len(), 2);
        assert!(said[0].fixed && said[0].finding == 1);
        assert!(!said[1].fixed && said[1].words.starts_with("not fixed"));
    }
}
