//! The documentation is correct: every command in it runs, and the generated pages match the code.

use super::support::Place;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).into()
}

/// A block of a page: its language and its lines.
type Block = (String, Vec<String>);

fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut open): (Vec<Block>, Option<Block>) = (Vec::new(), None);
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => open = Some((language.to_string(), Vec::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((_, lines)), None) => lines.push(line.to_string()),
            (None, None) => {}
        }
    }
    blocks
}

/// Makes a project with a script as its backend. The script works, approves, and asks no questions.
fn place() -> Place {
    let place = Place::new();
    let script = r#"#!/bin/sh
told="$* $(cat)"
case "$told" in *"You are to judge"*) ;; *) date +%N >> work.txt ;; esac
printf '%s\n' '{"type":"system","subtype":"init","session_id":"s","tools":[],"model":"m"}'
printf '%s\n' '{"type":"result","subtype":"success","is_error":false,"result":"Done.\nVERDICT: approve\n\nFORKHESTRA_COMPLETE","session_id":"s","num_turns":1,"total_cost_usd":0.01,"usage":{"input_tokens":1,"output_tokens":1}}'
"#;
    // make is not installed everywhere.
    for (name, text) in [("claude", script), ("make", "#!/bin/sh\nexit 0\n")] {
        let program = place.path("bin").join(name);
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]);
        assert!(command.args(words).current_dir(place.path("project")).output().unwrap().status.success());
    };
    git(&["init", "-q"]);
    fs::create_dir_all(place.work("docs")).unwrap();
    place.write("docs/passkey.md", "# Passkeys\n").write("README.md", "x\n").write(".gitignore", ".forkhestra\n");
    place.write("Makefile", "build:\n\ttrue\ntest:\n\ttrue\n");
    place.write(
        "forge/chains.json",
        r#"{ "chains": { "hello": { "steps": [{ "check": "test" }] } }, "checks": { "test": { "run": "true" }, "build": { "run": "true" } } }"#,
    );
    git(&["add", "."]);
    git(&["commit", "-qm", "begin"]);
    place
}

/// Runs a command line in a shell, with our program on PATH.
fn run(place: &Place, line: &str) -> (Option<i32>, String, String) {
    let program = assert_cmd::cargo::cargo_bin!("forkhestra");
    let ours = place.command(&[]);
    let mut shell = Command::new("bash");
    shell.args(["-c", line]).env_clear().current_dir(place.path("project")).stdin(std::process::Stdio::null());
    shell.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.env("PATH", format!("{}:{}:/usr/bin:/bin", place.path("bin").display(), program.parent().unwrap().display()));
    let output = shell.output().unwrap();
    place.assert_nothing_is_left();
    (output.status.code(), place.plain(&output.stdout), place.plain(&output.stderr))
}

/// Pages that are sessions: every command succeeds, and prints the output that is shown below it, if there is any.
#[test]
fn whoever_types_what_the_first_pages_say_sees_what_they_say() {
    for page in ["getting-started", "recipes", "events"] {
        let place = place();
        let text = fs::read_to_string(root().join(format!("docs/{page}.md"))).unwrap();
        let blocks = blocks(&text);
        if page == "getting-started" {
            fs::remove_dir_all(place.work("forge")).unwrap();
        }
        // A file whose name is in the first line of its block.
        let write = |language: &str, lines: &[String]| {
            let name = lines.first().and_then(|line| line.strip_prefix("// ")).filter(|_| language == "json5");
            if let Some(name) = name {
                place.write(name, lines.join("\n"));
            }
        };
        if page == "recipes" {
            place.write("suite.json5", "");
            for (language, lines) in &blocks {
                if lines.first().is_some_and(|line| line.contains("suite")) {
                    write(language, lines);
                }
            }
        }
        for (language, lines) in &blocks {
            write(language, lines);
            if language != "console" {
                continue;
            }
            let mut lines = lines.iter().peekable();
            while let Some(line) = lines.next() {
                let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("{page}: {line}"));
                let mut expected = String::new();
                while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
                    expected.push_str(line);
                    expected.push('\n');
                }
                let (code, stdout, stderr) = run(&place, command);
                // `doctor` does not accept the stub for claude.
                let expected_code = i32::from(command == "forkhestra doctor");
                assert_eq!(code, Some(expected_code), "{page}: {command}\n{stdout}\n{stderr}");
                if !expected.is_empty() {
                    assert_eq!(stdout + &stderr, expected, "{page}: {command}");
                }
            }
        }
    }
}

/// All other pages: each command line is valid, whatever it finds here.
#[test]
fn every_command_of_every_page_is_understood() {
    let mut pages: Vec<PathBuf> =
        fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.push(root().join("README.md"));
    let mut place = place();
    place.set("SHELL", "/bin/bash");
    let mut seen = 0;
    let sessions = ["getting-started.md", "recipes.md", "events.md"].map(|name| root().join("docs").join(name));
    pages.retain(|page| page.extension().is_some_and(|kind| kind == "md") && !sessions.contains(page));
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for (language, lines) in blocks(&text) {
            // In a script there are commands of other programs, too.
            let command = |line: &String| match language.as_str() {
                "console" => line.strip_prefix("$ ").map(str::to_string),
                "sh" => Some(line.clone()).filter(|line| line.starts_with("forkhestra ")),
                _ => None,
            };
            for command in lines.iter().filter_map(command) {
                // CI runs these anyway.
                if command.starts_with("cargo ") {
                    continue;
                }
                assert!(command.starts_with("forkhestra "), "{}: {command}", page.display());
                let (code, _, stderr) = run(&place, &format!("timeout 60 {command}"));
                let misread = ["error: ", "usage/", "config/", "agent/"].iter().any(|words| stderr.starts_with(words));
                assert!(code.is_some_and(|code| code < 124) && !misread, "{}: {command}\n{stderr}", page.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

/// `docs/reference.md` is generated from the schema. `UPDATE_SCHEMAS=1 cargo test` writes it again.
#[test]
fn the_reference_is_that_of_the_schema() {
    use std::fmt::Write;
    let schema = forkhestra::chain::schema();
    let mut text = String::from(
        "# Every key of chains.json\n\nGenerated from [the schema](../schemas/chains.schema.json), which editors can use: `\"$schema\": \"…\"`.\nA key that is not listed here is an error. A length of time is a string such as `90s`, `10m` or\n`1h30m`. *It* in the description of a backend is the backend's program.\n",
    );
    let objects = [("The file", &schema)].into_iter();
    let definitions = schema["$defs"].as_object().unwrap();
    let objects = objects.chain(definitions.iter().map(|(name, object)| (name.as_str(), object)));
    for (name, object) in objects {
        let title = match name {
            "The file" => name.to_string(),
            "limits" | "hooks" | "permissions" | "mcp" | "workspace" | "landing" | "needs" => format!("`{name}`"),
            name => format!("An entry: {name}"),
        };
        write!(text, "\n## {title}\n\n").unwrap();
        let required = object["required"].as_array().cloned().unwrap_or_default();
        for (key, value) in object["properties"].as_object().unwrap() {
            let needed = if required.iter().any(|one| one == key) { "required; " } else { "" };
            let about = value["description"].as_str().unwrap_or_default();
            text += &wrapped(&format!("- **`{key}`** ({needed}{}). {about}", kind(value)));
        }
    }
    let path = root().join("docs/reference.md");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == text,
        "docs/reference.md is stale: UPDATE_SCHEMAS=1 cargo test --test it docs"
    );
}

/// An item of a list, in lines of at most 100 columns.
fn wrapped(item: &str) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for word in item.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > 100 {
            text += "\n  ";
            column = 2;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += width;
    }
    text + "\n"
}

/// Collects the kinds that a value may have, each of them once.
fn kinds_of(value: &serde_json::Value, kinds: &mut Vec<String>) {
    if let Some(all) = value["anyOf"].as_array() {
        return all.iter().for_each(|one| kinds_of(one, kinds));
    }
    let kind = kind(value);
    if !kinds.contains(&kind) {
        kinds.push(kind);
    }
}

fn kind(value: &serde_json::Value) -> String {
    if value["anyOf"].is_array() {
        let mut kinds = Vec::new();
        kinds_of(value, &mut kinds);
        return kinds.join(", or ");
    }
    if let Some(to) = value["$ref"].as_str() {
        return format!("[{0}](#{1})", to.rsplit('/').next().unwrap(), anchor(to.rsplit('/').next().unwrap()));
    }
    if let Some(choices) = value["enum"].as_array() {
        return choices.iter().map(|one| format!("`{}`", one.as_str().unwrap())).collect::<Vec<_>>().join(", ");
    }
    if value["oneOf"].is_array() {
        return "a string, or a list of strings".into();
    }
    match value["type"].as_str() {
        Some("string") if value["pattern"].is_string() => "a length of time".into(),
        Some("string") => "a string".into(),
        Some("boolean") => "true or false".into(),
        Some("integer") => "a whole number".into(),
        Some("number") => "a number".into(),
        Some("array") => match value["items"]["$ref"].as_str() {
            Some(to) => {
                format!("a list of [{0}](#{1})", to.rsplit('/').next().unwrap(), anchor(to.rsplit('/').next().unwrap()))
            }
            None if value["items"]["anyOf"].is_array() => format!("a list (elements: {})", kind(&value["items"])),
            None => "a list of strings".into(),
        },
        Some("object") if value["additionalProperties"].is_object() => {
            format!("an object (values: {})", kind(&value["additionalProperties"]))
        }
        Some("object") => "an object".into(),
        _ => "anything".into(),
    }
}

fn anchor(name: &str) -> String {
    if ["limits", "hooks", "permissions", "mcp", "workspace", "landing", "needs"].contains(&name) {
        name.into()
    } else {
        format!("an-entry-{name}")
    }
}
