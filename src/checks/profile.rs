//! The built-in checks: which of the project's own commands they run, depending on the profile.

use super::detect::Detected;
use crate::chain::{Config, Run};
use crate::source::names;
use std::time::Duration;

/// A built-in check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Builds the project.
    Build,
    /// Runs the tests.
    Test,
    /// Runs the linter.
    Lint,
    /// Checks the syntax.
    Syntax,
    /// Runs every command that the profile requires.
    Verify,
    /// Shows the first real errors.
    Diagnose,
}

names!(Kind {
    Build = "build",
    Test = "test",
    Lint = "lint",
    Syntax = "syntax",
    Verify = "verify",
    Diagnose = "diagnose",
});

/// How much the check `verify` runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Profile {
    /// Build, tests and linter; a missing command is a failure.
    Strict,
    /// The diagnostic command and the tests.
    #[default]
    Fast,
    /// The diagnostic command.
    Smoke,
    /// The diagnostic command.
    Yolo,
}

names!(Profile { Strict = "strict", Fast = "fast", Smoke = "smoke", Yolo = "yolo" });

/// What an agent may use under a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The maximum number of commands, including test runs.
    pub commands: u32,
    /// The maximum number of test runs.
    pub test_runs: u32,
    /// Whether the agent may install anything.
    pub installs: bool,
    /// The maximum number of turns of the agent's program.
    pub turns: u32,
}

impl Profile {
    /// Returns what an agent may use under this profile.
    #[must_use]
    pub fn budget(self) -> Budget {
        let of = |commands, test_runs, installs, turns| Budget { commands, test_runs, installs, turns };
        match self {
            Self::Strict => of(20, 5, true, 20),
            Self::Fast => of(8, 3, false, 12),
            Self::Smoke => of(3, 1, false, 6),
            Self::Yolo => of(15, 4, true, 500),
        }
    }
}

/// A built-in check, resolved for a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedCheck {
    /// The commands, in order. The first that fails ends the check. If there are none, the check is skipped, which does
    /// not count as passed.
    pub commands: Vec<String>,
    /// What each command does: `build`, `tests`, `lint`, `syntax check`.
    pub parts: Vec<&'static str>,
    /// The commands that the profile requires and the project does not have.
    pub missing: Vec<&'static str>,
    /// The longest the check may take.
    pub timeout: Duration,
}

impl ResolvedCheck {
    /// Returns all commands as one line for a shell, which prints each command before its output.
    #[must_use]
    pub fn line(&self) -> String {
        match self.commands.as_slice() {
            [one] => one.clone(),
            all => {
                let named = all.iter().map(|command| {
                    let shown = shlex::try_quote(command).map_or_else(|_| String::new(), std::borrow::Cow::into_owned);
                    // On lines of its own: a command may end in a comment.
                    format!("printf '$ %s\\n' {shown} && {{ {command}\n}}")
                });
                named.collect::<Vec<_>>().join(" && ")
            }
        }
    }
}

/// Whether the syntax check is cheap compared to a build, because no compiler does all of its work.
fn is_cheap(syntax: Option<&String>) -> bool {
    // A linter reports old errors too, and may rewrite files.
    syntax.is_some_and(|line| line.contains("compileall") || line.contains("tsc --noEmit"))
}

/// Returns what a built-in check runs; `changed` tells whether files were changed. Checks of the config take precedence
/// over detected commands.
#[must_use]
pub fn wanted(kind: Kind, profile: Profile, changed: bool, detected: &Detected, config: &Config) -> ResolvedCheck {
    let configured = |name: &str| {
        let check = config.checks.get(name).and_then(|entry| entry.value.as_ref())?;
        Some(match &check.run {
            Run::Shell(line) => line.value.clone(),
            Run::Words(words) => shlex::try_join(words.iter().map(|word| word.value.as_str())).ok()?,
        })
    };
    let of = |name: &'static str, found: &Option<String>| (name, configured(name).or_else(|| found.clone()));
    let build = of("build", &detected.build);
    let test = of("test", &detected.test);
    let lint = of("lint", &detected.lint);
    let syntax = of("syntax", &detected.syntax);
    // The detected command for `diagnose` is one of these, and each of them may be configured.
    let diagnosing = match &detected.diagnose {
        Some(found) if Some(found) == detected.test.as_ref() && Some(found) != detected.build.as_ref() => {
            test.1.clone()
        }
        Some(found) if Some(found) == detected.build.as_ref() => build.1.clone(),
        Some(found) if Some(found) == detected.lint.as_ref() => lint.1.clone(),
        Some(found) => Some(found.clone()),
        None => build.1.clone().or_else(|| test.1.clone()),
    };
    let diagnose = ("diagnose", configured("diagnose").or(diagnosing));
    let minutes = |minutes| Duration::from_mins(minutes);
    let (parts, timeout) = match (kind, profile) {
        (Kind::Build, _) => (vec![build], minutes(5)),
        (Kind::Test, _) => (vec![test], minutes(10)),
        (Kind::Lint, _) => (vec![lint], minutes(5)),
        (Kind::Syntax, _) => (vec![syntax], minutes(5)),
        (Kind::Verify, Profile::Strict) => (vec![build, test, lint], minutes(20)),
        // The cheap check comes first, unless it is the same work as what follows.
        (Kind::Verify, Profile::Fast) if changed && is_cheap(syntax.1.as_ref()) => {
            (vec![syntax, diagnose, test], minutes(15))
        }
        (Kind::Verify, Profile::Fast) => (vec![diagnose, test], minutes(15)),
        (Kind::Diagnose, _) | (Kind::Verify, Profile::Smoke | Profile::Yolo) => (vec![diagnose], minutes(10)),
    };
    let diagnoses = if detected.diagnose == detected.build { "build" } else { "tests" };
    let (mut commands, mut done, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for (name, command) in parts {
        match command {
            Some(command) if commands.contains(&command) => {}
            Some(command) => {
                commands.push(command);
                done.push(match name {
                    "test" => "tests",
                    "syntax" => "syntax check",
                    "diagnose" => diagnoses,
                    name => name,
                });
            }
            None => missing.push(name),
        }
    }
    ResolvedCheck { commands, parts: done, missing, timeout }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected() -> Detected {
        let some = |text: &str| Some(text.to_string());
        Detected { build: some("b"), test: some("t"), lint: some("l"), diagnose: some("t"), ..Detected::default() }
    }

    #[test]
    fn a_profile_asks_for_its_commands_and_names_what_is_missing() {
        let of = |kind, profile, detected: &Detected| {
            let wanted = wanted(kind, profile, false, detected, &Config::default());
            (wanted.commands.join(" "), wanted.missing)
        };
        assert_eq!(of(Kind::Verify, Profile::Strict, &detected()), ("b t l".into(), vec![]));
        assert_eq!(of(Kind::Verify, Profile::Fast, &detected()), ("t".into(), vec![]), "the same command once");
        assert_eq!(of(Kind::Diagnose, Profile::Fast, &detected()), ("t".into(), vec![]));
        let without = Detected { lint: None, ..detected() };
        assert_eq!(of(Kind::Verify, Profile::Strict, &without), ("b t".into(), vec!["lint"]));
        assert_eq!(of(Kind::Lint, Profile::Fast, &without), (String::new(), vec!["lint"]));
        let quick = Detected { syntax: Some("npx tsc --noEmit".into()), ..detected() };
        let first = |changed| wanted(Kind::Verify, Profile::Fast, changed, &quick, &Config::default()).commands;
        assert_eq!(first(true), ["npx tsc --noEmit", "t"]);
        assert_eq!(first(false), ["t"]);
        // A linter reports old errors too, and may rewrite files.
        let linted = Detected { syntax: Some("npm run lint".into()), ..detected() };
        assert_eq!(wanted(Kind::Verify, Profile::Fast, true, &linted, &Config::default()).commands, ["t"]);
        let both = wanted(Kind::Verify, Profile::Strict, false, &without, &Config::default());
        assert_eq!(both.line(), "printf '$ %s\\n' b && { b\n} && printf '$ %s\\n' t && { t\n}");
    }

    #[test]
    fn a_configured_command_rules_in_verify_and_diagnose_too() {
        let source = |text: &str| crate::source::Source::new("c", text, std::path::Path::new("/"));
        let layer =
            |text: &str| crate::chain::LayerSource { kind: crate::chain::LayerKind::Project, source: source(text) };
        let config = |text: &str| crate::chain::load(&[layer(text)]);
        let commands = |kind, detected: &Detected, text: &str| {
            wanted(kind, Profile::Fast, false, detected, &config(text)).commands
        };
        let make = Detected { build: Some("make".into()), diagnose: Some("make".into()), ..Detected::default() };
        let own = r#"{"checks": {"build": "own build"}, "chains": {}}"#;
        assert_eq!(commands(Kind::Diagnose, &make, own), ["own build"]);
        assert_eq!(commands(Kind::Verify, &make, own), ["own build"]);
        assert_eq!(commands(Kind::Diagnose, &detected(), r#"{"checks": {"test": "own"}, "chains": {}}"#), ["own"]);
        assert_eq!(commands(Kind::Diagnose, &Detected::default(), own), ["own build"]);
        assert_eq!(
            commands(Kind::Diagnose, &make, r#"{"checks": {"diagnose": "d", "build": "b"}, "chains": {}}"#),
            ["d"]
        );
    }
}
