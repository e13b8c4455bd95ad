//! Diagnostics about suites, and about the prompts of an evaluation.

use crate::source::{Diagnostic, Place, counted, nearest};

/// The most IDs that a message lists.
const NAMED: usize = 12;

pub(super) fn unreadable(path: &str, why: &str) -> Diagnostic {
    let path = if path.is_empty() { "." } else { path };
    Diagnostic::error("suite/unreadable", format!("cannot read the suite {path}: {why}"))
        .help("a suite is a JSON or JSON5 file; `forkhestra explain suite/unreadable` says more")
}

pub(super) fn prompt_unreadable(path: &str, why: &str) -> Diagnostic {
    Diagnostic::error("eval/template", format!("cannot read the prompt {path}: {why}"))
        .help("fix it, or remove it to use the built-in one")
}

pub(super) fn not_filled_in(why: &str) -> Diagnostic {
    Diagnostic::error("eval/template", format!("a prompt cannot be filled in: {why}"))
        .help("fix it in the directory of --prompts")
}

pub(super) fn file_unreadable(at: &Place, path: &str, why: &str) -> Diagnostic {
    Diagnostic::error("suite/file", format!("cannot read {path}: {why}"))
        .at(at, "named here")
        .help("paths in a suite are relative to the suite's directory")
}

pub(super) fn blank(at: &Place, key: &str) -> Diagnostic {
    Diagnostic::error("suite/blank", format!("`{key}` is blank")).at(at, "no text here").help("provide a value")
}

pub(super) fn duplicate_id(at: &Place, id: &str, first: &Place, row: usize, first_row: usize) -> Diagnostic {
    Diagnostic::error("suite/duplicate-id", format!("cases {first_row} and {row} have the same id `{id}`"))
        .at(at, "the same id again")
        .at(first, "the first one")
        .help("results are identified by the id: change one of them")
}

pub(super) fn no_id(at: &Place, row: usize, is_padded: bool) -> Diagnostic {
    let why = if is_padded {
        "an id must not start or end with a space"
    } else {
        "an id is one line of at most 80 characters"
    };
    Diagnostic::error("suite/no-id", format!("case {row} has no usable id"))
        .at(at, why)
        .help("name it after what it tests")
}

pub(super) fn nobody_judges(at: &Place, id: &str) -> Diagnostic {
    Diagnostic::error("suite/nobody-judges", format!("nothing judges the case `{id}`"))
        .at(at, "it has no criteria, and the suite has no evaluator")
        .help("give it `criteria`, or name an `evaluator`")
}

pub(super) fn both(at: &Place, one: &str, other: &str) -> Diagnostic {
    Diagnostic::error("suite/both", format!("`{one}` and `{other}` are both set"))
        .at(at, "only one of them can apply")
        .help("keep one of them")
}

pub(super) fn foreign_key(at: &Place, key: &str, kind: &str, keys: &[&str]) -> Diagnostic {
    let takes = if keys.is_empty() { "it takes no other key".into() } else { format!("it takes {}", keys.join(", ")) };
    Diagnostic::error("suite/criterion-key", format!("`{key}` does not apply to a criterion of the type `{kind}`"))
        .at(at, "this would be ignored")
        .help(takes)
}

pub(super) fn lacks(at: &Place, kind: &str, what: &str) -> Diagnostic {
    Diagnostic::error("suite/criterion", format!("a criterion of the type `{kind}` needs {what}"))
        .at(at, "this one has none")
        .help("`forkhestra explain suite/criterion` says more")
}

pub(super) fn bad_pattern(at: &Place, why: &str) -> Diagnostic {
    Diagnostic::error("suite/pattern", format!("the pattern is not valid: {why}"))
        .at(at, "in this pattern")
        .help("the syntax is that of Rust's regex: no look-around, no backreferences")
}

pub(super) fn bad_schema(at: &Place, why: &str) -> Diagnostic {
    Diagnostic::error("suite/schema", format!("the schema cannot be used: {why}"))
        .at(at, "in this schema")
        .help("references in the JSON Schema must stay within it")
}

pub(super) fn bad_bounds(at: &Place, min: u32, max: u32) -> Diagnostic {
    Diagnostic::error("suite/bounds", format!("no output is at least {min} and at most {max} long"))
        .at(at, "`min` is greater than `max`")
        .help("swap them")
}

pub(super) fn unknown_case(id: &str, known: &[&str]) -> Diagnostic {
    let near = nearest(id, known.iter().copied()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let more = if known.len() > NAMED { format!(", and {} more", known.len() - NAMED) } else { String::new() };
    let listed = known.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    Diagnostic::error("suite/unknown-case", format!("the suite has no case `{id}`"))
        .help(format!("{near}its cases: {listed}{more}"))
}

pub(super) fn foreign_variable(at: &Place, name: &str, file: &str, known: &[&str]) -> Diagnostic {
    Diagnostic::error("eval/variable", format!("{file} has no variable `{name}`"))
        .at(at, "it would stay empty")
        .help(format!("its variables are {}", known.join(", ")))
}

pub(super) fn missing_variable(at: &Place, name: &str, file: &str) -> Diagnostic {
    Diagnostic::error("eval/missing-variable", format!("{file} does not use {{{name}}}"))
        .at(at, "without it the agent does not see what to work on")
        .help(format!("insert {{{name}}} where it belongs"))
}

pub(super) fn no_prompts(folder: &str) -> Diagnostic {
    Diagnostic::error("eval/no-prompts", format!("there is no prompt in {folder}"))
        .help("add prompt.execute.md, prompt.evaluation.md or prompt.improve.md; built-in prompts replace missing ones")
}

pub(super) fn same_session(at: &Place, executor: &str, evaluator: &str, word: &str) -> Diagnostic {
    Diagnostic::error(
        "eval/same-session",
        format!("the evaluator `{evaluator}` would continue the session of the executor `{executor}`"),
    )
    .at(at, "it would judge its own answers")
    .help(format!("remove `{word}` from the arguments of one of them"))
}

pub(super) fn budget_too_small(limit: u64, needed: usize) -> Diagnostic {
    Diagnostic::error(
        "eval/budget",
        format!("the token limit of {limit} is too small: the prompt of one case alone has {needed}"),
    )
    .help("raise it: --limit tokens=…")
}

pub(super) fn prompt_too_long(most: usize, tokens: usize) -> Diagnostic {
    Diagnostic::error(
        "eval/prompt-tokens",
        format!(
            "the prompt has {}, and a candidate may have at most {most}: no rewrite of it would pass",
            counted(tokens, "token")
        ),
    )
    .help(format!("raise it: --max-tokens {}", tokens.saturating_mul(2)))
}

pub(super) fn only_agents(at: &Place, name: &str) -> Diagnostic {
    Diagnostic::error("suite/agent", format!("`{name}` is not a single agent"))
        .at(at, "named here")
        .help("name an agent, without arrows, counts or groups")
}

/// The error of a suite that has too few cases to hold any out.
#[must_use]
pub fn too_few_cases(cases: usize) -> Diagnostic {
    Diagnostic::error("eval/holdout", format!("the suite has too few cases to hold any out ({cases})"))
        .help("add cases, or omit --holdout")
}
