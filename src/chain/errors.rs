//! The errors of the chain language and of config files: one named constructor each, with all prose in one place.

use super::duration::DurationError;
use super::name::NameError;
use crate::source::{Diagnostic, Place, Text, nearest};

/// The code of [`too_deep`], which stops the parser.
pub(super) const TOO_DEEP: &str = "chain/too-deep";

// The chain language.

/// The help for `a & b`, `a, b` and `a | b`.
const ONE_AFTER_THE_OTHER: &str = "steps cannot run at the same time: they run one after the other, `coder -> test`";

pub(super) fn empty_chain(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/empty", "the chain is empty")
        .at(at, "no step here")
        .help("write at least one step: forkhestra \"coder:3 -> reviewer\"")
}

pub(super) fn nothing_before_arrow(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/arrow", "there is nothing before this `->`")
        .at(at, "an agent, a check or a group is missing")
        .help("name what runs before the arrow, or remove the arrow")
}

pub(super) fn nothing_after_arrow(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/arrow", "there is nothing after this `->`")
        .at(at, "an agent, a check or a group is missing")
        .help("name what runs after the arrow, or remove the arrow")
}

pub(super) fn missing_arrow(at: &Place, found: &str) -> Diagnostic {
    let help = match found {
        "-" => "write the arrow without a space: `->`",
        "→" | "=>" | ">" | ">>" | "&&" | ";" => "write the arrow as `->`",
        "," | "|" | "&" | "+" => ONE_AFTER_THE_OTHER,
        _ => "write `->` between the steps",
    };
    Diagnostic::error("chain/missing-arrow", format!("`->` is missing before `{found}`"))
        .at(at, "expected `->`")
        .help(help)
}

pub(super) fn empty_group(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/empty-group", "the group is empty")
        .at(at, "no step here")
        .help("name the steps that the group repeats: (coder -> build):3")
}

pub(super) fn stray_close(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/parenthesis", "this `)` has no matching `(`")
        .at(at, "no group is open")
        .help("remove it, or open a group with `(`")
}

pub(super) fn unclosed(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/parenthesis", "this group is never closed")
        .at(at, "opened here")
        .help("close it with `)`, followed by `:N` for up to N rounds")
}

pub(super) fn too_deep(at: &Place, deepest: usize) -> Diagnostic {
    Diagnostic::error(TOO_DEEP, format!("groups are nested more than {deepest} levels deep"))
        .at(at, "too deep")
        .help("flatten the groups")
}

pub(super) fn missing_count(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/count", "a count is missing after `:`")
        .at(at, "expected a number")
        .help("write the maximum number of iterations, `coder:3`, or remove the colon")
}

pub(super) fn bad_count(at: &Place, count: &str, why: &str) -> Diagnostic {
    Diagnostic::error("chain/count", format!("`{count}` is not a valid count"))
        .at(at, why)
        .help("write the maximum number of iterations or rounds, from 1 to 1,000,000: `coder:3`, `(coder -> test):5`")
}

pub(super) fn two_counts(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/count", "a step can have only one count")
        .at(at, "a second count follows this one")
        .help("keep one of the two numbers")
}

pub(super) fn empty_name(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/name", "a name is missing before `:`")
        .at(at, "expected a name")
        .help("name the agent: `coder:3`")
}

pub(super) fn blank_in_name(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/name", "a name cannot have spaces around its `:`")
        .at(at, "spaces here")
        .help("write it without spaces: `tasks:manager`")
}

pub(super) fn bad_name(text: &Text, part: &str, fault: &NameError) -> Diagnostic {
    let (span, character) = match fault {
        NameError::Start(span, character) | NameError::Character(span, character) => (span.clone(), Some(*character)),
        NameError::Empty(span) | NameError::EndsInCount(span) => (span.clone(), None),
    };
    let help = match character {
        Some('-') if part.starts_with("--") => "write options outside the quoted chain",
        Some('/' | '\\' | '~') => {
            "a path is not a valid name; give the program a name in `agents` with `\"command\": \"./path\"`"
        }
        Some(',' | '|' | '&' | '+') => ONE_AFTER_THE_OTHER,
        Some('→' | '>' | '=' | ';') => "write the arrow as `->`",
        _ if part.starts_with("./") => {
            "a path is not a valid name; give the program a name in `agents` with `\"command\": \"./path\"`"
        }
        _ => {
            "a name consists of letters, digits, `_`, `.` and `-`, starts with a letter or digit, and may have parts joined by `:`"
        }
    };
    Diagnostic::error("chain/name", format!("`{part}` is not a valid name"))
        .at(&text.place_of(span), name_label(fault))
        .help(help)
}

fn name_label(fault: &NameError) -> String {
    match fault {
        NameError::Empty(_) => "a name is missing here".into(),
        NameError::Start(_, character) => format!("a name cannot start with {}", shown(*character)),
        NameError::Character(_, character) => format!("a name cannot contain {}", shown(*character)),
        NameError::EndsInCount(_) => "digits after the last `:` are a count".into(),
    }
}

fn shown(character: char) -> String {
    if character.is_control() || character.is_whitespace() {
        format!("{character:?}")
    } else {
        format!("`{character}`")
    }
}

// The config files.

pub(super) fn too_large(name: &str, bytes: usize, most: usize) -> Diagnostic {
    Diagnostic::error("config/too-large", format!("{name} is larger than {} MiB", most >> 20))
        .help(format!("it has {bytes} bytes; the limit is {most}. Move long prompts into files: `promptFile`"))
}

pub(super) fn nested_too_deep(at: &Place, deepest: usize) -> Diagnostic {
    Diagnostic::error("config/too-deep", format!("brackets are nested more than {deepest} levels deep"))
        .at(at, "too deep")
        .help("groups may be nested up to 64 levels deep")
}

pub(super) fn syntax(at: &Place, said: &str) -> Diagnostic {
    let text = at.source.text.trim_start();
    let help = if text.is_empty() {
        "the file is empty; write at least { \"chains\": {} }"
    } else if text.starts_with("---") || !text.starts_with(['{', '/', '[']) {
        "this looks like YAML or TOML; the file must be JSON or JSON5, an object in braces: { \"chains\": { \"ship\": \"coder:3 -> test\" } }"
    } else {
        "write JSON; comments, trailing commas and unquoted keys are allowed. There may be more errors after this one"
    };
    Diagnostic::error("config/syntax", format!("this is not valid JSON5: {said}")).at(at, "here").help(help)
}

/// Names that other tools use for our keys.
const OTHER_WORDS: [(&str, &str); 21] = [
    ("attempts", "iterations"),
    ("rounds", "iterations"),
    ("count", "iterations"),
    ("times", "iterations"),
    ("repeat", "iterations"),
    ("max", "iterations"),
    ("name", "agent"),
    ("cmd", "command"),
    ("script", "run"),
    ("command", "run"),
    ("exec", "run"),
    ("tools", "allowedTools"),
    ("prompt", "defaultPrompt"),
    ("system", "systemPrompt"),
    ("instructions", "systemPromptText"),
    ("cli", "backend"),
    ("budget", "cost"),
    ("variables", "vars"),
    ("environment", "env"),
    ("workflows", "chains"),
    ("pipelines", "chains"),
];

pub(super) fn unknown_key<'a>(
    at: &Place,
    key: &str,
    of: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Diagnostic {
    let other_word = || OTHER_WORDS.iter().find(|(word, _)| *word == key).map(|(_, ours)| *ours);
    let near =
        nearest(key, known.clone()).or_else(|| other_word().filter(|ours| known.clone().any(|key| key == *ours)));
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if key == "chain" => {
            "a chain cannot be a step: write its steps here, as text (`coder:3 -> test`) or as a `group`".into()
        }
        None => format!("known keys: {}", list(&known.collect::<Vec<_>>())),
    };
    Diagnostic::error("config/unknown-key", format!("{of} has no key `{key}`")).at(at, "unknown key").help(help)
}

pub(super) fn duplicate_key(at: &Place, key: &str, first: &Place) -> Diagnostic {
    Diagnostic::error("config/duplicate-key", format!("the key `{key}` appears twice"))
        .at(at, "second occurrence")
        .at(first, "first occurrence")
        .help("keep one of them")
}

pub(super) fn both_names(at: &Place, alias: &str, kept: &Place, name: &str) -> Diagnostic {
    Diagnostic::error("config/duplicate-key", format!("`{name}` and `{alias}` are two names of the same key"))
        .at(at, "another name of it")
        .at(kept, "the key")
        .help(format!("keep `{name}`, and remove `{alias}`"))
}

pub(super) fn agent_and_check(at: &Place, name: &str, agent: &Place) -> Diagnostic {
    Diagnostic::error("config/two-meanings", format!("`{name}` is both an agent and a check"))
        .at(at, "the check")
        .at(agent, "the agent")
        .help(
            "rename one of them: a step `{name}` would run the agent, and the check would never run"
                .replace("{name}", name),
        )
}

pub(super) fn missing_key(at: &Place, of: &str, key: &str) -> Diagnostic {
    Diagnostic::error("config/missing-key", format!("{of} needs the key `{key}`"))
        .at(at, format!("`{key}` is missing"))
        .help(match key {
            "chains" => "it may be empty: \"chains\": {}".to_string(),
            "steps" => "for example \"steps\": [{ \"agent\": \"coder\", \"iterations\": 3 }]".into(),
            "run" => "for example \"run\": \"cargo test\"".into(),
            "cases" => "for example \"cases\": [{ \"id\": \"greeting\", \"text\": \"Hello\" }]".into(),
            key => format!("add `{key}`; `forkhestra explain config/missing-key` says more"),
        })
}

pub(super) fn one_of(at: &Place, of: &str, keys: &[&str], found: &[&str]) -> Diagnostic {
    let message = if found.is_empty() {
        format!("{of} needs one of {}", either(keys))
    } else {
        format!("{of} can have only one of {}, but has {}", either(keys), list(found))
    };
    if of != "a step" {
        let what = if found.is_empty() { "write one of them" } else { "keep one of them" };
        return Diagnostic::error("config/one-of", message).at(at, "in this object").help(what);
    }
    Diagnostic::error("config/step", message)
        .at(at, "this step")
        .help("for example { \"agent\": \"coder\", \"iterations\": 3 }")
}

pub(super) fn wrong_kind(at: &Place, what: &str, wanted: &str, found: &str) -> Diagnostic {
    Diagnostic::error("config/type", format!("{what} must be {wanted}, not {found}"))
        .at(at, format!("expected {wanted}"))
}

pub(super) fn empty_value(at: &Place, key: &str) -> Diagnostic {
    let key = if key.contains(' ') { key.to_string() } else { format!("`{key}`") };
    Diagnostic::error("config/empty", format!("{key} is empty")).at(at, "nothing to run").help("name a program")
}

pub(super) fn bad_number(at: &Place, key: &str, number: f64, most: u32) -> Diagnostic {
    Diagnostic::error("config/count", format!("`{key}` cannot be {number}"))
        .at(at, format!("expected a whole number from 1 to {most}"))
        .help("write a positive whole number, or leave it out")
}

pub(super) fn bad_share(at: &Place, key: &str, number: f64) -> Diagnostic {
    Diagnostic::error("config/share", format!("`{key}` cannot be {number}"))
        .at(at, "out of range")
        .help("write a number from 0 to 1, such as 0.8")
}

pub(super) fn bad_amount(at: &Place, key: &str, number: f64) -> Diagnostic {
    Diagnostic::error("config/amount", format!("`{key}` cannot be {number}"))
        .at(at, "expected a number above zero")
        .help("leave it out for no limit")
}

pub(super) fn unknown_choice(at: &Place, key: &str, found: &str, choices: &[&str]) -> Diagnostic {
    let help = match nearest(found, choices.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? It is one of {}", either(choices)),
        None => format!("use {}", either(choices)),
    };
    Diagnostic::error("config/choice", format!("`{key}` cannot be `{found}`")).at(at, "unknown value").help(help)
}

pub(super) fn no_steps(at: &Place, key: &str) -> Diagnostic {
    if !matches!(key, "steps" | "group") {
        return Diagnostic::error("config/no-steps", format!("`{key}` is empty"))
            .at(at, "expected at least one element")
            .help(if key == "cases" { "add a case" } else { "add an element, or remove the key" });
    }
    Diagnostic::error("config/no-steps", format!("`{key}` is empty"))
        .at(at, "no step to run")
        .help("a chain or group without steps would succeed without doing anything; add a step or remove it")
}

pub(super) fn bad_variable_name(at: &Place, name: &str) -> Diagnostic {
    Diagnostic::error("config/variable-name", format!("`{name}` is not a valid variable name"))
        .at(at, "use letters, digits and `_`, and do not start with a digit")
}

pub(super) fn bad_config_name(at: &Place, name: &str, fault: &NameError) -> Diagnostic {
    Diagnostic::error("config/name", format!("`{name}` is not a valid name")).at(at, name_label(fault)).help(
        "a name consists of letters, digits, `_`, `.` and `-`, starts with a letter or digit, and may have parts joined by `:`",
    )
}

pub(super) fn loop_disagrees(at: &Place, looped: bool) -> Diagnostic {
    let message = if looped { "a loop needs `iterations`" } else { "`loop: false` contradicts `iterations`" };
    Diagnostic::error("config/loop", message)
        .at(at, "does not agree with `iterations`")
        .help("`iterations` alone is enough: with it the step loops, without it the step runs once")
}

pub(super) fn key_does_not_fit(at: &Place, key: &str, of: &str) -> Diagnostic {
    Diagnostic::error("config/step", format!("{of} does not take `{key}`")).at(at, "not allowed here").help(match of {
        "a group" => "set it on the steps in the group; `iterations` is the group's number of rounds",
        _ => "a check is a command that runs once and passes if it exits with code 0",
    })
}

pub(super) fn bad_marker(at: &Place, marker: &str) -> Diagnostic {
    Diagnostic::error("config/marker", format!("`{marker}` is not a valid marker"))
        .at(at, "expected 4 to 200 printable ASCII characters without spaces")
        .help("start it with a letter or digit, and do not end it with `*`, `_` or a backtick; the default is FORKHESTRA_COMPLETE")
}

pub(super) fn limit_without_value<'a>(at: &Place, known: impl Iterator<Item = &'a str>) -> Diagnostic {
    Diagnostic::error("config/limit", "a limit is written as NAME=VALUE").at(at, "no `=` here").help(format!(
        "for example {} time=2h; the limits are {}",
        at.source.name,
        list(&known.collect::<Vec<_>>())
    ))
}

pub(super) fn bad_limit(at: &Place, name: &str, value: &str, wanted: &str) -> Diagnostic {
    let example = match name {
        "cost" => "5",
        "tokens" => "1000000",
        "attempts" => "50",
        "rejections" => "15",
        _ => "3",
    };
    Diagnostic::error("config/limit", format!("the limit `{name}` cannot be `{value}`"))
        .at(at, wanted)
        .help(format!("for example {} {name}={example}", at.source.name))
}

pub(super) fn unknown_limit<'a>(at: &Place, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Diagnostic {
    let near = nearest(name, known.clone()).map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    Diagnostic::error("config/unknown-key", format!("there is no limit `{name}`"))
        .at(at, "unknown limit")
        .help(format!("{near}the limits are {}", list(&known.collect::<Vec<_>>())))
}

/// Returns the error for a text that is not a valid length of time. `what` names its key or option.
#[must_use]
pub fn bad_duration(at: &Place, what: &str, text: &str, fault: DurationError) -> Diagnostic {
    let (why, help) = match fault {
        DurationError::NoUnit => {
            ("a number without a unit", format!("for {text} seconds write `{text}s`; the units are d, h, m, s and ms"))
        }
        DurationError::NotPositive => {
            ("must be more than zero", "leave it out for the default, or write a length of time: `10m`".into())
        }
        DurationError::TooLong => ("more than ten years", "leave it out for the default".into()),
        DurationError::Malformed => {
            ("not a length of time", "write whole numbers with units, largest first: `90s`, `10m`, `1h30m`".into())
        }
    };
    Diagnostic::error("config/duration", format!("{what} cannot be `{text}`")).at(at, why).help(help)
}

/// Formats a list as "`a`, `b` and `c`", with backticks.
fn list(words: &[&str]) -> String {
    joined(words, "and")
}

/// Returns names of which one is meant: `` `a`, `b` or `c` ``.
pub(super) fn either(words: &[&str]) -> String {
    joined(words, "or")
}

fn joined(words: &[&str], last_word: &str) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} {last_word} {last}", rest.join(", ")),
        None => String::new(),
    }
}

pub(super) fn trust_of_a_project(at: &Place) -> Diagnostic {
    Diagnostic::error("config/trust", "a project cannot decide how far it is trusted")
        .at(at, "not allowed in a project's config")
        .help("set `trust` in your own config, ~/.config/forkhestra/chains.json")
}

pub(super) fn unused_agent(at: &Place, name: &str, why: &str) -> Diagnostic {
    Diagnostic::warning("config/unused-agent", format!("the agent `{name}` is not used: {why}"))
        .at(at, "this agent")
        .help("to use it under another name: `\"agents\": { \"NAME\": { \"systemPrompt\": \"THIS FILE\" } }`")
}

pub(super) fn not_a_pointer(at: &Place, text: &str) -> Diagnostic {
    Diagnostic::error("config/pointer", format!("`{text}` is not a JSON Pointer"))
        .at(at, "here")
        .help("a pointer begins with a slash: /message/text")
}

pub(super) fn any_line_is_final(at: &Place) -> Diagnostic {
    Diagnostic::error("config/reader", "any line could be the final message, also the output of a tool")
        .at(at, "this rule has no condition")
        .help("say which line it is: \"when\": { \"/type\": \"result\" }")
}

pub(super) fn text_without_tools(at: &Place) -> Diagnostic {
    Diagnostic::error("config/reader", "the final message is the last text, but nothing says what a tool call is")
        .at(at, "this rule has no `at`")
        .help("describe tool calls with `tool`, or say with `at` where the final message is")
}

pub(super) fn tool_is_final(at: &Place, rule: &str) -> Diagnostic {
    let message = format!("a tool call could be the final message: `{rule}` and `tool` can match the same line");
    Diagnostic::error("config/reader", message)
        .at(at, "this rule")
        .help("in `when`, let both name the same pointer, with different values; \"null\" is a value that is missing")
}

pub(super) fn unreadable_agent(name: &str) -> Diagnostic {
    Diagnostic::warning("config/unused-agent", format!("{name} is not used: it is not a readable file in UTF-8"))
}
