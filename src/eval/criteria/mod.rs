//! Criteria: what an output must be, judged without a model.

pub(super) mod command;
mod path;
pub(super) mod read;
mod schema;

use super::leak::closeness;
use super::tokens::tokens;
use super::trees::TreeWork;
use crate::chain::show_duration;
use command::CommandCriterion;
use path::JsonPathCriterion;
use regex::{Regex, RegexBuilder};
pub use schema::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::time::Duration;

/// What an output must be. Its JSON is a part of an evaluation's identity: a resume compares it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Criterion {
    /// The expected output, except for whitespace at both ends.
    Exact,
    /// These words, ignoring case.
    Keywords {
        /// All of these words.
        all: Vec<String>,
        /// At least one of these words.
        any: Vec<String>,
        /// None of these words.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        none: Vec<String>,
    },
    /// A match of this pattern, anywhere in the output.
    Pattern(#[serde(serialize_with = "as_text")] Box<Regex>),
    /// No match of this pattern.
    NoPattern(#[serde(serialize_with = "as_text")] Box<Regex>),
    /// A length within these bounds.
    Length {
        /// The smallest length.
        min: Option<u32>,
        /// The largest length.
        max: Option<u32>,
        /// Whether the length is in tokens, not in characters.
        in_tokens: bool,
    },
    /// JSON, valid against this schema if there is one.
    Json(Option<Box<JsonSchema>>),
    /// JSON with certain values at a path.
    JsonPath(Box<JsonPathCriterion>),
    /// A likeness to the expected output of at least this many thousandths.
    Similar(u32),
    /// A cost of the answer of at most this many US dollars.
    Cost(f64),
    /// An answer within this time.
    Time(Duration),
    /// How the run of a chain in a tree went.
    Run {
        /// How it ended: a state of its summary.
        state: Option<String>,
        /// The most attempts.
        max_attempts: Option<u32>,
        /// The most rounds: one more than the rejections by judges.
        max_rounds: Option<u32>,
    },
    /// What a command says about the output.
    Command(CommandCriterion),
}

/// An answer to be judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judged<'a> {
    pub(super) output: &'a str,
    /// The expected output of the case.
    pub(super) expected: Option<&'a str>,
    /// What the answer has cost, in dollars; none if the agent did not say.
    pub(super) cost_usd: Option<f64>,
    /// How long the answer has taken, in milliseconds; none for an answer from before this was stored.
    pub(super) took_ms: Option<u64>,
    /// What a chain has done in the tree of the case.
    pub(super) work: Option<&'a TreeWork>,
}

fn as_text<S: Serializer>(pattern: &Regex, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(pattern.as_str())
}

fn one_line(words: &str) -> String {
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Compiles a pattern of a suite.
///
/// # Errors
/// What is wrong with it, in one line.
pub(super) fn pattern(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(text).size_limit(1 << 20).build().map_err(|error| match error {
        regex::Error::Syntax(words) => one_line(words.rsplit("error:").next().unwrap_or(&words)),
        other => one_line(&other.to_string()),
    })
}

/// The result of one criterion for an output.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measured {
    pub(super) pass: bool,
    /// The score, from 0 to 1.
    pub(super) score: f64,
    /// What is wrong, in words that do not reveal the expected output.
    pub(super) issue: Option<String>,
}

impl Measured {
    /// All or nothing: what is wrong, or none.
    fn of(issue: Option<String>) -> Self {
        Self { pass: issue.is_none(), score: if issue.is_none() { 1.0 } else { 0.0 }, issue }
    }
}

impl Criterion {
    /// The command that judges; none for a criterion that [`Self::measure`] can judge.
    pub(super) fn command(&self) -> Option<&CommandCriterion> {
        if let Self::Command(command) = self { Some(command) } else { None }
    }

    /// Its kind, if it compares an output with the expected one.
    pub(super) fn compares(&self) -> Option<&'static str> {
        match self {
            Self::Exact => Some("exact"),
            Self::Similar(_) => Some("similar"),
            _ => None,
        }
    }

    /// Whether it judges what an answer has cost, or how long it has taken.
    pub(super) fn needs_usage(&self) -> bool {
        matches!(self, Self::Cost(_) | Self::Time(_))
    }

    /// Measures an answer. A command has to be run instead: here it passes.
    pub(super) fn measure(&self, judged: Judged<'_>) -> Measured {
        let Judged { output, expected, .. } = judged;
        let said = Measured::of;
        match self {
            Self::Command(_) => said(None),
            Self::Similar(least) => {
                let score = expected.map_or(0.0, |expected| closeness(output, expected));
                let pass = score * 1000.0 >= f64::from(*least);
                let wanted = f64::from(*least) / 1000.0;
                let issue = (!pass)
                    .then(|| format!("the likeness to what was expected is {score:.2}; the minimum is {wanted}"));
                Measured { pass, score, issue }
            }
            Self::Cost(most) => said(match judged.cost_usd {
                Some(cost) if cost <= *most => None,
                Some(cost) => Some(format!("the answer cost ${cost:.4}; the maximum is ${most}")),
                None => Some("the agent did not say what the answer cost".into()),
            }),
            Self::Time(most) => {
                let took = Duration::from_millis(judged.took_ms.unwrap_or(u64::MAX));
                said((took > *most).then(|| {
                    format!("the answer took {:.1} s; the maximum is {}", took.as_secs_f64(), show_duration(*most))
                }))
            }
            Self::JsonPath(path) => said(path.fault(output)),
            Self::Run { state, max_attempts, max_rounds } => match judged.work {
                None => said(Some("no chain has run".into())),
                Some(work) => {
                    let more = |count: u32, most: &Option<u32>, what: &str| {
                        let most = most.filter(|most| count > *most)?;
                        Some(format!("the run had {count} {what}; the maximum is {most}"))
                    };
                    let ended = state.as_ref().filter(|state| **state != work.state);
                    let ended = ended.map(|state| format!("the run ended as {}, and not as {state}", work.state));
                    let attempts = more(work.attempts, max_attempts, "attempts");
                    let rounds = more(work.rejections.saturating_add(1), max_rounds, "rounds");
                    said(ended.or(attempts).or(rounds))
                }
            },
            Self::Exact => {
                let same = expected.is_some_and(|expected| expected.trim() == output.trim());
                said((!same).then(|| "the output is not exactly what was expected".into()))
            }
            Self::Keywords { all, any, none } => keywords(&output.to_lowercase(), (all, any, none)),
            Self::Pattern(pattern) => {
                let found = pattern.is_match(output);
                said((!found).then(|| "the output does not match the required pattern".into()))
            }
            Self::NoPattern(pattern) => {
                let found = pattern.is_match(output);
                said(found.then(|| "the output matches a pattern that it must not match".into()))
            }
            Self::Length { min, max, in_tokens } => {
                let trimmed = output.trim();
                let (length, unit) =
                    if *in_tokens { (tokens(trimmed), "tokens") } else { (trimmed.chars().count(), "characters") };
                let beyond = |bound: &Option<u32>, wrong: fn(usize, usize) -> bool| {
                    bound.map(|bound| bound as usize).filter(|bound| wrong(length, *bound))
                };
                let short = beyond(min, |length, min| length < min)
                    .map(|min| format!("the output's length in {unit} is {length}; the minimum is {min}"));
                let long = beyond(max, |length, max| length > max)
                    .map(|max| format!("the output's length in {unit} is {length}; the maximum is {max}"));
                said(short.or(long))
            }
            Self::Json(schema) => match serde_json::from_str::<Value>(output.trim()) {
                Err(error) => said(Some(format!("the output is not JSON: {error}"))),
                Ok(value) => {
                    let fault = schema.as_ref().and_then(|schema| schema.fault(&value));
                    said(fault.map(|fault| format!("the output does not match the required schema: {fault}")))
                }
            },
        }
    }
}

/// Checks keywords. The score is the share of the requirements that are met.
fn keywords(output: &str, (all, any, none): (&[String], &[String], &[String])) -> Measured {
    let hits = |words: &[String]| words.iter().filter(|word| output.contains(&word.to_lowercase())).count();
    let (all_hits, any_hits, none_hits) = (hits(all), hits(any), hits(none));
    let wanted = all.len() + usize::from(!any.is_empty()) + none.len();
    let found = all_hits + usize::from(any_hits > 0) + none.len() - none_hits;
    let mut issues = Vec::new();
    if all_hits < all.len() {
        issues.push(format!("missing: {} of {} required words", all.len() - all_hits, all.len()));
    }
    if any_hits == 0 && !any.is_empty() {
        issues.push(format!("missing: any word from a list of {}", any.len()));
    }
    if none_hits > 0 {
        issues.push(format!("forbidden: {none_hits} of {} words occur", none.len()));
    }
    #[expect(clippy::cast_precision_loss, reason = "a handful of words")]
    let score = found as f64 / wanted.max(1) as f64;
    Measured { pass: issues.is_empty(), score, issue: (!issues.is_empty()).then(|| issues.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(criterion: &Criterion, output: &str) -> String {
        let judged = Judged { output, expected: Some("Four."), cost_usd: Some(0.02), took_ms: Some(1_500), work: None };
        let Measured { pass, score, issue } = criterion.measure(judged);
        format!("{pass} {score} {}", issue.unwrap_or_default())
    }

    #[test]
    fn the_json_of_criteria_by_which_an_evaluation_is_known_stays_as_it_is() {
        let pattern = Criterion::Pattern(Box::new(Regex::new("^a.$").unwrap()));
        let length = Criterion::Length { min: None, max: Some(4), in_tokens: true };
        let keywords = Criterion::Keywords { all: vec!["a".into()], any: Vec::new(), none: Vec::new() };
        let schema = Criterion::Json(Some(Box::new(JsonSchema::new(json!({ "type": "object" })).unwrap())));
        let all = json!([Criterion::Exact, keywords, pattern, length, schema, Criterion::Json(None)]);
        let expected = json!([
            "exact",
            { "keywords": { "all": ["a"], "any": [] } },
            { "pattern": "^a.$" },
            { "length": { "min": null, "max": 4, "inTokens": true } },
            { "json": { "type": "object" } },
            { "json": null },
        ]);
        assert_eq!(all, expected);
    }

    #[test]
    fn each_criterion_says_what_is_wrong_and_gives_nothing_away() {
        let words = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        let keywords =
            Criterion::Keywords { all: words(&["alpha", "Beta"]), any: words(&["x1", "x2"]), none: Vec::new() };
        let without = Criterion::Keywords { all: Vec::new(), any: Vec::new(), none: words(&["sorry", "cannot"]) };
        let length = Criterion::Length { min: Some(2), max: Some(4), in_tokens: true };
        let schema = json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } });
        let schema = Criterion::Json(Some(Box::new(JsonSchema::new(schema).unwrap())));
        for (criterion, output, expected) in [
            (&Criterion::Exact, " Four.\n", "true 1 "),
            (&Criterion::Exact, "four.", "false 0 the output is not exactly what was expected"),
            (&keywords, "ALPHA beta x2", "true 1 "),
            (
                &keywords,
                "alpha",
                "false 0.3333333333333333 missing: 1 of 2 required words; missing: any word from a list of 2",
            ),
            (
                &Criterion::Pattern(Box::new(pattern(r"^\d{4}-\d\d$").unwrap())),
                "May",
                "false 0 the output does not match the required pattern",
            ),
            (&Criterion::Pattern(Box::new(pattern(r"\d").unwrap())), "in 2026", "true 1 "),
            (
                &Criterion::NoPattern(Box::new(pattern(r"\d").unwrap())),
                "in 2026",
                "false 0 the output matches a pattern that it must not match",
            ),
            (&without, "Sorry, no.", "false 0.5 forbidden: 1 of 2 words occur"),
            (&Criterion::Similar(900), "Four.", "true 1 "),
            (&Criterion::Cost(0.05), "", "true 1 "),
            (&Criterion::Cost(0.01), "", "false 0 the answer cost $0.0200; the maximum is $0.01"),
            (&Criterion::Time(Duration::from_secs(2)), "", "true 1 "),
            (&Criterion::Time(Duration::from_secs(1)), "", "false 0 the answer took 1.5 s; the maximum is 1s"),
            (&length, "one, two!", "true 1 "),
            (&length, "one", "false 0 the output's length in tokens is 1; the minimum is 2"),
            (&length, "a b c d e", "false 0 the output's length in tokens is 5; the maximum is 4"),
            (
                &Criterion::Json(None),
                "{",
                "false 0 the output is not JSON: EOF while parsing an object at line 1 column 1",
            ),
            (&schema, r#"{"a": 1}"#, "true 1 "),
            (
                &schema,
                r#"{"a": "x"}"#,
                "false 0 the output does not match the required schema: `/a`: want integer, but got string",
            ),
        ] {
            assert_eq!(said(criterion, output), expected, "{output}");
        }
    }

    #[test]
    fn a_schema_that_reaches_outside_and_a_bad_pattern_are_refused() {
        let outside = JsonSchema::new(json!({ "$ref": "https://example.com/x.json" })).unwrap_err();
        assert!(outside.contains("only references within the schema"), "{outside}");
        assert!(JsonSchema::new(json!({ "type": 1 })).is_err());
        assert_eq!(pattern("(").unwrap_err(), "unclosed group");
    }
}
