//! Every key of a suite, as data.

use crate::chain::json::{Key, LIMITS, Object, Shape, key, schema_of};
use serde_json::Value;

/// The kinds of criteria.
pub(super) const KINDS: [&str; 5] = ["exact", "keywords", "regex", "length", "json"];

const KEYS: &[Key] = &[
    key("$schema", Shape::Text, "The JSON Schema of this file, for editors."),
    key("taskType", Shape::Text, "The kind of task, in a few words: `{task_type}` of the prompts."),
    key("prompt", Shape::Text, "The prompt that is measured. Where it holds `{text}`, the case's text stands there."),
    key("promptFile", Shape::Text, "A file with it, from the suite's folder. `eval improve --write` writes it back."),
    key("formatRequirements", Shape::Text, "What an output has to look like. Default: none."),
    key("executor", Shape::Text, "The agent that answers the prompt."),
    key("evaluator", Shape::Text, "The agent that judges the answers. Default: criteria alone judge."),
    key("improver", Shape::Text, "The agent that rewrites the prompt. Default: the evaluator, else the executor."),
    key(
        "scoreMode",
        Shape::Choice(&["strict", "clamp"]),
        "What a score outside of 0 to 1 is: no evaluation (strict, the default), or the nearest score.",
    ),
    key("minScore", Shape::Share, "The least score with which a case passes. Default: what passes, passes."),
    key("examples", Shape::Texts, "Texts that a prompt must not give away, beside the cases' own."),
    key("limits", Shape::One(&LIMITS), "Limits of a whole evaluation."),
    key("cases", Shape::Objects(&CASE), "What is measured by."),
];

/// A suite.
pub(super) static SUITE: Object = Object {
    name: "the suite",
    id: "suite",
    keys: KEYS,
    required: &["taskType", "executor", "cases"],
    one_of: &["prompt", "promptFile"],
    text: None,
};

/// An element of `cases`.
static CASE: Object = Object {
    name: "a case",
    id: "case",
    keys: &[
        key("id", Shape::Text, "Its name, which no other case has."),
        key("text", Shape::Text, "The input: `{text}` of the prompts."),
        key("textFile", Shape::Text, "A file with it, from the suite's folder."),
        key("expected", Shape::Text, "What should come out: `{expected_output}` of the prompts."),
        key("expectedFile", Shape::Text, "A file with it, from the suite's folder."),
        key("criteria", Shape::Objects(&CRITERION), "What the output has to be, judged without a model."),
    ],
    required: &["id"],
    one_of: &["text", "textFile"],
    text: None,
};

/// An element of `criteria`.
static CRITERION: Object = Object {
    name: "a criterion",
    id: "criterion",
    keys: &[
        key(
            "type",
            Shape::Choice(&KINDS),
            "exact (the expected output), keywords, regex, length, or json (with or without a schema).",
        ),
        key("all", Shape::Texts, "keywords: every one of these must be there."),
        key("any", Shape::Texts, "keywords: one of these must be there."),
        key(
            "pattern",
            Shape::Text,
            "regex: what must match somewhere (the syntax of Rust's regex; `^` and `$` are the ends).",
        ),
        key("min", Shape::Count(1_000_000), "length: at least so long."),
        key("max", Shape::Count(1_000_000), "length: at most so long."),
        key("unit", Shape::Choice(&["characters", "tokens"]), "length: what is counted. Default: characters."),
        key("schema", Shape::Anything, "json: the JSON Schema, here."),
        key("schemaFile", Shape::Text, "json: a file with it, from the suite's folder."),
    ],
    required: &["type"],
    one_of: &[],
    text: None,
};

/// Which keys belong to a kind of criterion.
pub(super) fn keys_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "keywords" => &["all", "any"],
        "regex" => &["pattern"],
        "length" => &["min", "max", "unit"],
        "json" => &["schema", "schemaFile"],
        _ => &[],
    }
}

/// The JSON Schema of a suite (draft 2020-12).
#[must_use]
pub fn suite_schema() -> Value {
    schema_of("forkhestra evaluation suite", &SUITE, &[&LIMITS, &CASE, &CRITERION])
}
