//! Detects candidates that give away the inputs, expected outputs or examples that they will be measured with. What
//! the original prompt already contains is not a leak.

use super::tokens::words;
use std::collections::HashSet;

/// The number of consecutive words that are compared as one n-gram.
const GRAM: usize = 3;
/// Fewer shared n-grams than this are not significant.
const FEW: usize = 3;
/// At or above this share of shared n-grams, a candidate counts as quoting a text.
const OVERLAP: f64 = 0.1;
/// At or above this similarity, a candidate counts as containing the text.
const LIKENESS: f64 = 0.45;

/// The texts that a prompt must not give away, parsed once.
#[derive(Debug)]
pub(super) struct LeakGuard {
    texts: Vec<Vec<String>>,
    original: Vec<String>,
}

impl LeakGuard {
    pub(super) fn new<'a>(original: &str, texts: impl Iterator<Item = &'a str>) -> Self {
        let mut known = HashSet::new();
        let texts = texts.map(words).filter(|text| !text.is_empty() && known.insert(text.clone())).collect();
        Self { texts, original: words(original) }
    }

    /// Whether the candidate gives away one of the texts.
    pub(super) fn leaks(&self, candidate: &str) -> bool {
        let candidate = words(candidate);
        let (grams, known) = (grams(&candidate), grams(&self.original));
        self.texts.iter().any(|text| {
            if contains(&self.original, text) {
                return false;
            }
            contains(&candidate, text)
                || overlap(&grams, &known, text) >= OVERLAP
                || text.len() >= GRAM
                    && likeness(&candidate, text) >= LIKENESS
                    && likeness(&self.original, text) < LIKENESS
        })
    }
}

/// Whether `whole` contains all words of `part` in a row.
pub(super) fn contains(whole: &[String], part: &[String]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}

fn grams(words: &[String]) -> HashSet<&[String]> {
    words.windows(GRAM).collect()
}

/// The share of common n-grams, relative to the text with fewer n-grams, without those of the original.
fn overlap(candidate: &HashSet<&[String]>, original: &HashSet<&[String]>, text: &[String]) -> f64 {
    let text: HashSet<&[String]> = grams(text).difference(original).copied().collect();
    let own = candidate.difference(original).count();
    let common = text.intersection(candidate).count();
    // Two n-grams are four words in a row, which any two texts in one language may share.
    if common < FEW && text.len() >= FEW { 0.0 } else { share(common, text.len().min(own)) }
}

/// How alike two texts are: twice the length of their longest common subsequence of words, divided by all their words.
fn likeness(one: &[String], other: &[String]) -> f64 {
    let operations = similar::capture_diff_slices(similar::Algorithm::Myers, one, other);
    f64::from(similar::get_diff_ratio(&operations, one.len(), other.len()))
}

#[expect(clippy::cast_precision_loss, reason = "no text has 2^52 words")]
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// How close an output is to the expected one, from 0 to 1: four fifths likeness, one fifth ratio of lengths.
pub(super) fn closeness(output: &str, expected: &str) -> f64 {
    let (output, expected) = (words(output), words(expected));
    let (short, long) = (output.len().min(expected.len()), output.len().max(expected.len()));
    let lengths = if long == 0 { 1.0 } else { share(short, long) };
    let likeness = if long == 0 { 1.0 } else { likeness(&output, &expected) };
    0.8 * likeness + 0.2 * lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGINAL: &str = "Summarize the text in one sentence. Answer yes or no.";

    fn leaks(candidate: &str, text: &str) -> bool {
        LeakGuard::new(ORIGINAL, [text].into_iter()).leaks(candidate)
    }

    #[test]
    fn a_quoted_a_paraphrased_and_a_translated_alphabet_text_are_leaks() {
        let text = "The quarterly report of Acme shows that revenue fell by nine percent in March";
        assert!(leaks(&format!("Summarize, for example: {text}."), text));
        assert!(leaks("Say that revenue fell by nine percent.", text), "three words in a row, thrice");
        assert!(leaks("quarterly report Acme shows revenue fell percent March", text), "the same words in their order");
        assert!(leaks("Пиши как здесь: Отчёт компании за квартал", "отчёт компании за квартал"));
        assert!(!leaks("Summarize the text in one sentence of at most twenty words.", text));
        let long = format!("{text}. It is stored under the name of the volume, which is long.");
        assert!(!leaks("Summarize the report and mention the name of the system", &long), "a turn of phrase");
        assert!(leaks("入力は東京の天気は晴れですのように書かれています。", "東京の天気は晴れです"));
    }

    #[test]
    fn a_short_text_leaks_as_a_whole_word_only_and_never_where_the_original_has_it() {
        assert!(!leaks("Answer with a number", "a number that is not there"));
        assert!(!leaks("Give a short answer", "s"), "a letter within words");
        assert!(leaks("The answer is 4", "4"));
        assert!(!leaks("The answer is 42", "4"));
        assert!(!leaks("Answer yes or no, shortly", "yes"), "the original says it");
        assert!(!leaks("Summarize the text in one sentence", "Please summarize the text in one sentence"));
    }

    #[test]
    fn closeness_is_of_words_and_of_length() {
        assert!((closeness("a b", "a b") - 1.0).abs() < 1e-6);
        assert!((closeness("", "") - 1.0).abs() < 1e-6);
        assert!(closeness("x y", "a b") < 0.21 && closeness("a b c d", "a b") < closeness("a b", "a b"));
    }
}
