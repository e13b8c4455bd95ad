//! Fills the placeholders in the arguments of a backend.

use super::allowed::Allowed;
use crate::chain::{Backend, Level};

/// Fills arguments for one value: `{}` is the value, `{json}` the value as a JSON string, which is also a TOML string.
#[must_use]
pub fn fill(words: &[String], value: &str) -> Vec<String> {
    let json = serde_json::Value::from(value).to_string();
    // In one pass, so that a value with braces stays unchanged.
    words
        .iter()
        .map(|word| if word.contains("{json}") { word.replace("{json}", &json) } else { word.replace("{}", value) })
        .collect()
}

/// Fills arguments for a list: `{}` is all values separated by commas; an argument with `{each}` is repeated for each
/// value.
#[must_use]
pub fn fill_list(words: &[String], values: &[String]) -> Vec<String> {
    if let [one] = values
        && !words.iter().any(|word| word.contains("{each}"))
    {
        return fill(words, one);
    }
    let joined = values.join(",");
    words
        .iter()
        .flat_map(|word| repeated(word, "{each}", values).unwrap_or_else(|| vec![word.replace("{}", &joined)]))
        .collect()
}

/// Returns the arguments and the environment of a permission level. An argument with `{git}` is left out if there is no
/// repository, and one with `{judging}` if the agent is not a judge.
#[must_use]
pub fn level_words(
    backend: &Backend,
    level: &Level,
    allowed: &Allowed,
    judges: bool,
) -> (Vec<String>, Vec<(String, String)>) {
    let pattern = backend.command.as_deref().unwrap_or("{}");
    let named = |commands: &[String]| commands.iter().map(|command| pattern.replace("{}", command)).collect::<Vec<_>>();
    let judging = if judges { named(&allowed.judging) } else { Vec::new() };
    let (reading, commands) = ([named(&allowed.reading), judging.clone()].concat(), named(&allowed.commands));
    let filled = |word: &str| {
        let led = if judging.is_empty() { String::new() } else { format!(",{}", judging.join(",")) };
        let word = word.replace("{,judging}", &led).replace("{judging}", &judging.join(","));
        word.replace("{reading}", &reading.join(",")).replace("{commands}", &commands.join(","))
    };
    let word = |word: &String| {
        if word.contains("{git}") {
            return allowed.git.iter().map(|git| word.replace("{git}", git)).collect();
        }
        if word.contains("{judging}") && judging.is_empty() {
            return Vec::new();
        }
        repeated(word, "{each-reading}", &reading)
            .or_else(|| repeated(word, "{each-judging}", &judging))
            .or_else(|| repeated(word, "{each-command}", &commands))
            .unwrap_or_else(|| vec![filled(word)])
    };
    let arguments = level.arguments.iter().flat_map(word).collect();
    let environment = level.env.iter().map(|(name, value)| (name.clone(), filled(value))).collect();
    (arguments, environment)
}

/// Returns a word once for each value, if it contains this placeholder.
pub(super) fn repeated(word: &str, name: &str, values: &[String]) -> Option<Vec<String>> {
    word.contains(name).then(|| values.iter().map(|value| word.replace(name, value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_string()).collect()
    }

    #[test]
    fn values_are_put_into_words_once() {
        assert_eq!(fill(&words(&["--model", "{}"]), "a{}b"), ["--model", "a{}b"]);
        assert_eq!(fill(&words(&["-c", "x={json}"]), "a\"\n{json}"), ["-c", "x=\"a\\\"\\n{json}\""]);
        assert_eq!(fill_list(&words(&["--tools={}"]), &words(&["a", "b"])), ["--tools=a,b"]);
        assert_eq!(fill_list(&words(&["--tool={each}", "x"]), &words(&["a", "b"])), ["--tool=a", "--tool=b", "x"]);
    }

    #[test]
    fn a_level_names_its_commands_in_the_backends_own_way() {
        let backend = Backend { command: Some("Bash({}:*)".into()), ..Backend::default() };
        let allowed = Allowed {
            reading: words(&["git log"]),
            judging: words(&["forkhestra skip"]),
            commands: words(&["git log", "cargo test"]),
            git: None,
        };
        let level = |arguments| Level { arguments: words(arguments), ..Level::default() };
        let level_words =
            |backend: &Backend, level: &Level, allowed: &Allowed| level_words(backend, level, allowed, false).0;
        assert_eq!(
            level_words(&backend, &level(&["--allow={commands}"]), &allowed),
            ["--allow=Bash(git log:*),Bash(cargo test:*)"]
        );
        assert_eq!(level_words(&backend, &level(&["--allow={each-command}"]), &allowed).len(), 2);
        assert_eq!(level_words(&backend, &level(&["{reading}"]), &allowed), ["Bash(git log:*)"]);
        let judge = |arguments: &[&str]| {
            let level = Level { arguments: words(arguments), ..Level::default() };
            super::level_words(&backend, &level, &allowed, true).0
        };
        assert_eq!(
            judge(&["{reading}", "--a={judging}"]),
            ["Bash(git log:*),Bash(forkhestra skip:*)", "--a=Bash(forkhestra skip:*)"]
        );
        assert!(level_words(&backend, &level(&["--a={judging}"]), &allowed).is_empty(), "an empty list is no word");
        let rules = Level { env: [("P".to_string(), "{\"a\"{,judging}}".to_string())].into(), ..Level::default() };
        let told = |judges| super::level_words(&backend, &rules, &allowed, judges).1[0].1.clone();
        assert_eq!((told(true).as_str(), told(false).as_str()), ("{\"a\",Bash(forkhestra skip:*)}", "{\"a\"}"));
        let repository = Allowed { git: Some("/r/.git".into()), ..allowed.clone() };
        assert_eq!(level_words(&backend, &level(&["--add-dir={git}"]), &repository), ["--add-dir=/r/.git"]);
        assert!(level_words(&backend, &level(&["--add-dir={git}"]), &allowed).is_empty());
    }
}
