//! The words of a backend, with their values in them.

use super::allowed::Allowed;
use crate::chain::{Backend, Level};

/// Words for one value: `{}` is the value, `{json}` the value as a JSON string, which is a TOML string as well.
#[must_use]
pub fn fill(words: &[String], value: &str) -> Vec<String> {
    let json = serde_json::Value::from(value).to_string();
    // One pass, so that a value with braces stays as it is.
    words
        .iter()
        .map(|word| if word.contains("{json}") { word.replace("{json}", &json) } else { word.replace("{}", value) })
        .collect()
}

/// Words for a list: `{}` is all values with commas, a word with `{each}` is repeated for each.
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

/// The arguments of a level of permissions; a word with `{git}` is left out where there is no repository.
#[must_use]
pub fn level_words(backend: &Backend, level: &Level, allowed: &Allowed) -> Vec<String> {
    let pattern = backend.command.as_deref().unwrap_or("{}");
    let named = |commands: &[String]| commands.iter().map(|command| pattern.replace("{}", command)).collect::<Vec<_>>();
    let (reading, commands) = (named(&allowed.reading), named(&allowed.commands));
    let word = |word: &String| {
        if word.contains("{git}") {
            return allowed.git.iter().map(|git| word.replace("{git}", git)).collect();
        }
        repeated(word, "{each-reading}", &reading)
            .or_else(|| repeated(word, "{each-command}", &commands))
            .unwrap_or_else(|| {
                vec![word.replace("{reading}", &reading.join(",")).replace("{commands}", &commands.join(","))]
            })
    };
    level.arguments.iter().flat_map(word).collect()
}

fn repeated(word: &str, name: &str, values: &[String]) -> Option<Vec<String>> {
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
        let allowed = Allowed { reading: words(&["git log"]), commands: words(&["git log", "cargo test"]), git: None };
        let level = |arguments| Level { arguments: words(arguments), ..Level::default() };
        assert_eq!(
            level_words(&backend, &level(&["--allow={commands}"]), &allowed),
            ["--allow=Bash(git log:*),Bash(cargo test:*)"]
        );
        assert_eq!(level_words(&backend, &level(&["--allow={each-command}"]), &allowed).len(), 2);
        assert_eq!(level_words(&backend, &level(&["{reading}"]), &allowed), ["Bash(git log:*)"]);
        let repository = Allowed { git: Some("/r/.git".into()), ..allowed.clone() };
        assert_eq!(level_words(&backend, &level(&["--add-dir={git}"]), &repository), ["--add-dir=/r/.git"]);
        assert!(level_words(&backend, &level(&["--add-dir={git}"]), &allowed).is_empty());
    }
}
