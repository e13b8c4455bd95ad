//! What the improver is shown: issues and suggestions of evaluations, and nothing else.

use super::leak::contains;
use super::tokens::{tokens, words};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A short text may occur in any sentence: only longer ones are looked for.
const LEAST_TOKENS: usize = 8;
const LEAST_CHARACTERS: usize = 20;
/// How many items of a kind are shown, and how long one may be, in characters.
const MOST_ITEMS: usize = 20;
const LONGEST_ITEM: usize = 400;

/// This number of words in a row is a quotation.
const QUOTED: usize = 8;

/// The texts of the cases, which no item may quote, parsed once.
#[derive(Debug, Default)]
pub(super) struct FeedbackTexts {
    /// Whole texts that are short.
    short: Vec<Vec<String>>,
    /// The hashes of all groups of [`QUOTED`] words in a row of the others.
    groups: HashSet<u64>,
}

impl FeedbackTexts {
    pub(super) fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let long = |text: &&str| tokens(text) >= LEAST_TOKENS || text.chars().count() >= LEAST_CHARACTERS;
        let mut all = Self::default();
        for words in texts.map(str::trim).filter(long).map(words).filter(|words| !words.is_empty()) {
            if words.len() < QUOTED {
                all.short.push(words);
            } else {
                all.groups.extend(words.windows(QUOTED).map(hash));
            }
        }
        all
    }

    /// Removes every item that quotes one of them, and returns how many were removed. The verdict is not changed.
    pub(super) fn sanitise(&self, items: &mut Vec<String>) -> usize {
        let before = items.len();
        items.retain(|item| {
            let item = words(item);
            let quotes = item.windows(QUOTED).any(|group| self.groups.contains(&hash(group)));
            !quotes && !self.short.iter().any(|text| contains(&item, text))
        });
        before - items.len()
    }
}

fn hash(words: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

/// Collects the feedback of the cases, without repetitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CaseFeedback {
    /// What is wrong.
    pub(super) issues: Vec<String>,
    /// What would fix it.
    pub(super) suggestions: Vec<String>,
}

impl CaseFeedback {
    pub(super) fn add(&mut self, issues: &[String], suggestions: &[String]) {
        for (list, items) in [(&mut self.issues, issues), (&mut self.suggestions, suggestions)] {
            for item in items.iter().map(|item| one_line(item)) {
                if list.len() < MOST_ITEMS && !list.contains(&item) {
                    list.push(item);
                }
            }
        }
    }
}

fn one_line(item: &str) -> String {
    let line = item.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_ITEM) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

/// A list as a prompt shows it; `None` for an empty one.
pub(super) fn listed(items: &[String]) -> String {
    if items.is_empty() {
        return "None".into();
    }
    items.iter().map(|item| format!("- {item}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_quotes_a_case_is_dropped_and_the_verdict_stays() {
        let expected = "Revenue fell by nine percent in March.";
        let mut items = vec![
            "It should say: \"revenue FELL by nine percent, in March\"".to_string(),
            "The month is missing".to_string(),
        ];
        assert_eq!(FeedbackTexts::of([expected].into_iter()).sanitise(&mut items), 1);
        assert_eq!(items, ["The month is missing"]);
        let mut items = vec!["It is 4 lines too long, yes".to_string()];
        assert_eq!(FeedbackTexts::of(["4", "yes", ""].into_iter()).sanitise(&mut items), 0);
        assert_eq!(items.len(), 1);
    }

    #[test]
    fn a_part_of_a_long_text_is_a_quotation_too() {
        let input = "At 04:12 the primary database ran out of disk space, and failed over to the second one.";
        let texts = FeedbackTexts::of([input].into_iter());
        let mut items = vec![
            "It leaves out that \"the primary database ran out of disk space and\" what followed".to_string(),
            "It leaves out why the primary database ran out of it".to_string(),
        ];
        assert_eq!(texts.sanitise(&mut items), 1);
        assert_eq!(items, ["It leaves out why the primary database ran out of it"]);
    }

    #[test]
    fn each_thing_is_told_once_on_one_line() {
        let mut feedback = CaseFeedback::default();
        feedback.add(&["too\nlong".into(), "too long".into()], &[]);
        feedback.add(&["too long".into(), "wrong".into()], &["shorten".into()]);
        assert_eq!(listed(&feedback.issues), "- too long\n- wrong");
        assert_eq!((listed(&feedback.suggestions), listed(&[])), ("- shorten".into(), "None".into()));
    }
}
