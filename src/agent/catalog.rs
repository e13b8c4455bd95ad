//! The known agent CLIs, as data: how each is run headless, and what each can be told.
//! What is written here was seen by running the real programs (tests/real).

use super::errors;
use super::find::find_all_on_path;
use super::output::Format;
use crate::chain::Delivery;
use crate::source::{Diagnostic, Env, Files, Place, Text, nearest};

/// A flag that takes one value.
#[derive(Debug, Clone, Copy)]
pub enum Flag {
    /// `--model VALUE`: two words.
    Spaced(&'static str),
    /// `--allowedTools=VALUE`: one word, for flags that would swallow what follows.
    Joined(&'static str),
}

/// An agent CLI. A flag that is `None` cannot be honoured, and asking for it is an error.
#[derive(Debug)]
pub struct Backend {
    /// What users call it.
    pub name: &'static str,
    /// Other names of it; upstream's among them.
    pub aliases: &'static [&'static str],
    /// The program on PATH; none for our own demo.
    pub program: Option<&'static str>,
    /// How to get it.
    pub install: &'static str,
    /// The arguments of every headless run.
    pub headless: &'static [&'static str],
    /// Appends to its system prompt.
    pub system_prompt: Option<Flag>,
    /// `model`.
    pub model: Option<Flag>,
    /// `maxTurns`.
    pub max_turns: Option<Flag>,
    /// `allowedTools`, joined by commas.
    pub allowed_tools: Option<Flag>,
    /// `disallowedTools`, joined by commas.
    pub disallowed_tools: Option<Flag>,
    /// `mcpConfig`.
    pub mcp_config: Option<Flag>,
    /// `settings`.
    pub settings: Option<Flag>,
    /// How the prompt reaches it.
    pub deliver: Delivery,
    /// What it prints.
    pub output: Format,
    /// Variables that make it refuse to run, or run differently, inside another agent.
    pub unset: &'static [&'static str],
}

/// The known ones.
pub static BACKENDS: &[Backend] = &[
    Backend {
        name: "claude",
        aliases: &["claude-cli"],
        program: Some("claude"),
        install: "npm install -g @anthropic-ai/claude-code",
        // Without a permission mode its Write tool is denied, and it still ends with exit 0 and a marker.
        headless: &["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits"],
        system_prompt: Some(Flag::Spaced("--append-system-prompt")),
        model: Some(Flag::Spaced("--model")),
        max_turns: Some(Flag::Spaced("--max-turns")),
        allowed_tools: Some(Flag::Joined("--allowedTools")),
        disallowed_tools: Some(Flag::Joined("--disallowedTools")),
        mcp_config: Some(Flag::Joined("--mcp-config")),
        settings: Some(Flag::Spaced("--settings")),
        deliver: Delivery::Stdin,
        output: Format::ClaudeStream,
        unset: &["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"],
    },
    Backend {
        name: "demo",
        aliases: &[],
        program: None,
        install: "it is part of forkhestra",
        headless: &["__demo"],
        system_prompt: None,
        model: None,
        max_turns: None,
        allowed_tools: None,
        disallowed_tools: None,
        mcp_config: None,
        settings: None,
        deliver: Delivery::Stdin,
        output: Format::Plain,
        unset: &[],
    },
];

/// Agent CLIs that are looked for when no backend is named, in order. Those that this version cannot run yet are named in
/// the error, so that nobody wonders why an installed one is passed over.
const ON_PATH: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// The backend of this name or alias.
///
/// # Errors
/// One diagnostic that names the nearest.
pub fn backend(name: &Text) -> Result<&'static Backend, Diagnostic> {
    by_name(&name.value).ok_or_else(|| {
        let later = ON_PATH.contains(&name.value.trim_end_matches("-cli"));
        let known = BACKENDS.iter().map(|backend| backend.name);
        errors::unknown_backend(&name.at, &name.value, later, nearest(&name.value, known))
    })
}

/// What the backend of this name prints; plain text for an unknown one.
#[must_use]
pub fn format_of(name: &str) -> Format {
    by_name(name).map_or(Format::Plain, |backend| backend.output)
}

fn by_name(name: &str) -> Option<&'static Backend> {
    BACKENDS.iter().find(|backend| backend.name == name || backend.aliases.contains(&name))
}

/// The backend of agents that name none: the config's, else `FORKHESTRA_BACKEND`, else the first found on PATH.
///
/// # Errors
/// One diagnostic that says what to install or configure.
pub fn default_backend(
    config: Option<&Text>,
    files: &dyn Files,
    env: &dyn Env,
    asking: &Place,
) -> Result<&'static Backend, Diagnostic> {
    if let Some(name) = config {
        return backend(name);
    }
    if let Some(name) = env.var("FORKHESTRA_BACKEND").filter(|name| !name.is_empty()) {
        let name = name.to_string_lossy().into_owned();
        return by_name(&name).ok_or_else(|| errors::unknown_backend_variable(&name));
    }
    let installed = |name: &str| !find_all_on_path(name, files, env).is_empty();
    let mut unusable = Vec::new();
    for name in ON_PATH.into_iter().filter(|name| installed(name)) {
        match by_name(name) {
            Some(backend) => return Ok(backend),
            None => unusable.push(name),
        }
    }
    Err(errors::no_backend(asking, &unusable))
}
