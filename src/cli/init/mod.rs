//! `init`: writes a commented chains.json and prompts that run at once, or templates, outside `.forkhestra/`.

pub(super) mod migrate;
mod probe;

use crate::chain::PROJECT_FILES;
use crate::cli::config::{Project, project};
use crate::cli::init::migrate::{Migrated, migrated, our_templates};
use crate::cli::options::Common;
use crate::cli::respond::{Answered, answer};
use crate::plan::places;
use crate::proc::{capture, find_outside};
use crate::source::{Diagnostic, Files};
use crate::world::World;
use clap::Args;
use probe::{entry_of, subcommand};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(in crate::cli) struct InitArgs {
    /// Write the built-in templates and skills for editing instead; existing files are kept
    #[arg(long)]
    pub(in crate::cli) templates: bool,
    /// Write .claude/skills/forkhestra/SKILL.md instead, which tells your own agent how to run chains
    #[arg(long, conflicts_with = "templates")]
    pub(in crate::cli) skill: bool,
    /// Write an entry of `backends` for a program that forkhestra does not know, from what its help says
    #[arg(long, value_name = "NAME", conflicts_with_all = ["templates", "skill", "from"])]
    pub(in crate::cli) backend: Option<String>,
    /// Import templates and skills from the directory of another tool, such as .foreman
    #[arg(long, value_name = "DIR", conflicts_with_all = ["templates", "skill"])]
    pub(in crate::cli) from: Option<PathBuf>,
}

const FILES: [(&str, &str); 3] = [
    ("forge/chains.json", include_str!("../../../forge/init/chains.json")),
    ("forge/prompts/coder.md", include_str!("../../../forge/init/coder.md")),
    ("forge/prompts/reviewer.md", include_str!("../../../forge/init/reviewer.md")),
];

/// The skill that tells a person's own agent how to run chains.
const SKILL: (&str, &str) = (".claude/skills/forkhestra/SKILL.md", include_str!("../../../forge/init/SKILL.md"));

/// Writes the files. Existing files are never overwritten.
pub(in crate::cli) fn init(world: &World, common: &Common, args: &InitArgs) -> Answered {
    let project = project(world, common);
    let shell = project.shell.clone();
    let place = |path: PathBuf| placed(world, &project, &path);
    if args.templates {
        let ours = our_templates().into_iter().map(|(path, text)| (place(path), text.to_string()));
        return beside(world, &shell, &ours.collect::<Vec<_>>(), "");
    }
    if let Some(name) = &args.backend {
        return backend(world, &project, name);
    }
    if args.skill {
        return beside(world, &shell, &[(PathBuf::from(SKILL.0), SKILL.1.to_string())], "");
    }
    if let Some(from) = &args.from {
        return take_over(world, &shell, &shell.join(from), &place);
    }
    if project.root != shell {
        return Err(above(&project.root).into());
    }
    // A project has only one config, of either name.
    let ours: BTreeSet<&str> = FILES.iter().map(|(name, _)| *name).chain(PROJECT_FILES).collect();
    let present: Vec<&str> = ours.into_iter().filter(|name| world.kind(&shell.join(name)).is_ok()).collect();
    if !present.is_empty() {
        return Err(already_there(&present).into());
    }
    let mut text = String::new();
    for (name, content) in FILES {
        if let Err(error) = world.disk().create(&shell.join(name), content) {
            return Err(not_written(name, &error.to_string()).into());
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "wrote {name}");
    }
    text.push_str("\nTry:  forkhestra hello\nThen: forkhestra ship FEATURE=\"a greeting\" --dry-run\n");
    Ok(answer(&text))
}

/// Writes a config with an entry for a program, or prints the entry if there is a config.
fn backend(world: &World, project: &Project, name: &str) -> Answered {
    if project.config.backends.contains(name) {
        return Err(known_backend(name).into());
    }
    let program = find_outside(name, &project.root).ok_or_else(|| no_program(name))?;
    let ask = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_string()).collect();
        capture(&program, &words, &project.shell).map(|answer| answer.stdout + &answer.stderr).unwrap_or_default()
    };
    let help = ask(&["--help"]);
    let command = subcommand(&help);
    let help = command.map_or(help, |command| ask(&[command, "--help"]));
    let entry = entry_of(name, command, &help);
    let then =
        "\nComplete it, then: forkhestra doctor; forkhestra coder -p \"Say hello\" --dry-run\nSee docs/backends.md.\n";
    if PROJECT_FILES.iter().any(|file| world.kind(&project.root.join(file)).is_ok()) {
        return Ok(answer(&format!(
            "// Insert this in \"backends\" of your config.\n{entry}{}",
            then.replace('\n', "\n// ").trim_end_matches("// ")
        )));
    }
    let level = if entry.contains("\n        \"edit\"") {
        ""
    } else {
        "  // Without a level `edit`, an agent needs one of the others: \"permissions\": \"full\"\n"
    };
    let text = format!(
        "{{\n  \"backends\": {{\n{entry}  }},\n{level}  \"agents\": {{ \"coder\": {{ \"backend\": \"{name}\" }} }},\n  \"chains\": {{}},\n}}\n"
    );
    let file = PROJECT_FILES[0];
    world.disk().create(&project.shell.join(file), &text).map_err(|error| not_written(file, &error.to_string()))?;
    Ok(answer(&format!("wrote {file}\n{then}")))
}

fn known_backend(name: &str) -> Diagnostic {
    Diagnostic::error("init/backend", format!("`{name}` is a backend already"))
        .help("`forkhestra doctor` shows its state; change single keys of it in `backends` of your config")
}

fn no_program(name: &str) -> Diagnostic {
    Diagnostic::error("init/backend", format!("there is no program `{name}` on PATH"))
        .help("install it first, or put its directory on PATH")
}

/// Returns where a template or skill below `forge/` is written: below the project's root, unless `templates` of the
/// config names another place.
fn placed(world: &World, project: &Project, path: &Path) -> PathBuf {
    let places = places(&project.config, &project.root, world);
    let moved = path.strip_prefix("forge/agents").map(|below| places.templates.join(below));
    let moved = moved.or_else(|_| path.strip_prefix("forge/skills").map(|below| places.shared.join(below)));
    let moved = moved.unwrap_or_else(|_| path.to_path_buf());
    moved.strip_prefix(&project.shell).map_or_else(|_| moved.clone(), Path::to_path_buf)
}

/// Writes the files that do not exist yet, and lists those that were kept.
fn beside(world: &World, shell: &Path, files: &[(PathBuf, String)], more: &str) -> Answered {
    let mut text = String::new();
    for (path, content) in files {
        let name = path.display();
        // Writing to a String cannot fail.
        let _ = if world.kind(&shell.join(path)).is_ok() {
            writeln!(text, "kept  {name}, which already exists")
        } else if let Err(error) = world.disk().create(&shell.join(path), content) {
            return Err(not_written(&name.to_string(), &error.to_string()).into());
        } else {
            writeln!(text, "wrote {name}")
        };
    }
    Ok(answer(&(text + more)))
}

/// Imports templates and skills of another tool.
fn take_over(world: &World, shell: &Path, from: &Path, place: &dyn Fn(PathBuf) -> PathBuf) -> Answered {
    let (mut files, mut more) = (Vec::new(), String::new());
    for path in world.disk().files_below(from) {
        let below = path.strip_prefix(from).unwrap_or(&path);
        let text = match world.read(&path).map(String::from_utf8) {
            Ok(Ok(text)) => text,
            Ok(Err(_)) => {
                let _ = writeln!(more, "not imported: {}: it is not UTF-8", below.display());
                continue;
            }
            Err(error) => {
                let _ = writeln!(more, "not imported: {}: {error}", below.display());
                continue;
            }
        };
        let found = migrated(below, &text).map(|found| Migrated { path: place(found.path), ..found });
        let _ = match found {
            None => writeln!(more, "not imported: {}", below.display()),
            Some(Migrated { path, .. }) if files.iter().any(|(known, _)| *known == path) => {
                writeln!(
                    more,
                    "not imported: {}: another file is already imported as {}",
                    below.display(),
                    path.display()
                )
            }
            Some(Migrated { path, text, left }) => {
                files.push((path.clone(), text));
                if left.is_empty() {
                    Ok(())
                } else {
                    writeln!(
                        more,
                        "{}: not a known variable: {}; `forkhestra explain template/undefined-variable` lists them",
                        path.display(),
                        left.join(", ")
                    )
                }
            }
        };
    }
    if files.is_empty() {
        return Err(nothing_to_take(from).into());
    }
    beside(world, shell, &files, &more)
}

fn nothing_to_take(from: &Path) -> Diagnostic {
    Diagnostic::error("init/from", format!("{} contains no templates", from.display()))
        .help("templates are ROLE/templates/NAME.template.md or ROLE/prompt.md, skills are ROLE/skills/NAME.md")
}

fn above(root: &Path) -> Diagnostic {
    Diagnostic::error("init/above", format!("{} already has a config, which also applies here", root.display()))
        .help("edit that one, or make this directory a project of its own: forkhestra init -C .")
}

fn already_there(names: &[&str]) -> Diagnostic {
    let exist = if names.len() == 1 { "exists" } else { "exist" };
    Diagnostic::error("init/exists", format!("{} already {exist}; nothing was written", names.join(", ")))
        .help("to start again, move what exists out of the way; to keep it, edit it and run `forkhestra validate`")
}

fn not_written(name: &str, why: &str) -> Diagnostic {
    Diagnostic::error("init/write", format!("cannot write {name}: {why}"))
}
