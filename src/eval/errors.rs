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

pub(super) fn no_tree(at: &Place, id: &str) -> Diagnostic {
    Diagnostic::error("suite/tree", format!("the case `{id}` has no tree"))
        .at(at, "other cases have one")
        .help("give every case a `tree` or a `commit`, or move the others into a suite of their own")
}

pub(super) fn hidden_without_tree(at: &Place) -> Diagnostic {
    Diagnostic::error("suite/tree", "`hidden` adds files to a tree, and this case has none")
        .at(at, "no tree")
        .help("give the case a `tree` or a `commit`")
}

pub(super) fn bad_into(at: &Place, no_trees: bool) -> Diagnostic {
    let why = if no_trees { "no case has a tree" } else { "not the path of a file in the trees" };
    Diagnostic::error("suite/into", "`into` names a file in the tree of each case")
        .at(at, why)
        .help("a path such as forge/agents/coder/prompt.md, and a `tree` or a `commit` in each case")
}

/// Reports trees that cannot be read. `why` is one line for each.
pub(super) fn trees_unreadable(why: &[String]) -> Vec<Diagnostic> {
    let error = |why: &String| {
        Diagnostic::error("suite/tree", format!("the tree of a case cannot be read: {why}"))
            .help("a tree is a directory that git can read, or a commit of the project's repository")
    };
    why.iter().map(error).collect()
}

pub(super) fn label_without_output(at: &Place) -> Diagnostic {
    Diagnostic::error("suite/label", "a `label` says whether a recorded output is good, and there is none")
        .at(at, "no `output` in this case")
        .help("add the output that a person has judged, as `output` or `outputFile`")
}

/// Reports recorded outputs where a prompt is to be improved.
#[must_use]
pub fn outputs_refused() -> Diagnostic {
    Diagnostic::error("eval/recorded", "eval improve needs answers to each prompt, and cases have a recorded output")
        .help("`forkhestra eval run` judges them; `--only` and `--case` choose the other cases")
}

pub(super) fn no_executor(at: &Place) -> Diagnostic {
    Diagnostic::error("suite/executor", "the suite has no executor")
        .at(at, "neither `executor` nor `executors` is here")
        .help("name the agent that answers the prompt: executor: \"claude\"")
}

pub(super) fn twice(at: &Place, role: &str, name: &str) -> Diagnostic {
    Diagnostic::error("suite/executor", format!("the {role} `{name}` is named twice"))
        .at(at, "again")
        .help("give agents that differ names of their own in forge/chains.json")
}

/// Reports several prompts or executors where only one can be improved.
#[must_use]
pub fn matrix_refused(what: &str) -> Diagnostic {
    Diagnostic::error("eval/matrix", format!("{what} takes one executor and one prompt, and the suite has several"))
        .help("measure them side by side with `forkhestra eval run`, then use a suite of its own for the best one")
}

pub(super) fn nothing_to_select(at: &Place) -> Diagnostic {
    Diagnostic::error("suite/select-best", "`selectBest` compares outputs, and there is one executor with one prompt")
        .at(at, "nothing to choose from")
        .help("name several `executors`, `prompts` or `promptFiles`")
}

pub(super) fn select_on_trees(at: &Place) -> Diagnostic {
    Diagnostic::error("suite/select-best", "`selectBest` compares texts, and the cases are trees of files")
        .at(at, "there is no text to compare")
        .help("judge the work on trees with `criteria` or an `evaluator`")
}

pub(super) fn no_cases(at: &Place) -> Diagnostic {
    Diagnostic::error("suite/no-cases", "the suite has no cases")
        .at(at, "neither `cases` nor `casesFile` is here")
        .help("list them as `cases`, or name a .csv or .jsonl file as `casesFile`")
}

pub(super) fn no_text(at: &Place, id: &str) -> Diagnostic {
    Diagnostic::error("suite/no-text", format!("the case `{id}` has no input"))
        .at(at, "it has neither `text` nor `textFile` nor `vars`")
        .help("give it a `text`, or `vars` that the prompt names")
}

pub(super) fn no_variable(at: &Place, id: &str, name: &str) -> Diagnostic {
    Diagnostic::error("suite/no-variable", format!("the case `{id}` has no variable `{name}`, which the prompt names"))
        .at(at, "other cases have it")
        .help("add it to its `vars`, or to those of `defaults`")
}

pub(super) fn unknown_tag(tag: &str, known: &[&str]) -> Diagnostic {
    let near = nearest(tag, known.iter().copied()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let listed = if known.is_empty() { "no case has one".into() } else { known.join(", ") };
    Diagnostic::error("suite/unknown-tag", format!("no case of the suite has the tag `{tag}`"))
        .help(format!("{near}its tags: {listed}"))
}

pub(super) fn none_left() -> Diagnostic {
    Diagnostic::error("suite/unknown-tag", "no case has these ids and one of these tags")
        .help("leave out --case or --only")
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

pub(super) fn bad_path(at: &Place, why: &str) -> Diagnostic {
    Diagnostic::error("suite/path", format!("the path is not valid: {why}"))
        .at(at, "in this path")
        .help("the syntax is that of RFC 9535: $.items[0].name")
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
