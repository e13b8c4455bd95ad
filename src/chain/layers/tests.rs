//! Tests of config files: what they mean, and which errors are reported.

use super::*;
use crate::chain::show;
use crate::source::Source;
use proptest::prelude::*;
use std::path::Path;

fn layer(kind: LayerKind, text: &str) -> LayerSource {
    LayerSource { kind, source: Source::new(format!("{kind}.json"), text, Path::new("/")) }
}

fn project(text: &str) -> Config {
    load(&[layer(LayerKind::Project, text)])
}

/// Returns the errors of the file and of all its entries as `message @ line:column marked text`, one per line.
fn faults(config: &Config) -> String {
    let entries = config.agents.values().flat_map(|entry| &entry.faults);
    let entries = entries.chain(config.checks.values().flat_map(|entry| &entry.faults));
    let entries = entries.chain(config.chains.values().flat_map(|entry| &entry.faults));
    let line = |fault: &Diagnostic| {
        let at = fault.places.first().map(|(place, _)| {
            let (line, column) = place.source.line_column(place.span.start);
            format!(" @ {line}:{column} {:?}", &place.source.text[place.span.clone()])
        });
        let help = fault.help.as_ref().map(|help| format!(" ({help})"));
        format!("{}{}{}", fault.message, at.unwrap_or_default(), help.unwrap_or_default())
    };
    config.faults.iter().chain(entries).map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_fault_of_shape_and_type_is_reported_at_once() {
    let config = project(
        r#"{
  "chain": {},
  "limits": { "time": 60, "cost": 0, "tokens": 1.5, "stalledAfter": 0, "grac": "1s" },
  "hooks": {},
  "agents": {
    "coder": { "promt": "x", "maxTurns": 0, "deliver": "mail", "allowedTools": ["Read", 3], "timeout": "10m" },
    "_bad": {},
    "coder": {}
  },
  "checks": { "t": { "run": [] }, "u": {} },
  "chains": {
    "a": { "steps": [] },
    "b": { "stepz": [] },
    "c": { "steps": [{ "agent": "x", "iterations": 0 }, { "agent": "y", "check": "t" }, {}, { "iteration": 5, "agent": "z" }] },
    "d": { "steps": [{ "group": [{ "agent": "x", "loop": false, "iterations": 2 }], "prompt": "p" }, { "check": "t", "iterations": 2 }] },
    "e": { "steps": {}, "vars": { "9": "x", "A": 1 } },
    "f": [],
    "g": { "steps": [{ "agent": "./x" }, { "agent": "a:3" }] }
  }
}"#,
    );
    insta::assert_snapshot!(faults(&config));
}

#[test]
fn a_fault_of_syntax_names_its_line_and_column() {
    insta::assert_snapshot!(faults(&project("{\n  \"chains\": {\n    \"a\" { }\n  }\n}")), @r#"this is not valid JSON5: expected colon @ 3:9 "{" (write JSON; comments, trailing commas and unquoted keys are allowed. There may be more errors after this one)"#);
    insta::assert_snapshot!(faults(&project("{\"chains\": {}")), @r#"this is not valid JSON5: this object is never closed @ 1:1 "{" (write JSON; comments, trailing commas and unquoted keys are allowed. There may be more errors after this one)"#);
    insta::assert_snapshot!(faults(&project("[]")), @r#"the config must be an object, not an array @ 1:1 "" "#);
}

#[test]
fn json5_is_accepted() {
    let config = project("// mine\n{ chains: { 'a': { steps: [ { agent: 'x', iterations: 2, }, ], }, }, }");
    assert_eq!(faults(&config), "");
    assert_eq!(show(&config.chains["a"].value.items), "x:2");
}

#[test]
fn groups_and_checks_of_the_config_are_those_of_the_language() {
    let config = project(
        r#"{"checks": {"t": {"run": "true"}},
            "chains": {"a": {"steps": [{"group": [{"agent": "x", "iterations": 2}, {"check": "t"}], "iterations": 5}, {"group": [{"agent": "y"}]}]}}}"#,
    );
    assert_eq!(faults(&config), "");
    assert_eq!(show(&config.chains["a"].value.items), "(x:2 -> t):5 -> (y)");
}

#[test]
fn a_later_chain_replaces_and_a_later_agent_refines_unless_it_says_who_it_is() {
    let below = r#"{"agents": {"a": {"systemPromptText": "S", "model": "m1", "defaultPrompt": "p1"}, "b": {"systemPromptText": "S"}},
                    "chains": {"c": {"description": "old", "steps": [{"agent": "a"}]}, "kept": {"steps": [{"agent": "a"}]}}}"#;
    let above = r#"{"agents": {"a": {"model": "m2", "defaultPromptFile": "p.md"}, "b": {"command": "x"}},
                    "chains": {"c": {"steps": [{"agent": "b"}]}}}"#;
    let config = load(&[layer(LayerKind::BuiltIn, below), layer(LayerKind::Project, above)]);
    let text = |text: &Option<Text>| text.as_ref().map(|text| text.value.clone());
    let a = &config.agents["a"];
    assert_eq!(
        (text(&a.value.system_prompt_text), a.value.model().map(str::to_string)),
        (Some("S".into()), Some("m2".into()))
    );
    assert_eq!((text(&a.value.prompt.inline), text(&a.value.prompt.file)), (None, Some("p.md".into())));
    assert_eq!(a.layer, LayerKind::Project);
    assert_eq!(config.agents["b"].value.system_prompt_text, None);
    assert_eq!(config.chains["c"].value.description, None);
    assert_eq!(config.chains["kept"].layer, LayerKind::BuiltIn);
}

#[test]
fn an_invalid_chain_leaves_the_others_alone() {
    let config = project(r#"{"chains": {"good": {"steps": [{"agent": "a"}]}, "bad": {"steps": [{"agnt": "a"}]}}}"#);
    assert!(config.faults.is_empty() && config.chains["good"].faults.is_empty());
    assert_eq!(config.chains["bad"].faults.len(), 2);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_with_places_inside_it(text in "[\\[\\]{}:,'\"/*a-z0-9\\\\ \\n\\PC]{0,60}") {
        let config = project(&text);
        for fault in &config.faults {
            for (place, _) in &fault.places {
                prop_assert!(text.get(place.span.clone()).is_some(), "{:?}", place.span);
            }
        }
    }

    #[test]
    fn any_value_at_any_key_is_read_or_refused(
        key in "agents|checks|chains|marker|backend|steps|group|agent|iterations|vars|env|run|command",
        value in "\\{\\}|\\[\\]|null|true|1|-1|1e99|NaN|Infinity|'x'|\\[\\[\\]\\]|\\{a:\\{\\}\\}|\\{a:\\{steps:\\[1,\\{\\}\\]\\}\\}",
    ) {
        project(&format!("{{{key}: {value}, chains: {{c: {{steps: [{{{key}: {value}}}], {key}: {value}}}}}, agents: {{a: {{{key}: {value}}}}}}}"));
    }
}

/// Returns `key: value` for every key of an agent that is set.
fn agent(text: &str, name: &str) -> String {
    let ours = layer(LayerKind::BuiltIn, include_str!("../../../forge/chains.json"));
    let config = load(&[ours, layer(LayerKind::Project, text)]);
    assert_eq!(faults(&config), "");
    let agent = &config.agents[name].value;
    let text = |key: &Option<Text>| key.as_ref().map(|text| text.value.chars().take(20).collect::<String>());
    let keys = [
        ("role", agent.role.map(|role| role.name().to_string())),
        ("template", text(&agent.template)),
        ("backend", text(&agent.backend)),
        ("model", agent.model().map(str::to_string)),
        ("words", text(&agent.system_prompt_text)),
        ("file", text(&agent.system_prompt)),
        ("command", agent.command.as_ref().map(|_| "yes".into())),
        ("args", agent.args.as_ref().map(|args| args.len().to_string())),
    ];
    keys.into_iter().filter_map(|(key, value)| Some(format!("{key}: {}", value?))).collect::<Vec<_>>().join(", ")
}

#[test]
fn an_entry_refines_the_built_in_agent_of_its_name_key_by_key() {
    let table = [
        (r#"{"backend": "codex"}"#, "role: judge, template: reviewer, backend: codex, words: You are the reviewer"),
        (
            r#"{"model": "m", "timeout": "1h"}"#,
            "role: judge, template: reviewer, model: m, words: You are the reviewer",
        ),
        (r#"{"systemPromptText": "Mine."}"#, "role: judge, template: reviewer, words: Mine."),
        (r#"{"systemPrompt": "me.md"}"#, "role: judge, template: reviewer, file: me.md"),
        (r#"{"command": "./review.sh"}"#, "role: judge, command: yes"),
        (r#"{"command": "./review.sh", "role": "worker"}"#, "role: worker, command: yes"),
        (r#"{"command": "./review.sh", "template": "reviewer"}"#, "role: judge, template: reviewer, command: yes"),
    ];
    for (entry, expected) in table {
        assert_eq!(
            agent(&format!(r#"{{"agents": {{"reviewer": {entry}}}, "chains": {{}}}}"#), "reviewer"),
            expected,
            "{entry}"
        );
    }
    let of = |name: &str, entry: &str| agent(&format!(r#"{{"agents": {{"{name}": {entry}}}, "chains": {{}}}}"#), name);
    assert_eq!(
        of("helium", r#"{"command": "./h"}"#),
        "role: judge, template: helium, command: yes",
        "its template is its protocol"
    );
    assert_eq!(of("carbon", r#"{"backend": "codex"}"#), "template: carbon, backend: codex, words: ");
    assert_eq!(of("demo-coder", r#"{"backend": "claude"}"#), "backend: claude", "arguments belong to their program");
}

#[test]
fn a_built_in_backend_that_is_read_when_it_is_asked_for_is_the_same_and_has_no_errors() {
    let source = Source::new("built-in", include_str!("../../../forge/backends.json"), Path::new("/"));
    let [lazy, eager] =
        [LayerKind::BuiltIn, LayerKind::User].map(|kind| load(&[LayerSource { kind, source: source.clone() }]));
    let words = |config: &Config| {
        let word = |(name, entry): (&str, &Entry<_>)| format!("{name} at {}: {:?}", entry.at, entry.value);
        config.backends.iter().map(word).collect::<Vec<_>>()
    };
    assert_eq!(words(&lazy), words(&eager));
    assert!(eager.backends.iter().all(|(_, entry)| entry.faults.is_empty()));
    assert!(eager.faults.is_empty() && lazy.faults.is_empty());
    assert_eq!(eager.backends.iter().count(), lazy.backends.offered().count() + 1, "all but that of the demo");
}

#[test]
fn an_error_in_an_unread_backend_is_in_its_entry_and_another_syntax_is_read_at_once() {
    let text = r#"{"backends": {"a": {"progam": "a"}, "b": {"program": "b", "aliases": ["b-cli"]}}, "chains": {}}"#;
    let config = load(&[layer(LayerKind::BuiltIn, text)]);
    assert!(config.faults.is_empty());
    assert_eq!(config.backends.get("a").unwrap().faults[0].places[0].0.span, 21..27);
    assert_eq!(config.backends.called("b-cli").unwrap().0, "b");
    let config = load(&[layer(LayerKind::BuiltIn, &format!("{text} // JSON5"))]);
    assert_eq!(config.backends.get("a").unwrap().faults[0].places[0].0.span, 21..27);
    let config = load(&[layer(LayerKind::BuiltIn, "{\"backends\": {")]);
    assert_eq!(config.faults[0].code, "config/syntax");
}
