//! Units as files: `task bundle`, `work --bundle`, `task sync`.

use super::args::{BundleArgs, WorkArgs};
use super::open::no_home;
use super::{do_by_name, refused};
use crate::cli::args::Common;
use crate::cli::config::project;
use crate::cli::respond::{Answered, Stopped, answer};
use crate::exit::Exit;
use crate::hub::{Hub, Synced};
use crate::report::print_error;
use crate::source::{Diagnostic, counted, sha256};
use crate::unit::UnitStage;
use crate::world::World;
use std::path::Path;

/// Writes a unit into a file.
pub(in crate::cli) fn bundle(world: &World, common: &Common, args: &BundleArgs) -> Answered {
    let hub = own_hub(world, common)?;
    hub.write_unit(&args.unit, &world.cwd().join(&args.out), None).map_err(|error| refused(&error))?;
    Ok(answer(&format!("unit {} is in {}.\n", args.unit, args.out.display())))
}

/// Takes what a file brings back.
pub(in crate::cli) fn sync(world: &World, common: &Common, file: &Path) -> Answered {
    let hub = own_hub(world, common)?;
    let mut is_superseded = false;
    for (unit, synced) in hub.sync(&world.cwd().join(file)).map_err(|error| refused(&error))? {
        let words = match synced {
            Synced::Taken => {
                let found = hub.unit(&unit)?;
                let is_done = found.is_some_and(|found| found.record.stage == UnitStage::Done);
                format!("unit {unit} is {}.\n", if is_done { "done" } else { "further, but not done" })
            }
            Synced::Known => format!("unit {unit} has nothing new.\n"),
            Synced::Superseded => {
                is_superseded = true;
                format!("another worker has claimed unit {unit}; its result counts.\n")
            }
            Synced::Unknown => {
                is_superseded = true;
                format!("the hub has no unit {unit}.\n")
            }
        };
        answer(&words);
    }
    Ok(if is_superseded { Exit::Incomplete } else { Exit::Success })
}

/// Works on the unit in a file, and writes what was done into another one.
pub(super) fn work_on_file(
    world: &World,
    common: &Common,
    args: &WorkArgs,
    (file, out): (&Path, &Path),
    worker: &str,
) -> Answered {
    let file = world.cwd().join(file);
    let digest = sha256(file.as_os_str().as_encoded_bytes());
    let name = format!("file-{}.git", digest.get(..8).unwrap_or(&digest));
    let path = world.cache_home().ok_or_else(no_home)?.join("forkhestra/hubs").join(name);
    let (hub, units) = Hub::of_file(&file, &path)?;
    let [unit] = units.as_slice() else { return Err(several(&file, units.len()).into()) };
    let exit = do_by_name(world, common, args, &hub, (unit, worker));
    let bundle = hub.bundle(unit)?;
    hub.write_unit(unit, &world.cwd().join(out), Some(&bundle.base))?;
    print_error(&format!("unit {unit} is in {}\n", out.display()));
    exit
}

fn own_hub(world: &World, common: &Common) -> Result<Hub, Stopped> {
    let root = project(world, common).root;
    let path = root.join(".forkhestra/hub.git");
    Ok(Hub::existing(&root).ok_or_else(|| super::open::no_hub(&path))?)
}

fn several(file: &Path, count: usize) -> Diagnostic {
    let count = counted(u32::try_from(count).unwrap_or(u32::MAX), "unit");
    Diagnostic::error("bundle/several", format!("{} has {count}, and not one", file.display()))
        .help("`forkhestra task bundle UNIT --out FILE` writes a file with one unit")
}
