//! `doctor`: whether this machine can supervise agents, and what a run would find on it.

pub(super) mod backends;
pub(super) mod engines;
pub(super) mod templates;

use crate::cli::args::DoctorArgs;
use crate::cli::config::{Project, project};
use crate::cli::doctor::backends::clis;
use crate::cli::doctor::engines::{engines, hub};
use crate::cli::doctor::templates::templates;
use crate::cli::options::Common;
use crate::cli::respond::{Answered, answer, json_line};
use crate::cli::run::execute::event_queue;
use crate::cli::trust::{distrusted, outside_the_sandbox};
use crate::engine::Containment;
use crate::exit::Exit;
use crate::proc::{Probe, capture, containment, mechanisms, probe};
use crate::report::{DoctorFinding, Health, Paint, doctor as show};
use crate::source::counted;
use crate::world::World;
use serde_json::json;
use std::path::Path;

/// Runs all checks and prints the findings.
pub(in crate::cli) fn doctor(world: &World, common: &Common, args: &DoctorArgs) -> Answered {
    let runtime = event_queue()?;
    let mut findings = vec![daemon(&runtime.block_on(probe(&world.lifeline(), world.own_program())))];
    findings.extend(kernel());
    findings.extend(windows(&world.system()));
    let project = project(world, common);
    findings.extend(files(world, &project));
    findings.push(git(&project));
    findings.extend(templates(world, &project));
    if let Some(fault) = Some(())
        .filter(|()| args.tries)
        .and_then(|()| distrusted(world, common, &project).or_else(|| outside_the_sandbox(world, &project)))
    {
        return Err(fault.into());
    }
    findings.extend(clis(world, &project, args.tries));
    findings.extend(engines(world, &project, args.tries));
    findings.extend(args.hub.as_deref().map(|url| hub(world, url)));
    let sick = findings.iter().any(|finding| finding.health == Health::Bad);
    let system = world.system();
    let version = env!("CARGO_PKG_VERSION");
    let told = answer(&if args.json {
        let bad = findings.iter().filter(|finding| finding.health == Health::Bad);
        let problems: Vec<String> = bad.map(|finding| format!("{}: {}", finding.name, finding.words)).collect();
        json_line(json!({ "forkhestra": version, "system": system, "findings": findings, "problems": problems }))
    } else {
        show(&format!("forkhestra {version}, {system}"), &findings, Paint::for_stdout(world))
    });
    Ok(if sick { Exit::Incomplete } else { told })
}

fn finding(name: &'static str, health: Health, words: impl Into<String>) -> DoctorFinding {
    DoctorFinding { name: name.into(), health, words: words.into() }
}

fn daemon(probe: &Probe) -> DoctorFinding {
    const NAME: &str = "daemons";
    match probe {
        Probe::Ended(after) => finding(
            NAME,
            Health::Good,
            format!(
                "a test daemon that forked twice and left its session was stopped in {} ms",
                after.as_millis().max(1)
            ),
        ),
        Probe::Survived(pid) => finding(
            NAME,
            Health::Bad,
            format!(
                "a test daemon that forked twice survived (pid {pid}): agents can leave processes behind on this machine"
            ),
        ),
        Probe::Failed(why) => finding(NAME, Health::Bad, format!("cannot be tested: {why}")),
    }
}

fn kernel() -> [DoctorFinding; 4] {
    let found = mechanisms();
    let is_whole = containment() == Containment::Whole;
    let health = |there: bool| if there { Health::Good } else { Health::Absent };
    let words = |there: bool, yes: &str, no: &str| if there { yes.to_string() } else { no.to_string() };
    [
        finding(
            "orphans",
            if is_whole { Health::Good } else { Health::Absent },
            words(
                is_whole,
                "come to forkhestra, however they were made",
                "are found by session, parent, token and pipes; a process can escape that (docs/signals.md)",
            ),
        ),
        finding(
            "pidfd",
            health(found.pidfd),
            words(
                found.pidfd,
                "signals cannot reach the wrong process",
                "none; processes are signaled by their number",
            ),
        ),
        finding(
            "child lists",
            health(found.child_lists),
            words(found.child_lists, "/proc lists the children of a process", "none; all of /proc is searched"),
        ),
        finding(
            "cgroup",
            health(found.cgroup),
            words(found.cgroup, "forkhestra has its own; not needed", "forkhestra has none of its own; not needed"),
        ),
    ]
}

/// Checks for the Windows Subsystem for Linux, whose kernels have names of their own. The first version is no Linux.
fn windows(system: &str) -> Option<DoctorFinding> {
    let system = system.to_ascii_lowercase();
    system.contains("microsoft").then(|| {
        if system.contains("wsl2") {
            finding("windows", Health::Good, "WSL2, which is Linux")
        } else {
            let words = "WSL1, which cannot supervise agents: convert it with `wsl --set-version DISTRIBUTION 2`";
            finding("windows", Health::Bad, words)
        }
    })
}

/// Checks git, which shows changes in templates. Nothing is written.
fn git(project: &Project) -> DoctorFinding {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_string()).collect::<Vec<_>>();
    let Some(version) = capture(Path::new("git"), &words(&["--version"]), &project.root) else {
        return finding("git", Health::Absent, "not on PATH; templates that show changes will show none");
    };
    let inside = capture(Path::new("git"), &words(&["rev-parse", "--is-inside-work-tree"]), &project.root);
    let inside = inside.is_some_and(|answer| answer.stdout.trim() == "true");
    let version = version.stdout.trim().trim_start_matches("git version ").to_string();
    finding("git", Health::Good, format!("{version}; {}", if inside { "a repository" } else { "no repository here" }))
}

fn files(world: &World, project: &Project) -> [DoctorFinding; 2] {
    let found = &project.config;
    let entries =
        found.backends.iter().map(|(_, entry)| &entry.faults).chain(found.agents.values().map(|entry| &entry.faults));
    let entries = entries
        .chain(found.checks.values().map(|entry| &entry.faults))
        .chain(found.chains.values().map(|entry| &entry.faults));
    let faults = found.faults.iter().chain(entries.flatten()).filter(|fault| fault.is_error()).count();
    let config = match (project.config.files.last(), faults) {
        (Some(file), 0) => finding("config", Health::Good, file.source.name.clone()),
        (file, faults) => {
            let name = file.map_or("", |file| file.source.name.as_str());
            let errors = counted(faults, "error");
            finding("config", Health::Bad, format!("{name}: {errors}; `forkhestra validate` shows the details"))
        }
    };
    let root = project.root.display();
    let journal = if world.disk().can_write(&project.root) {
        finding("journal", Health::Good, format!("{root}/.forkhestra is writable"))
    } else {
        finding("journal", Health::Bad, format!("{root} is not writable; a run keeps its journal there"))
    };
    [config, journal]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_versions_of_wsl_are_told_apart() {
        let found = |system| windows(system).map(|finding| finding.health);
        assert_eq!(found("Linux 5.15.167.4-microsoft-standard-WSL2 x86_64"), Some(Health::Good));
        assert_eq!(found("Linux 4.4.0-22621-Microsoft x86_64"), Some(Health::Bad));
        assert_eq!(found("Linux 6.1.0-18-amd64 x86_64"), None);
    }
}
