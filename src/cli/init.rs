//! `init`: a commented chains.json and role prompts that run at once. The one verb that writes outside `.forkhestra/`.

use super::args::Common;
use super::config::project;
use super::{answer, refuse};
use crate::chain::PROJECT_FILES;
use crate::exit::Exit;
use crate::source::{Diagnostic, Files};
use crate::world::World;
use std::collections::BTreeSet;
use std::fmt::Write;

const FILES: [(&str, &str); 3] = [
    ("forge/chains.json", include_str!("../../forge/init/chains.json")),
    ("forge/prompts/coder.md", include_str!("../../forge/init/coder.md")),
    ("forge/prompts/reviewer.md", include_str!("../../forge/init/reviewer.md")),
];

/// Writes the files, all or none of them over what is there.
pub(super) fn init(world: &World, common: &Common) -> Exit {
    let shell = project(world, common).shell;
    // A config of either name would be a second one.
    let ours: BTreeSet<&str> = FILES.iter().map(|(name, _)| *name).chain(PROJECT_FILES).collect();
    let present: Vec<&str> = ours.into_iter().filter(|name| world.kind(&shell.join(name)).is_ok()).collect();
    if !present.is_empty() {
        return refuse(world, &[already_there(&present)]);
    }
    let mut text = String::new();
    for (name, content) in FILES {
        if let Err(error) = world.create(&shell.join(name), content) {
            return refuse(world, &[not_written(name, &error.to_string())]);
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "wrote {name}");
    }
    text.push_str("\nTry:  forkhestra --chain hello\nThen: forkhestra --chain ship FEATURE=\"a greeting\" --dry-run\n");
    answer(&text)
}

fn already_there(names: &[&str]) -> Diagnostic {
    Diagnostic::error("init/exists", format!("{} is there already; nothing was written", names.join(", ")))
        .help("move it away, or edit it: `forkhestra validate` checks it")
}

fn not_written(name: &str, why: &str) -> Diagnostic {
    Diagnostic::error("init/write", format!("cannot write {name}: {why}"))
}
