//! `init --backend NAME`: an entry of `backends`, from what the help of a program says.

use std::fmt::Write;

/// Options that say something about a program, with the lines of an entry that they give. The first one of each key
/// that the help names counts.
const OPTIONS: [(&str, &str, &str); 17] = [
    ("--append-system-prompt", "systemPrompt", r#"["--append-system-prompt", "{}"]"#),
    ("--system-prompt-append", "systemPrompt", r#"["--system-prompt-append", "{}"]"#),
    ("--rule", "systemPrompt", r#"["--rule", "{}"]"#),
    ("--model", "model", r#"["--model", "{}"]"#),
    ("--max-turns", "maxTurns", r#"["--max-turns", "{}"]"#),
    ("--allowed-tools", "allowedTools", r#"["--allowed-tools={}"]"#),
    ("--allowedTools", "allowedTools", r#"["--allowedTools={}"]"#),
    ("--mcp-config", "mcpConfig", r#"["--mcp-config={}"]"#),
    ("--resume", "resume", r#"["--resume", "{}"]"#),
    ("--session", "resume", r#"["--session", "{}"]"#),
    ("--dangerously-skip-permissions", "full", r#"["--dangerously-skip-permissions"]"#),
    ("--dangerously-bypass-approvals-and-sandbox", "full", r#"["--dangerously-bypass-approvals-and-sandbox"]"#),
    ("--skip-permissions-unsafe", "full", r#"["--skip-permissions-unsafe"]"#),
    ("--yolo", "full", r#"["--yolo"]"#),
    ("--allow-all-tools", "full", r#"["--allow-all-tools"]"#),
    ("--auto-edit", "edit", r#"["--auto-edit"]"#),
    ("--readonly", "read", r#"["--readonly"]"#),
];
/// Options that let a program work without a person, and print lines of JSON.
const UNATTENDED: [&str; 5] = ["--print", "--no-input", "--non-interactive", "--headless", "--no-color"];
const LINES_OF_JSON: [(&str, &str); 3] =
    [("stream-json", "--output-format"), ("stream-jsonrpc", "--output-format"), ("jsonl", "--output-format")];

/// Whether a help names an option, as a whole word.
fn names(help: &str, option: &str) -> bool {
    let part = |next: char| next.is_ascii_alphanumeric() || next == '-';
    help.match_indices(option)
        .any(|(at, _)| !help[..at].ends_with(part) && !help[at + option.len()..].starts_with(part))
}

/// Whether a help shows that an option takes a value: `--model <name>`, `-m, --model NAME`, `--model=NAME`.
fn takes_value(help: &str, option: &str) -> bool {
    help.match_indices(option).any(|(at, _)| {
        let rest = &help[at + option.len()..];
        let next = rest.trim_start_matches(' ');
        let is_name = |text: &str| {
            let word: String = text.chars().take_while(|next| next.is_alphanumeric()).collect();
            word.len() > 1 && word.chars().all(|next| next.is_ascii_uppercase() || next == '_')
        };
        rest.starts_with(['=', ' ']) && (next.starts_with(['<', '=', '[']) || is_name(next))
    })
}

/// Returns the subcommand for work without a person that a help names, if it has one.
pub(super) fn subcommand(help: &str) -> Option<&'static str> {
    let is_named =
        |name: &str| help.lines().any(|line| line.split_whitespace().next() == Some(name) && line.starts_with(' '));
    ["exec", "run"].into_iter().find(|name| is_named(name))
}

/// Returns an entry of `backends` for a program with this help, which may be that of a subcommand. What has to be
/// completed is in comments.
pub(super) fn entry_of(name: &str, command: Option<&str>, help: &str) -> String {
    let found = |key: &str| {
        let fits = |option: &str, words: &str| names(help, option) && takes_value(help, option) == words.contains("{}");
        OPTIONS.iter().find(|(option, known, words)| *known == key && fits(option, words))
    };
    let quoted = |word: &str| serde_json::Value::from(word).to_string();
    let mut arguments: Vec<String> = command.map(quoted).into_iter().collect();
    let unattended: Vec<String> =
        UNATTENDED.iter().filter(|option| names(help, option)).map(|option| quoted(option)).collect();
    arguments.extend(unattended);
    let json = LINES_OF_JSON.iter().find(|(format, option)| names(help, option) && names(help, format));
    if let Some((format, option)) = json {
        arguments.extend([quoted(option), quoted(format)]);
    }
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "    {}: {{\n      \"program\": {},\n      // Without a person: no questions, no colors.\n      \"arguments\": [{}],\n\
         \x20     // How it takes the prompt: stdin, arg (the last argument) or file (the path of a file).\n\
         \x20     \"deliver\": \"stdin\",\n",
        quoted(name),
        quoted(name),
        arguments.join(", ")
    );
    if let Some(command) = command {
        let _ = writeln!(text, "      \"help\": [{}, \"--help\"],", quoted(command));
    }
    for key in ["systemPrompt", "model", "maxTurns", "allowedTools", "mcpConfig", "resume"] {
        if let Some((_, _, words)) = found(key) {
            let _ = writeln!(text, "      \"{key}\": {words},");
        }
    }
    text.push_str("      // What an agent may do without asking; leave out what the program cannot express.\n      \"permissions\": {\n");
    for level in ["read", "edit", "full"] {
        match found(level) {
            Some((_, _, words)) => drop(writeln!(text, "        \"{level}\": {{ \"arguments\": {words} }},")),
            None if level == "full" => text.push_str("        \"full\": {},\n"),
            None => drop(writeln!(text, "        // \"{level}\": {{ \"arguments\": [\"…\"] }},")),
        }
    }
    text.push_str("      },\n");
    if json.is_some() {
        text.push_str(
            "      // How its lines of JSON are read: complete the pointers from what it prints.\n      \"reader\": {\n\
             \x20       // \"text\": { \"when\": { \"/type\": \"assistant\" }, \"at\": \"/message/content\" },\n\
             \x20       // \"tool\": { \"when\": { \"/type\": \"tool_call\" }, \"name\": \"/name\", \"input\": \"/input\" },\n\
             \x20       \"final\": { \"when\": { \"/type\": \"result\" }, \"at\": \"/result\" },\n      },\n",
        );
    }
    text.push_str("    },\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_what_the_help_names_and_comments_for_the_rest() {
        let help = "Usage: acme [options]\n  -p, --print\n  --output-format <text|stream-json>\n  -m, --model <name>\n  \
                    --yolo   allow all\n  --auto-edit <level>\n  --resume   the last\n";
        let entry = entry_of("acme", None, help);
        for line in [
            "      \"arguments\": [\"--print\", \"--output-format\", \"stream-json\"],",
            "      \"model\": [\"--model\", \"{}\"],",
            "        // \"edit\": { \"arguments\": [\"…\"] },",
            "        \"full\": { \"arguments\": [\"--yolo\"] },",
        ] {
            assert!(entry.contains(line), "{entry}");
        }
        // An option with a value is no switch, and one without is no place for a value.
        assert!(!entry.contains("--auto-edit") && !entry.contains("--resume"), "{entry}");
    }

    #[test]
    fn the_help_of_a_subcommand_is_that_of_its_entry() {
        assert_eq!(subcommand("Commands:\n  exec [options] [prompt]  Run once\n  login\n"), Some("exec"));
        assert_eq!(subcommand("We execute things.\nexec it\n"), None);
        let entry = entry_of("acme", Some("exec"), "  --model <m>\n");
        assert!(
            entry.contains("\"arguments\": [\"exec\"]") && entry.contains("\"help\": [\"exec\", \"--help\"]"),
            "{entry}"
        );
    }
}
