//! Converts templates of another tool: `{name}` becomes `{{name}}`, directories get our agents' names, skills are kept.

use crate::prompt::{VARIABLES, built_in_files};
use std::path::{Path, PathBuf};

/// The other tool's names of roles, and ours.
const ROLES: [(&str, &str); 2] = [("builder", "carbon"), ("inspector", "helium")];

/// Directories that hold what belongs to several roles, and are never the name of one.
const SHARED: [&str; 6] = ["agents", "forge", "prompts", "roles", "skills", "templates"];

/// A file that was converted.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) struct Migrated {
    /// Its new path, relative to the root.
    pub(in crate::cli) path: PathBuf,
    /// Its converted text.
    pub(in crate::cli) text: String,
    /// The names in braces that are not known, and stay as they are.
    pub(in crate::cli) left: Vec<String>,
}

/// Converts a Markdown file of the other tool; `None` if it is neither a template nor a skill. `path` is relative to
/// the tool's directory.
pub(in crate::cli) fn migrated(path: &Path, text: &str) -> Option<Migrated> {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let (file, folders) = parts.split_last()?;
    let stem = file.strip_suffix(".md")?;
    let is_skill = folders.last() == Some(&"skills");
    if !is_skill && !stem.contains("template") && stem != "prompt" {
        return None;
    }
    let role = folders.iter().rev().find(|folder| !SHARED.contains(folder)).copied();
    // In a directory of all roles, the file name starts with the role: `builder.template.md`.
    let named = || stem.split_once('.').map(|(role, _)| role).filter(|role| !["prompt", "template"].contains(role));
    let role = if is_skill { role } else { role.or_else(named) };
    let role = role.map(|role| ROLES.iter().find(|(theirs, _)| *theirs == role).map_or(role, |(_, ours)| *ours));
    let path = match (role, is_skill) {
        (None, true) => PathBuf::from("forge/skills").join(file),
        (Some(role), true) => Path::new("forge/agents").join(role).join("skills").join(file),
        (Some(role), false) => Path::new("forge/agents").join(role).join("prompt.md"),
        (None, false) => return None,
    };
    let (text, left) = converted(text);
    Some(Migrated { path, text, left })
}

/// Converts `{name}` of a variable to `{{name}}`, also with a sum, and `{if_x}` with `{end_if}` to a block. Everything
/// else stays; names in it are returned.
fn converted(text: &str) -> (String, Vec<String>) {
    if let Some(converted) = of_python(text) {
        return (converted, Vec::new());
    }
    let (mut converted, mut left, mut rest) = (String::new(), Vec::new(), text);
    while let Some(open) = rest.find('{') {
        let after = &rest[open + 1..];
        if after.starts_with('{') {
            // Already in double braces, or part of JSON.
            let braces = 1 + after.len() - after.trim_start_matches('{').len();
            converted.push_str(&rest[..open + braces]);
            rest = &rest[open + braces..];
            continue;
        }
        converted.push_str(&rest[..open]);
        let inside = after.find(['}', '\n']).filter(|end| after[*end..].starts_with('}')).map(|end| &after[..end]);
        // `${name}` is shell syntax.
        let inside = inside.filter(|_| !rest[..open].ends_with('$'));
        if let Some(tag) = inside.and_then(tag) {
            converted.push_str(&tag);
            rest = &after[inside.map_or(0, str::len) + 1..];
        } else {
            let name = inside.filter(|name| looks_like_a_name(name));
            left.extend(name.filter(|name| !left.contains(&(*name).to_string())).map(str::to_string));
            converted.push('{');
            rest = after;
        }
    }
    converted.push_str(rest);
    (converted, left)
}

/// Converts a text for Python's `str.format`: every brace is doubled, or encloses a known name. `None` for other texts.
fn of_python(text: &str) -> Option<String> {
    let (mut converted, mut rest, mut doubled) = (String::new(), text, false);
    while let Some(next) = rest.find(['{', '}']) {
        converted.push_str(&rest[..next]);
        let after = &rest[next + 1..];
        if let Some(after) = ["{", "}"].iter().find_map(|brace| rest[next..].strip_prefix(*brace)?.strip_prefix(*brace))
        {
            converted.push_str(&rest[next..=next]);
            (rest, doubled) = (after, true);
        } else if rest[next..].starts_with('{') {
            let (inside, after) = after.split_once('}')?;
            converted.push_str(&tag(inside)?);
            rest = after;
        } else {
            return None;
        }
    }
    converted.push_str(rest);
    // Without a doubled brace, both kinds of text look the same. `{{name}}` of a known name is our own syntax already.
    let ours = text
        .split("{{")
        .skip(1)
        .any(|after| after.split_once("}}").is_some_and(|(name, _)| tag(name.trim()).is_some()));
    (doubled && !ours).then_some(converted)
}

fn looks_like_a_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.chars().all(|next| next.is_ascii_lowercase() || next.is_ascii_digit() || next == '_')
}

/// Converts the text in a pair of braces to our syntax; `None` if it is not a tag of the other tool.
fn tag(inside: &str) -> Option<String> {
    let known = |name: &str| VARIABLES.iter().any(|(known, _)| *known == name);
    if inside == "end_if" {
        return Some("{{/if}}".into());
    }
    if let Some(name) = inside.strip_prefix("if_") {
        return known(name).then(|| format!("{{{{#if {name}}}}}"));
    }
    if inside.strip_prefix("skill:").is_some_and(|name| !name.is_empty() && !name.contains(' ')) {
        return Some(format!("{{{{{inside}}}}}"));
    }
    let name = inside.split([' ', '+', '-']).next().unwrap_or_default();
    let sum = inside[name.len()..].trim_start();
    let is_sum = |sum: &str| sum.strip_prefix(['+', '-']).is_some_and(|number| number.trim().parse::<u32>().is_ok());
    (known(name) && (sum.is_empty() || is_sum(sum))).then(|| format!("{{{{{inside}}}}}"))
}

/// The built-in templates and skills, with the paths where they are written.
pub(in crate::cli) fn our_templates() -> Vec<(PathBuf, &'static str)> {
    let place = |name: &str| match name.strip_prefix("../") {
        Some(shared) => Path::new("forge").join(shared),
        None => Path::new("forge/agents").join(name),
    };
    built_in_files().into_iter().map(|(name, text)| (place(&name), text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn their_templates_and_skills_find_their_place_and_their_variables_their_braces() {
        let of = |path: &str, text: &str| migrated(Path::new(path), text);
        let builder =
            of("builder/templates/builder.template.md", "Do {task_prompt} with {tool_name} and {\"a\": {}} {{x}}")
                .unwrap();
        assert_eq!(builder.path, Path::new("forge/agents/carbon/prompt.md"));
        assert_eq!(builder.text, "Do {{task_prompt}} with {tool_name} and {\"a\": {}} {{x}}");
        assert_eq!(builder.left, ["tool_name"]);
        let seed =
            of("builder/prompt.md", "{if_rejected}#{rejection_count + 1}: {reviewer_notes}{end_if} ${name} {return}")
                .unwrap();
        assert_eq!(seed.text, "{{#if rejected}}#{{rejection_count + 1}}: {{reviewer_notes}}{{/if}} ${name} {return}");
        let python = of("builder/prompt.md", "Task {task_id}\n{{\"status\": \"ok\", \"a\": {{}}}}\n").unwrap();
        assert_eq!(python.text, "Task {{task_id}}\n{\"status\": \"ok\", \"a\": {}}\n");
        assert_eq!(of("builder/prompt.md", "{{task_id}} {{if}}").unwrap().text, "{{task_id}} {{if}}");
        assert_eq!(of("templates/inspector.template.md", "").unwrap().path, Path::new("forge/agents/helium/prompt.md"));
        assert_eq!(of("inspector/skills/rules.md", "").unwrap().path, Path::new("forge/agents/helium/skills/rules.md"));
        assert_eq!(of("skills/a.md", "{skill:b}").unwrap().text, "{{skill:b}}");
        for (path, placed) in [
            ("agents/coder/prompt.md", "forge/agents/coder/prompt.md"),
            ("forge/agents/builder/skills/a.md", "forge/agents/carbon/skills/a.md"),
            ("forge/skills/a.md", "forge/skills/a.md"),
            ("templates/coder/prompt.md", "forge/agents/coder/prompt.md"),
            ("builder.template.md", "forge/agents/carbon/prompt.md"),
        ] {
            assert_eq!(of(path, "").unwrap().path, Path::new(placed), "{path}");
        }
        assert_eq!(of("agents/prompt.md", "x"), None, "an agent without a name");
        assert_eq!(of("builder/notes.md", "x"), None);
        assert_eq!(of("builder/prompt.txt", "x"), None);
    }
}
