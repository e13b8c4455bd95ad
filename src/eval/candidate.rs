//! Turns an improver's answer into a candidate, or into the reason why there is none.

use super::leak::LeakGuard;
use super::tokens::{size_fault, tokens};

/// The prompt that an improver's answer proposes: the content of its first code fence, else the whole answer.
#[must_use]
pub(super) fn proposed(answer: &str) -> String {
    let mut lines = answer.lines();
    let Some(fence) = lines.by_ref().find_map(|line| fence(line)) else { return answer.trim().to_string() };
    let (mut open, mut prompt) = (1, Vec::new());
    for line in lines {
        let bare = line.trim();
        if bare.len() >= fence.len() && bare.chars().all(|sign| fence.starts_with(sign)) {
            open -= 1;
        } else if bare.starts_with(fence) && self::fence(bare).is_some() {
            // An example within the prompt.
            open += 1;
        }
        if open == 0 {
            break;
        }
        prompt.push(line);
    }
    prompt.join("\n").trim().to_string()
}

/// The characters of an opening fence. What follows them is the language, not text.
fn fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let signs = line.len() - line.trim_start_matches(sign).len();
    (signs >= 3 && !line[signs..].contains(sign)).then(|| &line[..signs])
}

/// What a candidate is checked against before it costs anything.
#[derive(Debug)]
pub(super) struct Guards {
    pub(super) leak: LeakGuard,
    pub(super) original_tokens: usize,
    /// The most tokens that a prompt may have.
    pub(super) most_tokens: usize,
}

impl Guards {
    pub(super) fn new(leak: LeakGuard, original: &str, most_tokens: usize) -> Self {
        Self { leak, original_tokens: tokens(original), most_tokens }
    }

    /// Returns why the candidate is refused, if it is. `known`: it was proposed before, or is the original.
    pub(super) fn refusal(&self, candidate: &str, known: bool) -> Option<String> {
        if candidate.is_empty() {
            return Some("empty".into());
        }
        if known {
            return Some("already_seen".into());
        }
        // A runaway answer.
        if candidate.len() > self.most_tokens.saturating_mul(100) {
            return Some("sanity_check:too_long".into());
        }
        if let Some(fault) = size_fault(self.original_tokens, tokens(candidate), self.most_tokens) {
            return Some(format!("sanity_check:{fault}"));
        }
        self.leak.leaks(candidate).then(|| "leakage_detected".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_loses_its_language_and_what_stands_around_it() {
        for (answer, prompt) in [
            ("Do X.", "Do X."),
            ("Here:\n```markdown\nDo X\n\nand Y\n```\nBecause.", "Do X\n\nand Y"),
            ("~~~~\na\n~~~\n~~~~", "a\n~~~"),
            ("```\nnever closed", "never closed"),
            ("use `x` and ```y``` inline", "use `x` and ```y``` inline"),
            ("```\n```", ""),
            ("```markdown\nDo:\n```json\n{}\n```\nThen stop.\n```\nBye.", "Do:\n```json\n{}\n```\nThen stop."),
        ] {
            assert_eq!(proposed(answer), prompt, "{answer}");
        }
    }

    #[test]
    fn a_candidate_is_refused_before_it_costs_anything() {
        let text = "the secret input text of the case";
        let original = "Summarize the text.";
        let guards = Guards::new(LeakGuard::new(original, [text].into_iter()), original, 200);
        let long = "word ".repeat(400);
        for (candidate, known, why) in [
            ("", false, Some("empty")),
            (original, true, Some("already_seen")),
            ("x", false, Some("sanity_check:too_short")),
            (long.trim(), false, Some("sanity_check:too_long")),
            ("Summarize. E.g.: the secret input text of the case", false, Some("leakage_detected")),
            ("Summarize the text in a sentence.", false, None),
            ("Summarize the text in a sentence.", true, Some("already_seen")),
        ] {
            assert_eq!(guards.refusal(candidate, known).as_deref(), why, "{candidate}");
        }
    }
}
