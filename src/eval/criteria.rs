//! Criteria that need no model: exact, keywords, a pattern, a length, JSON and its schema.

use super::cost::is_bounded;
use super::tokens::tokens;
use boon::{Compiler, SchemaIndex, Schemas, UrlLoader};
use regex::{Regex, RegexBuilder};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::error::Error;

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
    },
    /// A match of this pattern, anywhere in the output.
    Pattern(#[serde(serialize_with = "as_text")] Box<Regex>),
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
}

fn as_text<S: Serializer>(pattern: &Regex, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(pattern.as_str())
}

/// A compiled JSON Schema.
pub struct JsonSchema {
    source: Value,
    schemas: Schemas,
    index: SchemaIndex,
}

impl Serialize for JsonSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.source.serialize(serializer)
    }
}

impl std::fmt::Debug for JsonSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.source)
    }
}

/// A schema may refer only to itself: nothing is fetched without the user's knowledge.
struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        Err(format!("{url} is another file, and only references within the schema are followed").into())
    }
}

impl JsonSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub(super) fn new(schema: Value) -> Result<Self, String> {
        const URL: &str = "mem:///schema.json";
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.use_loader(Box::new(NoLoader));
        compiler.add_resource(URL, schema.clone()).map_err(|error| one_line(&error.to_string()))?;
        let index = compiler.compile(URL, &mut schemas).map_err(|error| {
            let words = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            one_line(&words)
        })?;
        Ok(Self { source: schema, schemas, index })
    }

    /// Returns the first thing that is wrong, and where.
    fn fault(&self, value: &Value) -> Option<String> {
        if !is_bounded(&self.source, value) {
            return Some("it cannot be checked: the schema has too many branches for a value this deep".into());
        }
        let error = self.schemas.validate(value, self.index).err()?;
        let mut leaf = &error;
        while let Some(cause) = leaf.causes.first() {
            leaf = cause;
        }
        let place = leaf.instance_location.to_string();
        let place = if place.is_empty() { "the whole value".into() } else { format!("`{place}`") };
        Some(format!("{place}: {}", one_line(&leaf.kind.to_string())))
    }
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

impl Criterion {
    pub(super) fn measure(&self, output: &str, expected: Option<&str>) -> Measured {
        let said = |issue: Option<String>| Measured {
            pass: issue.is_none(),
            score: if issue.is_none() { 1.0 } else { 0.0 },
            issue,
        };
        match self {
            Self::Exact => {
                let same = expected.is_some_and(|expected| expected.trim() == output.trim());
                said((!same).then(|| "the output is not exactly what was expected".into()))
            }
            Self::Keywords { all, any } => keywords(&output.to_lowercase(), all, any),
            Self::Pattern(pattern) => {
                let found = pattern.is_match(output);
                said((!found).then(|| "the output does not match the required pattern".into()))
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
fn keywords(output: &str, all: &[String], any: &[String]) -> Measured {
    let hits = |words: &[String]| words.iter().filter(|word| output.contains(&word.to_lowercase())).count();
    let (all_hits, any_hits) = (hits(all), hits(any));
    let wanted = all.len() + usize::from(!any.is_empty());
    let found = all_hits + usize::from(any_hits > 0);
    let mut issues = Vec::new();
    if all_hits < all.len() {
        issues.push(format!("missing: {} of {} required words", all.len() - all_hits, all.len()));
    }
    if any_hits == 0 && !any.is_empty() {
        issues.push(format!("missing: any word from a list of {}", any.len()));
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
        let Measured { pass, score, issue } = criterion.measure(output, Some("Four."));
        format!("{pass} {score} {}", issue.unwrap_or_default())
    }

    #[test]
    fn the_json_of_criteria_by_which_an_evaluation_is_known_stays_as_it_is() {
        let pattern = Criterion::Pattern(Box::new(Regex::new("^a.$").unwrap()));
        let length = Criterion::Length { min: None, max: Some(4), in_tokens: true };
        let keywords = Criterion::Keywords { all: vec!["a".into()], any: Vec::new() };
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
        let keywords = Criterion::Keywords { all: words(&["alpha", "Beta"]), any: words(&["x1", "x2"]) };
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
