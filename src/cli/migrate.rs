//! Templates of another house become ours: `{name}` becomes `{{name}}`, folders get the names of our agents, skills are kept.

use crate::prompt::{VARIABLES, built_in_files};
use std::path::{Path, PathBuf};

/// Their roles and ours.
const ROLES: [(&str, &str); 2] = [("builder", "carbon"), ("inspector", "helium")];

/// A file that was converted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Migrated {
    /// Where it goes, below the root.
    pub(super) path: PathBuf,
    /// What it says now.
    pub(super) text: String,
    /// What could not be converted.
    pub(super) left: Vec<String>,
}

/// Where one of their Markdown files goes, and what it becomes; none for one that is neither template nor skill. `path` is below
/// their folder.
pub(super) fn migrated(path: &Path, text: &str) -> Option<Migrated> {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let (file, folders) = parts.split_last()?;
    let stem = file.strip_suffix(".md")?;
    let role =
        folders.first().map(|role| ROLES.iter().find(|(theirs, _)| theirs == role).map_or(*role, |(_, ours)| ours));
    let is_skill = folders.last() == Some(&"skills");
    let path = match (role, is_skill) {
        (Some("skills") | None, true) => PathBuf::from("forge/skills").join(file),
        (Some(role), true) => Path::new("forge/agents").join(role).join("skills").join(file),
        (Some(role), false) if stem.contains("template") || stem == "prompt" => {
            Path::new("forge/agents").join(role).join("prompt.md")
        }
        _ => return None,
    };
    let (text, left) = converted(text);
    Some(Migrated { path, text, left })
}

/// `{name}` of a variable becomes `{{name}}`, `{skill:name}` becomes `{{skill:name}}`; the names that nobody knows are listed.
fn converted(text: &str) -> (String, Vec<String>) {
    let (mut converted, mut left, mut rest) = (String::new(), Vec::new(), text);
    while let Some(open) = rest.find('{') {
        let after = &rest[open + 1..];
        let end = after.find(|next: char| !(next.is_ascii_lowercase() || matches!(next, '_' | ':' | '-'))).unwrap_or(0);
        let name = &after[..end];
        if after.starts_with('{') {
            // Theirs already, or somebody's JSON.
            let braces = 1 + after.len() - after.trim_start_matches('{').len();
            converted.push_str(&rest[..open + braces]);
            rest = &rest[open + braces..];
            continue;
        }
        if name.is_empty() || !after[end..].starts_with('}') {
            converted.push_str(&rest[..=open]);
            rest = after;
            continue;
        }
        converted.push_str(&rest[..open]);
        converted.extend(["{{", name, "}}"]);
        let known = name.starts_with("skill:") || VARIABLES.iter().any(|(known, _)| *known == name);
        if !known && !left.contains(&name.to_string()) {
            left.push(name.to_string());
        }
        rest = &after[end + 1..];
    }
    converted.push_str(rest);
    (converted, left)
}

/// Our own templates and skills, where they go.
pub(super) fn our_templates() -> Vec<(PathBuf, &'static str)> {
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
            of("builder/templates/builder.template.md", "Do {task_prompt} with {tool} and {\"a\": {}} {{x}}").unwrap();
        assert_eq!(builder.path, Path::new("forge/agents/carbon/prompt.md"));
        assert_eq!(builder.text, "Do {{task_prompt}} with {{tool}} and {\"a\": {}} {{x}}");
        assert_eq!(builder.left, ["tool"]);
        assert_eq!(of("inspector/skills/rules.md", "").unwrap().path, Path::new("forge/agents/helium/skills/rules.md"));
        assert_eq!(of("skills/a.md", "{skill:b}").unwrap().text, "{{skill:b}}");
        assert_eq!(of("builder/notes.md", "x"), None);
        assert_eq!(of("builder/prompt.txt", "x"), None);
    }
}
