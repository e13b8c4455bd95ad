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
pub(super) fn item(line: &str) -> Option<&str> {
    let line = line.trim();
    let digits = line.trim_start_matches(|next: char| next.is_ascii_digit());
    let item = if digits.len() < line.len() {
        digits.strip_prefix(['.', ')'])?
    } else {
        line.strip_prefix(['-', '*', '+', '•']).filter(|rest| rest.starts_with([' ', '\t']))?
    };
    // A box to tick.
    let item = item.trim();
    Some(["[ ] ", "[x] ", "[X] "].iter().find_map(|tick| item.strip_prefix(tick)).unwrap_or(item).trim())
}

/// Signs of emphasis and code around a place, a number or a severity. Those of a title are code, and stay.
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

/// `minor: …`, `[blocking] …`, `(nit) …`, `**Minor**: …`; what is not marked has none.
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

/// How much an item's own words say that it weighs.
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

/// Whether a line is an item that its author calls blocking.
pub(super) fn is_marked_blocking(line: &str) -> bool {
    item(line).is_some_and(|item| marked_severity(item) == Some(Severity::Blocking))
}

/// Of an item that names a place: whether it is marked minor.
pub(super) fn place_of_item(line: &str) -> Option<bool> {
    let item = item(line)?;
    finding_of(item)?.file?;
    Some(marked_severity(item) == Some(Severity::Minor))
}

/// `F3: …`, `F3 (open) …`.
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

/// A path, with a line or without, before the title: it has an extension or a slash, and no blank.
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

/// What a worker answers, one line each: `F3: mended`, `F3: not mended, because …`.
#[must_use]
pub fn answers(text: &str) -> Vec<Answer> {
    let answer = |line: &str| {
        let line = line.trim().trim_start_matches(['-', '*', ' ']);
        let (finding, words) = finding_number(line.trim_start_matches(MARKS))?;
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
    fn the_code_of_a_finding_and_of_an_answer_stays_as_it_was_written() {
        let found = findings("- `src/sum.py:2`: multiplies, `a * b`, and takes no `**kwargs`");
        assert_eq!(found[0].title, "multiplies, `a * b`, and takes no `**kwargs`");
        assert_eq!((found[0].file.as_deref(), found[0].line), (Some("src/sum.py"), Some(2)));
        let said = answers("**F1**: fixed, now `2 * 3` and `c*d`");
        assert_eq!(said[0].words, "fixed, now `2 * 3` and `c*d`");
    }

    #[test]
    fn answers_name_their_finding() {
        let said = answers("F1: mended\n- **F2**: not mended, because the test asks for it\nF3:\nFoo: no\n");
        assert_eq!(said.len(), 2);
        assert!(said[0].mended && said[0].finding == 1);
        assert!(!said[1].mended && said[1].words.starts_with("not mended"));
    }
}
