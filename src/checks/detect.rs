//! The commands of a project, by the files that it has (S0-14, K-1, K-2). Nothing is run.

use crate::source::Files;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// A kind of project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stack {
    /// package.json with Vite.
    ViteFrontend,
    /// package.json.
    Node,
    /// pyproject.toml, setup.py, requirements.txt, or Python files alone.
    Python,
    /// go.mod.
    Go,
    /// Cargo.toml.
    Rust,
    /// pom.xml.
    Maven,
    /// build.gradle, build.gradle.kts.
    Gradle,
    /// A Makefile.
    Make,
    /// A justfile.
    Just,
}

/// What was found. The first kind of project that has a command gives it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Detected {
    /// Every kind of project that is here, the most telling first; none is `unknown`.
    pub stacks: Vec<Stack>,
    /// Builds.
    pub build: Option<String>,
    /// Runs the tests.
    pub test: Option<String>,
    /// Lints.
    pub lint: Option<String>,
    /// Looks at the syntax only, fast.
    pub syntax: Option<String>,
    /// Starts it, to see that it starts.
    pub smoke: Option<String>,
    /// Shows the first real errors: one command.
    pub diagnose: Option<String>,
}

/// Commands of one kind of project.
#[derive(Default)]
struct Commands {
    build: Option<String>,
    test: Option<String>,
    lint: Option<String>,
    syntax: Option<String>,
    smoke: Option<String>,
    diagnose: Option<String>,
}

/// Looks at the files of a root.
#[must_use]
pub fn detect(root: &Path, files: &dyn Files) -> Detected {
    let look = Look { root, files };
    let probes =
        [look.node(), look.python(), look.go(), look.rust(), look.maven(), look.gradle(), look.make(), look.just()];
    let mut detected = Detected::default();
    for (stack, commands) in probes.into_iter().flatten() {
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
    detected
}

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

    fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has(name))
    }

    fn node(&self) -> Option<(Stack, Commands)> {
        let package: Value = serde_json::from_str(&self.content("package.json")?).ok()?;
        let (manager, run) = match () {
            () if self.has("pnpm-lock.yaml") => ("pnpm", "pnpm run"),
            () if self.has("yarn.lock") => ("yarn", "yarn"),
            () if self.has_any(&["bun.lockb", "bun.lock"]) => ("bun", "bun run"),
            () => ("npm", "npm run"),
        };
        let script = |name: &str| {
            let text = package["scripts"][name].as_str()?;
            // What npm init writes is no test.
            (!text.trim().is_empty() && !text.contains("no test specified")).then(|| match (name, manager) {
                ("test", "npm" | "yarn" | "pnpm") => format!("{manager} test"),
                _ => format!("{run} {name}"),
            })
        };
        let depends = |name: &str| ["dependencies", "devDependencies"].iter().any(|of| package[*of][name].is_string());
        let vite = depends("vite") || self.has_any(&["vite.config.js", "vite.config.ts", "vite.config.mjs"]);
        let (build, test, lint) = (script("build"), script("test"), script("lint"));
        let types = || self.has("tsconfig.json").then(|| "npx tsc --noEmit".to_string());
        let commands = Commands {
            diagnose: build.clone().or(test.clone()).or(lint.clone()),
            syntax: lint.clone().or_else(types),
            smoke: script("dev").or(script("start")),
            build,
            test,
            lint,
        };
        Some((if vite { Stack::ViteFrontend } else { Stack::Node }, commands))
    }

    fn python(&self) -> Option<(Stack, Commands)> {
        let mains = ["app.py", "main.py", "manage.py"];
        let declared = self.has_any(&["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile"]);
        if !declared && !self.has_any(&mains) {
            return None;
        }
        let before = match () {
            () if self.has("uv.lock") => "uv run ",
            () if self.has("poetry.lock") => "poetry run ",
            () if self.has("Pipfile") => "pipenv run ",
            () => "",
        };
        let configured = self.content("pyproject.toml").unwrap_or_default();
        let tests = self.has_any(&["tests", "test", "pytest.ini", "tox.ini", "conftest.py"])
            || configured.contains("[tool.pytest");
        // Exit code 5: there was no test to run.
        let test = tests.then(|| format!("{before}pytest -q || [ $? -eq 5 ]"));
        let syntax = Some(format!("{before}python -m compileall -q -x '(^|/)(\\.|node_modules|venv|site-packages)' ."));
        let lint = match () {
            () if self.has("ruff.toml") || configured.contains("[tool.ruff") => Some(format!("{before}ruff check .")),
            () if self.has(".flake8") => Some(format!("{before}flake8")),
            () => None,
        };
        let smoke = mains.iter().find(|file| self.has(file)).map(|file| format!("{before}python {file}"));
        let diagnose = test.clone().or(syntax.clone());
        Some((Stack::Python, Commands { build: syntax.clone(), test, lint, syntax, smoke, diagnose }))
    }

    fn go(&self) -> Option<(Stack, Commands)> {
        self.has("go.mod").then_some(())?;
        let tests = self.files.names(self.root).iter().any(|name| name.ends_with("_test.go"));
        let (build, test) = (Some("go build ./...".to_string()), Some("go test ./...".to_string()));
        let diagnose = if tests { test.clone() } else { build.clone() };
        let vet = Some("go vet ./...".to_string());
        Some((Stack::Go, Commands { diagnose, syntax: vet.clone(), lint: vet, build, test, smoke: None }))
    }

    fn rust(&self) -> Option<(Stack, Commands)> {
        self.has("Cargo.toml").then_some(())?;
        let cargo = |words: &str| Some(format!("cargo {words}"));
        Some((
            Stack::Rust,
            Commands {
                build: cargo("build"),
                test: cargo("test"),
                lint: cargo("clippy --all-targets -- -D warnings"),
                syntax: cargo("check --all-targets"),
                smoke: None,
                diagnose: cargo("test"),
            },
        ))
    }

    fn maven(&self) -> Option<(Stack, Commands)> {
        self.has("pom.xml").then_some(())?;
        let maven = if self.has("mvnw") { "./mvnw" } else { "mvn" };
        let of = |goal: &str| Some(format!("{maven} -q {goal}"));
        let commands = Commands {
            build: of("compile"),
            test: of("test"),
            syntax: of("compile"),
            diagnose: of("test"),
            ..Commands::default()
        };
        Some((Stack::Maven, commands))
    }

    fn gradle(&self) -> Option<(Stack, Commands)> {
        self.has_any(&["build.gradle", "build.gradle.kts"]).then_some(())?;
        let gradle = if self.has("gradlew") { "./gradlew" } else { "gradle" };
        let of = |task: &str| Some(format!("{gradle} -q {task}"));
        let commands = Commands {
            build: of("assemble"),
            test: of("test"),
            syntax: of("classes"),
            diagnose: of("test"),
            ..Commands::default()
        };
        Some((Stack::Gradle, commands))
    }

    fn make(&self) -> Option<(Stack, Commands)> {
        let makefile = ["GNUmakefile", "Makefile", "makefile"].iter().find_map(|name| self.content(name))?;
        let target = |name: &str| {
            makefile.lines().any(|line| line.starts_with(&format!("{name}:"))).then(|| format!("make {name}"))
        };
        let test = target("test").or(target("check"));
        let build = target("build").or(Some("make".to_string()));
        let commands = Commands {
            diagnose: build.clone().or(test.clone()),
            build,
            test,
            lint: target("lint"),
            ..Commands::default()
        };
        Some((Stack::Make, commands))
    }

    fn just(&self) -> Option<(Stack, Commands)> {
        let justfile = ["justfile", "Justfile", ".justfile"].iter().find_map(|name| self.content(name))?;
        let recipe = |name: &str| {
            let is =
                |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':') || rest.starts_with(' '));
            justfile.lines().any(is).then(|| format!("just {name}"))
        };
        let (build, test) = (recipe("build"), recipe("test").or(recipe("check")));
        let commands = Commands {
            diagnose: build.clone().or(test.clone()),
            build,
            test,
            lint: recipe("lint"),
            ..Commands::default()
        };
        Some((Stack::Just, commands))
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

    /// T2-01 … T2-09, T0-18.
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
            "pytest -q || [ $? -eq 5 ]"
        );
        assert!(diagnose(&[("/root/main.py", "")]).starts_with("python -m compileall"));
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
        assert!(python("/root/poetry.lock").starts_with("poetry run pytest"));
        assert!(python("/root/uv.lock").starts_with("uv run pytest"));
        assert!(python("/root/Pipfile").starts_with("pipenv run pytest"));
    }

    #[test]
    fn vite_smoke_and_syntax_are_known_and_a_polyglot_project_fills_the_gaps() {
        let vite = found(&[
            (PACKAGE, r#"{"scripts": {"dev": "vite", "build": "vite build"}, "devDependencies": {"vite": "6"}}"#),
            ("/root/tsconfig.json", ""),
        ]);
        assert_eq!(vite.stacks, [Stack::ViteFrontend]);
        assert_eq!((vite.smoke.as_deref(), vite.syntax.as_deref()), (Some("npm run dev"), Some("npx tsc --noEmit")));
        assert_eq!(of(&[("/root/requirements.txt", ""), ("/root/app.py", "")], |found| &found.smoke), "python app.py");
        let both = found(&[(PACKAGE, r#"{"scripts": {"build": "b"}}"#), ("/root/Cargo.toml", "")]);
        assert_eq!(both.stacks, [Stack::Node, Stack::Rust]);
        assert_eq!((both.build.as_deref(), both.test.as_deref()), (Some("npm run build"), Some("cargo test")));
    }
}
