//! Every fault of the language and of the config files: one named constructor each, all prose in one place.

use super::duration::DurationFault;
use super::name::NameFault;
use crate::source::{Diagnostic, Place, Text, nearest};

/// The code of [`too_deep`], which ends a parse.
pub(super) const TOO_DEEP: &str = "chain/too-deep";

// The chain language.

/// The help for `a & b`, `a, b` and `a | b`.
const ONE_AFTER_THE_OTHER: &str = "steps do not run at the same time: they run one after the other, `coder -> test`";

pub(super) fn empty_chain(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/empty", "the chain is empty")
        .at(at, "no agent here")
        .help("write at least one agent: forkhestra \"coder:3 -> reviewer\"")
}

pub(super) fn nothing_before_arrow(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/arrow", "nothing stands before this `->`")
        .at(at, "an agent, a check or a group is missing")
        .help("name what runs before the arrow, or remove it")
}

pub(super) fn nothing_after_arrow(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/arrow", "nothing stands after this `->`")
        .at(at, "an agent, a check or a group is missing")
        .help("name what runs after the arrow, or remove it")
}

pub(super) fn missing_arrow(at: &Place, found: &str) -> Diagnostic {
    let help = match found {
        "-" => "an arrow is written without a blank: `->`",
        "→" | "=>" | ">" | ">>" | "&&" | ";" => "the arrow is written `->`",
        "," | "|" | "&" | "+" => ONE_AFTER_THE_OTHER,
        _ => "write `->` between steps",
    };
    Diagnostic::error("chain/missing-arrow", format!("`->` is missing before `{found}`"))
        .at(at, "expected `->`")
        .help(help)
}

pub(super) fn empty_group(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/empty-group", "the group is empty")
        .at(at, "no agent here")
        .help("name what the group repeats: (coder -> build):3")
}

pub(super) fn stray_close(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/parenthesis", "this `)` closes nothing")
        .at(at, "no group is open")
        .help("remove it, or open a group with `(`")
}

pub(super) fn unclosed(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/parenthesis", "this group is never closed")
        .at(at, "opened here")
        .help("close it with `)`, and `:N` for up to N rounds")
}

pub(super) fn too_deep(at: &Place, deepest: usize) -> Diagnostic {
    Diagnostic::error(TOO_DEEP, format!("groups are nested more than {deepest} levels deep"))
        .at(at, "too deep")
        .help("flatten the groups")
}

pub(super) fn missing_count(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/count", "a count is missing after `:`")
        .at(at, "expected a number")
        .help("write how many iterations at most, `coder:3`, or remove the colon")
}

pub(super) fn bad_count(at: &Place, count: &str, why: &str) -> Diagnostic {
    Diagnostic::error("chain/count", format!("`{count}` is not a count"))
        .at(at, why)
        .help("write how many iterations at most, for example `coder:3`")
}

pub(super) fn two_counts(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/count", "an agent has one count")
        .at(at, "a second count stands after this one")
        .help("keep one of the two numbers")
}

pub(super) fn empty_name(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/name", "a name is missing before `:`")
        .at(at, "expected an agent")
        .help("name the agent: `coder:3`")
}

pub(super) fn blank_in_name(at: &Place) -> Diagnostic {
    Diagnostic::error("chain/name", "a name has no blanks around its `:`")
        .at(at, "blanks here")
        .help("write it together: `tasks:manager`")
}

pub(super) fn bad_name(text: &Text, part: &str, fault: &NameFault) -> Diagnostic {
    let (span, character) = match fault {
        NameFault::Start(span, character) | NameFault::Character(span, character) => (span.clone(), Some(*character)),
        NameFault::Empty(span) | NameFault::EndsInCount(span) => (span.clone(), None),
    };
    let help = match character {
        Some('-') if part.starts_with("--") => "options stand outside the quoted chain",
        Some('/' | '\\' | '~') => {
            "a path is no name; give the program a name in `agents` with `\"command\": \"./path\"`"
        }
        Some(',' | '|' | '&' | '+') => ONE_AFTER_THE_OTHER,
        Some('→' | '>' | '=' | ';') => "the arrow is written `->`",
        _ if part.starts_with("./") => {
            "a path is no name; give the program a name in `agents` with `\"command\": \"./path\"`"
        }
        _ => {
            "a name has letters, digits, `_`, `.` and `-`, begins with a letter or digit, and may have parts joined by `:`"
        }
    };
    Diagnostic::error("chain/name", format!("`{part}` is not a name"))
        .at(&text.place_of(span), name_label(fault))
        .help(help)
}

fn name_label(fault: &NameFault) -> String {
    match fault {
        NameFault::Empty(_) => "nothing here".into(),
        NameFault::Start(_, character) => format!("a name cannot begin with {}", shown(*character)),
        NameFault::Character(_, character) => format!("a name cannot hold {}", shown(*character)),
        NameFault::EndsInCount(_) => "a last part of digits is a count".into(),
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
    Diagnostic::error("config/too-large", format!("{name} is larger than 1 MiB"))
        .help(format!("it has {bytes} bytes; a config has at most {most}. Move long prompts into files: `promptFile`"))
}

pub(super) fn nested_too_deep(at: &Place, deepest: usize) -> Diagnostic {
    Diagnostic::error("config/too-deep", format!("brackets are nested more than {deepest} levels deep"))
        .at(at, "too deep")
        .help("groups may stand 64 deep in groups")
}

pub(super) fn syntax(at: &Place, said: &str) -> Diagnostic {
    let text = at.source.text.trim_start();
    let help = if text.starts_with("---") || !text.starts_with(['{', '/', '[']) {
        "this looks like YAML or TOML; the file is JSON or JSON5, an object in braces: { \"chains\": { \"ship\": \"coder:3 -> test\" } }"
    } else {
        "JSON, with comments, trailing commas and unquoted keys if you like. More faults may follow when this one is mended"
    };
    Diagnostic::error("config/syntax", format!("this is not JSON5: {said}")).at(at, "here").help(help)
}

/// What other tools call our keys.
const OTHER_WORDS: [(&str, &str); 20] = [
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
            "a chain is no step: write its steps here, as text (`coder:3 -> test`) or as a `group`".into()
        }
        None => format!("{of} has {}", list(&known.collect::<Vec<_>>())),
    };
    Diagnostic::error("config/unknown-key", format!("{of} has no key `{key}`")).at(at, "unknown key").help(help)
}

pub(super) fn duplicate_key(at: &Place, key: &str, first: &Place) -> Diagnostic {
    Diagnostic::error("config/duplicate-key", format!("the key `{key}` is there twice"))
        .at(at, "the second")
        .at(first, "the first")
        .help("keep one of them")
}

pub(super) fn agent_and_check(at: &Place, name: &str, agent: &Place) -> Diagnostic {
    Diagnostic::error("config/two-meanings", format!("`{name}` is an agent and a check"))
        .at(at, "the check")
        .at(agent, "the agent")
        .help(
            "rename one of them: a step `{name}` would be the agent, and the check would never run"
                .replace("{name}", name),
        )
}

pub(super) fn missing_key(at: &Place, of: &str, key: &str) -> Diagnostic {
    Diagnostic::error("config/missing-key", format!("{of} needs the key `{key}`"))
        .at(at, format!("`{key}` is missing"))
        .help(match key {
            "chains" => "an empty one will do: \"chains\": {}",
            "steps" => "for example \"steps\": [{ \"agent\": \"coder\", \"iterations\": 3 }]",
            _ => "for example \"run\": \"cargo test\"",
        })
}

pub(super) fn one_of(at: &Place, of: &str, keys: &[&str], found: &[&str]) -> Diagnostic {
    let message = if found.is_empty() {
        format!("{of} needs one of {}", list(keys))
    } else {
        format!("{of} has only one of {}, not {}", list(keys), list(found))
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
    Diagnostic::error("config/type", format!("{what} is {wanted}, not {found}")).at(at, format!("expected {wanted}"))
}

pub(super) fn empty_value(at: &Place, key: &str) -> Diagnostic {
    let key = if key.contains(' ') { key.to_string() } else { format!("`{key}`") };
    Diagnostic::error("config/empty", format!("{key} is empty")).at(at, "nothing to run").help("name a program")
}

pub(super) fn bad_number(at: &Place, key: &str, number: f64, most: u32) -> Diagnostic {
    Diagnostic::error("config/count", format!("`{key}` cannot be {number}"))
        .at(at, format!("a whole number from 1 to {most}"))
        .help("write a positive whole number, or leave it out")
}

pub(super) fn bad_share(at: &Place, key: &str, number: f64) -> Diagnostic {
    Diagnostic::error("config/share", format!("`{key}` cannot be {number}"))
        .at(at, "out of range")
        .help("a number from 0 to 1: 0.8")
}

pub(super) fn bad_amount(at: &Place, key: &str, number: f64) -> Diagnostic {
    Diagnostic::error("config/amount", format!("`{key}` cannot be {number}"))
        .at(at, "a number above zero")
        .help("leave it out for no limit")
}

pub(super) fn unknown_choice(at: &Place, key: &str, found: &str, choices: &[&str]) -> Diagnostic {
    Diagnostic::error("config/choice", format!("`{key}` cannot be `{found}`"))
        .at(at, "unknown value")
        .help(format!("one of {}", list(choices)))
}

pub(super) fn no_steps(at: &Place, key: &str) -> Diagnostic {
    if !matches!(key, "steps" | "group") {
        return Diagnostic::error("config/no-steps", format!("`{key}` is empty"))
            .at(at, "nothing in it")
            .help("write one, or remove it");
    }
    Diagnostic::error("config/no-steps", format!("`{key}` is empty"))
        .at(at, "no step to run")
        .help("a chain or group without steps would succeed without doing anything; add a step or remove it")
}

pub(super) fn bad_variable_name(at: &Place, name: &str) -> Diagnostic {
    Diagnostic::error("config/variable-name", format!("`{name}` cannot name a variable"))
        .at(at, "letters, digits and `_`, not beginning with a digit")
}

pub(super) fn bad_config_name(at: &Place, name: &str, fault: &NameFault) -> Diagnostic {
    Diagnostic::error("config/name", format!("`{name}` is not a name")).at(at, name_label(fault)).help(
        "a name has letters, digits, `_`, `.` and `-`, begins with a letter or digit, and may have parts joined by `:`",
    )
}

pub(super) fn loop_disagrees(at: &Place, looped: bool) -> Diagnostic {
    let message = if looped { "a loop needs `iterations`" } else { "`loop: false` contradicts `iterations`" };
    Diagnostic::error("config/loop", message)
        .at(at, "disagrees with `iterations`")
        .help("`iterations` alone says it: with it the step loops, without it the step runs once")
}

pub(super) fn key_does_not_fit(at: &Place, key: &str, of: &str) -> Diagnostic {
    Diagnostic::error("config/step", format!("{of} takes no `{key}`")).at(at, "does not fit here").help(match of {
        "a group" => "give it to the steps in the group; `iterations` is the group's number of rounds",
        _ => "a check is a command that runs once and is judged by its exit code",
    })
}

pub(super) fn bad_marker(at: &Place, marker: &str) -> Diagnostic {
    Diagnostic::error("config/marker", format!("`{marker}` cannot be the marker"))
        .at(at, "4 to 200 printable ASCII characters without blanks")
        .help("begin it with a letter or digit and end it with none of `*`, `_` and the backtick; the default is FORKHESTRA_COMPLETE")
}

pub(super) fn limit_without_value<'a>(at: &Place, known: impl Iterator<Item = &'a str>) -> Diagnostic {
    Diagnostic::error("config/limit", "a limit is given as NAME=VALUE")
        .at(at, "no `=` here")
        .help(format!("for example --limit time=2h; there are {}", list(&known.collect::<Vec<_>>())))
}

pub(super) fn bad_limit(at: &Place, name: &str, value: &str, wanted: &str) -> Diagnostic {
    Diagnostic::error("config/limit", format!("the limit `{name}` cannot be `{value}`")).at(at, wanted)
}

/// A text that is no length of time; `what` names the key or option that holds it.
#[must_use]
pub fn bad_duration(at: &Place, what: &str, text: &str, fault: DurationFault) -> Diagnostic {
    let (why, help) = match fault {
        DurationFault::NoUnit => {
            ("a number without a unit", format!("for {text} seconds write `{text}s`; the units are d, h, m, s and ms"))
        }
        DurationFault::NotPositive => {
            ("must be more than nothing", "leave it out for no limit, or say how long: `10m`".into())
        }
        DurationFault::TooLong => ("more than ten years", "leave it out for no limit".into()),
        DurationFault::Malformed => {
            ("not a length of time", "write whole numbers with units, largest first: `90s`, `10m`, `1h30m`".into())
        }
    };
    Diagnostic::error("config/duration", format!("{what} cannot be `{text}`")).at(at, why).help(help)
}

/// `a`, `b` and `c`, in backticks.
fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

pub(super) fn trust_of_a_project(at: &Place) -> Diagnostic {
    Diagnostic::error("config/trust", "a project cannot say how far it is trusted")
        .at(at, "has no say in that")
        .help("`trust` is a key of your own config, ~/.config/forkhestra/chains.json")
}
