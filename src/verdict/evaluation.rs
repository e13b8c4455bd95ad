//! An evaluation: whether an output passes, with a score, issues and suggestions, in one strict shape.

use super::object::{distinct, objects, objects_alone};
use super::{Decision, Finding, ReadFrom, Severity, Unclear, Verdict, VerdictReading};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answer of an evaluator (schemas/evaluation.schema.json). Other keys are allowed, and kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evaluation {
    /// Whether the output meets the requirements.
    pub pass: bool,
    /// The score, from 0 (wrong) to 1 (perfect).
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))]
    pub score: f64,
    /// What is wrong, one entry for each issue.
    pub issues: Vec<String>,
    /// What would fix the issues.
    pub suggestions: Vec<String>,
    /// All other keys of the answer.
    #[serde(flatten)]
    pub more: serde_json::Map<String, Value>,
}

/// How a score outside of 0 to 1 is treated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ScoreMode {
    /// It makes the evaluation invalid.
    #[default]
    Strict,
    /// It becomes 0 or 1, whichever is nearer.
    Clamp,
}

/// Why there is no valid evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadEvaluation {
    /// The text contains no JSON object.
    InvalidJson,
    /// The object has another shape. Holds a description of the first violation.
    Schema(String),
    /// The text contains several evaluations that differ.
    Several,
}

impl BadEvaluation {
    /// Returns the reason as it is recorded in the issues: a code, and for a wrong shape the violation.
    #[must_use]
    pub fn issue(&self) -> String {
        match self {
            Self::InvalidJson => "invalid_json".into(),
            Self::Schema(message) => format!("schema_validation_error: {message}"),
            Self::Several => "schema_validation_error: several different objects".into(),
        }
    }

    /// Returns the reason as a failed evaluation, for the record.
    #[must_use]
    pub fn failed(&self) -> Evaluation {
        let suggestion = "answer with one JSON object that has pass, score, issues and suggestions";
        Evaluation {
            pass: false,
            score: 0.0,
            issues: vec![self.issue()],
            suggestions: vec![suggestion.into()],
            more: serde_json::Map::new(),
        }
    }
}

/// Returns a recorded error or issue of an evaluation for people, without its code.
#[must_use]
pub fn issue_words(recorded: &str) -> String {
    let (code, rest) = recorded.split_once(": ").unwrap_or((recorded, ""));
    match code {
        "invalid_json" => "it contains no JSON object".into(),
        "schema_validation_error" => rest.into(),
        "evaluator_error" => format!("the evaluator could not judge it: {}", issue_words(rest)),
        "executor_error" => format!("the executor gave no answer: {rest}"),
        _ => recorded.into(),
    }
}

/// Reads an evaluation from a text: the whole text, or the one object in it that has the right shape. Nothing is fixed.
///
/// # Errors
/// When there is no object, none of the right shape, or several evaluations that differ.
pub fn evaluation(text: &str, mode: ScoreMode) -> Result<Evaluation, BadEvaluation> {
    if serde_json::from_str::<Value>(text.trim()).is_ok_and(|value| !value.is_object()) {
        return Err(BadEvaluation::Schema("it is not an object".into()));
    }
    let found = objects(text);
    let read: Vec<Result<Evaluation, String>> = found.iter().map(|text| of_object(text, mode)).collect();
    let mut good = distinct(read.iter().filter_map(|read| read.clone().ok()));
    match good.len() {
        1 => Ok(good.remove(0)),
        0 => Err(match read.into_iter().find_map(Result::err) {
            Some(message) => BadEvaluation::Schema(message),
            None => BadEvaluation::InvalidJson,
        }),
        _ => Err(BadEvaluation::Several),
    }
}

/// Returns a judge's text without the objects that it only quotes: those that also appear verbatim in its prompt. An
/// object that is the whole text is not a quotation.
#[must_use]
pub fn without_quoted(text: &str, prompt: &str) -> String {
    let mut rest = text.to_string();
    for object in objects(text).into_iter().filter(|object| text.trim() != *object && prompt.contains(*object)) {
        rest = rest.replacen(object, "", 1);
    }
    rest
}

/// Each key at most once: with a duplicate key it is unknown which value was meant.
#[derive(Deserialize)]
struct Keys {
    pass: Option<Value>,
    score: Option<Value>,
    issues: Option<Value>,
    suggestions: Option<Value>,
    #[serde(flatten)]
    more: serde_json::Map<String, Value>,
}

fn of_object(text: &str, mode: ScoreMode) -> Result<Evaluation, String> {
    twice(text)?;
    let keys: Keys = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let pass = match keys.pass {
        Some(Value::Bool(pass)) => pass,
        Some(other) => return Err(format!("`pass` is {}, but must be true or false", shown(&other))),
        None => return Err("`pass` is missing".into()),
    };
    let score = match keys.score {
        Some(Value::Number(score)) => {
            score.as_f64().filter(|score| score.is_finite()).ok_or("`score` is not a number")?
        }
        Some(other) => return Err(format!("`score` is {}, but must be a number", shown(&other))),
        None => return Err("`score` is missing".into()),
    };
    let score = if mode == ScoreMode::Clamp { score.clamp(0.0, 1.0) } else { score };
    if !(0.0..=1.0).contains(&score) {
        return Err(format!("`score` is {score}, but must be between 0 and 1"));
    }
    let mut issues = texts("issues", keys.issues)?;
    let suggestions = texts("suggestions", keys.suggestions)?;
    if !pass && issues.is_empty() {
        issues.push("unspecified_issues".into());
    }
    Ok(Evaluation { pass, score, issues, suggestions, more: keys.more })
}

/// Returns an error if an object has one of our keys twice.
fn twice(text: &str) -> Result<(), String> {
    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only read for the error of serde about duplicate keys")]
    struct Once {
        pass: Option<serde::de::IgnoredAny>,
        score: Option<serde::de::IgnoredAny>,
        issues: Option<serde::de::IgnoredAny>,
        suggestions: Option<serde::de::IgnoredAny>,
    }
    match serde_json::from_str::<Once>(text) {
        Err(error) if error.to_string().starts_with("duplicate field") => {
            let words = error.to_string();
            Err(words.split(" at line").next().unwrap_or_default().replace("duplicate field", "duplicate key"))
        }
        _ => Ok(()),
    }
}

/// Returns the strings of a list that are not blank.
fn texts(key: &str, value: Option<Value>) -> Result<Vec<String>, String> {
    let list = match value {
        Some(Value::Array(list)) => list,
        Some(other) => return Err(format!("`{key}` is {}, but must be a list", shown(&other))),
        None => return Err(format!("`{key}` is missing")),
    };
    let mut texts = Vec::new();
    for item in list {
        match item {
            Value::String(text) if text.trim().is_empty() => {}
            Value::String(text) => texts.push(text),
            other => return Err(format!("`{key}` contains {}, but may contain only strings", shown(&other))),
        }
    }
    Ok(texts)
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

impl Evaluation {
    /// Returns whether the evaluation is good enough: it passes, and its score reaches `least`, if that is set.
    #[must_use]
    pub fn is_enough(&self, least: Option<f64>) -> bool {
        self.pass && least.is_none_or(|least| self.score >= least)
    }

    /// Returns it as a judge's verdict. If it is good enough, it is an approval with minor issues. Otherwise it is a
    /// reject, and its issues have to be fixed. Suggestions are only in the notes.
    #[must_use]
    pub fn verdict(&self, least: Option<f64>) -> Verdict {
        let decision = if self.is_enough(least) { Decision::Approve } else { Decision::Reject };
        let finding = |severity| move |text: &String| Finding { title: text.clone(), severity, ..Finding::default() };
        let mut findings: Vec<Finding> = Vec::new();
        let mut lines = vec![format!("score {}", self.score)];
        if decision == Decision::Reject {
            findings.extend(self.issues.iter().map(finding(Severity::Blocking)));
            if let Some(least) = least.filter(|least| self.pass && self.score < *least) {
                let title = format!("the score is {}, but must be at least {least}", self.score);
                findings.push(Finding { title, ..Finding::default() });
            }
        } else {
            findings.extend(self.issues.iter().map(finding(Severity::Minor)));
        }
        lines.extend(self.issues.iter().map(|issue| format!("- {issue}")));
        lines.extend(self.suggestions.iter().map(|suggestion| format!("- suggestion: {suggestion}")));
        Verdict { decision, notes: lines.join("\n"), findings, from: ReadFrom::Object, minor: false }
    }
}

/// Reads a judge's evaluation. An invalid one is unclear, and is requested again. It never counts against the work.
#[must_use]
pub fn read_evaluation(message: &str, least: Option<f64>) -> VerdictReading {
    // In a chain, an object in the middle of a sentence is an example.
    let alone = objects_alone(message).join("\n");
    match evaluation(&alone, ScoreMode::Strict) {
        Ok(evaluation) => VerdictReading::Clear(evaluation.verdict(least)),
        Err(bad) => VerdictReading::Unclear(Unclear::BadEvaluation { why: bad.issue() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        match evaluation(text, ScoreMode::Strict) {
            Ok(Evaluation { pass, score, issues, suggestions, .. }) => {
                format!("{pass} {score} [{}] [{}]", issues.join(", "), suggestions.join(", "))
            }
            Err(bad) => bad.issue(),
        }
    }

    fn object(pass: &str, score: &str, issues: &str, suggestions: &str) -> String {
        format!(r#"{{"pass": {pass}, "score": {score}, "issues": {issues}, "suggestions": {suggestions}}}"#)
    }

    #[test]
    fn an_evaluation_has_one_shape_and_every_other_is_named() {
        let good = object("true", "0.9", "[]", "[]");
        let seed = "{\n  \"pass\": false,\n  \"score\": 0.6,\n  \"issues\": [\n    \"Output is missing required field 'timestamp'\",\n    \
                    \"Date format does not match ISO 8601\"\n  ],\n  \"suggestions\": [\n    \"Add a timestamp field with ISO 8601 \
                    format\",\n    \"Use YYYY-MM-DD format for dates\"\n  ]\n}";
        let schema = |words: &str| format!("schema_validation_error: {words}");
        let table = [
            (good.clone(), "true 0.9 [] []".to_string()),
            (object("false", "0.4", r#"["a", "b"]"#, r#"["c"]"#), "false 0.4 [a, b] [c]".into()),
            (
                seed.into(),
                "false 0.6 [Output is missing required field 'timestamp', Date format does not match ISO 8601] [Add a timestamp \
                 field with ISO 8601 format, Use YYYY-MM-DD format for dates]"
                    .into(),
            ),
            (r#"{"pass": true, "score": 1.0, "suggestions": []}"#.into(), schema("`issues` is missing")),
            (
                r#"{"pass": true, "score": 1.5, "issues": [], "suggestions": []}"#.into(),
                schema("`score` is 1.5, but must be between 0 and 1"),
            ),
            (
                r#"{"pass": "yes", "score": 0.8, "issues": [], "suggestions": []}"#.into(),
                schema("`pass` is \"yes\", but must be true or false"),
            ),
            (object("false", "-0.5", "[]", "[]"), schema("`score` is -0.5, but must be between 0 and 1")),
            (r#"{"score": 1, "issues": [], "suggestions": []}"#.into(), schema("`pass` is missing")),
            (object("true", "\"high\"", "[]", "[]"), schema("`score` is \"high\", but must be a number")),
            (object("true", "true", "[]", "[]"), schema("`score` is true, but must be a number")),
            (object("true", "1", "\"x\"", "[]"), schema("`issues` is \"x\", but must be a list")),
            (object("true", "1", "[]", "\"x\""), schema("`suggestions` is \"x\", but must be a list")),
            (object("true", "1", "[1]", "[]"), schema("`issues` contains 1, but may contain only strings")),
            ("[1, 2]".into(), schema("it is not an object")),
            (format!("[{good}]"), schema("it is not an object")),
            (format!("I think:\n```json\n{good}\n```\nSo."), "true 0.9 [] []".into()),
            (format!("Use {{text}}. So: {good} and so on."), "true 0.9 [] []".into()),
            (
                r#"{"pass": true, "score": 1, "issues": [], "suggestions": [], "confidence": 0.5}"#.into(),
                "true 1 [] []".into(),
            ),
            (object("false", "0", "[]", "[]"), "false 0 [unspecified_issues] []".into()),
            (object("false", "0", "[\"  \"]", "[]"), "false 0 [unspecified_issues] []".into()),
            (object("false", "0", "[\"a\", \"\"]", "[\" \", \"b\"]"), "false 0 [a] [b]".into()),
            ("This is not JSON at all".into(), "invalid_json".into()),
            (String::new(), "invalid_json".into()),
            (object("true", "NaN", "[]", "[]"), "invalid_json".into()),
            (
                r#"{"pass": true, "pass": false, "score": 1, "issues": [], "suggestions": []}"#.into(),
                schema("duplicate key `pass`"),
            ),
            (format!("{good} {}", object("false", "0", "[]", "[]")), schema("several different objects")),
            (format!("{good} {good}"), "true 0.9 [] []".into()),
        ];
        for (text, expected) in table {
            assert_eq!(told(&text), expected, "{text}");
        }
        let kept =
            evaluation(r#"{"pass": true, "score": 1, "issues": [], "suggestions": [], "why": "x"}"#, ScoreMode::Strict);
        assert_eq!(kept.unwrap().more["why"], "x");
        let clamped = evaluation(&object("true", "1.5", "[]", "[]"), ScoreMode::Clamp).unwrap();
        assert!((clamped.score - 1.0).abs() < f64::EPSILON);
        assert!(!BadEvaluation::InvalidJson.failed().pass);
    }

    #[test]
    fn what_a_judge_only_quotes_is_not_its_verdict() {
        let (quoted, own) = (object("true", "0.9", "[]", "[]"), object("false", "0.1", "[\"bad\"]", "[]"));
        let prompt = format!("Output:\n{quoted}\n");
        assert_eq!(told(&without_quoted(&format!("> {quoted}\nI cannot judge this"), &prompt)), "invalid_json");
        assert_eq!(told(&without_quoted(&format!("{quoted}\n{own}"), &prompt)), "false 0.1 [bad] []");
        assert_eq!(told(&without_quoted(&quoted, &prompt)), "true 0.9 [] []");
    }

    #[test]
    fn an_evaluation_is_a_verdict_and_a_broken_one_is_asked_for_again() {
        let said = |text: &str, least| match read_evaluation(text, least) {
            VerdictReading::Clear(verdict) => format!("{} {}", verdict.decision.name(), verdict.findings.len()),
            VerdictReading::Unclear(why) => why.words(),
        };
        assert_eq!(said(&object("true", "0.9", "[]", "[]"), None), "approve 0");
        assert_eq!(said(&object("true", "0.9", "[\"a\"]", "[]"), None), "approve 1");
        assert_eq!(said(&object("true", "0.6", "[]", "[]"), Some(0.7)), "reject 1");
        assert_eq!(said(&object("false", "0.9", "[\"a\", \"b\"]", "[]"), Some(0.7)), "reject 2");
        assert_eq!(said("nothing", None), "its evaluation cannot be read: it contains no JSON object");
        assert_eq!(
            issue_words("evaluator_error: invalid_json"),
            "the evaluator could not judge it: it contains no JSON object"
        );
        assert_eq!(issue_words("too long: 3 words"), "too long: 3 words");
    }
}
