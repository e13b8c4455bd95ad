//! `work --hub URL`: a unit of a hub on another machine, which is reached as git reaches any repository.

use crate::batch::{hub, place};
use crate::checkpoints::with_unit;
use crate::support::Place;
use forkhestra::hub::{Hub, Workspace};
use forkhestra::unit::{Bundle, Needs, UnitStage};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// The last commit of the unit `9-1-1` in the place's hub.
fn stage(place: &Place) -> (UnitStage, u32) {
    let unit = Hub::at(&place.work(".forkhestra/hub.git")).units().get("9-1-1").unwrap().unwrap();
    (unit.record.stage, unit.record.fence)
}

/// A command line of a worker on another machine.
fn worker(url: &str) -> [&str; 5] {
    ["work", "--hub", url, "--unit", "9-1-1"]
}

#[test]
fn a_worker_needs_only_the_url_of_the_hub() {
    let place = with_unit();
    fs::write(place.path("tmp/go"), "").unwrap();
    let url = format!("file://{}", place.work(".forkhestra/hub.git").display());
    let ran = place.run(&worker(&url));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(stage(&place), (UnitStage::Done, 1));
    assert_eq!(hub(&place, &["show", "refs/forkhestra/units/9-1-1^2:file-1.txt"]), "1\n2\n3");
    let left = fs::read_dir(place.path("home/.cache/forkhestra/workspaces")).unwrap().flatten();
    let left: Vec<_> = left.flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten()).collect();
    assert!(!left.iter().any(|entry| entry.file_name() == "9-1"), "{left:?}");
    place.run(&worker(&url)).code(75);
}

#[test]
fn a_worker_reaches_a_hub_with_the_ssh_command_of_its_user() {
    let mut place = with_unit();
    fs::write(place.path("tmp/go"), "").unwrap();
    // It runs on this machine what it is told to run on the other one.
    fs::write(place.path("tmp/ssh"), "echo \"$*\" >> $0.log\nshift\nexec sh -c \"$*\"\n").unwrap();
    let url = format!("builder:{}", place.work(".forkhestra/hub.git").display());
    let ssh = format!("sh {}", place.path("tmp/ssh").display());
    place.set("GIT_SSH_COMMAND", &ssh);
    let ran = place.run(&worker(&url));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(stage(&place), (UnitStage::Done, 1));
    let log = fs::read_to_string(place.path("tmp/ssh.log")).unwrap();
    assert!(log.contains("builder git-upload-pack"), "{log}");
}

#[test]
fn a_connection_by_ssh_that_is_silent_is_ended_unless_the_user_has_chosen_the_ssh_command() {
    let place = with_unit();
    fs::write(place.path("tmp/go"), "").unwrap();
    let log = place.path("tmp/ssh.log");
    let ssh = format!(
        "#!/bin/sh\necho \"$*\" >> {}\nwhile [ \"$1\" != builder ]; do shift; done\nshift\nexec sh -c \"$*\"\n",
        log.display()
    );
    for name in ["bin/ssh", "tmp/chosen"] {
        fs::write(place.path(name), &ssh).unwrap();
        fs::set_permissions(place.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let url = format!("builder:{}", place.work(".forkhestra/hub.git").display());
    place.run(&worker(&url)).code(0);
    let limits = "-o ConnectTimeout=60 -o ServerAliveInterval=30 -o ServerAliveCountMax=4";
    let calls = fs::read_to_string(&log).unwrap();
    assert!(calls.lines().all(|call| call.contains(limits)), "{calls}");
    fs::write(place.path("home/.gitconfig"), format!("[core]\nsshCommand = {}\n", place.path("tmp/chosen").display()))
        .unwrap();
    fs::remove_file(&log).unwrap();
    place.run(&worker(&url)).code(75);
    let calls = fs::read_to_string(&log).unwrap();
    assert!(!calls.is_empty() && !calls.contains(limits), "{calls}");
}

#[test]
fn a_worker_by_url_that_was_superseded_ends_after_its_attempt() {
    let place = with_unit();
    let url = format!("file://{}", place.work(".forkhestra/hub.git").display());
    let run = place.start(&worker(&url));
    place.wait_for(&place.path("tmp/up"));
    assert!(Hub::at(&place.work(".forkhestra/hub.git")).units().claim("9-1-1", "another").unwrap().is_some());
    fs::write(place.path("tmp/go"), "").unwrap();
    let ran = run.end();
    assert_eq!(ran.code, Some(75), "{}", ran.stderr);
    assert_eq!(stage(&place), (UnitStage::Claimed, 2));
}

#[test]
fn a_lock_that_a_killed_git_has_left_in_the_mirror_of_a_hub_stops_no_worker() {
    let place = with_unit();
    fs::write(place.path("tmp/go"), "").unwrap();
    let url = format!("file://{}", place.work(".forkhestra/hub.git").display());
    place.run(&["work", "--hub", &url, "--unit", "9-7-1"]).code(69);
    let mut hubs = fs::read_dir(place.path("home/.cache/forkhestra/hubs")).unwrap().map(|entry| entry.unwrap().path());
    let mirror = hubs.find(|path| path.is_dir()).unwrap();
    fs::create_dir_all(mirror.join("refs/forkhestra/units")).unwrap();
    fs::write(mirror.join("refs/forkhestra/units/9-1-1.lock"), "").unwrap();
    place.run(&worker(&url)).code(0);
    assert_eq!(stage(&place), (UnitStage::Done, 1));
}

#[test]
fn a_hub_that_cannot_be_reached_is_refused_with_what_git_says() {
    let place = place(1, "", "true");
    let ran = place.run(&["work", "--hub", "file:///nowhere/hub.git", "--unit", "9-1-1"]);
    assert_eq!(ran.code, Some(69), "{}", ran.stderr);
    insta::assert_snapshot!(ran.stderr, @"
    hub/failed

      × cannot reach the hub file:///nowhere/hub.git: '/nowhere/hub.git' does not
      │ appear to be a git repository
      help: `git ls-remote URL` on this machine shows whether it can be reached
    ");
    let url = format!("file://{}", place.work(".git").display());
    let ran = place.run(&worker(&url));
    assert!(ran.code(69).stderr.contains("has no unit `9-1-1`"), "{}", ran.stderr);
}

#[test]
fn a_worker_that_comes_to_another_plan_refuses_the_unit_and_says_what_differs() {
    let place = with_unit();
    let own = place.path("home/.config/forkhestra");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("chains.json"), r#"{ "chains": {}, "marker": "FINISHED" }"#).unwrap();
    let calls = place.calls("worker");
    let url = format!("file://{}", place.work(".forkhestra/hub.git").display());
    let ran = place.run(&worker(&url));
    insta::assert_snapshot!(ran.code(2).stderr.split_once('\n').unwrap().1, @r"
    work/plan

      × this machine has arrived at a different plan for the unit from its
      │ batch's: marker: FORKHESTRA_COMPLETE is now FINISHED; environment of step
      │ 1 (worker); environment of step 2 (check)
      help: compare ~/.config/forkhestra/chains.json on both machines, and the
            variables that the config uses; what all machines need belongs in the
            project's forge/chains.json
    unit 9-1-1: ended with exit code 2
    ");
    assert_eq!((place.calls("worker"), stage(&place)), (calls, (UnitStage::Done, 1)));
}

#[test]
fn a_worker_plans_with_the_config_of_the_commit_even_if_the_batch_had_another_one() {
    let place = with_unit();
    fs::write(place.path("tmp/go"), "").unwrap();
    let made = Hub::at(&place.work(".forkhestra/hub.git"));
    let mut bundle = made.units().bundle("9-1-1").unwrap();
    let plan = bundle.plan.as_mut().unwrap();
    (plan.config, plan.outline.marker) = (Some("another".into()), "FINISHED".into());
    (bundle.unit, bundle.workspace) = ("9-2-1".into(), "9-2".into());
    assert!(made.units().queue(&bundle).unwrap());
    let url = format!("file://{}", place.work(".forkhestra/hub.git").display());
    place.run(&["work", "--hub", &url, "--unit", "9-2-1"]).code(0);
}

/// A place with units `9-1-1` to `9-N-1`, which nobody has claimed.
pub(crate) fn with_units(count: u32) -> Place {
    let place = with_unit();
    fs::write(place.path("tmp/go"), "").unwrap();
    place.agent("worker", "sh echo $FORKHESTRA_WORKSPACE >> file-1.txt\nsh echo FORKHESTRA_COMPLETE");
    let made = Hub::at(&place.work(".forkhestra/hub.git"));
    let bundle = made.units().bundle("9-1-1").unwrap();
    for number in 2..=count {
        let (unit, workspace) = (format!("9-{number}-1"), format!("9-{number}"));
        assert!(made.units().queue(&Bundle { unit, workspace, ..bundle.clone() }).unwrap());
    }
    place
}

/// The names of the units of batch 9 with what the hub says about each.
pub(crate) fn stages(place: &Place) -> Vec<(String, UnitStage)> {
    let units = Hub::at(&place.work(".forkhestra/hub.git")).units().all().unwrap();
    let of_nine = units.into_iter().filter(|(name, _)| name.starts_with("9-"));
    of_nine.map(|(name, found)| (name, found.record.stage)).collect()
}

#[test]
fn next_works_on_one_unit_after_the_other_until_none_is_left() {
    let place = with_units(11);
    let url = format!("file://{}", place.work(".forkhestra/hub.git").display());
    let calls = place.calls("worker");
    for done in 1..=11 {
        place.run(&["work", "--hub", &url, "--next"]).code(0);
        let stages = stages(&place);
        assert!(stages.iter().take(done).all(|(_, stage)| *stage == UnitStage::Done), "{stages:?}");
    }
    assert_eq!(stages(&place)[10].0, "9-11-1", "in the order of their numbers");
    let ran = place.run(&["work", "--hub", &url, "--next"]);
    assert!(ran.code(75).stderr.contains("no unit of the hub is waiting"), "{}", ran.stderr);
    assert_eq!(place.calls("worker") - calls, 11);
}

#[test]
fn next_all_works_until_no_unit_is_waiting_and_a_refused_unit_ends_it() {
    let place = with_units(3);
    let url = format!("file://{}", place.work(".forkhestra/hub.git").display());
    let ran = place.run(&["work", "--hub", &url, "--next", "--all"]);
    assert!(ran.code(0).stderr.ends_with("no unit of the hub is waiting\n"), "{}", ran.stderr);
    assert!(stages(&place).iter().all(|(_, stage)| *stage == UnitStage::Done));
    let made = Hub::at(&place.work(".forkhestra/hub.git"));
    for unit in ["9-8-1", "9-9-1"] {
        let bundle = Bundle { unit: unit.into(), chain: Some("none".into()), ..made.units().bundle("9-1-1").unwrap() };
        assert!(made.units().queue(&bundle).unwrap());
    }
    for (more, left) in [("--all", 1), ("--wait", 0)] {
        place.run(&["work", "--hub", &url, "--next", more]).code(2);
        let queued = stages(&place).into_iter().filter(|(_, stage)| *stage == UnitStage::Queued);
        assert_eq!(queued.count(), left, "{more}");
    }
}

#[test]
fn next_all_waits_for_the_next_unit_while_a_batch_is_running() {
    let mut place = with_units(2);
    place.set("FORKHESTRA_TEST_NEXT_MS", "100");
    let made = Hub::at(&place.work(".forkhestra/hub.git"));
    let last = Bundle { unit: "9-8-1".into(), workspace: "9-8".into(), ..made.units().bundle("9-1-1").unwrap() };
    // The mark of a batch that was killed does not stay.
    std::mem::forget(made.batches().open(8).unwrap());
    let open = made.batches().open(9).unwrap();
    let url = format!("file://{}", made.path().display());
    let run = place.start(&["work", "--next", "--all", "--hub", &url]);
    let is_done =
        |unit: &str| made.units().get(unit).unwrap().is_some_and(|found| found.record.stage == UnitStage::Done);
    place.until(|| is_done("9-2-1"));
    assert!(made.units().queue(&last).unwrap());
    place.until(|| is_done("9-8-1"));
    drop(open);
    let ran = run.end();
    assert!(ran.code(0).stderr.ends_with("no unit of the hub is waiting\n"), "{}", ran.stderr);
}

#[test]
fn next_is_given_to_one_of_several_workers_each_time() {
    let place = with_units(6);
    let url = format!("file://{}", place.work(".forkhestra/hub.git").display());
    let calls = place.calls("worker");
    let drain = || while place.beside(&["work", "--hub", &url, "--next"]).0 == Some(0) {};
    std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(drain))));
    assert!(stages(&place).iter().all(|(_, stage)| *stage == UnitStage::Done));
    assert_eq!(place.calls("worker") - calls, 6);
}

#[test]
fn a_worker_that_is_started_again_under_its_name_continues_what_it_had_begun() {
    let place = with_unit();
    let url = format!("file://{}", place.work(".forkhestra/hub.git").display());
    let run = place.start(&["work", "--hub", &url, "--next", "--as", "job-3"]);
    place.wait_for(&place.path("tmp/up"));
    assert_eq!(run.end_by("KILL").code, None);
    fs::write(place.path("tmp/go"), "").unwrap();
    // The next job runs on another machine.
    fs::remove_dir_all(place.path("home/.cache/forkhestra")).unwrap();
    place.run(&["work", "--hub", &url, "--next", "--as", "job-4"]).code(75);
    let ran = place.run(&["work", "--hub", &url, "--next", "--as", "job-3"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!((stage(&place), ran.stdout.matches("runResumed").count()), ((UnitStage::Done, 2), 1));
}

#[test]
fn the_hub_has_the_whole_run_of_a_unit_and_why_one_was_refused() {
    let place = with_unit();
    fs::write(place.path("tmp/go"), "").unwrap();
    let url = format!("file://{}", place.work(".forkhestra/hub.git").display());
    place.run(&worker(&url)).code(0);
    let made = Hub::at(&place.work(".forkhestra/hub.git"));
    let (_, events) = made.kept().run(&made.units().get("9-1-1").unwrap().unwrap()).unwrap();
    assert!(events.lines().last().unwrap().contains("runFinished"), "{events}");
    let bundle = Bundle { unit: "9-2-1".into(), chain: Some("none".into()), ..made.units().bundle("9-1-1").unwrap() };
    assert!(made.units().queue(&bundle).unwrap());
    place.run(&["work", "--hub", &url, "--next"]).code(2);
    let error = made.kept().error(&made.units().get("9-2-1").unwrap().unwrap()).unwrap();
    assert!(error.contains("`none`"), "{error}");
}

#[test]
fn a_worker_that_comes_back_takes_what_another_one_has_done_since() {
    let place = with_unit();
    let made = ".forkhestra/hub.git";
    let (here, there) = (place.path("here").display().to_string(), place.path("there").display().to_string());
    let at =
        |workspaces: &str| ["work", "--hub", made, "--unit", "9-1-1", "--workspaces", workspaces].map(str::to_string);
    let run = |arguments: &[String; 7]| place.start(&arguments.each_ref().map(String::as_str));
    let calls = place.calls("worker");
    let first = run(&at(&here));
    place.wait_for(&place.path("tmp/up"));
    assert_eq!(first.end_by("KILL").code, None);
    // Elsewhere, the third iteration ends, and the fourth is interrupted.
    fs::remove_file(place.path("tmp/up")).unwrap();
    let works = format!(
        "sh echo $FORKHESTRA_ITERATION >> file-1.txt\nsh [ $(wc -l < file-1.txt) != 4 ] || {{ touch {}; sleep 60; }}",
        place.path("tmp/up").display()
    );
    place.agent("worker", &works);
    let second = run(&at(&there));
    place.wait_for(&place.path("tmp/up"));
    assert_eq!(second.end_by("KILL").code, None);
    place.agent("worker", "sh echo $FORKHESTRA_ITERATION >> file-1.txt\nsh echo FORKHESTRA_COMPLETE");
    let third = run(&at(&here)).end();
    assert_eq!(third.code, Some(0), "{}", third.stderr);
    assert_eq!(hub(&place, &["show", "refs/forkhestra/units/9-1-1^2:file-1.txt"]), "1\n2\n3\n4");
    assert_eq!(place.calls("worker") - calls, 6, "the third iteration does not run a third time");
}

#[test]
fn a_unit_of_another_version_is_refused_with_both_versions_and_left_by_next() {
    let place = with_unit();
    let made = Hub::at(&place.work(".forkhestra/hub.git"));
    let bundle = Bundle { forkhestra: "99.0.0".into(), unit: "9-2-1".into(), ..made.units().bundle("9-1-1").unwrap() };
    assert!(made.units().queue(&bundle).unwrap());
    fs::write(place.path("tmp/go"), "").unwrap();
    let hub = made.path().display().to_string();
    place.run(&["work", "--next", "--hub", &hub]).code(0);
    let words = "1 unit of the hub waits, but not for this machine: unit 9-2-1 was made by forkhestra 99.0.0";
    let ran = place.run(&["work", "--next", "--hub", &hub]);
    assert!(ran.code(75).stderr.starts_with(words), "{}", ran.stderr);
    let ran = place.run(&["work", "--unit", "9-2-1", "--hub", &hub]);
    let words = format!("unit 9-2-1 was made by forkhestra 99.0.0, and this is {}", env!("CARGO_PKG_VERSION"));
    assert!(ran.code(2).stderr.contains(&words), "{}", ran.stderr);
    let unit = made.units().get("9-2-1").unwrap().unwrap();
    assert_eq!((unit.record.stage, unit.record.exit), (UnitStage::Done, Some(2)));
    assert!(made.kept().error(&unit).unwrap().contains(&words));
}

#[test]
fn work_next_leaves_units_that_need_what_this_machine_lacks_and_a_worker_with_the_label_takes_them() {
    let place = with_unit();
    fs::write(place.path("tmp/go"), "").unwrap();
    place.agent("worker", "sh echo $FORKHESTRA_WORKSPACE >> file-1.txt\nsh echo FORKHESTRA_COMPLETE");
    let made = Hub::at(&place.work(".forkhestra/hub.git"));
    let hub = made.path().display().to_string();
    place.run(&["work", "--next", "--hub", &hub]).code(0);
    let needs = |programs: &[&str], variables: &[&str], labels: &[&str]| {
        let texts = |all: &[&str]| all.iter().map(ToString::to_string).collect();
        Needs { programs: texts(programs), variables: texts(variables), labels: texts(labels) }
    };
    for (unit, needs) in [
        ("9-2-1", needs(&["sh", "no-such-program"], &["HOME", "NO_SUCH"], &[])),
        ("9-3-1", needs(&["sh"], &[], &["gpu"])),
    ] {
        let bundle =
            Bundle { needs, unit: unit.into(), workspace: unit.into(), ..made.units().bundle("9-1-1").unwrap() };
        assert!(made.units().queue(&bundle).unwrap());
    }
    let ran = place.run(&["work", "--next", "--hub", &hub]);
    assert_eq!(
        ran.code(75).stderr,
        "2 units of the hub wait, but not for this machine: unit 9-2-1 needs what this machine lacks: \
         the program `no-such-program`, the variable NO_SUCH\n"
    );
    place.run(&["work", "--next", "--hub", &hub, "--label", "big", "--label", "gpu"]).code(0);
    let ran = place.run(&["work", "--unit", "9-2-1", "--hub", &hub]);
    insta::assert_snapshot!(ran.code(2).stderr, @"
    work/needs

      × unit 9-2-1 needs what this machine lacks: the program `no-such-program`,
      │ the variable NO_SUCH
      help: install the program or set the variable where the worker starts, or
            start workers elsewhere
    ");
    let unit = made.units().get("9-2-1").unwrap().unwrap();
    assert_eq!((unit.record.stage, unit.record.exit), (UnitStage::Done, Some(2)));
}

#[test]
fn a_worker_leaves_a_workspace_alone_that_another_process_has_locked() {
    let place = with_unit();
    place.agent("worker", "sh basename $FORKHESTRA_WORKSPACE > file-1.txt\nsh echo FORKHESTRA_COMPLETE");
    let made = Hub::at(&place.work(".forkhestra/hub.git"));
    let folder = place.path("there");
    let workspace = Workspace::of(&made.units().bundle("9-1-1").unwrap(), &folder);
    let lock = workspace.lock().unwrap().unwrap();
    assert!(workspace.lock().unwrap().is_none());
    let (hub_path, folder) = (made.path().display().to_string(), folder.display().to_string());
    place.run(&["work", "--hub", &hub_path, "--unit", "9-1-1", "--workspaces", &folder]).code(0);
    let cache = fs::metadata(place.path("home/.cache/forkhestra")).unwrap();
    assert_eq!(cache.permissions().mode() & 0o777, 0o700, "nobody else reads it");
    assert_eq!(hub(&place, &["show", "refs/forkhestra/units/9-1-1^2:file-1.txt"]), "9-1@1");
    // That of the worker is gone, with its lock.
    made.workspaces().remove(&workspace);
    drop(lock);
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["9-1.lock"]);
    made.workspaces().remove(&workspace);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn workspace_needs_are_checked_before_a_batch_on_this_machine_begins() {
    let place = with_unit();
    place.config(r#"{ "checks": { "t": "true" }, "chains": { "task": "t" },
        "workspace": { "needs": { "programs": ["sh", "no-such-program"], "variables": ["NO_SUCH"], "labels": ["gpu"] } } }"#);
    insta::assert_snapshot!(place.run(&["task", "run", "--jobs", "2", "--with-changes", "--dry-run"]).code(2).stderr, @"
    batch/needs

      × this machine lacks the program `no-such-program`, the variable NO_SUCH
      help: the config says that the work needs it: `workspace.needs`. Install or
            set it, or use other machines: --on ENGINE
    ");
    place.config(
        r#"{ "checks": { "t": "true" }, "chains": { "task": "t" },
        "workspace": { "needs": { "programs": ["bin/x"], "variables": ["A=b"], "labels": ["a b"] } } }"#,
    );
    let ran = place.run(&["task", "run", "--jobs", "2", "--with-changes", "--dry-run"]);
    let messages: Vec<&str> = ran.code(2).stderr.lines().filter_map(|line| line.strip_prefix("  × ")).collect();
    assert_eq!(
        messages,
        [
            "`bin/x` is not the name of a program on PATH",
            "`A=b` is not the name of an environment variable",
            "`a b` is not a label: letters, digits, `-`, `_`, `.` and `:`, at most 63",
        ]
    );
}

#[test]
fn work_next_wait_does_one_unit_after_the_other_and_ends_at_ctrl_c() {
    let place = with_unit();
    let made = Hub::at(&place.work(".forkhestra/hub.git"));
    let bundle = Bundle { unit: "9-2-1".into(), workspace: "9-2".into(), ..made.units().bundle("9-1-1").unwrap() };
    assert!(made.units().queue(&bundle).unwrap());
    let hub = made.path().display().to_string();
    let run = place.start(&["work", "--next", "--wait", "--hub", &hub]);
    place.wait_for(&place.path("tmp/up"));
    fs::remove_file(place.path("tmp/up")).unwrap();
    fs::write(place.path("tmp/go"), "").unwrap();
    place.wait_for(&place.path("tmp/up"));
    while made.units().get("9-2-1").unwrap().unwrap().record.stage != UnitStage::Done {
        std::thread::yield_now();
    }
    assert_eq!(run.end_by("INT").code, Some(130));
    assert_eq!(made.units().get("9-1-1").unwrap().unwrap().record.exit, Some(0));
}
