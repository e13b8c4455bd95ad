//! A format that is described by the rules of its backend.

use super::shared::{Dialect, say, tool};
use crate::agent::output::{Report, Usage};
use crate::chain::OutputRules;
use serde_json::Value;
use std::collections::BTreeMap;

/// The state between two values.
#[derive(Debug)]
pub(in crate::agent) struct Custom {
    rules: OutputRules,
    /// The last text, unless a tool call has followed it.
    text: Option<String>,
}

impl Custom {
    pub(in crate::agent) fn new(rules: OutputRules) -> Self {
        Self { rules, text: None }
    }

    fn usage(&self, value: &Value, report: &mut Report) {
        let Some(rule) = self.rules.usage.as_ref().filter(|rule| matches(&rule.when, value)) else { return };
        let at = |name: &str| rule.at.get(name).and_then(|pointer| value.pointer(pointer));
        let count = |name: &str| at(name).and_then(Value::as_u64).unwrap_or(0);
        if rule.at.keys().all(|name| at(name).is_none()) {
            return;
        }
        let usage = Usage {
            input_tokens: count("input"),
            output_tokens: count("output"),
            cache_read_tokens: count("cacheRead"),
            cache_write_tokens: count("cacheWrite"),
            cost_usd: at("cost").and_then(Value::as_f64),
        };
        if rule.adds {
            report.add(&usage);
        } else {
            report.usage = Some(usage);
        }
        report.requested(&usage);
    }
}

impl Dialect for Custom {
    fn event(&mut self, value: &Value, report: &mut Report, show: &mut dyn FnMut(&str)) {
        if let Some(session) = self.rules.session.as_ref().and_then(|at| value.pointer(at)).and_then(Value::as_str) {
            report.session = Some(session.to_string());
        }
        self.usage(value, report);
        if let Some(rule) = self.rules.tool.as_ref().filter(|rule| matches(&rule.when, value)) {
            let input = rule.at.as_ref().and_then(|at| value.pointer(at)).unwrap_or(&Value::Null);
            tool(&text_at(rule.more.as_ref(), value).unwrap_or_else(|| "tool".into()), input, show);
            self.text = None;
            // Whatever it has called its last message, it works on.
            report.final_message = None;
            return;
        }
        if let Some(rule) = self.rules.text.as_ref().filter(|rule| matches(&rule.when, value))
            && let Some(text) = text_at(rule.at.as_ref(), value)
        {
            say(&text, show);
            self.text = Some(text);
        }
        if let Some(rule) = self.rules.error.as_ref().filter(|rule| matches(&rule.when, value)) {
            let words = text_at(rule.at.as_ref(), value).unwrap_or_else(|| "it failed without a message".into());
            let status = rule.more.as_ref().and_then(|at| value.pointer(at)).and_then(Value::as_u64);
            report.fail(status, &words);
            return;
        }
        if matches(&self.rules.last.when, value) {
            let said = match &self.rules.last.at {
                Some(at) => text_at(Some(at), value),
                None => self.text.clone(),
            };
            if let Some(said) = said {
                if self.rules.text.is_none() {
                    say(&said, show);
                }
                report.recover();
                report.final_message = Some(said);
            }
        }
    }
}

/// Whether a value has everything that a rule wants of it.
fn matches(when: &BTreeMap<String, String>, value: &Value) -> bool {
    when.iter().all(|(pointer, wanted)| match value.pointer(pointer) {
        None | Some(Value::Null) => wanted == "null",
        Some(Value::String(text)) => text == wanted,
        Some(other) => serde_json::from_str::<Value>(wanted).is_ok_and(|wanted| *other == wanted),
    })
}

/// Returns the text at a pointer. A list is the texts of its elements, as the content of messages often is.
fn text_at(pointer: Option<&String>, value: &Value) -> Option<String> {
    match value.pointer(pointer?)? {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let text = |item: &Value| item.as_str().or(item["text"].as_str()).map(str::to_string);
            let texts: Vec<String> = items.iter().filter_map(text).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::OutputRule;
    use serde_json::json;

    fn rule(when: &[(&str, &str)], at: Option<&str>, more: Option<&str>) -> OutputRule {
        OutputRule {
            when: when.iter().map(|(pointer, value)| ((*pointer).to_string(), (*value).to_string())).collect(),
            at: at.map(str::to_string),
            more: more.map(str::to_string),
        }
    }

    fn read(rules: OutputRules, values: &[Value]) -> (Report, String) {
        let (mut custom, mut report, mut shown) = (Custom::new(rules), Report::default(), String::new());
        for value in values {
            custom.event(value, &mut report, &mut |text| shown.push_str(text));
        }
        (report, shown)
    }

    #[test]
    fn texts_and_tools_are_shown_and_only_a_final_value_is_the_final_message() {
        let rules = OutputRules {
            text: Some(rule(&[("/role", "assistant")], Some("/content"), None)),
            tool: Some(rule(&[("/role", "tool")], Some("/input"), Some("/name"))),
            last: rule(&[("/role", "end")], None, None),
            session: Some("/id".into()),
            ..OutputRules::default()
        };
        let values = [
            json!({ "role": "assistant", "content": [{ "text": "I will." }], "id": "s1" }),
            json!({ "role": "tool", "name": "shell", "input": { "command": "ls" }, "content": "FORKHESTRA_COMPLETE" }),
            json!({ "role": "assistant", "content": "Done." }),
        ];
        let (report, shown) = read(rules.clone(), &values);
        assert_eq!((report.final_message, report.session.as_deref()), (None, Some("s1")));
        assert_eq!(shown, "I will.\n[shell] ls\nDone.\n");
        let ended = [values.as_slice(), &[json!({ "role": "end" })]].concat();
        assert_eq!(read(rules.clone(), &ended).0.final_message.as_deref(), Some("Done."));
        let goes_on = [ended.as_slice(), &values[1..2]].concat();
        assert_eq!(read(rules, &goes_on).0.final_message, None, "it works on after its final message");
    }

    #[test]
    fn usage_is_the_last_one_or_the_sum_and_an_error_has_its_status() {
        let mut rules = OutputRules {
            last: rule(&[("/type", "result")], Some("/text"), None),
            error: Some(rule(&[("/ok", "false")], Some("/why"), Some("/status"))),
            ..OutputRules::default()
        };
        let at = [("input", "/u/in"), ("output", "/u/out"), ("cost", "/usd")];
        let at: BTreeMap<String, String> = at.map(|(name, at)| (name.to_string(), at.to_string())).into();
        rules.usage = Some(crate::chain::UsageRule { at, ..Default::default() });
        let values = [json!({ "u": { "in": 5, "out": 1 } }), json!({ "u": { "in": 7, "out": 1 }, "usd": 0.5 })];
        let sum = |rules: OutputRules| read(rules, &values).0.usage.unwrap();
        assert_eq!((sum(rules.clone()).input_tokens, sum(rules.clone()).cost_usd), (7, Some(0.5)));
        rules.usage.as_mut().unwrap().adds = true;
        assert_eq!(sum(rules.clone()).input_tokens, 12);
        let failed = read(rules, &[json!({ "ok": false, "why": "slow down", "status": 429 })]).0;
        assert!(failed.usage_limit.is_some() && failed.error.is_some());
    }
}
