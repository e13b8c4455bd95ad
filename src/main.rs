//! The entry point: dispatches hidden commands without parsing, and everything else through the command line.

use forkhestra::exit::Exit;
use forkhestra::{cli, proc, world::World};
use std::ffi::OsString;

fn main() -> Exit {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the arguments")]
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|verb| verb == "__lifeline") {
        return match proc::lifeline() {
            Ok(()) => Exit::Success,
            Err(_) => Exit::Incomplete,
        };
    }
    if arguments.first().is_some_and(|verb| verb == "__probe") {
        return if proc::probe_step(&arguments[1..]).is_ok() { Exit::Success } else { Exit::Incomplete };
    }
    // Best effort: without it, the kernel kills us silently when a file reaches its size limit.
    let _ = proc::survive_full_files();
    let mut world = match World::look() {
        Ok(world) => world,
        Err(error) => {
            forkhestra::report::print_error(&format!("forkhestra: cannot determine the working directory: {error}\n"));
            return Exit::Refused;
        }
    };
    if arguments.first().is_some_and(|verb| verb == "__tree") {
        return cli::tree(&world, &arguments[1..]);
    }
    if arguments.first().is_some_and(|verb| verb == "__demo") {
        return cli::demo(&world, &arguments[1..]);
    }
    if arguments.first().is_some_and(|verb| verb == "__detached") {
        // Best effort: we lead no process group yet.
        let _ = proc::leave_session();
        return cli::in_background(&mut world, arguments[1..].to_vec());
    }
    if arguments.first().is_some_and(|verb| verb == "__complete") {
        return cli::candidates(&world, &arguments[1..]);
    }
    cli::main(&mut world, arguments)
}
