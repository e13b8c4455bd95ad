//! Every key of chains.json, as data: what the reader checks, and what the JSON Schema is generated from. Other files of the user's
//! have tables of the same kind.

pub(super) mod cli;
pub(super) mod shape;

use super::ir::MOST_ITERATIONS;
use cli::{CLI_KEYS, CliKey, CliValueKind};
use shape::{Key, Object, Shape, key};

/// The largest `limits.tokens`.
const MOST_TOKENS: u32 = 4_000_000_000;

/// What stands before a command.
const WRAP: Key = key(
    "wrap",
    Shape::Texts,
    "A program and its arguments, before the command of every agent and check that this applies to: `[\"nice\", \"-n\", \"10\"]`. An empty list: none, whatever stands above says.",
);
/// The sandbox around a command.
const SANDBOX: Key = key(
    "sandbox",
    Shape::Choice(&["none", "project", "offline"]),
    "`project`: under bubblewrap the project and a temporary folder can be written, the rest of the machine is read-only. `offline`: the same, without a network. Default: `none`.",
);
/// What a sandbox leaves open.
const WRITABLE: Key = key(
    "writable",
    Shape::Texts,
    "More paths that can be written in the sandbox. `~`, `${NAME}` and `${env:NAME}` are substituted.",
);

/// The whole file.
pub(super) static ROOT: Object = Object {
    name: "the config",
    id: "root",
    keys: &[
        key("$schema", Shape::Text, "The JSON Schema of this file, for editors."),
        key("backend", Shape::Text, "The agent CLI of agents that name neither a command nor a backend: `claude`."),
        key("backends", Shape::Named(&BACKEND), "More agent CLIs, or changes to known ones: an entry for each."),
        key("marker", Shape::Text, "The line by which an agent ends its loop. Default: FORKHESTRA_COMPLETE."),
        key(
            "templates",
            Shape::Text,
            "The folder of templates, one folder an agent, with `skills` beside them. Default: `forge/agents`, with `forge/skills`.",
        ),
        key("limits", Shape::One(&LIMITS), "Limits of a whole run."),
        key(
            "hooks",
            Shape::One(&HOOKS),
            "Commands that are run when something has happened; what becomes of them changes nothing.",
        ),
        key(
            "commit",
            Shape::Choice(&["never", "task"]),
            "`task`: what a task has changed is committed when it is completed. Default: `never`.",
        ),
        key(
            "keepAwake",
            Shape::Flag,
            "Whether the machine is kept from sleeping while a run is under way, where it can be (systemd-inhibit). Default: true.",
        ),
        key(
            "trust",
            Shape::Choice(&["always", "ask"]),
            "In your own config only. `ask`: a project's config that is new, or has changed, is run after you have agreed. Default: `always`.",
        ),
        WRAP,
        SANDBOX,
        WRITABLE,
        key("agents", Shape::Named(&AGENT), "Who runs: an entry for an agent."),
        key("checks", Shape::Named(&CHECK), "What judges by its exit code: an entry for a shell command."),
        key("chains", Shape::Named(&CHAIN), "What runs: an entry for a chain. May be empty."),
    ],
    required: &["chains"],
    one_of: &[],
    text: None,
};

/// The value of `hooks`.
pub(super) static HOOKS: Object = Object {
    name: "`hooks`",
    id: "hooks",
    keys: &[
        key(
            "onFinish",
            Shape::TextOrTexts,
            "After every run. A string runs under `sh -c`, an array is a program and its arguments; the run's summary comes as JSON on standard input.",
        ),
        key("onFail", Shape::TextOrTexts, "After a run that did not complete, unless a human has to decide about it."),
        key(
            "onHuman",
            Shape::TextOrTexts,
            "After a run that a human has to decide about; and when a queue of tasks waits for somebody to log in.",
        ),
        key(
            "onWait",
            Shape::TextOrTexts,
            "When a run begins to wait for a minute or more. The event comes as JSON on standard input.",
        ),
        key("onTask", Shape::TextOrTexts, "After every run of a task. The summary names the task and its status."),
    ],
    required: &[],
    one_of: &[],
    text: None,
};

/// The value of `limits`.
pub static LIMITS: Object = Object {
    name: "`limits`",
    id: "limits",
    keys: &[
        key("time", Shape::Duration, "The longest a run may take: `2h`. Default: none."),
        key("cost", Shape::Amount, "The most US dollars a run may cost, as its agent CLIs report them. Default: none."),
        key("tokens", Shape::Count(MOST_TOKENS), "The most tokens a run may use, of every kind. Default: none."),
        key(
            "iterations",
            Shape::Count(MOST_ITERATIONS),
            "The most iterations a run may have, those of all its steps together. Default: none.",
        ),
        key(
            "wait",
            Shape::Duration,
            "The longest a run may wait in a row for its service: a usage limit, an overload, an outage. Default: 6h.",
        ),
        key(
            "stalledAfter",
            Shape::Count(MOST_ITERATIONS),
            "A loop stops after so many iterations that change nothing and say the same. Default: 3.",
        ),
        key(
            "rejections",
            Shape::Count(MOST_ITERATIONS),
            "After so many rejections, over all its runs, a task has failed. Default: 15.",
        ),
        key("grace", Shape::Duration, "How long an ended agent may take before the next, harder signal. Default: 10s."),
    ],
    required: &[],
    one_of: &[],
    text: None,
};

/// A key of `agents`.
const fn of_agents(cli: CliKey) -> Key {
    let shape = match cli.kind {
        CliValueKind::Text | CliValueKind::File => Shape::Text,
        CliValueKind::Count => Shape::Count(MOST_ITERATIONS),
        CliValueKind::Texts => Shape::Texts,
    };
    key(cli.name, shape, cli.about)
}

/// A table of keys with those of [`CLI_KEYS`] among them: after `before`, and before `after`.
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
    key("description", Shape::Text, "For people: shown by `list`."),
    key("defaultPrompt", Shape::Text, "The prompt when no other level has one. `${NAME}` is substituted."),
    key("defaultPromptFile", Shape::Text, "A file with that prompt. `defaultPrompt` wins over it."),
    key("systemPrompt", Shape::Text, "A file with the agent's system prompt."),
    key("systemPromptText", Shape::Text, "The agent's system prompt. Wins over `systemPrompt`."),
];
const AGENT_AFTER: &[Key] = &[
    key("backend", Shape::Text, "The agent CLI that runs this agent: `claude`."),
    key(
        "command",
        Shape::TextOrTexts,
        "The program that runs this agent, instead of an agent CLI. A string is split like a shell line, but no shell runs.",
    ),
    key("args", Shape::Texts, "Arguments of every run, before the step's and the prompt. `${NAME}` is substituted."),
    key("env", Shape::TextMap, "Environment of every run. `${NAME}` and `${env:NAME}` are substituted."),
    key(
        "deliver",
        Shape::Choice(&["arg", "stdin", "file"]),
        "How the prompt reaches a command: last argument (default), standard input, or a file whose path is the last argument.",
    ),
    key(
        "output",
        Shape::Choice(&OUTPUTS),
        "The format of the program's output. Default: that of the backend, else `plain`.",
    ),
    key(
        "template",
        Shape::Text,
        "The template around the prompt: a folder of the templates, or a `.md` file. Default: the one of the agent's name, if there is one.",
    ),
    key(
        "role",
        Shape::Choice(&["worker", "judge"]),
        "What it may decide: a worker works, a judge approves or rejects. Default: that of the built-in agent of its name, else `worker`.",
    ),
    key(
        "permissions",
        Shape::Choice(&["read", "edit", "full"]),
        "What an agent CLI may do unasked. Default: `edit`, of a judge `read`.",
    ),
    key("timeout", Shape::Duration, "The longest an iteration may take: `90s`, `10m`, `1h30m`. Default: 2h."),
    key(
        "idleTimeout",
        Shape::Duration,
        "The longest an iteration may print nothing and use no CPU time. Default: 15m.",
    ),
    key(
        "verdict",
        Shape::Choice(&["decision", "evaluation"]),
        "The form of a judge's verdict: a decision, or an evaluation with pass, score, issues and suggestions. Default: `decision`.",
    ),
    key(
        "minScore",
        Shape::Share,
        "The least score that passes, of a judge whose verdict is an evaluation. Default: none.",
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

const BACKEND_BEFORE: &[Key] = &[
    key("aliases", Shape::Texts, "Other names of it."),
    key("program", Shape::Text, "The program on PATH, or a path."),
    key("install", Shape::Text, "How to get it, for people."),
    key("arguments", Shape::Texts, "The arguments of every headless run."),
    key("last", Shape::Texts, "Arguments that come last, but for a prompt that is delivered as one."),
    key(
        "deliver",
        Shape::Choice(&["arg", "stdin", "file"]),
        "How the prompt reaches it: standard input (default), last argument, or a file whose path is the last argument.",
    ),
    key(
        "systemPrompt",
        Shape::Texts,
        "The arguments that append to its system prompt; `{}` is the text, `{json}` the text as a JSON string. Without them the text stands at the head of the prompt.",
    ),
    key(
        "maxCost",
        Shape::Texts,
        "The arguments that tell it the most US dollars it may cost, `{}`: what is left of the limit `cost`.",
    ),
];
const BACKEND_AFTER: &[Key] = &[
    key("permissions", Shape::One(&PERMISSIONS), "The levels of permissions that it can express."),
    key("command", Shape::Text, "How it names a command that may be run, `{}`: `Bash({}:*)`."),
    key("output", Shape::Choice(&OUTPUTS), "The format of its output. Default: `plain`."),
    key("tellsCost", Shape::Flag, "`false`: it does not tell what it cost, although programs of its format do."),
    key("env", Shape::TextMap, "Environment of every run, unless it is set already."),
    key("unset", Shape::Texts, "Variables that are removed from its environment."),
    key(
        "ownInstructions",
        Shape::Texts,
        "A settings file of it, and the key there that `systemPrompt` would replace: where the user has set that key, our text stands at the head of the prompt instead. `${env:NAME:-default}` is substituted.",
    ),
    key("readsAgentsMd", Shape::Flag, "Whether it reads AGENTS.md by itself: then templates do not show it again."),
    key(
        "slashCommands",
        Shape::Flag,
        "Whether it takes a prompt that begins with `/name` as a command of its own; such a prompt is then refused.",
    ),
    key("resume", Shape::Texts, "The arguments by which a person goes on with its session, `{}`."),
    key(
        "credentials",
        Shape::Texts,
        "Variables, and files, of which one holds its credentials. `doctor` looks whether one is there.",
    ),
    key("version", Shape::Texts, "The arguments that make it say its version. Default: `--version`."),
    key("knownGood", Shape::Texts, "The first and the last version that was seen to work."),
    key("help", Shape::Texts, "The arguments that make it list its options. Default: `--help`."),
    key("exits", Shape::Texts, "What exit codes mean: `53: its limit on turns was reached`."),
    WRAP,
    SANDBOX,
    WRITABLE,
    key(
        "startTimeout",
        Shape::Duration,
        "The longest it may take to print its first bytes; then it is ended and started again, up to 3 times, and the iteration does not count. Only for a program that prints at its start. Default: none.",
    ),
];
static BACKEND_KEYS: [Key; BACKEND_BEFORE.len() + CLI_KEYS.len() + BACKEND_AFTER.len()] =
    with_cli_keys(BACKEND_BEFORE, true, BACKEND_AFTER);

/// An entry of `backends`.
pub(super) static BACKEND: Object =
    Object { name: "a backend", id: "backend", keys: &BACKEND_KEYS, required: &[], one_of: &[], text: None };

/// The value of `permissions` of a backend.
pub(super) static PERMISSIONS: Object = Object {
    name: "`permissions`",
    id: "permissions",
    keys: &[
        key("read", Shape::One(&LEVEL), "Read files, and what git knows of them."),
        key("edit", Shape::One(&LEVEL), "Edit files of the project, run its checks, commit."),
        key("full", Shape::One(&LEVEL), "Anything."),
    ],
    required: &[],
    one_of: &[],
    text: None,
};

/// A level of permissions.
pub(super) static LEVEL: Object = Object {
    name: "a level of permissions",
    id: "level",
    keys: &[
        key(
            "arguments",
            Shape::Texts,
            "The arguments that express it. `{reading}` and `{commands}` stand for the commands that may be run, with commas; `{judging}` for those of a judge alone (its verbs, the checks), which are in `{reading}` too; a word with `{each-reading}`, `{each-judging}` or `{each-command}` is repeated for each; one with `{git}`, the repository's `.git`, is left out where there is none.",
        ),
        key("env", Shape::TextMap, "Environment that expresses it."),
        key(
            "rootEnv",
            Shape::TextMap,
            "More environment where forkhestra runs as root: some CLIs refuse the level to it.",
        ),
    ],
    required: &[],
    one_of: &[],
    text: None,
};

/// An entry of `checks`.
pub(super) static CHECK: Object = Object {
    name: "a check",
    id: "check",
    keys: &[
        key("description", Shape::Text, "For people: shown by `list`."),
        key(
            "run",
            Shape::TextOrTexts,
            "A string runs under `sh -c`; an array is a program and its arguments. The chain's variables are in its environment.",
        ),
        key("env", Shape::TextMap, "Environment of the check. `${NAME}` and `${env:NAME}` are substituted."),
        key("optional", Shape::Flag, "A failure is said, but stops nothing."),
        key("timeout", Shape::Duration, "The longest the check may take: `90s`, `10m`, `1h30m`. Default: 2h."),
        WRAP,
        SANDBOX,
        WRITABLE,
    ],
    required: &["run"],
    one_of: &[],
    text: Some("A command, run under `sh -c`."),
};

/// An entry of `chains`.
pub(super) static CHAIN: Object = Object {
    name: "a chain",
    id: "chain",
    keys: &[
        key("description", Shape::Text, "For people: shown by `list`."),
        key("prompt", Shape::Text, "The prompt of every step that has none of its own. `${NAME}` is substituted."),
        key("promptFile", Shape::Text, "A file with that prompt. `prompt` wins over it."),
        key(
            "vars",
            Shape::Variables(&VARIABLE),
            "Variables and their values, unless `NAME=value` on the command line gives others. `{ \"secret\": true }`: a value that is never stored.",
        ),
        key(
            "steps",
            Shape::Steps(&STEP),
            "The steps in order: objects, or text in the chain language, `coder:3 -> test`.",
        ),
    ],
    required: &["steps"],
    one_of: &[],
    text: Some("The steps, in the chain language: `(coder:3 -> test):5`."),
};

/// A variable that is no string.
pub(super) static VARIABLE: Object = Object {
    name: "a variable",
    id: "variable",
    keys: &[key(
        "secret",
        Shape::Flag,
        "`true`: its value comes from the command line, the environment variable of its name, or a question on the terminal; it reaches agents and checks through their environment only, and is never stored.",
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
        key("group", Shape::Steps(&STEP), "Steps that repeat together, in up to `iterations` rounds."),
        key(
            "iterations",
            Shape::Count(MOST_ITERATIONS),
            "Up to how many iterations; the agent ends its loop by the marker. Without it the agent runs once and ends by exit code 0.",
        ),
        key("loop", Shape::Flag, "Accepted where it agrees with `iterations`."),
        key(
            "args",
            Shape::Texts,
            "Arguments of the agent, after its own and before the prompt. `${NAME}` is substituted.",
        ),
        key("prompt", Shape::Text, "The prompt of this step. Empty: no prompt. `${NAME}` is substituted."),
        key("promptFile", Shape::Text, "A file with that prompt. `prompt` wins over it."),
        key("timeout", Shape::Duration, "The longest an iteration may take: `90s`, `10m`, `1h30m`. Default: 2h."),
        key(
            "idleTimeout",
            Shape::Duration,
            "The longest an iteration may print nothing and use no CPU time. Default: 15m.",
        ),
    ],
    required: &[],
    one_of: &["agent", "check", "group"],
    text: None,
};
