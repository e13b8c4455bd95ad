//! `detect`, `verify`, `diagnose`: the project's own commands, found from its files and run by hand.

use crate::checks::{Detected, Kind, OutputErrors, Profile, ResolvedCheck, detect, failures, joined, wanted};
use crate::cli::args::{DetectArgs, DiagnoseArgs, VerifyArgs};
use crate::cli::config::{Project, project};
use crate::cli::options::Common;
use crate::cli::respond::{Answered, Stopped, answer, json_line};
use crate::cli::run::execute::exit_of;
use crate::cli::trust::{distrusted, outside_the_sandbox};
use crate::cli::verdict::in_an_iteration;
use crate::context::TreeWatch;
use crate::engine::{RunOutcome, Sig};
use crate::exit::Exit;
use crate::proc::{ByHand, Interrupts, ProgramAnswer, capture};
use crate::report::{Paint, print, print_bytes, print_error};
use crate::source::{Diagnostic, Env, Files};
use crate::world::World;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The maximum number of failures that are listed.
const MOST: usize = 5;
/// The hash of the empty tree, as SHA-1 and SHA-256 (`git hash-object -t tree /dev/null`).
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const EMPTY_TREE_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";
/// Shown to a person, who can configure a command.
const NO_COMMAND: &str = "no command was found; name one in `checks` of forge/chains.json";
/// Shown to an agent, which may not change the config.
const LOOK_YOURSELF: &str =
    "no command was found: look for the project's build and test commands yourself, and run them";

/// Prints the stacks and commands that were found.
pub(super) fn detected(world: &World, common: &Common, args: &DetectArgs) -> Exit {
    let project = project(world, common);
    let found = detect(&project.root, world);
    if args.json {
        return answer(&json_line(json!(found)));
    }
    let paint = Paint::for_stdout(world);
    let mut text = String::new();
    let stacks = found.stacks.iter().map(|stack| json!(stack).as_str().unwrap_or_default().to_string());
    let stacks = stacks.collect::<Vec<_>>().join(", ");
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}  {}", paint.dim("stack   "), if stacks.is_empty() { "unknown" } else { &stacks });
    for (name, kind) in Kind::NAMES {
        let wanted = wanted(kind, Profile::Fast, false, &found, &project.config);
        let own = if project.config.checks.contains_key(name) { paint.dim("  (chains.json)") } else { String::new() };
        let line = if wanted.commands.is_empty() { paint.dim("none found") } else { wanted.commands.join(" && ") };
        let _ = writeln!(text, "{}  {line}{own}", paint.dim(&format!("{name:8}")));
    }
    if let Some(smoke) = &found.smoke {
        let _ = writeln!(text, "{}  {smoke}", paint.dim("smoke   "));
    }
    answer(&text)
}

/// Runs the commands that the profile requires.
pub(super) fn verify(world: &World, common: &Common, args: &VerifyArgs) -> Answered {
    let project = project(world, common);
    if let Some(fault) = distrusted(world, common, &project).or_else(|| outside_the_sandbox(world, &project)) {
        return Err(fault.into());
    }
    let profile = args.profile.as_deref().and_then(Profile::named).unwrap_or_default();
    let found = detect(&project.root, world);
    let kind = args.kind.as_deref().and_then(Kind::named).unwrap_or(Kind::Verify);
    let wanted = wanted(kind, profile, has_changes(&project.root), &found, &project.config);
    if kind == Kind::Verify && profile == Profile::Strict && !wanted.missing.is_empty() {
        return Err(strict_needs(advises_agent(world, args), &wanted.missing).into());
    }
    if wanted.commands.is_empty() {
        if args.json {
            answer(&unavailable(world, &found));
            return Err(Stopped::Ended(Exit::Refused));
        }
        return Err(no_command(advises_agent(world, args)).into());
    }
    run(world, common, &project, &found, &wanted, args.json)
}

/// Runs one command and shows the first errors.
pub(super) fn diagnose(world: &World, common: &Common, args: &DiagnoseArgs) -> Answered {
    let project = project(world, common);
    if let Some(fault) = distrusted(world, common, &project).or_else(|| outside_the_sandbox(world, &project)) {
        return Err(fault.into());
    }
    let found = detect(&project.root, world);
    // The requested kind, then the nearest ones.
    let order: &[Kind] = match args.kind.as_deref() {
        Some("build") => &[Kind::Build, Kind::Test, Kind::Lint],
        Some("test") => &[Kind::Test, Kind::Build, Kind::Lint],
        Some("lint") => &[Kind::Lint, Kind::Test, Kind::Build],
        _ => &[Kind::Diagnose],
    };
    let all = order.iter().map(|kind| wanted(*kind, Profile::Fast, false, &found, &project.config));
    let first = all.reduce(|first, next| if first.commands.is_empty() { next } else { first });
    let Some(wanted) = first else { return Ok(Exit::Success) };
    // For an agent, the same command on the same tree would give the same result; a kind that it names is always run.
    if !in_an_iteration(world) {
        return run(world, common, &project, &found, &wanted, args.json);
    }
    let tree = TreeWatch::default().fingerprint(&project.root, wanted.line().as_bytes());
    if args.kind.is_none()
        && !args.force
        && let Some(known) = known_diagnosis(world, &tree)
    {
        return Ok(known_already(known, args.json));
    }
    let exit = run(world, common, &project, &found, &wanted, args.json)?;
    if !wanted.commands.is_empty() {
        // Taken after the command, because files that it built are part of the tree. A lost diagnosis is run again.
        let tree = TreeWatch::default().fingerprint(&project.root, wanted.line().as_bytes());
        if let Some(path) = own_diagnosis(world) {
            let _ = world
                .disk()
                .write(&path, &format!("{tree} {}\n", if exit == Exit::Success { "passed" } else { "failed" }));
        }
    }
    Ok(exit)
}

/// Whether the diagnosis of this tree by the host or by this attempt passed; `None` if there is none.
fn known_diagnosis(world: &World, tree: &str) -> Option<bool> {
    let told = world.var("FORKHESTRA_DIAGNOSIS").and_then(|told| told.into_string().ok());
    let own = || own_diagnosis(world).and_then(|path| String::from_utf8(world.read(&path).ok()?).ok());
    let of = |text: String| {
        let (of, passed) = text.trim().split_once(' ')?;
        (of == tree).then(|| passed == "passed")
    };
    told.and_then(of).or_else(|| own().and_then(of))
}

/// Where an attempt stores its own diagnosis: in its folder, under a name that no other attempt knows.
fn own_diagnosis(world: &World) -> Option<PathBuf> {
    let result = world.var("FORKHESTRA_RESULT").filter(|result| !result.is_empty())?;
    Some(PathBuf::from(result).with_extension("diagnosis"))
}

/// Answers with an earlier diagnosis of the same tree.
fn known_already(passed: bool, as_json: bool) -> Exit {
    let message = "already executed on this tree; reuse the previous output, or run it again with --force";
    let told = json!({ "kind": "already_executed", "message": message, "passed": passed });
    let said = answer(&if as_json {
        json_line(told)
    } else {
        format!("{message} ({})\n", if passed { "it passed" } else { "it failed" })
    });
    if passed { said } else { Exit::Incomplete }
}

/// Whether git reports changed files; never outside a repository. Attributes are read from an empty tree, so that no
/// filter of the repository runs. Git before 2.40 cannot do that: then the tree counts as changed.
fn has_changes(root: &Path) -> bool {
    let git = |words: &[&str]| {
        capture(Path::new("git"), &words.iter().map(|word| (*word).to_string()).collect::<Vec<_>>(), root)
    };
    let format = git(&["rev-parse", "--show-object-format"]).filter(|answer| answer.code == Some(0));
    let Some(format) = format else { return false };
    let empty = if format.stdout.trim() == "sha256" { EMPTY_TREE_SHA256 } else { EMPTY_TREE };
    let attributes = format!("--attr-source={empty}");
    let plain = ["-c", "core.fsmonitor=false", "-c", "core.attributesFile=/dev/null"];
    let words = [&["--no-optional-locks", &attributes][..], &plain, &["status", "--porcelain"]].concat();
    git(&words).is_none_or(|answer| answer.code != Some(0) || !answer.stdout.trim().is_empty())
}

fn run(
    world: &World,
    common: &Common,
    project: &Project,
    found: &Detected,
    wanted: &ResolvedCheck,
    as_json: bool,
) -> Answered {
    if wanted.commands.is_empty() {
        return Ok(skipped(world, found, as_json));
    }
    let line = wanted.line();
    if !as_json && !common.quiet {
        print_error(&format!("$ {}\n", wanted.commands.join(" && ")));
    }
    let mut show = |piece: &[u8]| {
        if !as_json && !common.quiet {
            // A reader that has gone away does not matter: the exit code decides.
            let _ = print_bytes(piece);
        }
    };
    let words = ["-c".to_string(), line];
    let Ok(interrupts) = Interrupts::listen(|signal| world.ignores(signal)) else {
        return Err(no_shell().into());
    };
    let by_hand = ByHand {
        lifeline: &world.lifeline(),
        program: Path::new("/bin/sh"),
        arguments: &words,
        folder: &project.root,
        timeout: wanted.timeout,
        input: &[],
        interrupts: &interrupts,
        without: &[],
    };
    let Some(answered) = by_hand.run(&mut show) else { return Err(no_shell().into()) };
    if let Some(signal) = interrupts.signal().and_then(Sig::of_number) {
        return Ok(exit_of(RunOutcome::Interrupted { signal }));
    }
    let passed = answered.code == Some(0);
    if as_json {
        let _ = print(&json_line(answer_json(wanted, &answered)));
    } else if !passed {
        print_error(&words_of(&answered, Paint::for_stderr(world)));
    } else if !common.quiet {
        print_error(&format!("{}\n", Paint::for_stderr(world).good("passed")));
    }
    Ok(if passed { Exit::Success } else { Exit::Incomplete })
}

fn answer_json(wanted: &ResolvedCheck, answered: &ProgramAnswer) -> Value {
    let output = joined(&[answered.stdout.clone(), answered.stderr.clone()]);
    json!({
        "kind": "diagnostic",
        "command": wanted.commands.join(" && "),
        "missing": wanted.missing,
        "exitCode": answered.code,
        "timedOut": answered.timed_out,
        "passed": answered.code == Some(0),
        "failures": failures(&output),
        "stdout": answered.stdout,
        "stderr": answered.stderr,
    })
}

fn words_of(answered: &ProgramAnswer, paint: Paint) -> String {
    let how = match answered.code {
        _ if answered.timed_out => "took longer than its timeout".into(),
        Some(code) => format!("failed with exit code {code}"),
        None => "was killed".into(),
    };
    let errors = OutputErrors::of(&joined(&[answered.stdout.clone(), answered.stderr.clone()]));
    let list = if errors.found.is_empty() { String::new() } else { format!("{}\n", errors.summary(MOST)) };
    format!("\n{}\n{list}", paint.bad(&how))
}

/// Without a command there is no diagnosis, which is not a failure.
fn skipped(world: &World, found: &Detected, as_json: bool) -> Exit {
    answer(&if as_json { unavailable(world, found) } else { format!("skipped: {}\n", no_command_words(world)) })
}

/// An agent may not change the config, so it gets other advice.
fn no_command_words(world: &World) -> &'static str {
    if in_an_iteration(world) { LOOK_YOURSELF } else { NO_COMMAND }
}

/// Whether `verify` advises an agent. What a step of a chain prints is read by a person: without a command it ends the
/// run.
fn advises_agent(world: &World, args: &VerifyArgs) -> bool {
    in_an_iteration(world) && !args.as_step
}

fn unavailable(world: &World, found: &Detected) -> String {
    let message = no_command_words(world);
    let told =
        json!({ "kind": "diagnostic_unavailable", "message": message, "stack": found.stacks, "passed": Value::Null });
    json_line(told)
}

/// Refuses: without a command, nothing has passed or failed.
fn no_command(for_agent: bool) -> Diagnostic {
    let help = if for_agent {
        "look for the project's build and test commands yourself, and run them"
    } else {
        "name one in `checks` of forge/chains.json; `forkhestra detect` shows what forkhestra looks for and finds"
    };
    Diagnostic::error("verify/no-command", "nothing to run: no command was found in the project's files").help(help)
}

fn strict_needs(for_agent: bool, missing: &[&str]) -> Diagnostic {
    let help = if for_agent {
        "verify with another profile: --profile fast"
    } else {
        "name a command for each in `checks` of forge/chains.json, or verify with another profile"
    };
    Diagnostic::error(
        "verify/strict",
        format!("the profile `strict` requires checks that this project does not have: {}", missing.join(", ")),
    )
    .help(help)
}

fn no_shell() -> Diagnostic {
    Diagnostic::error("verify/shell", "/bin/sh cannot be started").help("it runs the project's commands")
}
