//! The keys of chains.json for several tasks at once.

use super::shape::{Object, Shape, key};

/// The most ports that a workspace can have.
const MOST_PORTS: u32 = 100;
/// The most tasks that are merged at once.
const MOST_TOGETHER: u32 = 1000;

/// The value of `workspace.needs`.
pub(in crate::chain) static NEEDS: Object = Object {
    name: "`needs`",
    id: "needs",
    keys: &[
        key("programs", Shape::Texts, "Programs that must be on PATH, such as `docker`."),
        key(
            "variables",
            Shape::Texts,
            "Environment variables that must be set, such as `DATABASE_URL`. Only their names are passed on, never their values.",
        ),
        key(
            "labels",
            Shape::Texts,
            "Labels of the workers that may do the work: `forkhestra work --next --label gpu`. A job that an engine starts for one unit needs none.",
        ),
    ],
    required: &[],
    one_of: &[],
    text: None,
};

/// The value of `workspace`.
pub(in crate::chain) static WORKSPACE: Object = Object {
    name: "`workspace`",
    id: "workspace",
    keys: &[
        key(
            "setup",
            Shape::TextOrTexts,
            "The command that prepares a workspace, such as `npm ci`. It is the first step of each run, named `workspace-setup`. A string runs under `sh -c`; an array is a program and its arguments.",
        ),
        key(
            "copy",
            Shape::Texts,
            "Files and directories that git ignores, such as `.env`, which every workspace gets a copy of. Paths from the root.",
        ),
        key(
            "share",
            Shape::Texts,
            "Directories that git ignores, such as `.venv`, which every workspace gets a symbolic link to. Only for what several programs can use at once. Paths from the root.",
        ),
        key(
            "ports",
            Shape::Count(MOST_PORTS),
            "How many TCP ports each workspace gets for itself. `FORKHESTRA_PORT` is the first of them. Default: none.",
        ),
        key(
            "root",
            Shape::Text,
            "The directory of the workspaces. Must be outside of the project. `~` and `${env:NAME}` are substituted. Default: a directory below `~/.cache/forkhestra/workspaces`.",
        ),
        key("keep", Shape::Flag, "Whether to keep the workspaces of tasks that have landed. Default: false."),
        key(
            "needs",
            Shape::One(&NEEDS),
            "What a machine must have in addition to the programs of the agents and checks.",
        ),
    ],
    required: &[],
    one_of: &[],
    text: None,
};

/// The value of `landing`.
pub(in crate::chain) static LANDING: Object = Object {
    name: "`landing`",
    id: "landing",
    keys: &[
        key(
            "checks",
            Shape::Texts,
            "The checks that verify work before it lands, in this order. Default: those of the chain.",
        ),
        key(
            "together",
            Shape::Count(MOST_TOGETHER),
            "How many tasks are merged and verified at once, at most. Default: all that are ready.",
        ),
        key(
            "clean",
            Shape::Flag,
            "Whether each verification gets a fresh workspace, without what earlier ones have built. Default: false.",
        ),
    ],
    required: &[],
    one_of: &[],
    text: None,
};

/// An entry of `engines`.
pub(in crate::chain) static ENGINE: Object = Object {
    name: "an engine",
    id: "engine",
    keys: &[
        key(
            "submit",
            Shape::Texts,
            "The command that starts a job, a program and its arguments. `${JOB}` is the name of the job, `${WORK}` the command line that the job runs, for a shell, `${UNIT}` and `${HUB}` the unit of work and the hub, `${LABELS}` the labels that a machine must have, separated by commas. Without it, workers fetch their work by themselves: `forkhestra work --next`.",
        ),
        key(
            "list",
            Shape::Texts,
            "The command that lists the jobs that have not ended: one line each, which begins with the job's name. Without it, a job is never taken for lost, and `resume` starts another one for a unit that has not been handed over.",
        ),
        key("cancel", Shape::Texts, "The command that ends the job `${JOB}`. Without it, Ctrl-C leaves jobs at work."),
        key(
            "hub",
            Shape::Text,
            "Where the other machines find the hub: a URL of git, or a path on a shared file system. Default: the path on this machine.",
        ),
        key("program", Shape::Text, "The program forkhestra on the other machines. Default: `forkhestra`."),
        key(
            "files",
            Shape::Text,
            "The directory on the other machines with the files of `workspace.copy` and `workspace.share`. Default: this project, if the hub is a path.",
        ),
        key(
            "workspaces",
            Shape::Text,
            "The directory of the workspaces on the other machines. Default: below their `~/.cache/forkhestra/workspaces`.",
        ),
        key("poll", Shape::Duration, "How often the jobs are listed. Default: 10s."),
    ],
    required: &[],
    one_of: &[],
    text: None,
};
