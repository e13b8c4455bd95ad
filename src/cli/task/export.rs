//! `task export`: a file for another system, whose jobs are workers of this project's hub.

use super::args::{ExportArgs, ExportTarget};
use super::batch::needs;
use crate::chain::LayerKind;
use crate::cli::config::{Project, project};
use crate::cli::options::Common;
use crate::cli::respond::{Answered, answer};
use crate::hub::is_hub_url;
use crate::report::quoted;
use crate::source::{Diagnostic, counted};
use crate::world::World;
use std::collections::BTreeSet;

/// The file, as a template. A line that begins with `?PART ` is there only if the file has that part.
fn template_of(target: ExportTarget) -> &'static str {
    match target {
        ExportTarget::Github => include_str!("../../../forge/export/github.yml"),
        ExportTarget::Gitlab => include_str!("../../../forge/export/gitlab.yml"),
        ExportTarget::Kubernetes => include_str!("../../../forge/export/kubernetes.yml"),
        ExportTarget::Slurm => include_str!("../../../forge/export/slurm.sh"),
    }
}

/// The largest number of jobs that it takes in one file: of a matrix on GitHub, of `parallel` on GitLab, of an
/// Indexed Job on Kubernetes, and below the default `MaxArraySize` (1,001) of `slurm.conf(5)`.
fn most_jobs(target: ExportTarget) -> u32 {
    match target {
        ExportTarget::Github => 256,
        ExportTarget::Gitlab => 200,
        ExportTarget::Kubernetes => 100_000,
        ExportTarget::Slurm => 1000,
    }
}

fn name_of(target: ExportTarget) -> &'static str {
    match target {
        ExportTarget::Github => "GitHub",
        ExportTarget::Gitlab => "GitLab",
        ExportTarget::Kubernetes => "Kubernetes",
        ExportTarget::Slurm => "Slurm",
    }
}

/// Prints the file.
pub(super) fn export(world: &World, common: &Common, args: &ExportArgs) -> Answered {
    let project = project(world, common);
    let (hub, mut faults) = match hub_of(&project, args) {
        Ok(hub) => (hub, Vec::new()),
        Err(fault) => (String::new(), vec![fault]),
    };
    let needs = needs(project.config.workspace.needs.as_ref(), &mut faults);
    faults.extend(too_many(args));
    faults.extend(no_image(args));
    faults.extend(unused_image(args));
    if !faults.is_empty() {
        return Err(faults.into());
    }
    answer(&file(args, &hub, &keys(&project), &needs.labels));
    Ok(crate::exit::Exit::Success)
}

fn file(args: &ExportArgs, hub: &str, keys: &[String], labels: &[String]) -> String {
    let by_ssh = is_hub_url(hub) && (!hub.contains("://") || hub.contains("ssh://"));
    let has_part = |name: &str| match name {
        "ssh" => by_ssh,
        "image" => args.image.is_some(),
        "machine" => args.image.is_none(),
        "keys" => !keys.is_empty(),
        _ => false,
    };
    let numbers: Vec<String> = (1..=args.jobs).map(|number| number.to_string()).collect();
    // Each JSON string is also a YAML string (YAML 1.2, section 1.3).
    let string = |text: &str| serde_json::Value::from(text).to_string();
    let values = [
        ("@HUB@", if matches!(args.target, ExportTarget::Slurm) { quoted(hub) } else { string(hub) }),
        // Labels have no character that a shell or YAML would read.
        ("@LABELS@", labels.iter().flat_map(|label| [" --label ", label.as_str()]).collect()),
        ("@JOBS@", args.jobs.to_string()),
        ("@NUMBERS@", numbers.join(", ")),
        ("@IMAGE@", string(args.image.as_deref().unwrap_or_default())),
    ];
    let mut text = String::new();
    for line in template_of(args.target).lines() {
        let line = match line.strip_prefix('?').and_then(|line| line.split_once(' ')) {
            Some((part, line)) if has_part(part) => line,
            Some(_) => continue,
            None => line,
        };
        if let Some((before, _)) = line.split_once("@KEYS@") {
            text.extend(keys.iter().map(|key| before.to_string() + key + ": ${{ secrets." + key + " }}\n"));
            continue;
        }
        let filled = values.iter().fold(line.to_string(), |line, (name, value)| line.replace(name, value));
        text.push_str(&filled);
        text.push('\n');
    }
    text
}

/// The variables with the keys of the backends that the project's agents and its default name.
fn keys(project: &Project) -> Vec<String> {
    let config = &project.config;
    let own = config.agents.values().filter(|agent| agent.layer != LayerKind::BuiltIn);
    let named = own.filter_map(|agent| agent.value.backend.as_ref()).chain(&config.backend);
    let backends = named.filter_map(|name| config.backends.get(&name.value));
    let places = backends.filter_map(|backend| backend.value.credentials.as_ref()).flatten();
    // Those with a slash are files.
    let variables: BTreeSet<&String> = places.filter(|place| !place.contains('/')).collect();
    variables.into_iter().cloned().collect()
}

/// The hub that the jobs reach.
fn hub_of(project: &Project, args: &ExportArgs) -> Result<String, Diagnostic> {
    let own = project.root.join(".forkhestra/hub.git").display().to_string();
    let is_slurm = matches!(args.target, ExportTarget::Slurm);
    let (message, help) = match &args.hub {
        None if is_slurm => return Ok(own),
        None => (
            format!("jobs on {} cannot reach this directory", name_of(args.target)),
            "add the URL by which git reaches the hub from there: --hub ssh://me@host/path/.forkhestra/hub.git",
        ),
        Some(hub) if hub.contains(|character: char| character.is_control() || character == '$') => (
            "the hub's URL has a character that the file cannot hold: `$`, or a control character".to_string(),
            "give the hub a URL without it, for example by a symbolic link on its machine",
        ),
        Some(hub) if is_slurm && hub.starts_with('/') || is_hub_url(hub) => return Ok(hub.clone()),
        Some(hub) if is_slurm => (
            format!("`{hub}` is neither a URL nor an absolute path"),
            "a job begins in another directory: begin the path with a slash",
        ),
        Some(hub) => (
            format!("`{hub}` is a path of this machine, not a URL"),
            "add the URL by which git reaches the hub from there: --hub ssh://me@host/path/.forkhestra/hub.git",
        ),
    };
    Err(Diagnostic::error("export/hub", message).help(help))
}

fn too_many(args: &ExportArgs) -> Option<Diagnostic> {
    let (name, most) = (name_of(args.target), most_jobs(args.target));
    (args.jobs > most).then(|| {
        let jobs = counted(args.jobs, "job");
        Diagnostic::error("export/too-many", format!("{jobs} are more than {name} takes: {most}"))
            .help(format!("each job works on many units, one after the other: --jobs {most}"))
    })
}

fn no_image(args: &ExportArgs) -> Option<Diagnostic> {
    let is_missing = matches!(args.target, ExportTarget::Kubernetes) && args.image.is_none();
    is_missing.then(|| {
        Diagnostic::error("export/image", "a pod needs an image")
            .help("add the name of one with forkhestra, git and the programs of your agents: --image NAME")
    })
}

fn unused_image(args: &ExportArgs) -> Option<Diagnostic> {
    let is_unused = matches!(args.target, ExportTarget::Slurm) && args.image.is_some();
    is_unused.then(|| {
        Diagnostic::error("export/image", "a job of Slurm has no image: --image would have no effect")
            .help("leave out --image; add the options of your cluster's containers to the printed file")
    })
}
