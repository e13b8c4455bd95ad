//! A verdict as one whole line: `VERDICT: approve`. `DECISION:` and `STATUS:` are read as well (T0-30 … T0-36).

use super::Decision;

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// A verdict.
    Decided(Decision),
    /// That the work is not done: `STATUS: RETRY`, `STATUS: ERROR`.
    NotDone(String),
}

/// A line that says something, and how it stands in its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What it says.
    pub word: Word,
    /// Whether it stands in a code fence.
    pub fenced: bool,
    /// Whether that fence holds nothing else.
    pub alone: bool,
    /// Whether no other words follow it.
    pub last: bool,
}

/// Every line of a text that is a verdict and nothing else. Quoted lines, sentences, menus and diffs are none.
#[must_use]
pub fn decision_lines(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut fence: Option<Fence> = None;
    for line in text.lines() {
        if let Some(mark) = fence_mark(line) {
            match &fence {
                None => fence = Some(Fence { mark, from: lines.len(), others: 0 }),
                Some(open) if mark.starts_with(open.mark.as_str()) && line.trim_matches([' ', '\t', '\r']) == mark => {
                    let alone = open.others == 0 && lines.len() == open.from + 1;
                    for line in lines.iter_mut().skip(open.from) {
                        line.alone = alone;
                    }
                    fence = None;
                }
                Some(_) => fence.iter_mut().for_each(|fence| fence.others += 1),
            }
            continue;
        }
        match word_of(line) {
            Some(word) => lines.push(Line { word, fenced: fence.is_some(), alone: false, last: true }),
            None if !line.trim().is_empty() => {
                for line in &mut lines {
                    line.last = false;
                }
                if let Some(fence) = &mut fence {
                    fence.others += 1;
                }
            }
            None => {}
        }
    }
    lines
}

struct Fence {
    mark: String,
    /// How many verdict lines stood before it.
    from: usize,
    /// How many other lines it holds.
    others: usize,
}

/// The run of backticks or tildes that opens or closes a fence, if the line does (the specification of Markdown at commonmark.org, 4.5).
fn fence_mark(line: &str) -> Option<String> {
    let trimmed = line.trim_start();
    if line.len() - trimmed.len() > 3 {
        return None;
    }
    let first = trimmed.chars().next().filter(|first| matches!(first, '`' | '~'))?;
    let run: String = trimmed.chars().take_while(|next| *next == first).collect();
    // An inline code span may begin a line.
    let rest = &trimmed[run.len()..];
    (run.len() >= 3 && !(first == '`' && rest.contains('`'))).then_some(run)
}

/// What a whole line says; bold, backticks and a heading's marks around it are nothing.
fn word_of(line: &str) -> Option<Word> {
    // What is indented is a quotation, or a diff's context.
    let line = line.trim_end();
    if line.starts_with(char::is_whitespace) {
        return None;
    }
    let bare: String = line.trim_start_matches('#').chars().filter(|next| !matches!(next, '*' | '_' | '`')).collect();
    let bare = bare.trim().trim_end_matches(['.', '!']).trim_end();
    let (key, value) = bare.split_once([':', '-'])?;
    let key = key.trim().to_lowercase();
    let value = value.trim();
    // A sign of joy is no word.
    let value = value.trim_matches(|next: char| !next.is_alphanumeric() && !next.is_ascii_graphic());
    let words: Vec<String> = value.split_whitespace().map(str::to_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let value =
        if matches!(words.as_slice(), ["request" | "requests" | "requested", "changes"] | ["changes", "requested"]) {
            "changesrequested"
        } else {
            value
        };
    let is_word = !value.is_empty() && value.chars().all(|next| next.is_ascii_alphabetic());
    if !is_word || !matches!(key.as_str(), "verdict" | "decision" | "status") {
        return None;
    }
    let lower = value.to_lowercase();
    if key == "status" && matches!(lower.as_str(), "retry" | "error") {
        return Some(Word::NotDone(bare.to_string()));
    }
    // Tools print a status of their own: only what seed 000 asks for is one of ours.
    if key == "status" && lower != "review" {
        return None;
    }
    // Its own underscore went with those around the words.
    let spelled = if matches!(lower.as_str(), "changesrequested" | "requestchanges") {
        "changes_requested"
    } else {
        lower.as_str()
    };
    Decision::named(spelled).map(Word::Decided)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let words = decision_lines(text).into_iter().map(|line| {
            let word = match line.word {
                Word::Decided(decision) => decision.name().to_string(),
                Word::NotDone(line) => format!("not done ({line})"),
            };
            let fenced = match (line.fenced, line.alone) {
                (false, _) => "",
                (true, true) => " alone in a fence",
                (true, false) => " in a fence",
            };
            word + fenced
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// T0-30, T0-31, T0-36.
    #[test]
    fn every_spelling_of_a_whole_line_is_read() {
        let table = [
            ("VERDICT: approve", "approve"),
            ("DECISION: APPROVE", "approve"),
            ("DECISION - REJECT", "reject"),
            ("decision: approve", "approve"),
            ("DECISION: APPROVE\r\nmore\r\n", "approve"),
            ("## DECISION: DISPUTE", "dispute"),
            ("### **DECISION**: SKIP", "skip"),
            ("**DECISION:** APPROVE", "approve"),
            ("**VERDICT: reject**", "reject"),
            ("`VERDICT: approve`", "approve"),
            ("VERDICT: approved.", "approve"),
            ("VERDICT: changes_requested", "reject"),
            ("VERDICT: request_changes", "reject"),
            ("VERDICT: Request changes", "reject"),
            ("**Verdict:** ✅ Approve", "approve"),
            ("**VERDICT: APPROVE** ✅", "approve"),
            ("STATUS: REVIEW", "submit"),
            ("**STATUS:** RETRY", "not done (STATUS: RETRY)"),
            ("STATUS: ERROR", "not done (STATUS: ERROR)"),
        ];
        for (text, expected) in table {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    /// T0-34, T0-35, T0-37, and the traps of spec/lessons.md.
    #[test]
    fn nothing_else_is_read_as_a_verdict() {
        let table = [
            "> DECISION: REJECT",
            "REJECT this approach",
            "I would not say DECISION: APPROVE here",
            "if you fix it the next review is DECISION: APPROVE",
            "DECISION: APPROVE | REJECT | DISPUTE | SKIP",
            "DECISION: APPROVE or REJECT",
            "+ DECISION: APPROVE",
            " VERDICT: approve",
            "    STATUS: REVIEW",
            "STATUS: skipped",
            "-DECISION: APPROVE",
            "- VERDICT: approve",
            "not complete",
            "not done",
            "not yet complete",
            "tried to commit but error",
            "VERDICT: done with it",
            "the VERDICT: approve",
            "VERDICT:",
            "VERDICT: maybe",
            "MY VERDICT: approve",
        ];
        for text in table {
            assert_eq!(words(text), "", "{text}");
        }
    }

    /// T0-33.
    #[test]
    fn a_line_in_a_fence_is_told_apart() {
        assert_eq!(words("```\nDECISION: APPROVE\n```\n\nDECISION: REJECT"), "approve alone in a fence, reject");
        assert_eq!(words("```text\nx\nVERDICT: approve\n```"), "approve in a fence");
        assert_eq!(words("~~~~\n```\nVERDICT: approve\n```\n~~~~"), "approve in a fence");
        assert_eq!(words("```not a fence``` VERDICT\nVERDICT: approve"), "approve");
        assert_eq!(words("```\nVERDICT: approve"), "approve in a fence", "a fence that nobody closes");
    }
}
