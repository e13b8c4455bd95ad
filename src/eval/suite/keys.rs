//! All keys of a suite, as data.

use crate::chain::json::{Key, LIMITS, Object, Shape, key, schema_of};
use crate::eval::significance::MOST_REPETITIONS;
use serde_json::Value;

/// The kinds of criteria.
pub(in crate::eval) const KINDS: [&str; 11] =
    ["exact", "keywords", "regex", "length", "json", "jsonPath", "similar", "cost", "time", "command", "run"];

const KEYS: &[Key] = &[
    key("$schema", Shape::Text, "The JSON Schema of this file, for editors."),
    key("taskType", Shape::Text, "The kind of task, in a few words: `{task_type}` in the prompts."),
    key("prompt", Shape::Text, "The prompt to measure. `{text}` in it is replaced by the case's text."),
    key(
        "promptFile",
        Shape::Text,
        "A file with the prompt, relative to the suite's directory. `eval improve --write` writes to it.",
    ),
    key("prompts", Shape::Texts, "Several prompts to measure side by side, instead of `prompt`."),
    key(
        "promptFiles",
        Shape::Texts,
        "Several files with a prompt each, relative to the suite's directory, to measure side by side.",
    ),
    key("formatRequirements", Shape::Text, "What an output must look like. Default: none."),
    key("executor", Shape::Text, "The agent that answers the prompt; for cases that are trees, a chain."),
    key("executors", Shape::Texts, "Several executors to measure side by side, instead of `executor`."),
    key("evaluator", Shape::Text, "The agent that judges the answers. Default: only criteria judge."),
    key("evaluators", Shape::Texts, "Several agents that judge the answers, instead of `evaluator`."),
    key(
        "decide",
        Shape::Choice(&["majority", "all", "mean"]),
        "What several evaluators decide: an output passes if more than half of them pass it (majority, the default), if all do, or if the mean of their scores is at least 0.5 (mean).",
    ),
    key(
        "selectBest",
        Shape::Text,
        "The agent that compares the outputs of every two columns for each case, in both orders. Needs several executors or prompts.",
    ),
    key("improver", Shape::Text, "The agent that rewrites the prompt. Default: the evaluator, else the executor."),
    key(
        "scoreMode",
        Shape::Choice(&["strict", "clamp"]),
        "What a score outside 0 to 1 means: an invalid evaluation (strict, the default), or the nearest score (clamp).",
    ),
    key("minScore", Shape::Share, "The lowest score with which a case passes. Default: no minimum."),
    key("examples", Shape::Texts, "Texts that a prompt must not give away, in addition to those of the cases."),
    key(
        "repeat",
        Shape::Count(MOST_REPETITIONS),
        "How often each case is run, because a model may answer differently each time. `--repeat` overrides it. Default: 1.",
    ),
    key(
        "into",
        Shape::Text,
        "With cases that are trees: the file of each tree into which the prompt is written, such as `forge/agents/coder/prompt.md`. The chain then gets the case's text as its prompt. Default: the chain gets the prompt to measure.",
    ),
    key("limits", Shape::One(&LIMITS), "The limits of a whole evaluation."),
    key("cases", Shape::Objects(&CASE), "The cases that measure the prompt."),
    key(
        "casesFile",
        Shape::Text,
        "A file with the cases, relative to the suite's directory: .csv, .jsonl, or .json with an array.",
    ),
    key("defaults", Shape::One(&DEFAULTS), "What holds for every case, in addition to its own keys."),
];

/// The keys of a suite.
pub(super) static SUITE: Object = Object {
    name: "the suite",
    id: "suite",
    keys: KEYS,
    required: &["taskType"],
    one_of: &["prompt", "promptFile", "prompts", "promptFiles"],
    text: None,
};

/// The keys of an element of `cases`.
pub(super) static CASE: Object = Object {
    name: "a case",
    id: "case",
    keys: &[
        key("id", Shape::Text, "The ID of the case, unique in the suite."),
        key("text", Shape::Text, "The input: `{text}` in the prompts."),
        key("textFile", Shape::Text, "A file with the input, relative to the suite's directory."),
        key("expected", Shape::Text, "The expected output: `{expected_output}` in the prompts."),
        key("expectedFile", Shape::Text, "A file with the expected output, relative to the suite's directory."),
        key(
            "repeat",
            Shape::Count(MOST_REPETITIONS),
            "How often this case is run. Default: as often as the suite says.",
        ),
        key(
            "tree",
            Shape::Text,
            "A directory, relative to the suite's. The executor is a chain, which works in a copy of it with the project's `forge/`.",
        ),
        key("commit", Shape::Text, "A commit of the project's repository, instead of `tree`."),
        key("hidden", Shape::Text, "A directory whose files are added to the tree before commands judge the work."),
        key("output", Shape::Text, "A recorded output, which is judged instead of asking the executor."),
        key("outputFile", Shape::Text, "A file with the recorded output, relative to the suite's directory."),
        key(
            "label",
            Shape::Choice(&["pass", "fail"]),
            "Whether the recorded output is good, as a person says. The judges are compared with it.",
        ),
        key("vars", Shape::TextMap, "Variables: `{NAME}` in the prompt is replaced by the value."),
        key("tags", Shape::Texts, "Words that group cases: `--only TAG` runs those that have one."),
        key("criteria", Shape::Objects(&CRITERION), "What the output must be, judged without a model."),
    ],
    required: &["id"],
    one_of: &[],
    text: None,
};

/// The keys of `defaults`.
static DEFAULTS: Object = Object {
    name: "`defaults`",
    id: "defaults",
    keys: &[
        key("criteria", Shape::Objects(&CRITERION), "What every output must be, before the criteria of its case."),
        key("vars", Shape::TextMap, "Variables for cases that do not set them."),
        key("tags", Shape::Texts, "Tags that every case has."),
    ],
    required: &[],
    one_of: &[],
    text: None,
};

/// A file of cases, as an object.
pub(super) static CASES_FILE: Object = Object {
    name: "the file of cases",
    id: "casesFile",
    keys: &[key("cases", Shape::Objects(&CASE), "The cases.")],
    required: &["cases"],
    one_of: &[],
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
            "exact (the expected output), keywords, regex, length, json (with or without a schema), jsonPath, similar (to the expected output), cost, time, command, or run (of the chain in a tree).",
        ),
        key("all", Shape::Texts, "keywords: all of these must occur."),
        key("any", Shape::Texts, "keywords: at least one of these must occur."),
        key("none", Shape::Texts, "keywords: none of these may occur."),
        key(
            "pattern",
            Shape::Text,
            "regex, jsonPath: what must match somewhere in the output, or in the values at `path` (Rust's regex syntax; `^` and `$` are its ends).",
        ),
        key("not", Shape::Flag, "regex: `true` if `pattern` must not match."),
        key("min", Shape::Count(1_000_000), "length: the minimum."),
        key("max", Shape::Count(1_000_000), "length: the maximum."),
        key("unit", Shape::Choice(&["characters", "tokens"]), "length: what is counted. Default: characters."),
        key("schema", Shape::Anything, "json: the JSON Schema itself."),
        key("schemaFile", Shape::Text, "json: a file with the JSON Schema, relative to the suite's directory."),
        key(
            "path",
            Shape::Text,
            "jsonPath: which values are meant (RFC 9535), such as `$.items[*].name`. There must be one.",
        ),
        key("equals", Shape::Anything, "jsonPath: what each of the values must be. Default: anything."),
        key("minScore", Shape::Share, "similar: the lowest likeness to the expected output that passes, from 0 to 1."),
        key("maxCost", Shape::Amount, "cost: the most that the answer may cost, in US dollars."),
        key("maxTime", Shape::Duration, "time: the longest that the answer may take: `20s`."),
        key(
            "run",
            Shape::TextOrTexts,
            "command: the command, which gets the output on standard input. A string runs under `sh -c`; an array is a program and its arguments.",
        ),
        key("timeout", Shape::Duration, "command: the longest that it may take. Default: 5m."),
        key("state", Shape::Text, "run: how the run of the chain has to end, such as `complete`."),
        key("maxAttempts", Shape::Count(1_000_000), "run: the most attempts that it may have."),
        key(
            "maxRounds",
            Shape::Count(1_000_000),
            "run: the most rounds that it may take: one more than the rejections by judges.",
        ),
    ],
    required: &["type"],
    one_of: &[],
    text: None,
};

/// Returns the keys that belong to a kind of criterion.
pub(in crate::eval) fn keys_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "keywords" => &["all", "any", "none"],
        "regex" => &["pattern", "not"],
        "length" => &["min", "max", "unit"],
        "json" => &["schema", "schemaFile"],
        "jsonPath" => &["path", "equals", "pattern"],
        "similar" => &["minScore"],
        "cost" => &["maxCost"],
        "time" => &["maxTime"],
        "command" => &["run", "timeout"],
        "run" => &["state", "maxAttempts", "maxRounds"],
        _ => &[],
    }
}

/// The JSON Schema of a suite (draft 2020-12).
#[must_use]
pub fn suite_schema() -> Value {
    schema_of("forkhestra evaluation suite", &SUITE, &[&LIMITS, &CASE, &DEFAULTS, &CRITERION])
}
