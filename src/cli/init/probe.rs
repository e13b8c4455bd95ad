//! `init --backend NAME`: an entry of `backends`, from what the help of a program says.

use std::fmt::Write;

/// Options that say something about a program, with the lines of an entry that they give. The first one of each key
/// that the help names counts.
const OPTIONS: [(&str, &str, &str); 19] = [
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
    ("--allow-all", "full", r#"["--allow-all"]"#),
    ("--force", "full", r#"["--force"]"#),
    ("--auto-edit", "edit", r#"["--auto-edit"]"#),
    ("--auto", "edit", r#"["--auto"]"#),
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

/// Returns an entry of `backends` for a program with this help. What has to be completed is in comments.
pub(super) fn entry_of(name: &str, help: &str) -> String {
    let found = |key: &str| OPTIONS.iter().find(|(option, known, _)| *known == key && names(help, option));
    let quoted = |word: &str| serde_json::Value::from(word).to_string();
    let mut arguments: Vec<String> =
        UNATTENDED.iter().filter(|option| names(help, option)).map(|option| quoted(option)).collect();
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
                    --yolo   allow all\n  --autopilot\n";
        let entry = entry_of("acme", help);
        for line in [
            "      \"arguments\": [\"--print\", \"--output-format\", \"stream-json\"],",
            "      \"model\": [\"--model\", \"{}\"],",
            "        // \"edit\": { \"arguments\": [\"…\"] },",
            "        \"full\": { \"arguments\": [\"--yolo\"] },",
        ] {
            assert!(entry.contains(line), "{entry}");
        }
        assert!(!entry.contains("--auto\""), "--autopilot is another option: {entry}");
    }
}
