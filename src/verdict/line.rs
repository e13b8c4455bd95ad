//! A verdict on a line of its own: `VERDICT: approve`. `DECISION:` and `STATUS:` are read as well.

use super::Decision;
use crate::marker::{FenceLine, Fences};

/// What a line that begins with a key says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// A verdict, and nothing else.
    Decided(Decision),
    /// A reject, a dispute or a skip, followed by its reason. An approval with other text is not a verdict.
    WithReason(Decision, String),
    /// The work is not done: `STATUS: RETRY`, `STATUS: ERROR`.
    NotDone(String),
    /// It begins like a verdict but is not one: a menu, an approval with a condition, an unknown symbol, a list item.
    Loose(String),
}

/// A line that begins with a key, and its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a line")]
pub(super) struct VerdictLine {
    /// Index of the line in the text, from 0.
    pub(super) index: usize,
    /// What the line says.
    pub(super) word: Word,
    /// Whether it contains the secret word of its attempt: `VERDICT k7f2: approve`.
    pub(super) vouched: bool,
    /// Whether it is in a code fence.
    pub(super) fenced: bool,
    /// Whether that fence contains nothing else.
    pub(super) alone: bool,
    /// Whether no other text follows it.
    pub(super) last: bool,
}

impl VerdictLine {
    /// Returns what the line decides, with or without a reason.
    pub(super) fn decision(&self) -> Option<Decision> {
        match &self.word {
            Word::Decided(decision) | Word::WithReason(decision, _) => Some(*decision),
            Word::NotDone(_) | Word::Loose(_) => None,
        }
    }
}

/// Returns every line of a text that begins with a key. Quoted lines and ordinary sentences are skipped. `nonce` is the
/// attempt's secret word.
pub(super) fn decision_lines(text: &str, nonce: Option<&str>) -> Vec<VerdictLine> {
    let mut lines: Vec<VerdictLine> = Vec::new();
    let mut fences = Fences::default();
    // For the open fence: how many of these lines came before it, and how many other lines it contains.
    let (mut from, mut others) = (0, 0);
    // How many of these lines are followed by other text.
    let mut followed = 0;
    for (index, line) in text.lines().enumerate() {
        match fences.line(line.as_bytes()) {
            FenceLine::Opens => (from, others) = (lines.len(), 0),
            FenceLine::Closes => {
                let alone = others == 0 && lines.len() == from + 1;
                lines.iter_mut().skip(from).for_each(|line| line.alone = alone);
            }
            place => {
                let inside = place == FenceLine::Inside;
                if let Some((word, vouched)) = word_of(line, nonce) {
                    lines.push(VerdictLine { index, word, vouched, fenced: inside, alone: false, last: true });
                } else if !line.trim().is_empty() {
                    lines.iter_mut().skip(followed).for_each(|line| line.last = false);
                    followed = lines.len();
                    others += 1;
                }
            }
        }
    }
    lines
}

/// Characters around a word that mean nothing.
const DECORATION: [char; 3] = ['*', '_', '`'];

/// Returns the symbols that say the same as a decision. Any other symbol may say the opposite.
fn signs(decision: Decision) -> &'static [&'static str] {
    match decision {
        Decision::Approve | Decision::Submit | Decision::Done => &["✅", "✔", "✓", "☑", "👍", "🎉", "🚀", "🟢", "💚"],
        Decision::Reject => &["❌", "✗", "✘", "✖", "🚫", "👎", "⛔", "🛑", "🔴"],
        Decision::Dispute => &["⚠", "⚖", "❓", "🤔"],
        Decision::Skip => &["⏭"],
    }
}

/// Returns what a line that begins with a key says, and whether it contains the attempt's secret word.
fn word_of(line: &str, nonce: Option<&str>) -> Option<(Word, bool)> {
    let line = line.trim_end();
    let (stands_alone, text) = without_item_mark(line);
    let bare: String = text.trim_start_matches('#').chars().filter(|next| !DECORATION.contains(next)).collect();
    let bare = bare.replace('\u{fe0f}', "");
    let (sign, bare) = without_sign(bare.trim());
    let length = bare.len() - bare.trim_start_matches(|next: char| next.is_ascii_alphabetic()).len();
    let key = bare[..length].to_lowercase();
    if !matches!(key.as_str(), "verdict" | "decision" | "status") {
        return None;
    }
    let rest = bare[length..].trim_start();
    let (vouched, rest) = match nonce.and_then(|nonce| rest.strip_prefix(nonce)) {
        Some(rest) => (true, rest.trim_start()),
        None => (false, rest),
    };
    let Some(value) = rest.strip_prefix([':', '-']) else {
        // `VERDICT approve` and `Verdict — approve` are not verdicts, but they are not accidents either.
        let named = first_word(rest.trim_start_matches(|next: char| !next.is_alphanumeric()));
        let loose = key != "status" && Decision::of_word(&named).is_some() && stands_loose(rest);
        return loose.then(|| (Word::Loose(line.trim().to_string()), false));
    };
    let word = of_value(value);
    // Tools print a status of their own: only what our prompts request is read.
    if key == "status" {
        let plain = stands_alone && matches!(&word, LineValue::Clean(_) | LineValue::Other);
        return match (first_word(value.trim()).as_str(), word) {
            ("retry" | "error", LineValue::Other) if plain && one_word(value) => {
                Some((Word::NotDone(bare.into()), false))
            }
            ("review", LineValue::Clean(decision)) if plain => Some((Word::Decided(decision), vouched)),
            _ => None,
        };
    }
    let loose = || Word::Loose(line.trim().to_string());
    let word = match word {
        // If a symbol before the key says something else, it is unclear what is meant.
        LineValue::Clean(decision) | LineValue::WithReason(decision, _)
            if sign.is_some_and(|sign| sign != decision) =>
        {
            loose()
        }
        LineValue::Clean(decision) if stands_alone => Word::Decided(decision),
        LineValue::WithReason(decision, reason) if stands_alone => Word::WithReason(decision, reason),
        _ => loose(),
    };
    let vouched = vouched && matches!(word, Word::Decided(_) | Word::WithReason(..));
    Some((word, vouched))
}

/// Splits off a symbol before the key. Returns the decision that the symbol means, and the rest of the line.
fn without_sign(line: &str) -> (Option<Decision>, &str) {
    let of = |decision: Decision| {
        let rest = signs(decision).iter().find_map(|sign| line.strip_prefix(sign))?;
        Some((Some(decision), rest.trim_start()))
    };
    let meant = [Decision::Approve, Decision::Reject, Decision::Dispute, Decision::Skip];
    meant.into_iter().find_map(of).unwrap_or((None, line))
}

/// Returns whether what is between a key and a word may be meant as a colon: `—`, `=`, or nothing.
fn stands_loose(rest: &str) -> bool {
    rest.chars().next().is_some_and(|next| !next.is_ascii_alphabetic())
        || Decision::of_word(&first_word(rest)).is_some()
}

/// Strips indentation and the mark of a list item or a diff. Also returns whether there was nothing to strip.
fn without_item_mark(line: &str) -> (bool, &str) {
    let inner = line.trim_start();
    let indented = inner.len() < line.len();
    let digits = inner.trim_start_matches(|next: char| next.is_ascii_digit());
    if digits.len() < inner.len()
        && let Some(item) = digits.strip_prefix(['.', ')'])
    {
        return (false, item.trim_start());
    }
    // `**` is bold, not an item.
    match inner.strip_prefix(['-', '+', '•']).or_else(|| inner.strip_prefix("* ")) {
        Some(item) => (false, item.trim_start()),
        None => (!indented, inner),
    }
}

enum LineValue {
    Clean(Decision),
    WithReason(Decision, String),
    Other,
}

fn of_value(value: &str) -> LineValue {
    // U+FE0F requests the colored form of the character before it.
    let value = value.replace('\u{fe0f}', "");
    let value = value.trim();
    if let Some(decision) = whole(value) {
        return LineValue::Clean(decision);
    }
    for (_, decision) in Decision::NAMES {
        let mut bare = value;
        while let Some(inner) = signs(decision)
            .iter()
            .find_map(|sign| bare.strip_prefix(sign).or_else(|| bare.trim_end_matches(['.', '!']).strip_suffix(sign)))
        {
            bare = inner.trim();
        }
        if bare.len() < value.len() && whole(bare) == Some(decision) {
            return LineValue::Clean(decision);
        }
    }
    with_reason(value)
}

/// Returns the decision of a text that contains nothing else.
fn whole(text: &str) -> Option<Decision> {
    let text = text.trim().trim_end_matches(['.', '!']).trim_end().to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        // An underscore between the words was removed with the decoration around them.
        ["request" | "requests" | "requested", "changes"]
        | ["changes", "requested"]
        | ["changesrequested" | "requestchanges"] => Some(Decision::Reject),
        [one] => Decision::of_word(one),
        _ => None,
    }
}

/// Reads a decision and its reason: `reject - src/a.rs:3 leaks`, `dispute because the specification is ambiguous`.
/// Menus and conditions are not read.
fn with_reason(value: &str) -> LineValue {
    let word = first_word(value);
    let reasoned = [Decision::Reject, Decision::Dispute, Decision::Skip];
    let Some(decision) = Decision::of_word(&word).filter(|word| reasoned.contains(word)) else {
        return LineValue::Other;
    };
    let rest = value[word.len()..].trim_start();
    let reason = rest.trim_start_matches(['-', '–', '—', ':', ';', ',', '.', '(', '!', ' ']);
    let marked = reason.len() < rest.len();
    let because = ["because", "since", "due to", "as "].iter().any(|word| reason.to_lowercase().starts_with(word));
    // A menu names another decision, and `reject, if …` is not a decision yet.
    let others = reason.split(|next: char| !next.is_ascii_alphanumeric()).any(|word| {
        let other = Decision::of_word(word).filter(|other| *other != decision);
        matches!(other, Some(Decision::Approve | Decision::Reject | Decision::Dispute))
            || matches!(word, "if" | "unless")
    });
    if reason.chars().any(char::is_alphanumeric) && (marked || because) && !others {
        LineValue::WithReason(decision, reason.trim_end_matches(')').trim().to_string())
    } else {
        LineValue::Other
    }
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|next| next.is_ascii_alphabetic() || *next == '_').collect::<String>().to_lowercase()
}

fn one_word(text: &str) -> bool {
    text.trim().trim_end_matches(['.', '!']).chars().all(|next| next.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let words = decision_lines(text, Some("k7f2")).into_iter().map(|line| {
            let word = match line.word {
                Word::Decided(decision) => decision.name().to_string(),
                Word::WithReason(decision, reason) => format!("{} because {reason}", decision.name()),
                Word::NotDone(line) => format!("not done ({line})"),
                Word::Loose(_) => "loose".into(),
            };
            let fenced = match (line.fenced, line.alone) {
                (false, _) => "",
                (true, true) => " alone in a fence",
                (true, false) => " in a fence",
            };
            word + if line.vouched { " vouched" } else { "" } + fenced
        });
        words.collect::<Vec<_>>().join(", ")
    }

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
            ("**VERDICT: APPROVE** ✔️", "approve"),
            ("VERDICT: ❌ reject", "reject"),
            ("VERDICT k7f2: approve", "approve vouched"),
            ("**VERDICT k7f2:** reject", "reject vouched"),
            ("VERDICT: reject - src/a.py:3 leaks", "reject because src/a.py:3 leaks"),
            ("VERDICT: reject (it leaks)", "reject because it leaks"),
            ("VERDICT: reject because it leaks", "reject because because it leaks"),
            ("STATUS: REVIEW", "submit"),
            ("**STATUS:** RETRY", "not done (STATUS: RETRY)"),
            ("STATUS: ERROR", "not done (STATUS: ERROR)"),
        ];
        for (text, expected) in table {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn a_line_that_begins_as_a_verdict_and_is_none_is_loose() {
        for text in [
            "DECISION: APPROVE | REJECT | DISPUTE | SKIP",
            "DECISION: APPROVE or REJECT",
            "VERDICT: reject or approve?",
            "VERDICT: reject, unless F1 is fixed",
            "VERDICT: approve, but it leaks",
            "VERDICT: 👎 approve",
            "VERDICT: ❌ approve",
            "VERDICT: ≠ approve",
            "VERDICT: ✅ reject",
            "VERDICT: ~~approve~~",
            "VERDICT: approve\u{200b}",
            "VERDICT: аpprove",
            "VERDICT:",
            "VERDICT: maybe",
            "VERDICT: done with it",
            "VERDICT — approve",
            "VERDICT approve",
            "VERDICT zzzz: approve",
            "+ DECISION: APPROVE",
            "-DECISION: APPROVE",
            "- VERDICT: approve",
            "* VERDICT: approve",
            "1. VERDICT: approve",
            " VERDICT: approve",
        ] {
            let expected = if text.contains("zzzz") { "" } else { "loose" };
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn nothing_else_is_read_as_a_verdict() {
        for text in [
            "> DECISION: REJECT",
            "REJECT this approach",
            "I would not say DECISION: APPROVE here",
            "if you fix it the next review is DECISION: APPROVE",
            "    STATUS: REVIEW",
            "STATUS: skipped",
            "STATUS: review of the code",
            "STATUS: error in a.rs",
            "not complete",
            "tried to commit but error",
            "the VERDICT: approve",
            "MY VERDICT: approve",
            "Decision making is hard",
            "Verdicts are listed below",
        ] {
            assert_eq!(words(text), "", "{text}");
        }
    }

    #[test]
    fn a_line_in_a_fence_is_told_apart() {
        assert_eq!(words("```\nDECISION: APPROVE\n```\n\nDECISION: REJECT"), "approve alone in a fence, reject");
        assert_eq!(words("```text\nx\nVERDICT: approve\n```"), "approve in a fence");
        assert_eq!(words("~~~~\n```\nVERDICT: approve\n```\n~~~~"), "approve in a fence");
        assert_eq!(words("```not a fence``` VERDICT\nVERDICT: approve"), "approve");
        assert_eq!(words("```\nVERDICT: approve"), "approve in a fence", "a fence that is never closed");
    }
}
