//! Agents that another tool keeps in the project: `.claude/agents/*.md`, the subagents of Claude Code. They are only
//! read. A name that is taken stays what it is.

use super::{Config, Entry, LayerKind};
use crate::chain::backend::Permissions;
use crate::chain::errors;
use crate::chain::ir::Agent;
use crate::chain::keys::cli::{CliValue, CliValues};
use crate::chain::name::check_name;
use crate::source::{Files, Kind, MarkdownHead, Place, Source, Text};
use std::path::Path;
use std::sync::Arc;

/// The directory of the agents, from the root.
pub const AGENT_FILES: &str = ".claude/agents";
/// The directories of skills, from the root. A skill is `NAME/SKILL.md` in one of them.
pub const SKILL_DIRS: [&str; 2] = [".claude/skills", ".agents/skills"];
/// The files with instructions for agents that are read if there is no AGENTS.md, in this order.
pub const INSTRUCTION_FILES: [&str; 2] = ["CLAUDE.md", "GEMINI.md"];
/// The backend that runs these agents: their tools and models are those of Claude Code.
const BACKEND: &str = "claude";
/// The largest file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// Adds the agents that another tool keeps in the project. `taken` are more names that are not theirs.
pub fn add_discovered_agents(config: &mut Config, root: &Path, files: &dyn Files, taken: &[&str]) {
    if !config.discovers() || !config.backends.contains(BACKEND) {
        return;
    }
    let folder = root.join(AGENT_FILES);
    let mut names = files.names(&folder);
    names.retain(|name| Path::new(name).extension().is_some_and(|ending| ending == "md"));
    names.sort();
    for file in names {
        let path = format!("{AGENT_FILES}/{file}");
        let Some(source) = read(files, &folder.join(&file), &path, root) else {
            config.unused.push(errors::unreadable_agent(&path));
            continue;
        };
        let Some((name, agent)) = agent_of(&source, file.trim_end_matches(".md")) else { continue };
        let at = name.at.clone();
        let is_taken = config.agents.contains_key(&name.value)
            || config.checks.contains_key(&name.value)
            || config.chains.contains_key(&name.value)
            || taken.contains(&name.value.as_str());
        if check_name(&name.value).is_err() {
            config.unused.push(errors::unused_agent(&at, &name.value, "it is not a name in the chain language"));
        } else if is_taken {
            config.unused.push(errors::unused_agent(&at, &name.value, "the name is taken"));
        } else {
            let entry = Entry { value: agent, at, layer: LayerKind::Discovered, faults: Vec::new() };
            config.agents.insert(name.value, entry);
        }
    }
}

fn read(files: &dyn Files, path: &Path, name: &str, root: &Path) -> Option<Arc<Source>> {
    let Ok(Kind::File { bytes, .. }) = files.kind(path) else { return None };
    let text = String::from_utf8(files.read(path).ok().filter(|_| bytes <= LARGEST)?).ok()?;
    Some(Source::new(name, text.strip_prefix('\u{feff}').unwrap_or(&text), root))
}

/// Returns the agent in a file; `None` for a file that is none, such as a README.
fn agent_of(source: &Arc<Source>, stem: &str) -> Option<(Text, Agent)> {
    let head = MarkdownHead::of(&source.text)?;
    let at = Place::new(source, 0..3);
    let text = |value: &str| Text { value: value.to_string(), at: at.clone() };
    let mut cli = CliValues::new();
    let mut set = |key: &'static str, values: Vec<String>| {
        if !values.is_empty() {
            cli.insert(key, CliValue { values, at: at.clone() });
        }
    };
    let listed = |key: &str| {
        let items = head.get(key).unwrap_or_default().split(',').map(str::trim);
        items.filter(|item| !item.is_empty()).map(str::to_string).collect::<Vec<_>>()
    };
    // Tools of MCP servers are no built-in tools, so they cannot be narrowed down to.
    set("tools", listed("tools").into_iter().filter(|tool| !tool.starts_with("mcp__")).collect());
    set("disallowedTools", listed("disallowedTools"));
    let model = head.get("model").filter(|model| !["inherit", "default"].contains(model));
    set("model", model.into_iter().map(str::to_string).collect());
    set(
        "maxTurns",
        head.get("maxTurns").filter(|turns| turns.parse::<u32>().is_ok()).into_iter().map(str::to_string).collect(),
    );
    // The other modes would widen what it may do.
    let plans = head.get("permissionMode") == Some("plan");
    let body = source.text[head.end..].trim();
    let agent = Agent {
        description: head.get("description").map(text),
        system_prompt_text: (!body.is_empty()).then(|| text(body)),
        backend: Some(text(BACKEND)),
        cli,
        permissions: plans.then(|| (Permissions::Read, at.clone())),
        ..Agent::default()
    };
    Some((text(head.get("name").unwrap_or(stem)), agent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::{LayerSource, load};
    use std::collections::HashMap;
    use std::io;

    struct Map(HashMap<&'static str, &'static str>);

    impl Files for Map {
        fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
            self.0
                .get(path.to_str().unwrap())
                .map(|text| text.as_bytes().to_vec())
                .ok_or(io::ErrorKind::NotFound.into())
        }

        fn head(&self, path: &Path, _: usize) -> io::Result<Vec<u8>> {
            self.read(path)
        }

        fn kind(&self, path: &Path) -> io::Result<Kind> {
            let bytes = self.read(path)?.len() as u64;
            Ok(Kind::File { executable: false, bytes })
        }

        fn names(&self, folder: &Path) -> Vec<String> {
            let below = |path: &&&str| Path::new(path).parent() == Some(folder);
            self.0.keys().filter(below).map(|path| path.rsplit('/').next().unwrap().to_string()).collect()
        }
    }

    fn config(text: &str, files: &[(&'static str, &'static str)]) -> Config {
        let layer = |kind, text: &str| LayerSource { kind, source: Source::new("c", text, Path::new("/r")) };
        let claude = r#"{"backends": {"claude": {"program": "claude"}}, "chains": {}}"#;
        let mut config = load(&[layer(LayerKind::BuiltIn, claude), layer(LayerKind::Project, text)]);
        add_discovered_agents(&mut config, Path::new("/r"), &Map(files.iter().copied().collect()), &["verify"]);
        config
    }

    const REVIEWER: &str = "---\nname: code-reviewer\ndescription: Reviews: all of it\ntools: Read, mcp__x__y\n\
                            model: inherit\npermissionMode: bypassPermissions\n---\n\nYou review.\n";

    #[test]
    fn an_agent_of_claude_code_is_an_agent_here_and_may_do_no_more_than_any_other() {
        let config = config(
            r#"{"chains": {}}"#,
            &[("/r/.claude/agents/a.md", REVIEWER), ("/r/.claude/agents/README.md", "# Hi")],
        );
        let entry = &config.agents["code-reviewer"];
        assert_eq!((entry.layer, entry.at.to_string().as_str()), (LayerKind::Discovered, ".claude/agents/a.md:1:1"));
        assert_eq!(entry.value.system_prompt_text.as_ref().unwrap().value, "You review.");
        assert_eq!(entry.value.cli["tools"].values, ["Read"]);
        assert_eq!((entry.value.model(), entry.value.permissions.is_none()), (None, true));
        assert!(!config.agents.contains_key("README"));
    }

    #[test]
    fn a_name_that_is_taken_stays_what_it_is() {
        let taken = r#"{"agents": {"code-reviewer": {"command": "mine"}}, "chains": {}}"#;
        let files = [
            ("/r/.claude/agents/a.md", REVIEWER),
            ("/r/.claude/agents/verify.md", "---\ndescription: d\n---\nx"),
            ("/r/.claude/agents/b.md", "---\nname: two words\n---\nx"),
        ];
        let config = config(taken, &files);
        assert!(config.agents["code-reviewer"].value.backend.is_none());
        assert!(!config.agents.contains_key("verify"));
        let words: Vec<&str> = config.unused.iter().map(|fault| fault.message.as_str()).collect();
        assert_eq!(
            words,
            [
                "the agent `code-reviewer` is not used: the name is taken",
                "the agent `two words` is not used: it is not a name in the chain language",
                "the agent `verify` is not used: the name is taken",
            ]
        );
    }

    #[test]
    fn discover_false_reads_none() {
        let config = config(r#"{"discover": false, "chains": {}}"#, &[("/r/.claude/agents/a.md", REVIEWER)]);
        assert!(!config.agents.contains_key("code-reviewer"));
    }
}
