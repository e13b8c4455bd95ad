//! Converts a checked tree to agents, checks and chains. Whatever `check` has reported is ignored here.

use super::backend::{Backend, Continuation, Delivery, Format, Level, Permissions, ToolServer};
use super::dsl::parse_items;
use super::errors;
use super::ir::{
    Agent, Chain, Check, Command, Form, Group, HookKind, Item, Limit, Limits, PromptSource, Role, Run, SessionUse,
    Step, StepTarget,
};
use super::isolation::{Isolation, Sandbox};
use super::json5::Value;
use super::keys::cli::{CLI_KEYS, CliKey, CliValue, CliValueKind, CliValues};
use super::output_rules::OutputRules;
use super::reader::Reader;
use crate::source::{Diagnostic, Place, Text};
use indexmap::IndexMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// Returns the two sources of a prompt at these keys.
fn prompt_source(reader: Reader<'_>, inline: &str, file: &str) -> PromptSource {
    PromptSource { inline: reader.text(inline), file: reader.text(file) }
}

/// Reads the value of `limits`.
#[must_use]
pub fn limits(reader: Reader<'_>) -> Limits {
    let amount = |key| match reader.get(key)?.node.value {
        Value::Number(number) if number > 0.0 => Some(number),
        _ => None,
    };
    let at = |key| reader.get(key).map(Reader::at);
    Limits {
        time: reader.duration("time"),
        cost: amount("cost").zip(at("cost")),
        tokens: reader.count("tokens").map(|tokens| u64::from(tokens.get())).zip(at("tokens")),
        attempts: reader.count("attempts").or_else(|| reader.count("iterations")).map(NonZeroU32::get),
        wait: reader.duration("wait"),
        stalled_after: reader.count("stalledAfter").map(NonZeroU32::get),
        rejections: reader.count("rejections").map(NonZeroU32::get),
        grace: reader.duration("grace"),
    }
}

/// Reads the keys `wrap`, `sandbox` and `writable` of an object.
pub(super) fn isolation(reader: Reader<'_>) -> Isolation {
    let sandbox = reader.text("sandbox").and_then(|text| Some((Sandbox::named(&text.value)?, text.at)));
    Isolation { wrap: reader.texts("wrap"), sandbox, writable: reader.texts("writable").unwrap_or_default() }
}

/// Reads an entry of `agents`.
pub(super) fn agent(reader: Reader<'_>) -> Agent {
    let line = |reader: Reader<'_>| match reader.as_text() {
        Some(text) => Some(Command::Line(text)),
        None => reader.as_list().map(|words| Command::Words(words.into_iter().filter_map(Reader::as_text).collect())),
    };
    let mut backends = reader.one_or_more("backend").into_iter();
    Agent {
        description: reader.text("description"),
        prompt: prompt_source(reader, "defaultPrompt", "defaultPromptFile"),
        system_prompt: reader.text("systemPrompt"),
        system_prompt_text: reader.text("systemPromptText"),
        cli: cli_values(reader),
        template: reader.text("template"),
        verdict: reader.text("verdict").map(|text| {
            let form = if text.value == "evaluation" { Form::Evaluation } else { Form::Decision };
            (form, text.at)
        }),
        min_score: thousandths(reader).zip(reader.get("minScore").map(Reader::at)),
        role: reader.text("role").and_then(|text| Role::named(&text.value)),
        backend: backends.next(),
        fallback: backends.collect(),
        session: reader.text("session").and_then(|text| Some((SessionUse::named(&text.value)?, text.at))),
        command: reader.get("command").and_then(line),
        args: reader.texts("args"),
        env: reader.text_map("env"),
        deliver: delivery(reader),
        output: reader.text("output").and_then(|text| Format::named(&text.value)),
        permissions: reader.text("permissions").and_then(|text| Some((Permissions::named(&text.value)?, text.at))),
        timeout: reader.duration("timeout"),
        idle_timeout: reader.duration("idleTimeout"),
        isolation: isolation(reader),
    }
}

/// Reads the backend settings of an entry of `agents`.
fn cli_values(reader: Reader<'_>) -> CliValues {
    let read = |key: &CliKey| {
        let found = reader.get(key.name)?;
        let texts = match key.kind {
            CliValueKind::Text | CliValueKind::File => vec![reader.text(key.name)?],
            CliValueKind::OneOrMore => reader.one_or_more(key.name),
            CliValueKind::Count => vec![Text { value: reader.count(key.name)?.to_string(), at: found.at() }],
            CliValueKind::Texts => reader.texts(key.name)?,
        };
        let at = texts.first().map_or_else(|| found.at(), |text| text.at.clone());
        Some((key.name, CliValue { values: texts.into_iter().map(|text| text.value).collect(), at }))
    };
    CLI_KEYS.iter().filter_map(read).collect()
}

/// Reads the arguments with which an entry of `backends` passes on each of these settings.
fn cli_words(words: impl Fn(&'static str) -> Option<Vec<String>>) -> IndexMap<&'static str, Vec<String>> {
    CLI_KEYS.iter().filter_map(|key| Some((key.name, words(key.name)?))).collect()
}

/// Reads `minScore`, in thousandths.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked first")]
pub fn thousandths(reader: Reader<'_>) -> Option<u32> {
    match reader.get("minScore")?.node.value {
        Value::Number(number) if (0.0..=1.0).contains(&number) => Some((number * 1000.0).round() as u32),
        _ => None,
    }
}

fn delivery(reader: Reader<'_>) -> Option<Delivery> {
    match reader.text("deliver")?.value.as_str() {
        "arg" => Some(Delivery::Arg),
        "stdin" => Some(Delivery::Stdin),
        "file" => Some(Delivery::File),
        _ => None,
    }
}

/// Reads an entry of `backends`.
pub(super) fn backend(reader: Reader<'_>) -> Backend {
    let words = |key| reader.texts(key).map(|words| words.into_iter().map(|word| word.value).collect());
    // Arguments without a placeholder would silently drop the value.
    let template = |key| words(key).filter(|words: &Vec<String>| words.iter().any(|word| word.contains('{')));
    let text = |key| reader.text(key).map(|text| text.value);
    let levels = Permissions::NAMES.iter().filter_map(|(name, _)| {
        let level = reader.get("permissions")?.get(name)?;
        let arguments = level.texts("arguments").unwrap_or_default();
        let arguments = arguments.into_iter().map(|word| word.value).collect();
        Some(((*name).to_string(), Level { arguments, env: values(level, "env"), root_env: values(level, "rootEnv") }))
    });
    Backend {
        aliases: words("aliases"),
        program: reader.text("program"),
        install: text("install"),
        arguments: words("arguments"),
        last: words("last"),
        deliver: delivery(reader),
        system_prompt: template("systemPrompt"),
        max_cost: template("maxCost"),
        schema: template("schema"),
        cli: cli_words(template),
        permissions: levels.collect(),
        continues: reader.get("continue").map(continuation),
        mcp: reader.get("mcp").map(tool_server),
        command: text("command"),
        output: text("output").and_then(|name| Format::named(&name)),
        reader: reader.get("reader").map(|rules| Arc::new(OutputRules::read(rules))),
        tells_cost: reader.flag("tellsCost"),
        env: values(reader, "env"),
        unset: words("unset"),
        own_instructions: words("ownInstructions"),
        reads: words("reads"),
        slash_commands: reader.flag("slashCommands"),
        resume: words("resume"),
        credentials: words("credentials"),
        version: words("version"),
        known_good: words("knownGood"),
        help: words("help"),
        exits: words("exits"),
        start_timeout: reader.duration("startTimeout"),
        isolation: isolation(reader),
    }
}

fn continuation(reader: Reader<'_>) -> Continuation {
    let words = |reader: Reader<'_>, key| Some(reader.texts(key)?.into_iter().map(|word| word.value).collect());
    let level =
        |(name, _): &(&'static str, Permissions)| Some(((*name).to_string(), words(reader.get("permissions")?, name)?));
    Continuation {
        arguments: words(reader, "arguments"),
        permissions: Permissions::NAMES.iter().filter_map(level).collect(),
        last: words(reader, "last").unwrap_or_default(),
        api_keys: words(reader, "apiKeys").unwrap_or_default(),
    }
}

fn tool_server(reader: Reader<'_>) -> ToolServer {
    let arguments = reader.texts("arguments").unwrap_or_default().into_iter().map(|word| word.value).collect();
    let tool = reader.text("tool").map_or_else(String::new, |text| text.value);
    ToolServer { arguments, env: values(reader, "env"), tool }
}

fn values(reader: Reader<'_>, key: &str) -> IndexMap<String, String> {
    reader.text_map(key).into_iter().map(|(name, value)| (name, value.value)).collect()
}

/// Reads a shell command line, or a program and its arguments.
#[must_use]
pub fn run(reader: Reader<'_>) -> Option<Run> {
    Some(match reader.as_text() {
        Some(text) => Run::Shell(text),
        None => Run::Words(reader.as_list()?.into_iter().filter_map(Reader::as_text).collect()),
    })
}

/// Reads the value of `hooks`.
pub(super) fn hooks(reader: Reader<'_>) -> impl Iterator<Item = (HookKind, Run)> {
    HookKind::NAMES.into_iter().filter_map(move |(key, kind)| Some((kind, reader.get(key).and_then(run)?)))
}

/// Reads an entry of `checks`; none if it has no command, which `check` has reported.
pub(super) fn check(reader: Reader<'_>) -> Option<Check> {
    // A string is the command itself.
    let line = reader.as_text().filter(|line| !line.value.trim().is_empty()).map(Run::Shell);
    let run = line.or_else(|| run(reader.get("run")?))?;
    Some(Check {
        description: reader.text("description"),
        run,
        env: reader.text_map("env"),
        optional: reader.flag("optional").unwrap_or(false),
        timeout: reader.duration("timeout"),
        isolation: isolation(reader),
    })
}

/// Reads an entry of `chains`.
pub(super) fn chain(name: &Text, reader: Reader<'_>, faults: &mut Vec<Diagnostic>) -> Chain {
    Chain {
        name: Some(name.value.clone()),
        at: name.at.clone(),
        description: reader.text("description"),
        prompt: prompt_source(reader, "prompt", "promptFile"),
        vars: reader.text_map("vars"),
        secrets: secrets(reader),
        // A string or a list is the steps themselves.
        items: items(
            if reader.as_text().is_some() || reader.as_list().is_some() { Some(reader) } else { reader.get("steps") },
            0,
            faults,
        ),
    }
}

fn secrets(reader: Reader<'_>) -> IndexMap<String, Place> {
    let members = reader.get("vars").into_iter().flat_map(Reader::members);
    let secret = members.filter(|member| Reader::new(reader.source, &member.node).flag("secret") == Some(true));
    secret.map(|member| (member.key.to_string(), Place::new(reader.source, member.key_span.clone()))).collect()
}

/// Reads the steps of a chain or a group: text in the chain language, or an array of objects and such texts.
fn items(reader: Option<Reader<'_>>, depth: usize, faults: &mut Vec<Diagnostic>) -> Vec<Item> {
    let Some(reader) = reader else { return Vec::new() };
    if let Some(text) = reader.as_text().filter(|text| !text.value.trim().is_empty()) {
        return parse_items(&text, depth).unwrap_or_else(|found| {
            faults.extend(found);
            Vec::new()
        });
    }
    let mut all = Vec::new();
    for step in reader.as_list().unwrap_or_default() {
        match step.as_text() {
            Some(_) => all.extend(items(Some(step), depth, faults)),
            None => all.extend(item(step, depth, faults)),
        }
    }
    all
}

fn item(reader: Reader<'_>, depth: usize, faults: &mut Vec<Diagnostic>) -> Option<Item> {
    let count = reader.count("iterations");
    if let Some(looped) = reader.flag("loop")
        && looped != (count.is_some() || reader.get("iterations").is_some())
        && let Some(place) = reader.get("loop").map(Reader::at)
    {
        faults.push(errors::loop_disagrees(&place, looped));
    }
    if let Some(group) = reader.get("group") {
        if depth >= super::dsl::DEEPEST {
            faults.push(errors::too_deep(&group.at(), super::dsl::DEEPEST));
            return None;
        }
        refuse(reader, &["args", "prompt", "promptFile", "timeout", "idleTimeout"], "a group", faults);
        return Some(Item::Group(Group {
            items: items(Some(group), depth + 1, faults),
            rounds: count,
            at: group.at(),
        }));
    }
    let (name, wants) = match (reader.text("agent"), reader.text("check")) {
        (Some(name), _) => (name, StepTarget::Agent),
        (None, Some(name)) => (name, StepTarget::Check),
        (None, None) => return None,
    };
    if let Err(fault) = super::name::check_name(&name.value) {
        faults.push(errors::bad_config_name(&name.at, &name.value, &fault));
        return None;
    }
    if wants == StepTarget::Check {
        refuse(reader, &["iterations", "args", "prompt", "promptFile", "idleTimeout"], "a check", faults);
    }
    Some(Item::Step(Step {
        name,
        wants,
        limit: count.map_or(Limit::Once, Limit::UpTo),
        args: reader.texts("args").unwrap_or_default(),
        prompt: prompt_source(reader, "prompt", "promptFile"),
        timeout: reader.duration("timeout"),
        idle_timeout: reader.duration("idleTimeout"),
    }))
}

fn refuse(reader: Reader<'_>, keys: &[&'static str], of: &'static str, faults: &mut Vec<Diagnostic>) {
    for member in reader.members() {
        if let Some(key) = keys.iter().find(|key| **key == member.key) {
            let place = Place::new(reader.source, member.key_span.clone());
            faults.push(errors::key_does_not_fit(&place, key, of));
        }
    }
}
