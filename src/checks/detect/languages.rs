//! Projects in Go, Rust, JVM languages, PHP and Ruby, and the kinds of projects in the table.

use super::known::Known;
use super::{Commands, Look, Stack};
use serde_json::Value;

impl Look<'_> {
    pub(super) fn go(&self) -> Option<(Stack, Commands)> {
        let is_work = self.has("go.work");
        (is_work || self.has("go.mod")).then_some(())?;
        let tests = self.find(&|name| name.ends_with("_test.go")).is_some();
        // A workspace has no module of its own, so its modules are listed.
        let of = |verb: &str| {
            let all = "$(go list -m -f '{{.Dir}}/...')";
            Some(if is_work { format!("go {verb} {all}") } else { format!("go {verb} ./...") })
        };
        let (build, test) = (of("build"), of("test"));
        let diagnose = if tests { test.clone() } else { build.clone() };
        let vet = of("vet");
        Some((Stack::Go, Commands { diagnose, syntax: vet.clone(), lint: vet, build, test, smoke: None }))
    }

    pub(super) fn rust(&self) -> Option<(Stack, Commands)> {
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

    pub(super) fn maven(&self) -> Option<(Stack, Commands)> {
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

    pub(super) fn gradle(&self) -> Option<(Stack, Commands)> {
        let files = ["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"];
        self.has_any(&files).then_some(())?;
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

    pub(super) fn php(&self) -> Option<(Stack, Commands)> {
        let package: Value = serde_json::from_str(&self.content("composer.json")?).ok()?;
        let script = |name: &str| (!package["scripts"][name].is_null()).then(|| format!("composer run-script {name}"));
        let phpunit = || self.has_any(&["phpunit.xml", "phpunit.xml.dist"]).then(|| "vendor/bin/phpunit".to_string());
        let test = script("test").or_else(phpunit);
        let commands = Commands {
            diagnose: test.clone(),
            build: script("build"),
            lint: script("lint").or(script("analyse")),
            test,
            ..Commands::default()
        };
        Some((Stack::Php, commands))
    }

    pub(super) fn ruby(&self) -> Option<(Stack, Commands)> {
        let rakefile = ["Rakefile", "rakefile", "Rakefile.rb"].iter().find_map(|name| self.content(name));
        let gemfile = self.content("Gemfile");
        if rakefile.is_none() && gemfile.is_none() {
            return None;
        }
        let before = if gemfile.is_some() { "bundle exec " } else { "" };
        let tasks = rakefile.unwrap_or_default();
        let task = |name: &str| {
            let is = |line: &str| {
                line.contains("Task.new") && name == "test"
                    || line.trim_start().starts_with("task") && line.contains(&format!(":{name}"))
            };
            tasks.lines().any(is).then(|| format!("{before}rake {name}"))
        };
        let rspec = || self.has_any(&[".rspec", "spec"]).then(|| format!("{before}rspec"));
        let test = rspec().or_else(|| task("test")).or_else(|| self.has("bin/rails").then(|| "bin/rails test".into()));
        let lint = self.has(".rubocop.yml").then(|| format!("{before}rubocop"));
        let build =
            task("build").or_else(|| task("default").map(|_| format!("{before}rake")).filter(|_| test.is_none()));
        Some((
            Stack::Ruby,
            Commands { diagnose: test.clone().or(build.clone()), build, test, lint, ..Commands::default() },
        ))
    }

    pub(super) fn known(&self, known: &Known) -> Option<(Stack, Commands)> {
        let names = self.files.names(self.root);
        let is = |file: &str| match file.strip_prefix('*') {
            Some(end) => names.iter().any(|name| name.ends_with(end)),
            None => self.has(file),
        };
        known.files.iter().find(|file| is(file))?;
        let some = |line: &str| (!line.is_empty()).then(|| line.to_string());
        let (build, test, lint) = (some(known.build), some(known.test), some(known.lint));
        Some((known.stack, Commands { diagnose: test.clone(), build, test, lint, ..Commands::default() }))
    }
}
