//! Tests of substitution, with examples and with random input.

use super::*;
use proptest::prelude::*;
use std::ffi::OsString;
use std::path::Path;

struct TestEnv;

impl Env for TestEnv {
    fn var(&self, name: &str) -> Option<OsString> {
        (name == "HOME").then(|| "/home/ann".into())
    }
}

fn text(value: &str) -> Text {
    let source = Source::new("t", value, Path::new("/"));
    Text { value: value.into(), at: Place::whole(&source) }
}

fn vars(given: &[(&str, &str)]) -> Vars {
    let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Vars::new(map(given), map(&[("LANG", "rust"), ("FEATURE", "declared")]))
}

fn config(value: &str) -> Result<String, Vec<String>> {
    expand_config(
        &text(value),
        &vars(&[("FEATURE", "auth"), ("EMPTY", ""), ("X", "${FEATURE} $& {{feedback}}")]),
        &TestEnv,
    )
    .map_err(|faults| faults.into_iter().map(|fault| fault.message).collect())
}

#[test]
fn config_strings_take_every_form() {
    for (written, expanded) in [
        ("Work on ${FEATURE} in $<LANG>", "Work on auth in rust"),
        ("${NONE:-the default} ${FEATURE:-x} ${EMPTY:-x}|", "the default auth |"),
        ("${env:HOME}/x ${env:NONE:-y}", "/home/ann/x y"),
        (
            "$${FEATURE} $$<LANG> costs $5 and $ {x} awk '{print $2}'",
            "${FEATURE} $<LANG> costs $5 and $ {x} awk '{print $2}'",
        ),
        ("${X}", "${FEATURE} $& {{feedback}}"),
        ("$<not a name> $<", "$<not a name> $<"),
        ("", ""),
    ] {
        assert_eq!(config(written), Ok(expanded.to_string()), "{written}");
    }
}

#[test]
fn every_missing_and_malformed_variable_is_named() {
    let faults = config("${FEATUR} ${env:NOPE} ${a b} ${}").unwrap_err();
    assert_eq!(faults.len(), 4);
    assert!(faults[0].contains("`FEATUR`") && faults[1].contains("`NOPE`"), "{faults:?}");
    assert_eq!(config("tail ${open").unwrap_err().len(), 1);
}

#[test]
fn prose_is_touched_only_where_a_known_name_stands() {
    let vars = vars(&[("FEATURE", "auth")]);
    let (expanded, stayed) =
        expand_prose("${FEATURE} $${FEATURE} ${HOME} ${HOME} ${x%.*} $<LANG> ${LANG:-x} $${OTHER} ${", &vars);
    assert_eq!(expanded, "auth ${FEATURE} ${HOME} ${HOME} ${x%.*} $<LANG> ${LANG:-x} $${OTHER} ${");
    assert_eq!(stayed, ["HOME", "OTHER"]);
}

#[test]
fn an_unused_variable_is_a_warning_with_the_nearest_name() {
    let vars = vars(&[("FEATUR", "auth"), ("LANG", "go")]);
    let _ = expand_config(&text("${FEATURE}"), &vars, &TestEnv);
    let warnings = unused(&vars, &IndexMap::new());
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].message.contains("`FEATUR`"));
    assert_eq!(warnings[0].help.as_deref(), Some("did you mean `FEATURE`?"));
}

proptest! {
    #[test]
    fn a_value_is_never_scanned_again(value in "[$<>{}A-Z:\\-\\PC]{0,30}") {
        let vars = Vars::new([("V".to_string(), value.clone())].into(), IndexMap::new());
        prop_assert_eq!(expand_config(&text("<${V}|$<V>>"), &vars, &TestEnv), Ok(format!("<{value}|{value}>")));
        prop_assert_eq!(expand_prose("<${V}>", &vars).0, format!("<{value}>"));
    }

    #[test]
    fn any_text_expands_or_is_refused(value in "[$<>{}A-Z:\\-\\PC]{0,30}") {
        let vars = Vars::default();
        let expanded = expand_config(&text(&value), &vars, &TestEnv);
        prop_assert!(value.contains('$') || expanded == Ok(value.clone()));
        prop_assert_eq!(expand_prose(&value, &vars).0, value);
    }
}
