//! Every key of chains.json, as data. The reader checks against these tables, and the JSON Schema is generated from
//! them. The user's other files have tables of the same kind.

mod backend;
pub(super) mod batch;
pub(super) mod cli;
mod hooks;
pub(super) mod shape;

use super::ir::MOST_ITERATIONS;
pub(super) use backend::{
    BACKEND, CONTINUATION, ERROR_RULE, LEVEL, LEVEL_ARGUMENTS, PERMISSIONS, READER, TEXT_RULE, TOOL_RULE, TOOL_SERVER,
    USAGE_RULE,
};
use batch::{ENGINE, LANDING, WORKSPACE};
use cli::{CLI_KEYS, CliKey, CliValueKind};
pub(super) use hooks::HOOKS;
use shape::{Key, Object, Shape, key};

/// The largest `limits.tokens`.
const MOST_TOKENS: u32 = 4_000_000_000;

/// The wrapper that is placed before a command.
const WRAP: Key = key(
    "wrap",
    Shape::Texts,
    "A program, with its arguments, that starts the command of an agent or a check: `[\"nice\", \"-n\", \"10\"]`. The nearest one applies: that of the agent or check, else of its backend, else of the file. An empty list means none. The `wrap` at the top of your own config applies even then, and comes before the `wrap` of a project.",
);
/// The sandbox around a command.
const SANDBOX: Key = key(
    "sandbox",
    Shape::Choice(&["none", "project", "offline"]),
    "`project`: under bubblewrap, the project and a temporary directory are writable and the rest of the machine is read-only. `offline`: the same, without network access. Default: `none`.",
);
/// The additional paths that are writable in a sandbox.
const WRITABLE: Key = key(
    "writable",
    Shape::Texts,
    "Additional paths that are writable in the sandbox. `~`, `${NAME}` and `${env:NAME}` are substituted.",
);

/// The whole file.
pub(super) static ROOT: Object = Object {
    name: "the config",
    id: "root",
    keys: &[
        key("$schema", Shape::Text, "The JSON Schema of this file, for editors."),
        key(
            "backend",
            Shape::Text,
            "The backend of agents that set neither `command` nor `backend`, such as `claude`.",
        ),
        key("backends", Shape::Named(&BACKEND), "Additional backends, or changes to known ones, by name."),
        key("marker", Shape::Text, "The line that an agent prints to end its loop. Default: FORKHESTRA_COMPLETE."),
        key(
            "templates",
            Shape::Text,
            "The directory of templates, with one directory per agent, and with `skills` next to it. Default: `forge/agents`, with `forge/skills`.",
        ),
        key("limits", Shape::One(&LIMITS), "Limits of a whole run."),
        key(
            "hooks",
            Shape::One(&HOOKS),
            "Commands that run when something has happened. What they do has no effect on the run.",
        ),
        key(
            "commit",
            Shape::Choice(&["never", "task"]),
            "`task`: when a task is completed, its changes are committed. Default: `never`.",
        ),
        key(
            "discover",
            Shape::Flag,
            "Whether to use what other tools keep in the project: the agents of `.claude/agents`, the skills of `.claude/skills` and `.agents/skills`, and CLAUDE.md or GEMINI.md if there is no AGENTS.md. Default: true.",
        ),
        key(
            "keepAwake",
            Shape::Flag,
            "Whether to keep the machine from sleeping during a run, where possible (systemd-inhibit). Default: true.",
        ),
        key(
            "trust",
            Shape::Choice(&["always", "ask"]),
            "Only in your own config. `ask`: a project's config that is new or has changed is used only after you have agreed to it. Default: `always`.",
        ),
        key("workspace", Shape::One(&WORKSPACE), "The workspaces of `task run --jobs`."),
        key("landing", Shape::One(&LANDING), "How the work of `task run --jobs` lands."),
        key("engines", Shape::Named(&ENGINE), "What brings work to other machines, by name: `task run --on NAME`."),
        WRAP,
        SANDBOX,
        WRITABLE,
        key("agents", Shape::Named(&AGENT), "Agents, by name: the programs that are given a prompt."),
        key("checks", Shape::Named(&CHECK), "Checks, by name: commands that pass if they exit with code 0."),
        key("chains", Shape::Named(&CHAIN), "Chains, by name: the steps to run, in order. May be empty."),
    ],
    required: &["chains"],
    one_of: &[],
    text: None,
};

/// The value of `limits`.
pub static LIMITS: Object = Object {
    name: "`limits`",
    id: "limits",
    keys: &[
        key("time", Shape::Duration, "The longest a run may take: `2h`. Default: none."),
        key(
            "cost",
            Shape::Amount,
            "The most a run may cost, in US dollars as reported by its backends. Default: none.",
        ),
        key("tokens", Shape::Count(MOST_TOKENS), "The most tokens of all kinds that a run may use. Default: none."),
        key(
            "attempts",
            Shape::Count(MOST_ITERATIONS),
            "The most attempts (processes of agents and checks) that a run may have. Default: none, or 150 if a judge is in a group.",
        )
        .or("iterations"),
        key(
            "wait",
            Shape::Duration,
            "The longest a run may wait in a row for a service, because of a usage limit, an overload or an outage. Default: 6h.",
        ),
        key(
            "stalledAfter",
            Shape::Count(MOST_ITERATIONS),
            "A loop stops after this many iterations that change nothing and print the same thing. Default: 3.",
        ),
        key(
            "rejections",
            Shape::Count(MOST_ITERATIONS),
            "A task has failed after this many rejections over all its runs. Default: 15.",
        ),
        key(
            "grace",
            Shape::Duration,
            "How long an agent that is being stopped may take before the next, stronger signal. Default: 10s.",
        ),
    ],
    required: &[],
    one_of: &[],
    text: None,
};

/// Returns the key of `agents` for a setting of [`CLI_KEYS`].
const fn of_agents(cli: CliKey) -> Key {
    let shape = match cli.kind {
        CliValueKind::Text | CliValueKind::File => Shape::Text,
        CliValueKind::Count => Shape::Count(MOST_ITERATIONS),
        CliValueKind::Texts => Shape::Texts,
        CliValueKind::OneOrMore => Shape::TextOrTexts,
    };
    key(cli.name, shape, cli.about)
}

/// Returns a table of keys: `before`, then those of [`CLI_KEYS`], then `after`.
const fn with_cli_keys<const N: usize>(before: &[Key], backends: bool, after: &[Key]) -> [Key; N] {
    let mut keys = [of_agents(CLI_KEYS[0]); N];
    let mut index = 0;
    while index < N {
        let cli = index.wrapping_sub(before.len());
        keys[index] = if index < before.len() {
            before[index]
        } else if cli >= CLI_KEYS.len() {
            after[cli - CLI_KEYS.len()]
        } else if backends {
            key(CLI_KEYS[cli].name, Shape::Texts, CLI_KEYS[cli].about_words)
        } else {
            of_agents(CLI_KEYS[cli])
        };
        index += 1;
    }
    keys
}

const AGENT_BEFORE: &[Key] = &[
    key("description", Shape::Text, "A description for people, shown by `list`."),
    key("defaultPrompt", Shape::Text, "The prompt if no other level has one. `${NAME}` is substituted."),
    key("defaultPromptFile", Shape::Text, "A file that contains that prompt. `defaultPrompt` takes precedence."),
    key("systemPrompt", Shape::Text, "A file that contains the agent's system prompt."),
    key("systemPromptText", Shape::Text, "The agent's system prompt. Takes precedence over `systemPrompt`."),
];
const AGENT_AFTER: &[Key] = &[
    key(
        "backend",
        Shape::TextOrTexts,
        "The backend that runs this agent, such as `claude`. Of several, each one runs it while the usage limits of those before it last; they use their default model.",
    ),
    key(
        "session",
        Shape::Choice(&["fresh", "continue"]),
        "`continue`: in the later rounds of a group, a worker continues its session and is sent only the feedback, where that is likely to be cheaper. Default: `fresh`.",
    ),
    key(
        "command",
        Shape::TextOrTexts,
        "The program that runs this agent instead of a backend. A string is split like a shell command line, but no shell runs.",
    ),
    key(
        "args",
        Shape::Texts,
        "Arguments that are always passed, before those of the step and the prompt. `${NAME}` is substituted.",
    ),
    key(
        "env",
        Shape::TextMap,
        "Environment variables that are always set. `${NAME}` and `${env:NAME}` are substituted.",
    ),
    key(
        "deliver",
        Shape::Choice(&["arg", "stdin", "file"]),
        "How the prompt is passed to a command. `arg`: as the last argument; `stdin`: on standard input; `file`: as a file whose path is the last argument. Default: `arg`.",
    ),
    key(
        "output",
        Shape::Choice(&OUTPUTS),
        "The format of the program's output. Default: that of the backend, otherwise `plain`.",
    ),
    key(
        "template",
        Shape::Text,
        "The template around the prompt: a directory in `templates`, or a `.md` file in the project. Default: the template with the agent's name, if there is one.",
    ),
    key(
        "role",
        Shape::Choice(&["worker", "judge"]),
        "What the agent may decide: a worker works, a judge approves or rejects. Default: that of the built-in agent of the same name, otherwise `worker`.",
    ),
    key(
        "permissions",
        Shape::Choice(&["read", "edit", "full"]),
        "What a backend may do without asking. Default: `edit`, or `read` for a judge.",
    ),
    key("timeout", Shape::Duration, "The longest an attempt may take: `90s`, `10m`, `1h30m`. Default: 2h."),
    key("idleTimeout", Shape::Duration, "The longest an attempt may print nothing and use no CPU time. Default: 15m."),
    key(
        "verdict",
        Shape::Choice(&["decision", "evaluation"]),
        "The form of a judge's verdict: a decision, or an evaluation with pass, score, issues and suggestions. Default: `decision`.",
    ),
    key(
        "minScore",
        Shape::Share,
        "The lowest score that passes, for a judge whose verdict is an evaluation. Default: none.",
    ),
    WRAP,
    SANDBOX,
    WRITABLE,
];
static AGENT_KEYS: [Key; AGENT_BEFORE.len() + CLI_KEYS.len() + AGENT_AFTER.len()] =
    with_cli_keys(AGENT_BEFORE, false, AGENT_AFTER);

/// An entry of `agents`.
pub(super) static AGENT: Object =
    Object { name: "an agent", id: "agent", keys: &AGENT_KEYS, required: &[], one_of: &[], text: None };

/// Every value of `output`.
pub(super) const OUTPUTS: [&str; 7] =
    ["plain", "claude-stream", "codex-json", "gemini-stream", "opencode-json", "pi-json", "copilot-json"];

/// An entry of `checks`.
pub(super) static CHECK: Object = Object {
    name: "a check",
    id: "check",
    keys: &[
        key("description", Shape::Text, "A description for people, shown by `list`."),
        key(
            "run",
            Shape::TextOrTexts,
            "The command. A string runs under `sh -c`; an array is a program and its arguments. The chain's variables are in its environment.",
        ),
        key("env", Shape::TextMap, "Environment variables of the check. `${NAME}` and `${env:NAME}` are substituted."),
        key("optional", Shape::Flag, "`true`: a failure is reported, but stops nothing."),
        key("timeout", Shape::Duration, "The longest the check may take: `90s`, `10m`, `1h30m`. Default: 2h."),
        WRAP,
        SANDBOX,
        WRITABLE,
    ],
    required: &["run"],
    one_of: &[],
    text: Some("A command, which runs under `sh -c`."),
};

/// An entry of `chains`.
pub(super) static CHAIN: Object = Object {
    name: "a chain",
    id: "chain",
    keys: &[
        key("description", Shape::Text, "A description for people, shown by `list`."),
        key("prompt", Shape::Text, "The prompt of every step that has none of its own. `${NAME}` is substituted."),
        key("promptFile", Shape::Text, "A file that contains that prompt. `prompt` takes precedence."),
        key(
            "vars",
            Shape::Variables(&VARIABLE),
            "Variables and their default values, which `NAME=value` on the command line overrides. `{ \"secret\": true }`: a value that is never stored.",
        ),
        key(
            "steps",
            Shape::Steps(&STEP),
            "The steps, in order: objects, or text in the chain language, `coder:3 -> test`.",
        ),
    ],
    required: &["steps"],
    one_of: &[],
    text: Some("The steps, in the chain language: `(coder:3 -> test):5`."),
};

/// A variable that is not a string.
pub(super) static VARIABLE: Object = Object {
    name: "a variable",
    id: "variable",
    keys: &[key(
        "secret",
        Shape::Flag,
        "`true`: the value comes from the command line, the environment variable of the same name, or a question in the terminal. It is passed to agents and checks only in their environment, and is never stored.",
    )],
    required: &["secret"],
    one_of: &[],
    text: None,
};

/// An element of `steps` or `group`.
pub(super) static STEP: Object = Object {
    name: "a step",
    id: "step",
    keys: &[
        key("agent", Shape::Text, "The agent to run."),
        key("check", Shape::Text, "The check to run."),
        key("group", Shape::Steps(&STEP), "Steps that repeat together for up to `iterations` rounds."),
        key(
            "iterations",
            Shape::Count(MOST_ITERATIONS),
            "The maximum number of iterations; the agent ends its loop with the marker. Without it, the agent runs once and succeeds with exit code 0.",
        ),
        key(
            "loop",
            Shape::Flag,
            "Not needed: `iterations` makes a loop. If it is set, it must be `true` with `iterations`, and `false` without.",
        ),
        key(
            "args",
            Shape::Texts,
            "Additional arguments of the agent, after its own and before the prompt. `${NAME}` is substituted.",
        ),
        key(
            "prompt",
            Shape::Text,
            "The prompt of this step; an empty string means no prompt. `${NAME}` is substituted.",
        ),
        key("promptFile", Shape::Text, "A file that contains that prompt. `prompt` takes precedence."),
        key("timeout", Shape::Duration, "The longest an attempt may take: `90s`, `10m`, `1h30m`. Default: 2h."),
        key(
            "idleTimeout",
            Shape::Duration,
            "The longest an attempt may print nothing and use no CPU time. Default: 15m.",
        ),
    ],
    required: &[],
    one_of: &["agent", "check", "group"],
    text: None,
};
