//! Detects the commands of a project from its files. Nothing is run.

mod known;
mod languages;
mod make;
mod node;
mod python;

use crate::source::{Files, Kind as FileKind};
use known::KNOWN;
use serde::Serialize;
use std::path::Path;

/// A kind of project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stack {
    /// package.json with Vite.
    ViteFrontend,
    /// package.json.
    Node,
    /// pyproject.toml, setup.py, requirements.txt, or only Python files.
    Python,
    /// go.mod.
    Go,
    /// Cargo.toml.
    Rust,
    /// pom.xml.
    Maven,
    /// build.gradle or settings.gradle, also in Kotlin.
    Gradle,
    /// A .NET solution or project.
    Dotnet,
    /// Package.swift.
    Swift,
    /// mix.exs.
    Mix,
    /// A Gemfile or a Rakefile.
    Ruby,
    /// composer.json.
    Php,
    /// deno.json or deno.jsonc.
    Deno,
    /// build.zig.
    Zig,
    /// dune-project.
    Dune,
    /// stack.yaml.
    Stack,
    /// A cabal file.
    Cabal,
    /// CMakeLists.txt.
    Cmake,
    /// meson.build.
    Meson,
    /// build.sbt.
    Sbt,
    /// A Makefile.
    Make,
    /// A justfile.
    Just,
}

/// The detected commands. Each is from the first kind of project that has one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Detected {
    /// Every kind of project that was found, the most specific first. Empty means `unknown`.
    pub stacks: Vec<Stack>,
    /// The command that builds the project.
    pub build: Option<String>,
    /// The command that runs the tests.
    pub test: Option<String>,
    /// The command that runs the linter.
    pub lint: Option<String>,
    /// A fast command that checks only the syntax.
    pub syntax: Option<String>,
    /// The command that starts the project, to see whether it starts.
    pub smoke: Option<String>,
    /// The one command that shows the first real errors.
    pub diagnose: Option<String>,
}

/// The commands of one kind of project.
#[derive(Default)]
struct Commands {
    build: Option<String>,
    test: Option<String>,
    lint: Option<String>,
    syntax: Option<String>,
    smoke: Option<String>,
    diagnose: Option<String>,
}

/// Looks for one kind of project; returns `None` if it is not there.
type Probe = fn(&Look<'_>) -> Option<(Stack, Commands)>;

/// Detects the commands of the project in a root directory.
#[must_use]
pub fn detect(root: &Path, files: &dyn Files) -> Detected {
    let detected = detect_here(root, files);
    if detected.stacks.is_empty() { below(root, files) } else { detected }
}

/// Combines the commands of projects in subdirectories of a root that is not a project itself.
fn below(root: &Path, files: &dyn Files) -> Detected {
    /// The most projects that are combined. One command for more of them would make no sense.
    const MOST: usize = 8;
    let mut folders: Vec<String> = files.names(root);
    folders.retain(|name| is_looked_into(name) && matches!(files.kind(&root.join(name)), Ok(FileKind::Folder)));
    folders.sort_unstable();
    let found = folders.into_iter().map(|name| (detect_here(&root.join(&name), files), name));
    let found: Vec<(Detected, String)> = found.filter(|(found, _)| !found.stacks.is_empty()).take(MOST).collect();
    let all = |of: fn(&Detected) -> &Option<String>| {
        let one = |(found, name): &(Detected, String)| {
            let folder = shlex::try_quote(name).ok()?;
            Some(format!("(cd {folder} && {{ {}; }})", of(found).as_ref()?))
        };
        let lines: Vec<String> = found.iter().filter_map(one).collect();
        (!lines.is_empty()).then(|| lines.join(" && "))
    };
    Detected {
        build: all(|found| &found.build),
        test: all(|found| &found.test),
        lint: all(|found| &found.lint),
        syntax: all(|found| &found.syntax),
        smoke: None,
        diagnose: all(|found| &found.diagnose),
        stacks: found.iter().flat_map(|(found, _)| found.stacks.clone()).collect(),
    }
}

/// Whether a directory may contain the project's own sources.
fn is_looked_into(name: &str) -> bool {
    const OTHERS: [&str; 14] = [
        "node_modules",
        "vendor",
        "target",
        "dist",
        "build",
        "out",
        "venv",
        "env",
        "site-packages",
        "__pycache__",
        "docs",
        "doc",
        "examples",
        "third_party",
    ];
    !name.starts_with('.') && !OTHERS.contains(&name)
}

fn detect_here(root: &Path, files: &dyn Files) -> Detected {
    let look = Look { root, files };
    let probes: [Probe; 9] = [
        node::node,
        python::python,
        languages::go,
        languages::rust,
        languages::maven,
        languages::gradle,
        node::deno,
        languages::php,
        languages::ruby,
    ];
    let probes = (probes.iter().map(|probe| probe(&look)))
        .chain(KNOWN.iter().map(|known| languages::known(&look, known)))
        .chain([make::make(&look), make::just(&look)]);
    let mut detected = Detected::default();
    for (stack, commands) in probes.flatten() {
        detected.stacks.push(stack);
        for (slot, command) in [
            (&mut detected.build, commands.build),
            (&mut detected.test, commands.test),
            (&mut detected.lint, commands.lint),
            (&mut detected.syntax, commands.syntax),
            (&mut detected.smoke, commands.smoke),
            (&mut detected.diagnose, commands.diagnose),
        ] {
            if slot.is_none() {
                *slot = command;
            }
        }
    }
    // If nothing builds or tests, only a linter is left.
    if detected.diagnose.is_none() {
        detected.diagnose.clone_from(&detected.lint);
    }
    detected
}

/// A directory that is looked at.
struct Look<'a> {
    root: &'a Path,
    files: &'a dyn Files,
}

impl Look<'_> {
    fn has(&self, name: &str) -> bool {
        self.files.kind(&self.root.join(name)).is_ok()
    }

    fn content(&self, name: &str) -> Option<String> {
        self.files.read(&self.root.join(name)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the first file below the root, breadth first, whose name satisfies a condition. Directories of foreign
    /// code are skipped.
    fn find(&self, holds: &dyn Fn(&str) -> bool) -> Option<String> {
        /// The most entries that are searched.
        const ENTRIES: usize = 5_000;
        let (mut folders, mut seen) = (std::collections::VecDeque::from([String::new()]), 0);
        while let Some(folder) = folders.pop_front() {
            let mut names = self.files.names(&self.root.join(&folder));
            names.sort_unstable();
            for name in names {
                seen += 1;
                if seen > ENTRIES {
                    return None;
                }
                let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                match self.files.kind(&self.root.join(&path)) {
                    Ok(FileKind::Folder) if is_looked_into(&name) => folders.push_back(path),
                    Ok(FileKind::File { .. }) if holds(&name) => return Some(path),
                    _ => {}
                }
            }
        }
        None
    }

    fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::world;

    fn found(files: &[(&'static str, &str)]) -> Detected {
        detect(Path::new("/root"), &world(files))
    }

    fn of(files: &[(&'static str, &str)], which: fn(&Detected) -> &Option<String>) -> String {
        which(&found(files)).clone().unwrap_or_else(|| "-".into())
    }

    const PACKAGE: &str = "/root/package.json";

    #[test]
    fn commands_are_found_by_the_files_of_a_project() {
        let diagnose = |files: &[(&'static str, &str)]| of(files, |found| &found.diagnose);
        let all = r#"{"scripts": {"build": "b", "test": "t", "lint": "l"}}"#;
        assert_eq!(diagnose(&[(PACKAGE, all)]), "npm run build");
        assert_eq!(diagnose(&[(PACKAGE, r#"{"scripts": {"test": "jest"}}"#)]), "npm test");
        assert_eq!(diagnose(&[(PACKAGE, r#"{"scripts": {"lint": "l"}}"#)]), "npm run lint");
        assert_eq!(
            diagnose(&[(PACKAGE, r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#)]),
            "-"
        );
        assert_eq!(found(&[(PACKAGE, "{}")]).stacks, [Stack::Node]);
        assert_eq!(diagnose(&[(PACKAGE, "{"), ("/root/go.mod", "")]), "go build ./...");
        assert_eq!(
            diagnose(&[("/root/pyproject.toml", ""), ("/root/tests/test_a.py", "")]),
            "python3 -m pytest -q || [ $? -eq 5 ]"
        );
        assert!(diagnose(&[("/root/main.py", "")]).starts_with("python3 -m compileall"));
        assert_eq!(diagnose(&[("/root/go.mod", ""), ("/root/a_test.go", "")]), "go test ./...");
        assert_eq!(diagnose(&[("/root/Cargo.toml", "")]), "cargo test");
        assert_eq!(diagnose(&[("/root/Makefile", "all:\n\ttrue\ntest:\n")]), "make");
        assert_eq!(diagnose(&[("/root/justfile", "test arg:\n\ttrue\n")]), "just test");
        assert_eq!(diagnose(&[("/root/pom.xml", "")]), "mvn -q test");
        assert_eq!(diagnose(&[("/root/build.gradle.kts", ""), ("/root/gradlew", "")]), "./gradlew -q test");
        assert_eq!(found(&[]), Detected::default());
    }

    #[test]
    fn the_package_manager_is_that_of_the_lock_file() {
        let package = (PACKAGE, r#"{"scripts": {"build": "b", "test": "t"}}"#);
        for (lock, build, test) in [
            ("/root/yarn.lock", "yarn build", "yarn test"),
            ("/root/pnpm-lock.yaml", "pnpm run build", "pnpm test"),
            ("/root/bun.lockb", "bun run build", "bun run test"),
        ] {
            let found = found(&[package, (lock, "")]);
            assert_eq!((found.build.as_deref(), found.test.as_deref()), (Some(build), Some(test)));
        }
        let python =
            |lock| of(&[("/root/pyproject.toml", "[tool.pytest.ini_options]"), (lock, "")], |found| &found.test);
        assert!(python("/root/poetry.lock").starts_with("poetry run python -m pytest"));
        assert!(python("/root/uv.lock").starts_with("uv run python -m pytest"));
        assert!(python("/root/Pipfile").starts_with("pipenv run python -m pytest"));
        assert!(python("/root/.venv/bin/python").starts_with(".venv/bin/python -m pytest"));
        let named = found(&[(PACKAGE, r#"{"packageManager": "pnpm@9.1.0", "scripts": {"test": "t"}}"#)]);
        assert_eq!(named.test.as_deref(), Some("pnpm test"));
        assert_eq!(of(&[(PACKAGE, "\u{feff}{\"scripts\": {\"test\": \"t\"}}")], |found| &found.test), "npm test");
    }

    #[test]
    fn vite_smoke_and_syntax_are_known_and_a_polyglot_project_fills_the_gaps() {
        let vite = found(&[
            (PACKAGE, r#"{"scripts": {"dev": "vite", "build": "vite build"}, "devDependencies": {"vite": "6"}}"#),
            ("/root/tsconfig.json", ""),
        ]);
        assert_eq!(vite.stacks, [Stack::ViteFrontend]);
        assert_eq!((vite.smoke.as_deref(), vite.syntax.as_deref()), (Some("npm run dev"), Some("npx tsc --noEmit")));
        assert_eq!(of(&[("/root/requirements.txt", ""), ("/root/app.py", "")], |found| &found.smoke), "python3 app.py");
        let both = found(&[(PACKAGE, r#"{"scripts": {"build": "b"}}"#), ("/root/Cargo.toml", "")]);
        assert_eq!(both.stacks, [Stack::Node, Stack::Rust]);
        assert_eq!((both.build.as_deref(), both.test.as_deref()), (Some("npm run build"), Some("cargo test")));
    }

    /// Regression test: each of these once had a different command, or none.
    #[test]
    fn tests_are_found_wherever_a_project_keeps_them() {
        let diagnose = |files: &[(&'static str, &str)]| of(files, |found| &found.diagnose);
        let test = |files: &[(&'static str, &str)]| of(files, |found| &found.test);
        let pytest = "python3 -m pytest -q || [ $? -eq 5 ]";
        assert_eq!(diagnose(&[("/root/go.mod", ""), ("/root/internal/a/a_test.go", "")]), "go test ./...");
        assert_eq!(diagnose(&[("/root/go.mod", ""), ("/root/vendor/a/a_test.go", "")]), "go build ./...");
        assert_eq!(test(&[("/root/go.work", ""), ("/root/a/go.mod", "")]), "go test $(go list -m -f '{{.Dir}}/...')");
        assert_eq!(test(&[("/root/setup.py", ""), ("/root/shop/test_cart.py", "import pytest")]), pytest);
        assert_eq!(test(&[("/root/setup.py", ""), ("/root/shop/tests/cart_test.py", "")]), pytest);
        assert_eq!(test(&[("/root/a.py", ""), ("/root/test_a.py", "import unittest")]), "python3 -m unittest discover");
        assert_eq!(test(&[("/root/setup.cfg", "[tool:pytest]"), ("/root/t/test_a.py", "import unittest")]), pytest);
        assert_eq!(test(&[("/root/manage.py", "import django")]), "python3 manage.py test");
        assert!(diagnose(&[("/root/one.py", "")]).starts_with("python3 -m compileall"));
        assert_eq!(diagnose(&[("/root/requirements.txt", "sphinx"), ("/root/Cargo.toml", "")]), "cargo test");
        assert_eq!(test(&[("/root/Makefile", "test : all\n")]), "make test");
        assert_eq!(test(&[("/root/Makefile", "lint test:\n")]), "make test");
        assert_eq!(of(&[("/root/Makefile", "build:=out\n.PHONY: build\nall:\n")], |found| &found.build), "make");
        assert_eq!(of(&[("/root/justfile", "@build:\n  x\n")], |found| &found.build), "just build");
        assert_eq!(test(&[("/root/justfile", "test := 'x'\n")]), "-");
        let lint = (PACKAGE, r#"{"scripts": {"lint": "prettier ."}}"#);
        assert_eq!(diagnose(&[lint, ("/root/Cargo.toml", "")]), "cargo test");
        assert_eq!(test(&[("/root/settings.gradle", "")]), "gradle -q test");
        for (file, command) in [
            ("/root/Shop.sln", "dotnet test"),
            ("/root/Package.swift", "swift test"),
            ("/root/mix.exs", "mix test"),
            ("/root/Rakefile", "-"),
            ("/root/deno.json", "deno test"),
            ("/root/build.zig", "zig build test"),
            ("/root/dune-project", "dune test"),
            ("/root/shop.cabal", "cabal test all"),
            ("/root/build.sbt", "sbt test"),
        ] {
            assert_eq!(test(&[(file, "")]), command, "{file}");
        }
        assert_eq!(test(&[("/root/Rakefile", "Rake::TestTask.new")]), "rake test");
        assert_eq!(test(&[("/root/Gemfile", ""), ("/root/spec/a_spec.rb", "")]), "bundle exec rspec");
        assert_eq!(test(&[("/root/composer.json", r#"{"scripts": {"test": "phpunit"}}"#)]), "composer run-script test");
        assert_eq!(test(&[("/root/composer.json", "{}"), ("/root/phpunit.xml.dist", "")]), "vendor/bin/phpunit");
        assert!(test(&[("/root/CMakeLists.txt", "")]).ends_with("ctest --test-dir build --output-on-failure"));
    }

    #[test]
    fn a_repository_of_several_projects_has_the_commands_of_all_of_them() {
        let workspace = |more: (&'static str, &str)| {
            of(&[(PACKAGE, r#"{"workspaces": ["packages/*"]}"#), more], |found| &found.test)
        };
        assert_eq!(workspace(("/root/a", "")), "npm run test --workspaces --if-present");
        assert_eq!(workspace(("/root/pnpm-workspace.yaml", "")), "pnpm -r --if-present run test");
        assert_eq!(workspace(("/root/turbo.json", "")), "npx turbo run test");
        let both = found(&[("/root/api/Cargo.toml", ""), ("/root/web/package.json", r#"{"scripts": {"test": "t"}}"#)]);
        assert_eq!(both.stacks, [Stack::Rust, Stack::Node]);
        assert_eq!(both.test.as_deref(), Some("(cd api && { cargo test; }) && (cd web && { npm test; })"));
        assert_eq!(both.build.as_deref(), Some("(cd api && { cargo build; })"));
    }
}
