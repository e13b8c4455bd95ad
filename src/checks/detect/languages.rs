//! Projects in Go, Rust, JVM languages, PHP and Ruby, and the kinds of projects in the table.

use super::known::Known;
use super::{Commands, Look, Stack};
use serde_json::Value;

pub(super) fn go(look: &Look<'_>) -> Option<(Stack, Commands)> {
    let is_work = look.has("go.work");
    (is_work || look.has("go.mod")).then_some(())?;
    let tests = look.find(&|name| name.ends_with("_test.go")).is_some();
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

pub(super) fn rust(look: &Look<'_>) -> Option<(Stack, Commands)> {
    look.has("Cargo.toml").then_some(())?;
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

pub(super) fn maven(look: &Look<'_>) -> Option<(Stack, Commands)> {
    look.has("pom.xml").then(|| (Stack::Maven, of_the_jvm(look, "mvn", "compile", "compile")))
}

pub(super) fn gradle(look: &Look<'_>) -> Option<(Stack, Commands)> {
    let files = ["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"];
    look.has_any(&files).then(|| (Stack::Gradle, of_the_jvm(look, "gradle", "assemble", "classes")))
}

/// The commands of a build tool. A project may bring its own copy of it, as Maven's wrapper `mvnw`.
fn of_the_jvm(look: &Look<'_>, tool: &str, build: &str, syntax: &str) -> Commands {
    let wrapper = format!("{tool}w");
    let tool = if look.has(&wrapper) { format!("./{wrapper}") } else { tool.to_string() };
    let of = |goal: &str| Some(format!("{tool} -q {goal}"));
    Commands { build: of(build), test: of("test"), syntax: of(syntax), diagnose: of("test"), ..Commands::default() }
}

pub(super) fn php(look: &Look<'_>) -> Option<(Stack, Commands)> {
    let package: Value = serde_json::from_str(&look.content("composer.json")?).ok()?;
    let script = |name: &str| (!package["scripts"][name].is_null()).then(|| format!("composer run-script {name}"));
    let phpunit = || look.has_any(&["phpunit.xml", "phpunit.xml.dist"]).then(|| "vendor/bin/phpunit".to_string());
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

pub(super) fn ruby(look: &Look<'_>) -> Option<(Stack, Commands)> {
    let rakefile = ["Rakefile", "rakefile", "Rakefile.rb"].iter().find_map(|name| look.content(name));
    let gemfile = look.content("Gemfile");
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
    let rspec = || look.has_any(&[".rspec", "spec"]).then(|| format!("{before}rspec"));
    let test = rspec().or_else(|| task("test")).or_else(|| look.has("bin/rails").then(|| "bin/rails test".into()));
    let lint = look.has(".rubocop.yml").then(|| format!("{before}rubocop"));
    let build = task("build").or_else(|| task("default").map(|_| format!("{before}rake")).filter(|_| test.is_none()));
    Some((Stack::Ruby, Commands { diagnose: test.clone().or(build.clone()), build, test, lint, ..Commands::default() }))
}

pub(super) fn known(look: &Look<'_>, known: &Known) -> Option<(Stack, Commands)> {
    let names = look.files.names(look.root);
    let is = |file: &str| match file.strip_prefix('*') {
        Some(end) => names.iter().any(|name| name.ends_with(end)),
        None => look.has(file),
    };
    known.files.iter().find(|file| is(file))?;
    let some = |line: &str| (!line.is_empty()).then(|| line.to_string());
    let (build, test, lint) = (some(known.build), some(known.test), some(known.lint));
    Some((known.stack, Commands { diagnose: test.clone(), build, test, lint, ..Commands::default() }))
}
