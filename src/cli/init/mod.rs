//! `init`: writes a commented chains.json and prompts that run at once, or templates, outside `.forkhestra/`.

pub(super) mod migrate;

use crate::chain::PROJECT_FILES;
use crate::cli::args::{Common, InitArgs};
use crate::cli::config::{Project, project};
use crate::cli::init::migrate::{Migrated, migrated, our_templates};
use crate::cli::respond::{Answered, answer};
use crate::plan::places;
use crate::source::{Diagnostic, Files};
use crate::world::World;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

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
        if let Err(error) = world.create(&shell.join(name), content) {
            return Err(not_written(name, &error.to_string()).into());
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "wrote {name}");
    }
    text.push_str("\nTry:  forkhestra hello\nThen: forkhestra ship FEATURE=\"a greeting\" --dry-run\n");
    Ok(answer(&text))
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
        } else if let Err(error) = world.create(&shell.join(path), content) {
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
    for path in world.files_below(from) {
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
