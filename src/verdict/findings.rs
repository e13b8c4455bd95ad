//! Findings and answers in prose: `- src/a.rs:12: what happens`, `F3: mended`.

use super::{Finding, Severity};
use serde::{Deserialize, Serialize};

/// The most findings of one verdict that are kept.
const MOST: usize = 50;
/// The longest title, in Unicode scalars.
const TITLE: usize = 300;

/// What a worker says to a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// The finding's number.
    pub finding: u32,
    /// Whether it says that it has mended it.
    pub mended: bool,
    /// Its words.
    pub words: String,
}

/// The findings of a judge's words: every item of a list that begins with a file, or with `F` and a number.
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

/// What follows the mark of a list's item.
fn item(line: &str) -> Option<&str> {
    let line = line.trim();
    let digits = line.trim_start_matches(|next: char| next.is_ascii_digit());
    if digits.len() < line.len() {
        return digits.strip_prefix(['.', ')']).map(str::trim);
    }
    line.strip_prefix(['-', '*', '+']).filter(|rest| rest.starts_with(' ')).map(str::trim)
}

fn finding_of(item: &str) -> Option<Finding> {
    let plain: String = item.chars().filter(|next| !matches!(next, '`' | '*')).collect();
    let (severity, rest) = severity_of(plain.trim());
    let (number, rest) = match finding_number(rest) {
        Some((number, rest)) => (Some(number), rest),
        None => (None, rest),
    };
    let place = place_of(rest);
    if place.is_none() && number.is_none() {
        return None;
    }
    let (file, line, title) = place.map_or((None, None, rest), |(file, line, title)| (Some(file), line, title));
    let (inner, title) = severity_of(title);
    let severity = if inner == Severity::Minor { inner } else { severity };
    let title: String = title.trim().chars().take(TITLE).collect();
    let rule = number.map(|number| format!("F{number}"));
    (!title.is_empty()).then_some(Finding { title, file, line, rule, severity })
}

/// `minor: …`, `[blocking] …`, `(nit) …`.
fn severity_of(text: &str) -> (Severity, &str) {
    let bare = text.trim_start_matches(['[', '(']);
    let word: String = bare.chars().take_while(char::is_ascii_alphabetic).collect();
    let rest = bare[word.len()..].trim_start_matches([']', ')']);
    let marked = bare.len() < text.len() || rest.trim_start().starts_with(':');
    let severity = match word.to_lowercase().as_str() {
        "minor" | "nit" | "info" | "low" => Severity::Minor,
        "blocking" | "blocker" | "major" | "critical" | "high" | "medium" => Severity::Blocking,
        _ => return (Severity::Blocking, text),
    };
    if marked { (severity, rest.trim_start_matches([':', ' ', '-', '—'])) } else { (Severity::Blocking, text) }
}

/// `F3: …`, `F3 (open) …`.
fn finding_number(text: &str) -> Option<(u32, &str)> {
    let rest = text.strip_prefix(['F', 'f'])?;
    let digits = rest.len() - rest.trim_start_matches(|next: char| next.is_ascii_digit()).len();
    let number = rest[..digits].parse().ok()?;
    let rest = rest[digits..].trim_start();
    let rest = match rest.strip_prefix('(') {
        Some(inside) => inside.split_once(')').map_or(rest, |(_, rest)| rest),
        None => rest,
    };
    Some((number, rest.trim_start_matches([':', ' ', '-', '—', ','])))
}

/// A path, with a line or without, before the title: it has an extension or a slash, and no blank.
fn place_of(text: &str) -> Option<(String, Option<u32>, &str)> {
    let end = text.find(|next: char| next.is_whitespace() || next == ',').unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let word = word.trim_end_matches([':', '-', '—', '.']).trim_matches(['(', ')', '[', ']']);
    let mut parts = word.split(':');
    let file = parts.next().filter(|file| looks_like_a_path(file))?;
    let digits = |part: &str| part.trim_start_matches(['L', 'l']).split('-').next().and_then(|part| part.parse().ok());
    let line = parts.next().and_then(digits);
    let rest = rest.trim_start_matches([',', ' ']);
    let (line, rest) = match rest.strip_prefix("line ") {
        Some(after) if line.is_none() => {
            let length = after.len() - after.trim_start_matches(|next: char| next.is_ascii_digit()).len();
            (after[..length].parse().ok(), &after[length..])
        }
        _ => (line, rest),
    };
    Some((file.to_string(), line, rest.trim_start_matches([':', ' ', '-', '—', '–'])))
}

fn looks_like_a_path(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty() && (1..=10).contains(&extension.len()) && extension.chars().all(char::is_alphanumeric)
    });
    !text.contains("//") && (extension || text.contains('/') && !name.is_empty())
}

/// What a worker answers, one line each: `F3: mended`, `F3: not mended, because …`.
#[must_use]
pub fn answers(text: &str) -> Vec<Answer> {
    let answer = |line: &str| {
        let line = line.trim().trim_start_matches(['-', '*', ' ']);
        let plain: String = line.chars().filter(|next| !matches!(next, '`' | '*')).collect();
        let (finding, words) = finding_number(&plain)?;
        let words: String = words.trim().chars().take(TITLE).collect();
        let lower = words.to_lowercase();
        let mended = ["mended", "fixed", "done", "implemented", "resolved"].iter().any(|word| lower.starts_with(word));
        (!words.is_empty()).then_some(Answer { finding, mended, words })
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
    fn answers_name_their_finding() {
        let said = answers("F1: mended\n- **F2**: not mended, because the test asks for it\nF3:\nFoo: no\n");
        assert_eq!(said.len(), 2);
        assert!(said[0].mended && said[0].finding == 1);
        assert!(!said[1].mended && said[1].words.starts_with("not mended"));
    }
}
