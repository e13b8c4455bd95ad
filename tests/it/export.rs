//! `task export`: files for CI systems and clusters, whose jobs are workers.

use crate::machines::{stages, with_units};
use crate::support::Place;
use forkhestra::hub::Hub;
use forkhestra::unit::UnitStage;
use std::fs;
use std::process::{Child, Command, Stdio};

const HUB: &str = "ssh://me@host/home/me/shop/.forkhestra/hub.git";

fn exported(place: &Place, arguments: &[&str]) -> String {
    place.run(&[&["task", "export"], arguments].concat()).code(0).stdout.clone()
}

#[test]
fn export_github_prints_a_workflow_with_the_keys_of_the_projects_backends() {
    let place = Place::new();
    place.config(r#"{ "agents": { "coder": { "backend": "claude" }, "fix": { "command": "fix" } } }"#);
    let image = ["github", "--hub", HUB, "--jobs", "3", "--image", "ghcr.io/me/worker"];
    insta::assert_snapshot!(exported(&place, &image));
    let own = exported(&place, &["github", "--hub", "https://host/hub.git"]);
    assert!(own.contains("runs-on: self-hosted") && !own.contains("GIT_SSH_COMMAND"), "{own}");
}

#[test]
fn export_gitlab_prints_a_job_with_parallel() {
    insta::assert_snapshot!(exported(&Place::new(), &["gitlab", "--hub", "me@host:shop/hub.git", "-j", "4"]));
}

#[test]
fn export_kubernetes_prints_an_indexed_job() {
    insta::assert_snapshot!(exported(&Place::new(), &["kubernetes", "--hub", HUB, "--image", "me/worker:1"]));
}

#[test]
fn export_slurm_prints_a_job_array_for_the_projects_own_hub() {
    let place = Place::new();
    let script = exported(&place, &["slurm", "--jobs", "40"]);
    insta::assert_snapshot!(place.plain(script.as_bytes()));
    let ran = Command::new("sh").args(["-n", "-c", &script]).output().unwrap();
    assert!(ran.status.success(), "{script}");
}

#[test]
fn export_gives_its_workers_the_labels_that_the_project_needs() {
    let place = Place::new();
    place.config(r#"{ "workspace": { "needs": { "labels": ["gpu", "big"] } } }"#);
    let script = exported(&place, &["slurm"]);
    assert!(script.contains("work --next --all --label gpu --label big --hub "), "{script}");
}

#[test]
fn export_refuses_what_the_target_cannot_do_all_at_once() {
    let ran = Place::new().run(&["task", "export", "kubernetes", "--jobs", "100001"]);
    insta::assert_snapshot!(ran.code(2).stderr, @"
    export/hub

      × jobs on Kubernetes cannot reach this directory
      help: add the URL by which git reaches the hub from there: --hub
            ssh://me@host/path/.forkhestra/hub.git

    export/too-many

      × 100001 jobs are more than Kubernetes takes: 100000
      help: each job works on many units, one after the other: --jobs 100000

    export/image

      × a pod needs an image
      help: add the name of one with forkhestra, git and the programs of your
            agents: --image NAME
    ");
    for (target, jobs, most) in [("github", "257", "256"), ("gitlab", "201", "200"), ("slurm", "1001", "1000")] {
        let ran = Place::new().run(&["task", "export", target, "--hub", HUB, "--jobs", jobs]);
        assert!(ran.code(2).stderr.contains(&format!("takes: {most}")), "{}", ran.stderr);
    }
    for hub in [".forkhestra/hub.git", "/home/me/hub.git", "ssh://host/$HOME/hub.git"] {
        let ran = Place::new().run(&["task", "export", "gitlab", "--hub", hub]);
        assert!(ran.code(2).stderr.contains("export/hub"), "{}", ran.stderr);
    }
}

/// The values of the matrix and the command of the job in an exported workflow.
fn matrix_and_command(workflow: &str) -> (Vec<String>, String) {
    let value = |key: &str| workflow.lines().rev().find_map(|line| line.trim().strip_prefix(key)).unwrap().trim();
    let numbers = value("worker:").trim_matches(['[', ']']).split(", ");
    (numbers.map(str::to_string).collect(), value("run:").to_string())
}

/// Starts a job of the workflow, as GitHub does.
fn job(place: &Place, command: &str, worker: &str) -> Child {
    let url = format!("file://{}", place.work(".forkhestra/hub.git").display());
    let as_here = place.command(&[]);
    let mut shell = Command::new("bash");
    shell.args(["-e", "-c", command]).env_clear().current_dir(place.path("tmp"));
    shell.envs(as_here.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.envs([("HUB", url.as_str()), ("GITHUB_RUN_ID", "77"), ("WORKER", worker)]);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn the_jobs_of_an_exported_workflow_do_every_unit_once_even_if_one_is_killed_and_run_again() {
    let place = with_units(20);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_forkhestra"), place.path("bin/forkhestra")).unwrap();
    let up = place.path("tmp/up");
    // The first one that begins waits until it is killed.
    let works = format!(
        "sh mkdir {0}.first 2> /dev/null && echo $FORKHESTRA_WORKSPACE > {0}.new && mv {0}.new {0} && sleep 60\n\
         sh echo $FORKHESTRA_WORKSPACE >> file-1.txt\nsh echo FORKHESTRA_COMPLETE",
        up.display()
    );
    place.agent("worker", &works);
    let calls = place.calls("worker");
    let (workers, command) = matrix_and_command(&exported(&place, &["github", "--hub", HUB, "--jobs", "8"]));
    assert_eq!(workers.len(), 8);
    let mut jobs: Vec<Child> = workers.iter().map(|worker| job(&place, &command, worker)).collect();
    place.wait_for(&up);
    let workspace = fs::read_to_string(&up).unwrap();
    let unit = format!("{}-1", workspace.trim().rsplit('/').next().unwrap());
    let found = Hub::at(&place.work(".forkhestra/hub.git")).units().get(&unit).unwrap().unwrap();
    let index = workers.iter().position(|worker| found.is_claimed_by(&format!("github-77-{worker}"))).unwrap();
    jobs[index].kill().unwrap();
    assert!(!jobs[index].wait().unwrap().success());
    jobs[index] = job(&place, &command, &workers[index]);
    for job in jobs {
        let ended = job.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    let stages = stages(&place);
    assert!(stages.len() == 20 && stages.iter().all(|(_, stage)| *stage == UnitStage::Done), "{stages:?}");
    assert_eq!(place.calls("worker") - calls, 21, "the attempt that was killed is repeated, and no other one");
    place.assert_nothing_is_left();
}
