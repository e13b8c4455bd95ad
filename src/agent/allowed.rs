//! The commands that an agent may run without asking at the levels `read` and `edit`: git, forkhestra's own commands,
//! and those that build and test this project.

use crate::chain::{Config, Run};
use crate::source::{Files, Kind};
use std::path::Path;

/// Commands that may be run. Each is a prefix of the command lines that it allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    /// The commands that only read.
    pub reading: Vec<String>,
    /// The commands with which a judge decides, and the checks of the config.
    pub judging: Vec<String>,
    /// All commands.
    pub commands: Vec<String>,
    /// The repository's `.git` directory, if there is one. A sandbox must leave it writable for commits.
    pub git: Option<String>,
}

const READING: [&str; 6] = ["git status", "git diff", "git log", "git show", "git blame", "git rev-parse"];
const EDITING: [&str; 5] = ["git add", "git commit", "git restore --staged", "git mv", "git rm"];
/// The commands with which a judge decides.
const JUDGING: [&str; 4] = ["forkhestra approve", "forkhestra reject", "forkhestra dispute", "forkhestra skip"];
/// The commands of forkhestra that start no run.
const OURS: [&str; 14] = [
    "forkhestra submit",
    "forkhestra approve",
    "forkhestra reject",
    "forkhestra dispute",
    "forkhestra skip",
    "forkhestra task list",
    "forkhestra task show",
    "forkhestra list",
    "forkhestra show",
    "forkhestra runs show",
    "forkhestra runs log",
    "forkhestra detect",
    "forkhestra verify",
    "forkhestra diagnose",
];

/// The file that identifies a kind of project, and the commands that build and test it.
const PROJECTS: [(&str, &[&str]); 9] = [
    ("Cargo.toml", &["cargo build", "cargo check", "cargo test", "cargo clippy", "cargo fmt"]),
    ("package.json", &["npm test", "npm run build", "npm run lint", "npm run test", "npx tsc"]),
    ("pyproject.toml", &["pytest", "python -m pytest", "ruff check", "mypy"]),
    ("setup.py", &["pytest", "python -m pytest"]),
    ("go.mod", &["go build", "go test", "go vet", "gofmt"]),
    ("Makefile", &["make build", "make test", "make check", "make lint"]),
    ("justfile", &["just build", "just test", "just check", "just lint"]),
    ("pom.xml", &["mvn test", "mvn compile", "mvn verify"]),
    ("build.gradle", &["./gradlew build", "./gradlew test", "./gradlew check"]),
];

/// Returns the commands that may be run in the project with this root.
#[must_use]
pub fn allowed(root: &Path, config: &Config, files: &dyn Files) -> Allowed {
    let mut commands: Vec<String> =
        READING.iter().chain(&EDITING).chain(&OURS).map(|word| (*word).to_string()).collect();
    let mut judging: Vec<String> = JUDGING.map(str::to_string).into();
    let checks = config.checks.values().filter(|entry| entry.layer != crate::chain::LayerKind::BuiltIn);
    for check in checks.filter_map(|entry| entry.value.as_ref()) {
        let line = match &check.run {
            Run::Shell(line) => line.value.trim().to_string(),
            Run::Words(words) => words.iter().map(|word| word.value.as_str()).collect::<Vec<_>>().join(" "),
        };
        if is_plain(&line) {
            judging.push(line.clone());
            commands.push(line);
        }
    }
    for (file, known) in PROJECTS {
        if files.kind(&root.join(file)).is_ok() {
            commands.extend(known.iter().map(|word| (*word).to_string()));
        }
    }
    let mut seen = std::collections::HashSet::new();
    commands.retain(|command| seen.insert(command.clone()));
    Allowed { reading: READING.map(str::to_string).into(), judging, commands, git: git_folder(root, files) }
}

/// Returns the `.git` directory in or above the root. In a worktree, where `.git` is a file, it is that of the
/// repository.
fn git_folder(root: &Path, files: &dyn Files) -> Option<String> {
    let git = root.ancestors().map(|folder| folder.join(".git")).find(|path| files.kind(path).is_ok())?;
    if files.kind(&git).is_ok_and(|kind| kind == Kind::Folder) {
        return Some(git.display().to_string());
    }
    let said = String::from_utf8(files.read(&git).ok()?).ok()?;
    let folder = git.parent()?.join(said.strip_prefix("gitdir:")?.trim());
    let own = folder.display().to_string();
    Some(own.split_once("/worktrees/").map_or(own.clone(), |(repository, _)| repository.to_string()))
}

/// Whether a check's line is one command without special characters of a shell. As a prefix, any other line would allow
/// more than it shows.
fn is_plain(line: &str) -> bool {
    let signs = |next: char| {
        next.is_ascii_alphanumeric() || matches!(next, ' ' | '-' | '_' | '.' | '/' | '=' | '+' | ':' | '@')
    };
    !line.is_empty() && line.chars().all(signs)
}
