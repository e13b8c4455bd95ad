//! The keys of chains.json for hooks.

use super::shape::{Object, Shape, key};

/// The value of `hooks`.
pub(in crate::chain) static HOOKS: Object = Object {
    name: "`hooks`",
    id: "hooks",
    keys: &[
        key(
            "onFinish",
            Shape::TextOrTexts,
            "The command to run after every run. A string runs under `sh -c`; an array is a program and its arguments. The run's summary is passed as JSON on standard input.",
        ),
        key(
            "onFail",
            Shape::TextOrTexts,
            "The command to run after a run that did not complete, unless a person has to decide about it.",
        ),
        key(
            "onHuman",
            Shape::TextOrTexts,
            "The command to run after a run that a person has to decide about, and when a queue of tasks waits for someone to log in.",
        ),
        key(
            "onWait",
            Shape::TextOrTexts,
            "The command to run when a run begins to wait for a minute or more. The event is passed as JSON on standard input.",
        ),
        key(
            "onTask",
            Shape::TextOrTexts,
            "The command to run after every run of a task. The summary names the task and its status.",
        ),
    ],
    required: &[],
    one_of: &[],
    text: None,
};
