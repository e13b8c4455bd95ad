//! The scripted agents of the built-in demo: real processes that work in the current directory, without a model.

#![expect(clippy::disallowed_methods, reason = "an agent, not the runner: it works in its own directory")]

mod batch;

use crate::exit::Exit;
use crate::marker::DEFAULT;
use crate::report::{print, print_error};
use crate::source::Env;
use crate::world::World;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};

/// Plays the role that the step names.
pub(in crate::cli) fn act(world: &World, arguments: &[OsString]) -> Exit {
    let role = arguments.first().and_then(|role| role.to_str()).unwrap_or_default();
    let words = match role {
        "planner" => plan(&variable(world, "FORKHESTRA_ITERATION")),
        "coder" => code(&variable(world, "FORKHESTRA_ROUND")),
        "reviewer" => review(),
        "batch" => batch::play(world),
        "worker" => batch::work(world),
        _ => return Exit::Refused,
    };
    match words.and_then(|words| print(&words)) {
        Ok(()) => Exit::Success,
        Err(error) => {
            print_error(&format!("{error}\n"));
            Exit::Incomplete
        }
    }
}

fn variable(world: &World, name: &str) -> String {
    world.var(name).and_then(|value| value.into_string().ok()).unwrap_or_default()
}

/// Two iterations: a first draft without the marker, then the plan and the marker.
fn plan(iteration: &str) -> io::Result<String> {
    if iteration == "1" {
        fs::write("notes.md", "- a program that greets\n")?;
        return Ok("I read the prompt and took notes. The plan is not written yet.\n".into());
    }
    fs::write("plan.md", "1. Write greet.sh, which prints: hello, world\n2. Let the check run it.\n")?;
    Ok(format!("The plan is in plan.md.\n{DEFAULT}\n"))
}

/// Makes a typo in round 1, fixes it in round 2 with the check's output in the prompt, and the finding in round 3.
fn code(round: &str) -> io::Result<String> {
    if round == "1" {
        fs::write("greet.sh", "echo \"hello, wrld\"\n")?;
        return Ok("I wrote greet.sh.\n".into());
    }
    let mut prompt = String::new();
    io::stdin().read_to_string(&mut prompt)?;
    if let Some(finding) = prompt.lines().find(|line| line.starts_with("- F1")) {
        fs::write("greet.sh", "#!/bin/sh\necho \"hello, world\"\n")?;
        return Ok(format!("The reviewer found: {finding}\nF1: fixed, greet.sh now names its interpreter.\n"));
    }
    let found = prompt.lines().find(|line| line.contains("wrld")).unwrap_or("nothing");
    fs::write("greet.sh", "echo \"hello, world\"\n")?;
    Ok(format!("My prompt contains the check's output: {found}\nThat is my typo. I fixed greet.sh.\n"))
}

fn review() -> io::Result<String> {
    let program = fs::read_to_string("greet.sh")?;
    if program.starts_with("#!") {
        return Ok("I read greet.sh: it greets, and it names its interpreter.\nVERDICT: approve\n".into());
    }
    Ok("I read greet.sh.\n- greet.sh:1: the interpreter is not named; add `#!/bin/sh`\nVERDICT: reject\n".into())
}
