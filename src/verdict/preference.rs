//! Which of two outputs is better, as an agent says.

use super::evaluation::BadEvaluation;
use super::object::objects;
use serde::Deserialize;

/// Which of two outputs is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preference {
    /// The one that was shown first.
    First,
    /// The one that was shown second.
    Second,
    /// They are equally good.
    Neither,
}

#[derive(Deserialize)]
struct PreferenceAnswer {
    better: Preference,
}

/// Reads an answer that has one JSON object, such as `{"better": "first"}`.
///
/// # Errors
/// When there is no such object, or several that differ.
pub fn preference(text: &str) -> Result<Preference, BadEvaluation> {
    let answers: Vec<Result<PreferenceAnswer, serde_json::Error>> =
        objects(text).into_iter().map(serde_json::from_str).collect();
    let mut good: Vec<Preference> = answers.iter().filter_map(|answer| Some(answer.as_ref().ok()?.better)).collect();
    good.dedup();
    match (good.as_slice(), answers.into_iter().find_map(Result::err)) {
        ([one], _) => Ok(*one),
        ([], None) => Err(BadEvaluation::InvalidJson),
        ([], Some(error)) => Err(BadEvaluation::Schema(error.to_string())),
        _ => Err(BadEvaluation::Several),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_object_says_which_output_is_better() {
        assert_eq!(preference(r#"{"better": "first"}"#), Ok(Preference::First));
        assert_eq!(preference("I think:\n{\"better\": \"second\"}\n"), Ok(Preference::Second));
        assert_eq!(preference(r#"{"better": "neither"} {"better": "neither"}"#), Ok(Preference::Neither));
        assert_eq!(preference("the first"), Err(BadEvaluation::InvalidJson));
        assert!(matches!(preference(r#"{"better": "third"}"#), Err(BadEvaluation::Schema(_))));
        assert_eq!(preference(r#"{"better": "first"} {"better": "second"}"#), Err(BadEvaluation::Several));
    }
}
