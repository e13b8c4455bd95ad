//! What the improver is shown: issues and suggestions of evaluations, and nothing else.

use super::tokens::{tokens, words};

/// A short expected output may occur in any sentence: only longer ones are looked for.
const LEAST_TOKENS: usize = 8;
const LEAST_CHARACTERS: usize = 20;
/// How many items of a kind are shown, and how long one may be, in characters.
const MOST_ITEMS: usize = 20;
const LONGEST_ITEM: usize = 400;

/// The expected outputs that no item may contain, parsed once.
#[derive(Debug)]
pub(super) struct Expectations(Vec<Vec<String>>);

impl Expectations {
    pub(super) fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let long = |text: &&str| tokens(text) >= LEAST_TOKENS || text.chars().count() >= LEAST_CHARACTERS;
        Self(texts.map(str::trim).filter(long).map(words).filter(|words| !words.is_empty()).collect())
    }

    /// Removes every item that contains one of them, and returns how many were removed. The verdict is not changed.
    pub(super) fn sanitise(&self, items: &mut Vec<String>) -> usize {
        let before = items.len();
        items.retain(|item| {
            let item = words(item);
            !self.0.iter().any(|expected| item.windows(expected.len()).any(|window| window == expected))
        });
        before - items.len()
    }
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
    fn an_item_that_gives_the_expectation_away_is_dropped_and_the_verdict_stays() {
        let expected = "Revenue fell by nine percent in March.";
        let mut items = vec![
            "It should say: \"revenue FELL by nine percent, in March\"".to_string(),
            "The month is missing".to_string(),
        ];
        assert_eq!(Expectations::of([expected].into_iter()).sanitise(&mut items), 1);
        assert_eq!(items, ["The month is missing"]);
        let mut items = vec!["It is 4 lines too long, yes".to_string()];
        assert_eq!(Expectations::of(["4", "yes", ""].into_iter()).sanitise(&mut items), 0);
        assert_eq!(items.len(), 1);
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
