//! The chains, agents and checks that can be run: `list` and `show`.

use crate::chain::{
    Chain, Command, Config, Entry, Item, LayerKind, Limit, PromptSource, Run, Step, show, show_duration,
};
use crate::report::format::{padded, width};
use crate::report::paint::{Paint, printable};
use crate::source::Text;
use serde_json::{Value, json};
use std::fmt::Write;

/// Returns all chains, agents and checks, with their layers.
#[must_use]
pub fn list(config: &Config, paint: Paint) -> String {
    let mut text = String::new();
    let chains = rows(&config.chains, |chain| {
        let description = chain.description.as_ref().map(|text| text.value.clone());
        description.unwrap_or_else(|| show(&chain.items))
    });
    let agents = rows(&config.agents, |agent| {
        let command = || match &agent.command {
            Some(Command::Line(line)) => line.value.clone(),
            Some(Command::Words(words)) => words.iter().map(|word| word.value.as_str()).collect::<Vec<_>>().join(" "),
            None => agent.backend.as_ref().map_or_else(String::new, |backend| backend.value.clone()),
        };
        agent.description.as_ref().map_or_else(command, |text| text.value.clone())
    });
    let checks = rows(&config.checks, |check| {
        let run = |run: &Run| match run {
            Run::Shell(line) => line.value.clone(),
            Run::Words(words) => words.iter().map(|word| word.value.as_str()).collect::<Vec<_>>().join(" "),
        };
        check.as_ref().map_or_else(String::new, |check| {
            check.description.as_ref().map_or_else(|| run(&check.run), |text| text.value.clone())
        })
    });
    let (mut clis, mut agents): (Vec<ListRow>, Vec<ListRow>) =
        agents.into_iter().partition(|row| is_cli(config, &row.name));
    for row in &mut clis {
        let install = config.backends.get(&row.name).and_then(|entry| entry.value.install.clone());
        row.about = install.unwrap_or_default();
    }
    agents.retain(|row| !is_of_the_demo(row));
    let mut checks: Vec<ListRow> = checks.into_iter().filter(|row| !is_of_the_demo(row)).collect();
    for (name, about) in BUILT_IN_CHECKS.iter().filter(|(name, _)| !config.checks.contains_key(*name)) {
        let about = (*about).to_string();
        checks.push(ListRow { name: (*name).to_string(), layer: LayerKind::BuiltIn, about, faulty: false });
    }
    for (title, rows) in [("Chains", chains), ("Agents", agents), ("Backends", clis), ("Checks", checks)] {
        if rows.is_empty() {
            continue;
        }
        let space = if text.is_empty() { "" } else { "\n" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{space}{}", paint.bold(title));
        let widest = rows.iter().map(|row| width(&row.name)).max().unwrap_or(0);
        for row in rows {
            let layer = paint.dim(&format!("{:<8}", row.layer.to_string()));
            let faulty = if row.faulty { paint.bad(" (has errors, see `forkhestra validate`)") } else { String::new() };
            let about = printable(row.about.lines().next().unwrap_or_default());
            let _ = writeln!(text, "  {}  {layer}  {about}{faulty}", padded(&row.name, widest));
        }
    }
    text
}

/// What the built-in checks do. Their commands are detected in the project.
const BUILT_IN_CHECKS: [(&str, &str); 6] = [
    ("build", "Builds this project, with the command that `forkhestra detect` shows"),
    ("test", "Tests this project, with the command that `forkhestra detect` shows"),
    ("lint", "Lints this project, with the command that `forkhestra detect` shows"),
    ("syntax", "Checks quickly that the files of this project can be parsed"),
    ("verify", "Builds and tests this project, as much as the profile requires"),
    ("diagnose", "Finds the first real errors of this project; as a step, it never stops a chain"),
];

/// Returns whether a name is a backend that is not configured as an agent.
fn is_cli(config: &Config, name: &str) -> bool {
    config.backends.contains(name) && config.agents.get(name).is_some_and(|entry| entry.layer == LayerKind::BuiltIn)
}

fn is_of_the_demo(row: &ListRow) -> bool {
    row.layer == LayerKind::BuiltIn && row.name.starts_with("demo-")
}

struct ListRow {
    name: String,
    layer: LayerKind,
    about: String,
    faulty: bool,
}

/// Returns the entries of the project first, then those of the user, then the built-in ones; each in the order of its
/// file.
fn rows<T>(entries: &indexmap::IndexMap<String, Entry<T>>, about: impl Fn(&T) -> String) -> Vec<ListRow> {
    let row = |(name, entry): (&String, &Entry<T>)| ListRow {
        name: name.clone(),
        layer: entry.layer,
        about: about(&entry.value),
        faulty: !entry.faults.is_empty(),
    };
    let mut rows: Vec<ListRow> = entries.iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.layer));
    rows
}

/// Returns the list as JSON.
#[must_use]
pub fn list_json(config: &Config) -> Value {
    let chains = config.chains.iter().map(|(name, entry)| {
        json!({ "name": name, "layer": entry.layer, "chain": show(&entry.value.items), "valid": entry.faults.is_empty(),
                "description": entry.value.description.as_ref().map(|text| &text.value) })
    });
    let clis = config.agents.keys().filter(|name| is_cli(config, name));
    let clis: Vec<Value> = clis.map(|name| json!({ "name": name, "layer": LayerKind::BuiltIn })).collect();
    let agents = config.agents.iter().filter(|(name, _)| !is_cli(config, name)).map(|(name, entry)| {
        json!({ "name": name, "layer": entry.layer, "valid": entry.faults.is_empty(),
                "description": entry.value.description.as_ref().map(|text| &text.value) })
    });
    let checks = config.checks.iter().map(|(name, entry)| {
        let description = entry.value.as_ref().and_then(|check| check.description.as_ref());
        json!({ "name": name, "layer": entry.layer, "valid": entry.faults.is_empty(),
                "description": description.map(|text| &text.value) })
    });
    json!({
        "chains": chains.collect::<Vec<_>>(),
        "agents": agents.collect::<Vec<_>>(),
        "backends": clis,
        "checks": checks.collect::<Vec<_>>(),
    })
}

/// Returns one chain, step by step and in the chain language. `found` returns where the name of a step was found, and
/// whether the step is a judge.
#[must_use]
pub fn show_chain(name: &str, entry: &Entry<Chain>, found: &dyn Fn(&Step) -> (String, bool), paint: Paint) -> String {
    let chain = &entry.value;
    let mut text = String::new();
    let origin = match entry.layer {
        LayerKind::BuiltIn => "(built-in)".into(),
        layer => format!("({}, {layer})", entry.at),
    };
    let _ = writeln!(text, "{} {}", paint.bold(name), paint.dim(&origin));
    if let Some(description) = &chain.description {
        let _ = writeln!(text, "{}", printable(&description.value));
    }
    let _ = writeln!(text, "\n  {}\n", show(&chain.items));
    prompt_row(&mut text, paint, "prompt", &chain.prompt);
    for (name, value) in &chain.vars {
        let _ = writeln!(text, "  {} {name}={}", paint.dim("var   "), printable(&value.value));
    }
    for name in chain.secrets.keys() {
        let _ = writeln!(text, "  {} {name}, a secret", paint.dim("var   "));
    }
    items(&mut text, paint, found, &chain.items, 1);
    text
}

fn items(text: &mut String, paint: Paint, found: &dyn Fn(&Step) -> (String, bool), items_of: &[Item], depth: usize) {
    let indent = "  ".repeat(depth);
    for item in items_of {
        match item {
            Item::Step(step) => {
                let (place, judges) = found(step);
                step_text(text, paint, (&place, judges), step, &indent);
            }
            Item::Group(group) => {
                let rounds = match group.rounds {
                    Some(count) if count.get() > 1 => format!("up to {count} rounds"),
                    _ => "1 round".into(),
                };
                let _ = writeln!(text, "{indent}{} {rounds}", paint.dim("group "));
                items(text, paint, found, &group.items, depth + 1);
            }
        }
    }
}

fn step_text(text: &mut String, paint: Paint, (found, judges): (&str, bool), step: &Step, indent: &str) {
    let limit = match step.limit {
        // It is asked until its verdict is clear; a count has no effect.
        _ if judges => "a judge, succeeds when it approves".into(),
        Limit::Once => "once".into(),
        Limit::UpTo(count) if count.get() == 1 => "1 iteration, needs the marker".into(),
        Limit::UpTo(count) => format!("up to {count} iterations, until the marker"),
    };
    let _ = writeln!(text, "{indent}{} {}, {limit}", paint.dim("step  "), paint.bold(&step.name.value));
    let _ = writeln!(text, "{indent}  {} {found}", paint.dim("found "));
    if !step.args.is_empty() {
        let args = step.args.iter().map(|arg| arg.value.as_str()).collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "{indent}  {} {}", paint.dim("args  "), printable(&args));
    }
    prompt_row(text, paint, &format!("{indent}prompt"), &step.prompt);
}

fn prompt_row(text: &mut String, paint: Paint, label: &str, prompt: &PromptSource) {
    let indent = label.len() - label.trim_start().len();
    let label = format!("{}  {}", &label[..indent], paint.dim(label.trim_start()));
    match (&prompt.inline, &prompt.file) {
        (Some(inline), _) => {
            let _ = writeln!(text, "{label} {}", inline.value.escape_debug());
        }
        (None, Some(file)) => {
            let _ = writeln!(text, "{label} from the file {}", printable(&file.value));
        }
        (None, None) => {}
    }
}

/// Returns one chain as JSON.
#[must_use]
pub fn show_chain_json(name: &str, entry: &Entry<Chain>, is_check: &dyn Fn(&Step) -> bool) -> Value {
    json!({
        "name": name,
        "layer": entry.layer,
        "at": entry.at.to_string(),
        "description": entry.value.description.as_ref().map(|text| &text.value),
        "chain": show(&entry.value.items),
        "vars": entry.value.vars.iter().map(|(name, value)| (name.clone(), json!(value.value))).collect::<serde_json::Map<_, _>>(),
        "prompt": entry.value.prompt.inline.as_ref().map(|text| &text.value),
        "promptFile": entry.value.prompt.file.as_ref().map(|text| &text.value),
        "steps": entry.value.items.iter().map(item_json).collect::<Vec<_>>(),
        "entry": long_form(&entry.value, is_check),
    })
}

/// Returns a chain as it is written in chains.json without the chain language. `is_check` returns whether a step is a
/// check.
fn long_form(chain: &Chain, is_check: &dyn Fn(&Step) -> bool) -> Value {
    let mut entry = serde_json::Map::new();
    let mut put = |key: &str, value: Option<&Text>| {
        value.and_then(|text| entry.insert(key.into(), json!(text.value)));
    };
    put("description", chain.description.as_ref());
    put("prompt", chain.prompt.inline.as_ref());
    put("promptFile", chain.prompt.file.as_ref());
    if !chain.vars.is_empty() || !chain.secrets.is_empty() {
        let vars = chain.vars.iter().map(|(name, value)| (name.clone(), json!(value.value)));
        let vars = vars.chain(chain.secrets.keys().map(|name| (name.clone(), json!({ "secret": true }))));
        entry.insert("vars".into(), vars.collect::<serde_json::Map<_, _>>().into());
    }
    entry.insert("steps".into(), chain.items.iter().map(|item| long_item(item, is_check)).collect());
    entry.into()
}

fn long_item(item: &Item, is_check: &dyn Fn(&Step) -> bool) -> Value {
    let mut entry = serde_json::Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        value.and_then(|value| entry.insert(key.into(), value));
    };
    match item {
        Item::Group(group) => {
            put("group", Some(group.items.iter().map(|item| long_item(item, is_check)).collect()));
            put("iterations", group.rounds.map(|rounds| json!(rounds)));
        }
        Item::Step(step) => {
            put(if is_check(step) { "check" } else { "agent" }, Some(json!(step.name.value)));
            put("iterations", if let Limit::UpTo(count) = step.limit { Some(json!(count)) } else { None });
            let args = step.args.iter().map(|arg| arg.value.as_str()).collect::<Vec<_>>();
            put("args", (!args.is_empty()).then(|| json!(args)));
            put("prompt", step.prompt.inline.as_ref().map(|text| json!(text.value)));
            put("promptFile", step.prompt.file.as_ref().map(|text| json!(text.value)));
            put("timeout", step.timeout.map(|time| json!(show_duration(time))));
            put("idleTimeout", step.idle_timeout.map(|time| json!(show_duration(time))));
        }
    }
    entry.into()
}

fn item_json(item: &Item) -> Value {
    match item {
        Item::Group(group) => json!({
            "group": group.items.iter().map(item_json).collect::<Vec<_>>(),
            "iterations": group.rounds,
        }),
        Item::Step(step) => json!({
            "name": step.name.value,
            "iterations": match step.limit { Limit::Once => None, Limit::UpTo(count) => Some(count) },
            "args": step.args.iter().map(|arg| &arg.value).collect::<Vec<_>>(),
            "prompt": step.prompt.inline.as_ref().map(|text| &text.value),
            "promptFile": step.prompt.file.as_ref().map(|text| &text.value),
        }),
    }
}
