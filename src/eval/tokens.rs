//! Tokens as evaluations count them: words, and single marks. Not those of a model, but the same everywhere.

/// Returns the number of words and marks in a text: `Hello, world!` has 4.
#[must_use]
pub fn tokens(text: &str) -> usize {
    let (mut count, mut in_word) = (0, false);
    for sign in text.chars() {
        let (of_word, alone) = (is_of_word(sign), is_a_word(sign));
        if alone || of_word && !in_word || !of_word && !sign.is_whitespace() {
            count += 1;
        }
        in_word = of_word && !alone;
    }
    count
}

/// Returns the words of a text without its marks, in lower case.
#[must_use]
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for part in text.split(|sign| !is_of_word(sign)) {
        let mut word = String::new();
        for sign in part.chars() {
            if is_a_word(sign) {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
                words.push(sign.to_string());
            } else {
                word.extend(sign.to_lowercase());
            }
        }
        words.extend(Some(word).filter(|word| !word.is_empty()));
    }
    words
}

/// Whether a character belongs to a script without spaces between words: then each character is a word.
fn is_a_word(sign: char) -> bool {
    matches!(sign, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}' |
        '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        && sign.is_alphanumeric()
}

fn is_of_word(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}

/// How many tokens a prompt may grow to: twice as many, or 40 more if that is larger, and never more than `most`.
#[must_use]
pub fn allowed(original: usize, most: usize) -> usize {
    if original == 0 { most } else { most.min(original.saturating_mul(2).max(original + 40)) }
}

/// Why the size of a candidate is refused, as a reason code.
#[must_use]
pub(super) fn size_fault(original: usize, candidate: usize, most: usize) -> Option<&'static str> {
    match candidate {
        0..=1 => Some("too_short"),
        _ if candidate > most => Some("too_long"),
        _ if candidate > original.saturating_mul(2).max(original + 40) => Some("too_large_increase"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_marks_count_in_every_script() {
        for (text, count) in [
            ("Hello, world!", 4),
            ("", 0),
            ("  \n", 0),
            ("naïve café", 2),
            ("don't", 3),
            ("日本 語。", 4),
            ("使う Text です", 5),
        ] {
            assert_eq!(tokens(text), count, "{text}");
        }
        assert_eq!(words("東京のText"), ["東", "京", "の", "text"]);
        assert_eq!(words("Use {Text}, Ärger_1!"), ["use", "text", "ärger_1"]);
    }

    /// The values are those of the original implementation.
    #[test]
    fn a_prompt_may_double_or_grow_by_forty_within_the_most() {
        for (original, most) in [(0, 200), (2, 42), (10, 50), (20, 60), (50, 100), (100, 200), (150, 200)] {
            assert_eq!(allowed(original, 200), most, "{original}");
        }
        let fault = |candidate| size_fault(20, candidate, 200);
        assert_eq!(
            [1, 2, 60, 61, 400].map(fault),
            [Some("too_short"), None, None, Some("too_large_increase"), Some("too_long")]
        );
    }
}
