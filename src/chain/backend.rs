//! A backend as data: an entry of `backends`, built in or from the user's config.

use super::isolation::Isolation;
use super::output_rules::OutputRules;
use crate::source::{Text, names};
use indexmap::IndexMap;
use std::sync::Arc;
use std::time::Duration;

/// How a prompt is passed to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Delivery {
    /// As the last argument.
    Arg,
    /// On standard input.
    Stdin,
    /// As a file, whose path is the last argument.
    File,
}

/// The format of a program's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Text for people; the marker is a line of standard output.
    #[default]
    Plain,
    /// Claude Code's `stream-json`, which Qwen Code uses too.
    ClaudeStream,
    /// `codex exec --json`.
    CodexJson,
    /// Gemini CLI's `stream-json`.
    GeminiStream,
    /// `opencode run --format json`.
    OpencodeJson,
    /// `pi --mode json`.
    PiJson,
    /// `copilot --output-format json`.
    CopilotJson,
    /// A format that the rules of its backend describe.
    Custom,
}

names!(Format {
    Plain = "plain",
    ClaudeStream = "claude-stream",
    CodexJson = "codex-json",
    GeminiStream = "gemini-stream",
    OpencodeJson = "opencode-json",
    PiJson = "pi-json",
    CopilotJson = "copilot-json",
    Custom = "custom",
});

impl Format {
    /// When programs of this format report the tokens that they used.
    #[must_use]
    pub fn tells_tokens(self) -> UsageReport {
        match self {
            Self::Plain | Self::CopilotJson | Self::Custom => UsageReport::Never,
            Self::CodexJson | Self::GeminiStream => UsageReport::AtTheEnd,
            Self::ClaudeStream | Self::OpencodeJson | Self::PiJson => UsageReport::AsItGoes,
        }
    }

    /// When programs of this format report their cost.
    #[must_use]
    pub fn tells_cost(self) -> UsageReport {
        match self {
            Self::Plain | Self::CopilotJson | Self::CodexJson | Self::GeminiStream | Self::Custom => UsageReport::Never,
            Self::ClaudeStream => UsageReport::AtTheEnd,
            Self::OpencodeJson | Self::PiJson => UsageReport::AsItGoes,
        }
    }
}

/// When a program reports what it has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UsageReport {
    /// It does not report it.
    Never,
    /// At the end of an attempt.
    AtTheEnd,
    /// While the attempt is running.
    AsItGoes,
}

/// Which usage a backend reports, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Accounting {
    /// When it reports tokens.
    pub tokens: UsageReport,
    /// When it reports cost.
    pub cost: UsageReport,
}

/// What an agent may do without asking for permission.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permissions {
    /// Read files and query git.
    Read,
    /// Edit files of the project, run its checks, commit.
    #[default]
    Edit,
    /// Do anything.
    Full,
}

names!(Permissions { Read = "read", Edit = "edit", Full = "full" });

/// How one permission level is passed to a backend.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Level {
    /// Arguments; `{reading}` and `{commands}` are replaced by the commands that may be run.
    pub arguments: Vec<String>,
    /// Environment variables.
    pub env: IndexMap<String, String>,
    /// Additional variables when forkhestra runs as root, because some programs otherwise refuse the level to root.
    pub root_env: IndexMap<String, String>,
}

/// How a backend is given an MCP server for a single call. An empty one is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolServer {
    /// Arguments; `{program}` is replaced by the path of forkhestra as a JSON string, `{tools}` by the names of the
    /// tools, separated by commas. An argument with `{each-tool}` is repeated for each tool.
    pub arguments: Vec<String>,
    /// Environment variables, unless the user has set them.
    pub env: IndexMap<String, String>,
    /// How the model sees a tool: `mcp__forkhestra__{}`.
    pub tool: String,
}

/// How a backend continues a session in a new process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Continuation {
    /// The arguments that replace those for unattended use, if they differ.
    pub arguments: Option<Vec<String>>,
    /// The arguments that replace those of a permission level, if they differ.
    pub permissions: IndexMap<String, Vec<String>>,
    /// The arguments that come last; `{}` is replaced by the session.
    pub last: Vec<String>,
    /// Environment variables that hold an API key. With one, its service forgets a session after minutes.
    pub api_keys: Vec<String>,
}

/// A backend: how it is run unattended, and which settings it accepts. In its arguments, `{}` is replaced by the value,
/// `{json}` by the value as a JSON string, and an argument with `{each}` is repeated for each value of a list. A
/// setting that is `None` is not supported, and using it is an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backend {
    /// Other names of the backend, including the upstream project's.
    pub aliases: Option<Vec<String>>,
    /// The program on PATH; `{self}` is forkhestra itself.
    pub program: Option<Text>,
    /// How to install the program, for people.
    pub install: Option<String>,
    /// The arguments that are always passed, for unattended use.
    pub arguments: Option<Vec<String>>,
    /// Arguments that come last.
    pub last: Option<Vec<String>>,
    /// How the prompt is passed; standard input by default.
    pub deliver: Option<Delivery>,
    /// The arguments that append to its system prompt. Without them, the instructions go at the head of the prompt.
    pub system_prompt: Option<Vec<String>>,
    /// The arguments that limit the cost of one attempt, in US dollars.
    pub max_cost: Option<Vec<String>>,
    /// The arguments that force its final message into a JSON Schema; `{}` is replaced by the schema, `{file}` by the
    /// path of a file with it.
    pub schema: Option<Vec<String>>,
    /// The arguments that pass on an agent's settings, by key: `model`, …
    pub cli: IndexMap<&'static str, Vec<String>>,
    /// The permission levels that it supports.
    pub permissions: IndexMap<String, Level>,
    /// How it continues a session; none if that sends no less than a new one.
    pub continues: Option<Continuation>,
    /// How it is given the tools of an attempt.
    pub mcp: Option<ToolServer>,
    /// How it names a command that may be run; `{}` is replaced by the command.
    pub command: Option<String>,
    /// The format of its output.
    pub output: Option<Format>,
    /// How its output is read, if it has a format that is not known.
    pub reader: Option<Arc<OutputRules>>,
    /// Whether it reports its cost, as other programs of its format do.
    pub tells_cost: Option<bool>,
    /// Environment variables that are set unless the user has set them: quiet, no updates, bounded retries.
    pub env: IndexMap<String, String>,
    /// Variables that make it refuse to run, or run differently, inside another agent.
    pub unset: Option<Vec<String>>,
    /// One of its settings files, and the key in it that `systemPrompt` would replace.
    pub own_instructions: Option<Vec<String>>,
    /// The files and directories of a project that it reads by itself: `AGENTS.md`, `.claude/skills`.
    pub reads: Option<Vec<String>>,
    /// Whether it treats a prompt that begins with `/name` as a command of its own.
    pub slash_commands: Option<bool>,
    /// The arguments with which a person resumes its session; `{}` is replaced by the session.
    pub resume: Option<Vec<String>>,
    /// Variables and files (those with a `/`), one of which holds its credentials.
    pub credentials: Option<Vec<String>>,
    /// The arguments that print its version.
    pub version: Option<Vec<String>>,
    /// The first and the last version that are known to work.
    pub known_good: Option<Vec<String>>,
    /// The arguments that list its options.
    pub help: Option<Vec<String>>,
    /// What its exit codes mean, for people: `53: its limit on turns was reached`.
    pub exits: Option<Vec<String>>,
    /// The longest it may take to print its first bytes; none if it prints nothing before its first answer.
    pub start_timeout: Option<Duration>,
    /// The wrapper and the sandbox around its command.
    pub isolation: Isolation,
}

impl Backend {
    /// Returns these settings, with what they leave unset taken from `earlier`.
    #[must_use]
    pub(super) fn or(self, earlier: Self, project: bool) -> Self {
        let merged = |mut below: IndexMap<String, String>, above| {
            below.extend(above);
            below
        };
        let mut permissions = earlier.permissions;
        permissions.extend(self.permissions);
        let mut cli = earlier.cli;
        cli.extend(self.cli);
        Self {
            aliases: self.aliases.or(earlier.aliases),
            program: self.program.or(earlier.program),
            install: self.install.or(earlier.install),
            arguments: self.arguments.or(earlier.arguments),
            last: self.last.or(earlier.last),
            deliver: self.deliver.or(earlier.deliver),
            system_prompt: self.system_prompt.or(earlier.system_prompt),
            max_cost: self.max_cost.or(earlier.max_cost),
            schema: self.schema.or(earlier.schema),
            cli,
            permissions,
            continues: self.continues.or(earlier.continues),
            mcp: self.mcp.or(earlier.mcp),
            command: self.command.or(earlier.command),
            output: self.output.or(earlier.output),
            reader: self.reader.or(earlier.reader),
            tells_cost: self.tells_cost.or(earlier.tells_cost),
            env: merged(earlier.env, self.env),
            unset: self.unset.or(earlier.unset),
            own_instructions: self.own_instructions.or(earlier.own_instructions),
            reads: self.reads.or(earlier.reads),
            slash_commands: self.slash_commands.or(earlier.slash_commands),
            resume: self.resume.or(earlier.resume),
            credentials: self.credentials.or(earlier.credentials),
            version: self.version.or(earlier.version),
            known_good: self.known_good.or(earlier.known_good),
            help: self.help.or(earlier.help),
            exits: self.exits.or(earlier.exits),
            start_timeout: self.start_timeout.or(earlier.start_timeout),
            isolation: self.isolation.over(earlier.isolation, project),
        }
    }
}
