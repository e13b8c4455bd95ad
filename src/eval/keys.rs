//! All keys of a suite, as data.

use crate::chain::json::{Key, LIMITS, Object, Shape, key, schema_of};
use serde_json::Value;

/// The kinds of criteria.
pub(super) const KINDS: [&str; 5] = ["exact", "keywords", "regex", "length", "json"];

const KEYS: &[Key] = &[
    key("$schema", Shape::Text, "The JSON Schema of this file, for editors."),
    key("taskType", Shape::Text, "The kind of task, in a few words: `{task_type}` in the prompts."),
    key("prompt", Shape::Text, "The prompt to measure. `{text}` in it is replaced by the case's text."),
    key(
        "promptFile",
        Shape::Text,
        "A file with the prompt, relative to the suite's directory. `eval improve --write` writes to it.",
    ),
    key("formatRequirements", Shape::Text, "What an output must look like. Default: none."),
    key("executor", Shape::Text, "The agent that answers the prompt."),
    key("evaluator", Shape::Text, "The agent that judges the answers. Default: only criteria judge."),
    key("improver", Shape::Text, "The agent that rewrites the prompt. Default: the evaluator, else the executor."),
    key(
        "scoreMode",
        Shape::Choice(&["strict", "clamp"]),
        "What a score outside 0 to 1 means: an invalid evaluation (strict, the default), or the nearest score (clamp).",
    ),
    key("minScore", Shape::Share, "The lowest score with which a case passes. Default: no minimum."),
    key("examples", Shape::Texts, "Texts that a prompt must not give away, in addition to those of the cases."),
    key("limits", Shape::One(&LIMITS), "The limits of a whole evaluation."),
    key("cases", Shape::Objects(&CASE), "The cases that measure the prompt."),
];

/// The keys of a suite.
pub(super) static SUITE: Object = Object {
    name: "the suite",
    id: "suite",
    keys: KEYS,
    required: &["taskType", "executor", "cases"],
    one_of: &["prompt", "promptFile"],
    text: None,
};

/// The keys of an element of `cases`.
static CASE: Object = Object {
    name: "a case",
    id: "case",
    keys: &[
        key("id", Shape::Text, "The ID of the case, unique in the suite."),
        key("text", Shape::Text, "The input: `{text}` in the prompts."),
        key("textFile", Shape::Text, "A file with the input, relative to the suite's directory."),
        key("expected", Shape::Text, "The expected output: `{expected_output}` in the prompts."),
        key("expectedFile", Shape::Text, "A file with the expected output, relative to the suite's directory."),
        key("criteria", Shape::Objects(&CRITERION), "What the output must be, judged without a model."),
    ],
    required: &["id"],
    one_of: &["text", "textFile"],
    text: None,
};

/// The keys of an element of `criteria`.
static CRITERION: Object = Object {
    name: "a criterion",
    id: "criterion",
    keys: &[
        key(
            "type",
            Shape::Choice(&KINDS),
            "exact (the expected output), keywords, regex, length, or json (with or without a schema).",
        ),
        key("all", Shape::Texts, "keywords: all of these must occur."),
        key("any", Shape::Texts, "keywords: at least one of these must occur."),
        key(
            "pattern",
            Shape::Text,
            "regex: what must match somewhere in the output (Rust's regex syntax; `^` and `$` are its ends).",
        ),
        key("min", Shape::Count(1_000_000), "length: the minimum."),
        key("max", Shape::Count(1_000_000), "length: the maximum."),
        key("unit", Shape::Choice(&["characters", "tokens"]), "length: what is counted. Default: characters."),
        key("schema", Shape::Anything, "json: the JSON Schema itself."),
        key("schemaFile", Shape::Text, "json: a file with the JSON Schema, relative to the suite's directory."),
    ],
    required: &["type"],
    one_of: &[],
    text: None,
};

/// Returns the keys that belong to a kind of criterion.
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
