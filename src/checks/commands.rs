//! Files that define what is built, tested and judged, in all spellings and in any directory.

use regex::Regex;
use std::sync::LazyLock;

/// The names of such files, in any directory.
const NAMES: [&str; 59] = [
    // builds and runners
    "package.json",
    "Makefile",
    "makefile",
    "GNUmakefile",
    "justfile",
    "Justfile",
    ".justfile",
    "Taskfile.yml",
    "Taskfile.yaml",
    "Rakefile",
    "rakefile",
    "build.rs",
    "Cargo.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
    "gradle.properties",
    "mvnw",
    "gradlew",
    "CMakeLists.txt",
    "mix.exs",
    "Package.swift",
    "Directory.Build.props",
    "meson.build",
    "noxfile.py",
    "go.work",
    ".npmrc",
    "deno.json",
    "composer.json",
    // tests
    "pytest.ini",
    ".pytest.ini",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
    "conftest.py",
    "sitecustomize.py",
    ".coveragerc",
    "nextest.toml",
    "phpunit.xml",
    "phpunit.xml.dist",
    ".rspec",
    "karma.conf.js",
    // CI
    ".gitlab-ci.yml",
    "azure-pipelines.yml",
    ".travis.yml",
    "Jenkinsfile",
    "bitbucket-pipelines.yml",
    ".drone.yml",
    "appveyor.yml",
    "action.yml",
    "action.yaml",
    // instructions for agents and git
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".gitattributes",
];

/// Prefixes of the names of such files.
const PREFIXES: [&str; 8] = [
    "jest.config.",
    "vitest.config.",
    "vitest.workspace.",
    "vite.config.",
    ".mocharc",
    "playwright.config.",
    "cypress.config.",
    "ava.config.",
];

/// Directories in which every file counts.
const FOLDERS: [&str; 10] = [
    ".github/workflows/",
    ".github/actions/",
    ".circleci/",
    ".buildkite/",
    ".woodpecker/",
    ".cargo/",
    ".config/nextest",
    ".mvn/",
    ".claude/",
    ".cursor/rules/",
];

/// Whether a file defines what is built, tested or judged.
#[must_use]
pub fn says_commands(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    NAMES.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || is_part_of_make(name)
        || FOLDERS.iter().any(|folder| path.starts_with(folder) || path.contains(&format!("/{folder}")))
}

/// Whether this is the name of a part of a Makefile, such as `rules.mk`.
fn is_part_of_make(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extension == "mk")
}

/// The sections of TOML and INI files that count. Changes to the rest of these files are ordinary work.
const SECTIONS: [&str; 16] = [
    "lib",
    "[test",
    "[bench",
    "[bin",
    "features",
    "profile",
    "test",
    "tool.pytest",
    "tool.coverage",
    "tool.tox",
    "tool.hatch",
    "tool.nox",
    "tool:pytest",
    "pytest",
    "tool.poe",
    "build",
];

/// The dependencies of Maven and Gradle, which change in ordinary work.
static DEPENDENCIES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?s)<dependencies>.*?</dependencies>|<dependency>.*?</dependency>|(?m)^\s*(?:\w*[iI]mplementation|api|compileOnly|runtimeOnly)\b.*$").ok()
});

/// Returns the part of such a file that defines what is built, tested or judged.
#[must_use]
pub fn commands_of(path: &str, text: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name {
        "package.json" | "composer.json" | "deno.json" => {
            let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
            // A file that is not valid JSON counts as a whole.
            if value.is_null() {
                return text.to_string();
            }
            ["scripts", "tasks", "jest", "vitest", "mocha", "ava", "type", "workspaces"]
                .map(|key| value[key].to_string())
                .join("\n")
        }
        "Cargo.toml" | "pyproject.toml" | "setup.cfg" => sections_of(text),
        "pom.xml" | "build.gradle" | "build.gradle.kts" => match DEPENDENCIES.as_ref() {
            Some(dependencies) => dependencies.replace_all(text, "").into_owned(),
            None => text.to_string(),
        },
        _ => text.to_string(),
    }
}

fn sections_of(text: &str) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            inside = SECTIONS.iter().any(|known| section.starts_with(known));
        }
        if (inside || line.starts_with("autotests") || line.starts_with("build =") || line.starts_with("harness"))
            && !line.is_empty()
        {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Returns the shell command lines in such a file: scripts of package.json, recipes of make and just.
#[must_use]
pub fn lines_of(path: &str, text: &str) -> Vec<String> {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name {
        "package.json" | "composer.json" | "deno.json" => {
            let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
            let scripts = [&value["scripts"], &value["tasks"]];
            let all = scripts.into_iter().filter_map(serde_json::Value::as_object).flat_map(serde_json::Map::values);
            all.filter_map(|line| line.as_str().map(str::to_string)).collect()
        }
        "Makefile" | "makefile" | "GNUmakefile" | "justfile" | "Justfile" | ".justfile" => {
            let recipes = text.lines().filter(|line| line.starts_with(['\t', ' ']));
            recipes.map(|line| line.trim().trim_start_matches(['@', '-', '+']).to_string()).collect()
        }
        _ if is_part_of_make(name) => {
            text.lines().filter(|line| line.starts_with('\t')).map(|line| line.trim().to_string()).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the words of a shell command line that may name files of the project, as paths relative to where the line
/// runs. Quotes are removed, operators end a word, and `cd` is followed.
#[must_use]
pub fn files_named(line: &str) -> Vec<String> {
    let mut files = Vec::new();
    let mut folder = String::new();
    for command in commands(line) {
        let mut words = command.iter().map(String::as_str);
        if let Some("cd" | "pushd") = words.clone().next() {
            if let Some(target) = words.nth(1).filter(|target| is_relative(target)) {
                folder = format!("{folder}{}/", target.trim_start_matches("./").trim_end_matches('/'));
            }
            continue;
        }
        for word in words {
            // `--config=ci/x.toml`, `CONFIG=ci/x.toml`.
            for part in [Some(word), word.split_once('=').map(|(_, value)| value)].into_iter().flatten() {
                let part = part.trim_start_matches("./");
                if is_relative(part) && !part.is_empty() && !part.starts_with('-') {
                    files.push(format!("{folder}{part}"));
                }
            }
        }
    }
    files
}

fn is_relative(path: &str) -> bool {
    !path.starts_with(['/', '~', '$']) && !path.split('/').any(|part| part == "..")
}

/// Splits a line into commands, each a list of words without quotes.
fn commands(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let mut quote: Option<char> = None;
    // The file after `>` is written, not read.
    let mut written = false;
    let mut letters = line.chars();
    while let Some(next) = letters.next() {
        let in_words = quote.is_some();
        match next {
            next if quote == Some(next) => quote = None,
            '\\' if quote != Some('\'') => word.extend(letters.next()),
            '\'' | '"' if !in_words => quote = Some(next),
            ';' | '&' | '|' | '(' | ')' | '{' | '}' | '\n' | '<' | '>' | '`' if !in_words => {
                let last = std::mem::take(&mut word);
                if !written || last.is_empty() {
                    words.push(last);
                }
                all.push(std::mem::take(&mut words));
                written = next == '>';
            }
            next if next.is_whitespace() && !in_words => {
                let last = std::mem::take(&mut word);
                if written && !last.is_empty() {
                    written = false;
                } else {
                    words.push(last);
                }
            }
            next => word.push(next),
        }
    }
    if !written {
        words.push(word);
    }
    all.push(words);
    for words in &mut all {
        words.retain(|word| !word.is_empty());
    }
    all.retain(|words| !words.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_line_are_found_however_they_are_quoted() {
        let table = [
            ("sh 'ci/check.sh'", "sh ci/check.sh"),
            ("sh check.sh; true", "sh check.sh true"),
            ("cd ci && sh check.sh", "ci/sh ci/check.sh"),
            ("cd \"my ci\" && ./x.sh", "my ci/x.sh"),
            ("./mvnw -q verify", "mvnw verify"),
            ("CONFIG=ci/a.toml run --file=ci/b.toml", "CONFIG=ci/a.toml ci/a.toml run ci/b.toml"),
            ("sh ci\\ x.sh 2>/dev/null", "sh ci x.sh 2"),
            ("sh a.sh > out.txt; diff out.txt b.txt >> log", "sh a.sh diff out.txt b.txt"),
            ("sh /etc/x ../y ~/z", "sh"),
            ("(cd a; (cd b && sh c.sh))", "a/b/sh a/b/c.sh"),
        ];
        for (line, expected) in table {
            assert_eq!(files_named(line).join(" "), expected, "{line}");
        }
    }

    #[test]
    fn every_spelling_and_every_folder_counts() {
        for path in [
            "makefile",
            "GNUmakefile",
            "Justfile",
            "web/package.json",
            "sub/Makefile",
            "pom.xml",
            "build.gradle.kts",
            ".cargo/config",
            ".mocharc.cjs",
            ".buildkite/pipeline.yml",
            ".github/actions/x/action.yml",
            "a/conftest.py",
            ".claude/settings.json",
            "AGENTS.md",
            "docs/CLAUDE.md",
            ".gitattributes",
            "rules.mk",
        ] {
            assert!(says_commands(path), "{path}");
        }
        assert!(!says_commands("src/a.rs") && !says_commands("README.md"));
    }

    #[test]
    fn of_a_manifest_only_what_decides_counts() {
        let same = |path: &str, a: &str, b: &str| commands_of(path, a) == commands_of(path, b);
        assert!(same(
            "package.json",
            r#"{"scripts": {"test": "x"}, "version": "1"}"#,
            r#"{"scripts": {"test": "x"}, "version": "2"}"#
        ));
        assert!(!same("web/package.json", r#"{"scripts": {"test": "x"}}"#, r#"{"scripts": {"test": "true"}}"#));
        assert!(same("Cargo.toml", "[dependencies]\na = \"1\"\n", "[dependencies]\na = \"2\"\nb = \"1\"\n"));
        assert!(!same("Cargo.toml", "[lib]\n", "[lib]\ntest = false\n"));
        assert!(!same("Cargo.toml", "[package]\n", "[package]\nautotests = false\n"));
        assert!(!same(
            "pyproject.toml",
            "[tool.pytest.ini_options]\n",
            "[tool.pytest.ini_options]\naddopts = \"-k nothing\"\n"
        ));
        assert!(same("pyproject.toml", "[project]\ndependencies = []\n", "[project]\ndependencies = [\"x\"]\n"));
        assert!(same("pom.xml", "<p><dependencies><dependency>a</dependency></dependencies></p>", "<p></p>"));
        assert!(!same("pom.xml", "<p></p>", "<p><skipTests>true</skipTests></p>"));
    }

    #[test]
    fn the_lines_that_make_just_and_npm_run_are_read() {
        assert_eq!(lines_of("sub/package.json", r#"{"scripts": {"test": "node run.js"}}"#), ["node run.js"]);
        assert_eq!(lines_of("Makefile", "test:\n\t@sh ci/test.sh\n"), ["sh ci/test.sh"]);
        assert_eq!(lines_of("justfile", "test:\n    sh ci/test.sh\n"), ["sh ci/test.sh"]);
    }
}
