//! An agent CLI as data: an entry of `backends`, ours or the user's.

use super::isolation::Isolation;
use crate::source::Text;
use indexmap::IndexMap;
use std::time::Duration;

/// How a prompt reaches a program.
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

/// What a program prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Text for people; the marker is a line of stdout.
    #[default]
    Plain,
    /// Claude Code's `stream-json`; Qwen Code's is of the same kind.
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
}

impl Format {
    /// Every format, by the name it has in `output`.
    pub const NAMES: [(&'static str, Self); 7] = [
        ("plain", Self::Plain),
        ("claude-stream", Self::ClaudeStream),
        ("codex-json", Self::CodexJson),
        ("gemini-stream", Self::GeminiStream),
        ("opencode-json", Self::OpencodeJson),
        ("pi-json", Self::PiJson),
        ("copilot-json", Self::CopilotJson),
    ];

    /// The format of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// When it tells how many tokens were used.
    #[must_use]
    pub fn tells_tokens(self) -> UsageReport {
        match self {
            Self::Plain | Self::CopilotJson => UsageReport::Never,
            Self::CodexJson | Self::GeminiStream => UsageReport::AtTheEnd,
            Self::ClaudeStream | Self::OpencodeJson | Self::PiJson => UsageReport::AsItGoes,
        }
    }

    /// When it tells what that cost.
    #[must_use]
    pub fn tells_cost(self) -> UsageReport {
        match self {
            Self::Plain | Self::CopilotJson | Self::CodexJson | Self::GeminiStream => UsageReport::Never,
            Self::ClaudeStream => UsageReport::AtTheEnd,
            Self::OpencodeJson | Self::PiJson => UsageReport::AsItGoes,
        }
    }
}

/// When a program tells what it has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UsageReport {
    /// Never.
    Never,
    /// When an attempt is over.
    AtTheEnd,
    /// While it works.
    AsItGoes,
}

/// What an agent CLI tells of what it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Accounting {
    /// Its tokens.
    pub tokens: UsageReport,
    /// What they cost.
    pub cost: UsageReport,
}

/// What an agent may do without being asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permissions {
    /// Read files, and what git knows of them.
    Read,
    /// Edit files of the project, run its checks, commit.
    #[default]
    Edit,
    /// Anything.
    Full,
}

impl Permissions {
    /// Every level, the narrowest first, by its name.
    pub const NAMES: [(&'static str, Self); 3] = [("read", Self::Read), ("edit", Self::Edit), ("full", Self::Full)];

    /// The level of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, level)| *level)
    }

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Full => "full",
        }
    }
}

/// How an agent CLI is told one level of permissions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Level {
    /// Arguments; `{reading}` and `{commands}` stand for commands that may be run.
    pub arguments: Vec<String>,
    /// Environment.
    pub env: IndexMap<String, String>,
    /// More environment where we run as root, to whom some programs refuse the level otherwise.
    pub root_env: IndexMap<String, String>,
}

/// An agent CLI: how it is run headless, and what it can be told. Words in which `{}` stands for a value (`{json}`: as a
/// JSON string, `{each}`: the word once for each value of a list). What is `None` cannot be honoured, and asking for it is an
/// error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backend {
    /// Other names of it; upstream's among them.
    pub aliases: Option<Vec<String>>,
    /// The program on PATH; `{self}` is our own.
    pub program: Option<Text>,
    /// How to get it.
    pub install: Option<String>,
    /// The arguments of every headless run.
    pub arguments: Option<Vec<String>>,
    /// Arguments that come last.
    pub last: Option<Vec<String>>,
    /// How the prompt reaches it; standard input by default.
    pub deliver: Option<Delivery>,
    /// Appends to its system prompt; without it the instructions stand at the head of the prompt.
    pub system_prompt: Option<Vec<String>>,
    /// Tells it the most US dollars that a run of it may cost.
    pub max_cost: Option<Vec<String>>,
    /// By which it is told what an agent asks for, by key: `model`, …
    pub cli: IndexMap<&'static str, Vec<String>>,
    /// The levels of permissions that it can express.
    pub permissions: IndexMap<String, Level>,
    /// How it names a command that may be run; `{}` stands for the command.
    pub command: Option<String>,
    /// What it prints.
    pub output: Option<Format>,
    /// Whether it tells what it cost, where programs of its format do.
    pub tells_cost: Option<bool>,
    /// Environment of every run, where the user has set nothing else: quiet, no updates, bounded retries.
    pub env: IndexMap<String, String>,
    /// Variables that make it refuse to run, or run differently, inside another agent.
    pub unset: Option<Vec<String>>,
    /// A settings file of it and the key there that `systemPrompt` would replace.
    pub own_instructions: Option<Vec<String>>,
    /// Whether it reads AGENTS.md by itself.
    pub reads_agents_md: Option<bool>,
    /// Whether it takes a prompt that begins with `/name` as a command of its own.
    pub slash_commands: Option<bool>,
    /// How a person goes on with its session; `{}` is the session.
    pub resume: Option<Vec<String>>,
    /// Variables, and files (with a `/` in them), of which one holds its credentials.
    pub credentials: Option<Vec<String>>,
    /// The arguments that make it say its version.
    pub version: Option<Vec<String>>,
    /// The first and the last version that was seen to work.
    pub known_good: Option<Vec<String>>,
    /// The arguments that make it list its options.
    pub help: Option<Vec<String>>,
    /// What exit codes mean, for people: `53: its limit on turns was reached`.
    pub exits: Option<Vec<String>>,
    /// The longest that it takes to print its first bytes; none where it prints nothing before its first answer.
    pub start_timeout: Option<Duration>,
    /// What stands between it and the machine.
    pub isolation: Isolation,
}

impl Backend {
    /// These, and where they say nothing, those of `earlier`.
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
            cli,
            permissions,
            command: self.command.or(earlier.command),
            output: self.output.or(earlier.output),
            tells_cost: self.tells_cost.or(earlier.tells_cost),
            env: merged(earlier.env, self.env),
            unset: self.unset.or(earlier.unset),
            own_instructions: self.own_instructions.or(earlier.own_instructions),
            reads_agents_md: self.reads_agents_md.or(earlier.reads_agents_md),
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
