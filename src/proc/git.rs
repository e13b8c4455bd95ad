//! Runs git without what a person or an agent has set for it in the environment.
#![expect(clippy::disallowed_methods, reason = "this module starts processes")]

use super::command::{KEPT, ProgramAnswer, outside, run};
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The beginnings of the variables with which a person configures git and how it reaches other machines (git(1)).
const SETTINGS: [&str; 5] = ["GIT_CONFIG", "GIT_SSH", "GIT_SSL", "GIT_ASKPASS", "GIT_PROXY"];

/// A call of git. The `GIT_*` variables of our own environment do not reach it, except `GIT_EXEC_PATH`.
#[derive(Debug, Clone, Copy)]
pub struct GitCall<'a> {
    /// The arguments.
    pub arguments: &'a [&'a str],
    /// The working directory.
    pub folder: &'a Path,
    /// Variables that are set in addition.
    pub variables: &'a [(&'a str, &'a OsStr)],
    /// Whether the settings of the system and of the user apply (git-config(1)), as if a person had called it.
    pub is_personal: bool,
    /// What it reads on its standard input.
    pub input: &'a [u8],
    /// How long it may take.
    pub patience: Duration,
    /// How much of each of its streams is kept, in bytes.
    pub kept: usize,
}

impl GitCall<'_> {
    /// Runs it. Returns `None` if git cannot be started or does not answer in time.
    #[must_use]
    pub fn run(&self) -> Option<ProgramAnswer> {
        let mut command = Command::new(outside(Path::new("git"), self.folder));
        let kept = |name: &OsStr| {
            let is_setting = SETTINGS.iter().any(|setting| name.as_encoded_bytes().starts_with(setting.as_bytes()));
            name == "GIT_EXEC_PATH" || self.is_personal && is_setting
        };
        let inherited = std::env::vars_os().map(|(name, _)| name);
        for name in inherited.filter(|name| name.as_encoded_bytes().starts_with(b"GIT_") && !kept(name)) {
            command.env_remove(name);
        }
        if !self.is_personal {
            command.envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")]);
        }
        command.envs([("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")]);
        command.args(self.arguments).envs(self.variables.iter().copied());
        let answer = run(command, self.folder, (self.patience, self.kept), self.input)?;
        (!answer.timed_out).then_some(answer)
    }
}

/// Whether a variable of our environment chooses the program by which git calls ssh (git(1), `GIT_SSH`).
#[must_use]
pub fn environment_chooses_ssh() -> bool {
    std::env::vars_os().any(|(name, _)| name == "GIT_SSH" || name == "GIT_SSH_COMMAND")
}

/// Runs git without the settings of the system and the user. `common` is the directory with its config, if that is
/// known. Returns `None` if git cannot be started or does not answer in time.
#[must_use]
pub fn capture_git(
    arguments: &[String],
    folder: &Path,
    common: Option<&Path>,
    patience: Duration,
) -> Option<ProgramAnswer> {
    // Otherwise a planted file `commondir` could choose it (gitrepository-layout(5)).
    let variables: Vec<(&str, &OsStr)> =
        common.map(|common| ("GIT_COMMON_DIR", common.as_os_str())).into_iter().collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let call = GitCall {
        arguments: &arguments,
        folder,
        variables: &variables,
        is_personal: false,
        input: &[],
        patience,
        kept: KEPT,
    };
    call.run()
}
