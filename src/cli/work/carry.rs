//! Units as files: `task bundle`, `work --bundle`, `task sync`.

use super::args::{BundleArgs, WorkArgs};
use super::open::no_home;
use super::{do_by_name, refused};
use crate::cli::config::project;
use crate::cli::options::Common;
use crate::cli::respond::{Answered, Stopped, answer};
use crate::cli::run::execute::command_line;
use crate::cli::runs::history::state;
use crate::engine::RunState;
use crate::exit::Exit;
use crate::hub::{Hub, HubError, Synced};
use crate::journal::Journal;
use crate::report::print_error;
use crate::source::{Diagnostic, counted, sha256};
use crate::unit::UnitStage;
use crate::world::World;
use std::path::Path;

/// Writes a unit into a file.
pub(in crate::cli) fn bundle(world: &World, common: &Common, args: &BundleArgs) -> Answered {
    let hub = own_hub(world, common)?;
    can_be_written(world, &args.out)?;
    hub.unit_files().write(&args.unit, &world.cwd().join(&args.out), None).map_err(|error| match error {
        HubError::Unknown { .. } => refused(&error).help(format!(
            "list the units: git --git-dir {} for-each-ref refs/forkhestra/units",
            world.relative(hub.path())
        )),
        error => refused(&error),
    })?;
    Ok(answer(&format!("wrote unit {} to {}\n", args.unit, args.out.display())))
}

/// Takes what a file brings back.
pub(in crate::cli) fn sync(world: &World, common: &Common, file: &Path) -> Answered {
    let hub = own_hub(world, common)?;
    let mut is_superseded = false;
    for (unit, synced) in hub.unit_files().sync(&world.cwd().join(file)).map_err(|error| refused(&error))? {
        let words = match synced {
            Synced::Taken => {
                let found = hub.units().get(&unit)?;
                if found.is_some_and(|found| found.record.stage == UnitStage::Done) {
                    format!("unit {unit} is done{}\n", to_land(world, common, &unit))
                } else {
                    format!("unit {unit} is further, but not done\n")
                }
            }
            Synced::Known => format!("unit {unit} has nothing new\n"),
            Synced::Superseded => {
                is_superseded = true;
                format!("another worker has claimed unit {unit}; its result counts\n")
            }
            Synced::Unknown => {
                is_superseded = true;
                format!("the hub has no unit {unit}\n")
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
    can_be_written(world, out)?;
    let file = world.cwd().join(file);
    let digest = sha256(file.as_os_str().as_encoded_bytes());
    let name = format!("file-{}.git", digest.get(..8).unwrap_or(&digest));
    let path = world.own_cache().ok_or_else(no_home)?.join("hubs").join(name);
    let hub = Hub::open_or_create(&path)?;
    let units = hub.unit_files().import(&file)?;
    let [unit] = units.as_slice() else { return Err(several(&file, units.len()).into()) };
    let exit = do_by_name(world, common, args, &hub, (unit, worker));
    let bundle = hub.units().bundle(unit)?;
    hub.unit_files().write(unit, &world.cwd().join(out), Some(&bundle.base))?;
    print_error(&format!("wrote unit {unit} to {}\n", out.display()));
    exit
}

/// What to type after the result of a unit has arrived: a batch that was interrupted has to be resumed.
fn to_land(world: &World, common: &Common, unit: &str) -> String {
    let root = project(world, common).root;
    let batch = unit.split('-').next().and_then(|number| number.parse().ok());
    let found = Journal::existing(&root).ok().flatten().zip(batch).and_then(|(journal, batch)| {
        let row = journal.runs().get(batch).ok()??;
        state(&journal, &row).is_ok_and(RunState::may_resume).then_some(row.id)
    });
    found.map_or_else(String::new, |batch| {
        format!("; to land it: {}", command_line(world, common, &root, &format!("resume {batch}")))
    })
}

/// Refuses a file that cannot be written, before anything is done for it.
fn can_be_written(world: &World, file: &Path) -> Result<(), Diagnostic> {
    let path = world.cwd().join(file);
    let why = match (path.is_dir(), path.parent().is_some_and(Path::is_dir)) {
        (true, _) => "it is a directory",
        (false, false) => "its directory does not exist",
        _ => return Ok(()),
    };
    Err(Diagnostic::error("hub/failed", format!("cannot write {}: {why}", file.display()))
        .help("name another file with --out"))
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
