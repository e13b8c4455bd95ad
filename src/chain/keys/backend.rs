//! The keys of `backends`.

use super::shape::{Key, Object, Shape, key};
use super::{CLI_KEYS, OUTPUTS, SANDBOX, WRAP, WRITABLE, with_cli_keys};

const BACKEND_BEFORE: &[Key] = &[
    key("aliases", Shape::Texts, "Other names of the backend."),
    key("program", Shape::Text, "The name of the program on PATH, or its path."),
    key("install", Shape::Text, "How to install the program, for people."),
    key("arguments", Shape::Texts, "The arguments that are always passed, for unattended use."),
    key(
        "last",
        Shape::Texts,
        "Arguments that come after all others. Only a prompt that is passed as an argument follows them.",
    ),
    key(
        "deliver",
        Shape::Choice(&["arg", "stdin", "file"]),
        "How the prompt is passed. `arg`: as the last argument; `stdin`: on standard input; `file`: as a file whose path is the last argument. Default: `stdin`.",
    ),
    key(
        "systemPrompt",
        Shape::Texts,
        "The arguments that append to its system prompt. `{}` is replaced by the text, `{json}` by the text as a JSON string. Without them, the text goes at the head of the prompt.",
    ),
    key(
        "maxCost",
        Shape::Texts,
        "The arguments that limit its cost. `{}` is replaced by the US dollars that are left of the limit `cost`.",
    ),
    key(
        "schema",
        Shape::Texts,
        "The arguments that force its final message into a JSON Schema, for judges with `\"verdict\": \"evaluation\"` and for evaluations. `{}` is replaced by the schema, `{file}` by the path of a file with it.",
    ),
];
const BACKEND_AFTER: &[Key] = &[
    key(
        "permissions",
        Shape::One(&PERMISSIONS),
        "The permission levels that it supports, each with its arguments and environment.",
    ),
    key(
        "command",
        Shape::Text,
        "The form in which it expects a command that may be run: `Bash({}:*)`. `{}` is replaced by the command.",
    ),
    key(
        "continue",
        Shape::One(&CONTINUATION),
        "How it continues a session in a new process, for agents with `session`. Only for a program that then sends what it has sent before unchanged, so that its service can read it from a cache.",
    ),
    key(
        "mcp",
        Shape::One(&TOOL_SERVER),
        "How it is given an MCP server for a single call, with the tools of an attempt: verdicts, answers, proposed tasks. `{}` turns them off.",
    ),
    key("output", Shape::Choice(&OUTPUTS), "The format of its output. Default: `plain`."),
    key(
        "reader",
        Shape::One(&READER),
        "How its output is read, if it is JSON in a format that forkhestra does not know. Then `output` is not used.",
    ),
    key(
        "tellsCost",
        Shape::Flag,
        "`false`: it does not report its cost, although other programs with its output format do.",
    ),
    key("env", Shape::TextMap, "Environment variables that are set, unless they are set already."),
    key("unset", Shape::Texts, "Environment variables that are removed."),
    key(
        "ownInstructions",
        Shape::Texts,
        "One of its settings files, and the key in it that `systemPrompt` would replace. If the user has set that key, forkhestra's text goes at the head of the prompt instead. `${env:NAME:-default}` is substituted.",
    ),
    key(
        "reads",
        Shape::Texts,
        "The files and directories of a project that it reads by itself: `AGENTS.md`, `CLAUDE.md`, `.claude/skills`. Templates do not include them.",
    ),
    key(
        "slashCommands",
        Shape::Flag,
        "Whether it treats a prompt that begins with `/name` as a command of its own. If so, such a prompt is refused.",
    ),
    key(
        "resume",
        Shape::Texts,
        "The arguments with which a person resumes its session; `{}` is replaced by the session.",
    ),
    key(
        "credentials",
        Shape::Texts,
        "Environment variables and files, one of which holds its credentials. `doctor` checks that one of them is present.",
    ),
    key("version", Shape::Texts, "The arguments that print its version. Default: `--version`."),
    key("knownGood", Shape::Texts, "The first and the last version that are known to work."),
    key("help", Shape::Texts, "The arguments that list its options. Default: `--help`."),
    key("exits", Shape::Texts, "What its exit codes mean: `53: its limit on turns was reached`."),
    WRAP,
    SANDBOX,
    WRITABLE,
    key(
        "startTimeout",
        Shape::Duration,
        "The longest it may take to print its first bytes. After that it is stopped and started again, up to 3 times, and the iteration does not count. Only for a program that prints something when it starts. Default: none.",
    ),
];
static BACKEND_KEYS: [Key; BACKEND_BEFORE.len() + CLI_KEYS.len() + BACKEND_AFTER.len()] =
    with_cli_keys(BACKEND_BEFORE, true, BACKEND_AFTER);

/// An entry of `backends`.
pub(in crate::chain) static BACKEND: Object =
    Object { name: "a backend", id: "backend", keys: &BACKEND_KEYS, required: &[], one_of: &[], text: None };

/// The value of `permissions` of a backend.
pub(in crate::chain) static PERMISSIONS: Object = Object {
    name: "`permissions`",
    id: "permissions",
    keys: &[
        key("read", Shape::One(&LEVEL), "Read files and query git."),
        key("edit", Shape::One(&LEVEL), "Edit files of the project, run its checks, commit."),
        key("full", Shape::One(&LEVEL), "Do anything, without being asked."),
    ],
    required: &[],
    one_of: &[],
    text: None,
};

/// A level of permissions.
pub(in crate::chain) static LEVEL: Object = Object {
    name: "a level of permissions",
    id: "level",
    keys: &[
        key(
            "arguments",
            Shape::Texts,
            "The arguments that set this level. `{reading}` and `{commands}` are replaced by the commands that may be run, separated by commas; `{judging}` is replaced by those for judges only (the verdict commands and the checks), which are in `{reading}` too. An argument with `{each-reading}`, `{each-judging}` or `{each-command}` is repeated for each command. An argument with `{git}`, the repository's `.git`, is left out if there is no repository.",
        ),
        key("env", Shape::TextMap, "Environment variables that set this level."),
        key(
            "rootEnv",
            Shape::TextMap,
            "Additional environment variables if forkhestra runs as root: some backends refuse this level as root.",
        ),
    ],
    required: &[],
    one_of: &[],
    text: None,
};

/// The value of `reader` of a backend.
pub(in crate::chain) static READER: Object = Object {
    name: "`reader`",
    id: "reader",
    keys: &[
        key(
            "json",
            Shape::Choice(&["lines", "whole"]),
            "`lines`: each line of standard output is a JSON value; lines that are not are shown. `whole`: all of it is one. Default: `lines`.",
        ),
        key("text", Shape::One(&TEXT_RULE), "What the agent says, to show it."),
        key(
            "tool",
            Shape::One(&TOOL_RULE),
            "The calls of tools, to show them. A text or a final message before one is not the last word.",
        ),
        key(
            "final",
            Shape::One(&TEXT_RULE),
            "The final message, in which the marker and the verdict are. Without `at` it is the last text. With `lines`, `when` is required, and no tool call may match it.",
        ),
        key("session", Shape::Text, "The pointer of the session's id, in any value."),
        key("usage", Shape::One(&USAGE_RULE), "What was used."),
        key("error", Shape::One(&ERROR_RULE), "The error with which it fails."),
    ],
    required: &["final"],
    one_of: &[],
    text: None,
};

/// The condition of a rule.
const WHEN: Key = key(
    "when",
    Shape::PointerMap,
    "What the JSON value must have: `{ \"/type\": \"message\" }`. Keys are JSON Pointers (RFC 6901); numbers and flags are written as text, and `null` is a value that is missing, too.",
);

/// A rule for a text.
pub(in crate::chain) static TEXT_RULE: Object = Object {
    name: "a rule for a text",
    id: "text-rule",
    keys: &[
        WHEN,
        key("at", Shape::Text, "The pointer of the text. Of a list, the texts of its elements are taken (`text`)."),
    ],
    required: &[],
    one_of: &[],
    text: None,
};

/// A rule for calls of tools.
pub(in crate::chain) static TOOL_RULE: Object = Object {
    name: "a rule for tools",
    id: "tool-rule",
    keys: &[
        WHEN,
        key("name", Shape::Text, "The pointer of the tool's name."),
        key("input", Shape::Text, "The pointer of its input."),
    ],
    required: &["when"],
    one_of: &[],
    text: None,
};

/// A rule for errors.
pub(in crate::chain) static ERROR_RULE: Object = Object {
    name: "a rule for errors",
    id: "error-rule",
    keys: &[
        WHEN,
        key("at", Shape::Text, "The pointer of the message."),
        key("status", Shape::Text, "The pointer of the HTTP status."),
    ],
    required: &["when"],
    one_of: &[],
    text: None,
};

/// A rule for the usage.
pub(in crate::chain) static USAGE_RULE: Object = Object {
    name: "a rule for the usage",
    id: "usage-rule",
    keys: &[
        WHEN,
        key("input", Shape::Text, "The pointer of the input tokens, without those from the cache."),
        key("output", Shape::Text, "The pointer of the output tokens."),
        key("cacheRead", Shape::Text, "The pointer of the input tokens that were read from the cache."),
        key("cacheWrite", Shape::Text, "The pointer of the input tokens that were written to the cache."),
        key("cost", Shape::Text, "The pointer of the cost in US dollars."),
        key("adds", Shape::Flag, "`true`: several reports are added up. Default: the last one counts."),
    ],
    required: &[],
    one_of: &[],
    text: None,
};

/// The value of `continue` of a backend.
pub(in crate::chain) static CONTINUATION: Object = Object {
    name: "`continue`",
    id: "continue",
    keys: &[
        key("arguments", Shape::Texts, "The arguments that replace `arguments`. Default: the same."),
        key(
            "permissions",
            Shape::One(&LEVEL_ARGUMENTS),
            "The arguments that replace those of a permission level. Default: the same.",
        ),
        key("last", Shape::Texts, "The arguments that replace `last`; `{}` is replaced by the id of the session."),
        key(
            "apiKeys",
            Shape::Texts,
            "Environment variables that hold an API key. If one is set, a session is continued within 5 minutes, otherwise within 55.",
        ),
    ],
    required: &["last"],
    one_of: &[],
    text: None,
};

/// The value of `permissions` in `continue`.
pub(in crate::chain) static LEVEL_ARGUMENTS: Object = Object {
    name: "`permissions` in `continue`",
    id: "level-arguments",
    keys: &[
        key("read", Shape::Texts, "The arguments for `read`."),
        key("edit", Shape::Texts, "The arguments for `edit`."),
        key("full", Shape::Texts, "The arguments for `full`."),
    ],
    required: &[],
    one_of: &[],
    text: None,
};

/// The value of `mcp` of a backend.
pub(in crate::chain) static TOOL_SERVER: Object = Object {
    name: "`mcp`",
    id: "mcp",
    keys: &[
        key(
            "arguments",
            Shape::Texts,
            "The arguments that name the server. `{program}` is replaced by the path of forkhestra as a JSON string, to be run with the arguments `mcp --attempt`; `{tools}` by the names of the tools, separated by commas. An argument with `{each-tool}` is repeated for each tool.",
        ),
        key("env", Shape::TextMap, "Environment variables that name the server, unless they are set already."),
        key(
            "tool",
            Shape::Text,
            "The name under which the model sees a tool: `mcp__forkhestra__{}`. `{}` is replaced by the name.",
        ),
    ],
    required: &[],
    one_of: &[],
    text: None,
};
