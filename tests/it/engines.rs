//! `task run --on ENGINE`: units on other machines, which an engine of the config brings there. The engine of these
//! tests is a script that starts jobs on this machine.

use crate::batch::{CHAINS, WRITES, assert_line_is_green, hub, place};
use crate::integrator::WAITS;
use crate::support::{Place, git, is_dead, send};
use std::fs;

/// Starts, lists and ends jobs, each a session of its own. The first line of `jobs/NAME` is its process group.
pub(crate) const ENGINE: &str = r#"
jobs=$(dirname "$0")/jobs
mkdir -p "$jobs"
echo "$1 $2" >> "$jobs/../log"
case $1 in
submit)
    rm -f "$jobs/$2"
    setsid sh -c 'echo $$ > "$0.new"; mv "$0.new" "$0"; eval "$1" > /dev/null 2> "$0.err" < /dev/null; rm -f "$0"' \
        "$jobs/$2" "$3" > /dev/null 2>&1 < /dev/null &
    while [ ! -e "$jobs/$2" ] && kill -0 $! 2> /dev/null; do sleep 0.01; done ;;
list)
    for job in "$jobs"/forkhestra-*; do
        case $job in *.err) continue ;; esac
        [ -e "$job" ] && kill -0 "$(cat "$job")" 2> /dev/null && echo "$(basename "$job") RUNNING"
    done
    true ;;
cancel) kill -TERM "-$(cat "$jobs/$2")" ;;
esac
"#;

/// Makes a place with tasks and the engine `cluster`.
pub(crate) fn cluster(tasks: u32, worker: &str, more: &str) -> Place {
    let place = place(tasks, worker, "ls file-*.txt > /dev/null");
    fs::create_dir_all(place.path("cluster")).unwrap();
    let script = place.path("cluster/engine.sh");
    fs::write(&script, ENGINE).unwrap();
    let script = script.display();
    let program = env!("CARGO_BIN_EXE_forkhestra");
    let engine = format!(
        r#""engines": {{ "cluster": {{
            "submit": ["sh", "{script}", "submit", "${{JOB}}", "${{WORK}}"],
            "list": ["sh", "{script}", "list"],
            "cancel": ["sh", "{script}", "cancel", "${{JOB}}"],
            "program": "{program}", "poll": "100ms"{more}
        }} }}"#
    );
    place.config(&format!("{{{CHAINS}, {engine}}}"));
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "-m", "engine"]);
    place
}

/// What the engine was asked to do, as `COMMAND JOB` lines.
fn log(place: &Place) -> String {
    fs::read_to_string(place.path("cluster/log")).unwrap_or_default()
}

/// How many jobs were submitted for tasks.
fn submitted(place: &Place) -> usize {
    log(place).lines().filter(|line| line.starts_with("submit") && !line.contains("verify")).count()
}

#[test]
fn tasks_run_on_an_engine_and_land_verified_with_their_runs_in_the_journal() {
    let place = cluster(3, WRITES, "");
    let ran = place.run(&["task", "run", "--on", "cluster", "-j", "3"]);
    let words = ran.code(0).words();
    assert!(words.starts_with("● batch 1 begins on cluster: 3 tasks, 3 lanes, verified by check"), "{words}");
    assert!(words.contains("3 of 3 tasks landed ("), "{words}");
    assert_line_is_green(&place);
    assert!(place.run(&["diff", "1", "--stat"]).code(0).stdout.contains("file-3.txt"));
    // Each run is whole in the journal of the root.
    assert!(place.run(&["runs", "log", "2"]).code(0).stdout.contains("worker"));
    assert!(place.run(&["task", "show", "1"]).stdout.contains("completed"));
    let staged = place.work(".forkhestra/hub.git/staging");
    assert_eq!(fs::read_dir(staged).map_or(0, Iterator::count), 0);
    let events = place.events(1);
    let claims = events.iter().filter(|event| event["event"]["event"]["type"] == "unitClaimed").count();
    assert!(claims >= 3, "{events:?}");
    assert!(words.contains("1 is at work on "), "{words}");
}

/// A cluster with one task, whose worker needs three iterations and waits in the third one for the file `go`.
fn slow_cluster(more: &str) -> Place {
    let place = cluster(1, "", more);
    let config = place.read("forge/chains.json");
    place.config(&config.replace(r#"{ "agent": "worker" }"#, r#"{ "agent": "worker", "iterations": 9 }"#));
    git(&place, &["commit", "-q", "-a", "-m", "loop"]);
    let (up, go) = (place.path("tmp/up"), place.path("tmp/go"));
    let works = format!(
        "sh echo $FORKHESTRA_ITERATION >> file-1.txt\n\
         sh [ $(wc -l < file-1.txt) -ge 3 ] && echo FORKHESTRA_COMPLETE && touch {0} && while [ ! -e {1} ]; do sleep 0.02; done",
        up.display(),
        go.display()
    );
    place.agent("worker", &works);
    place
}

const ONE: [&str; 6] = ["task", "run", "--on", "cluster", "-j", "1"];

/// Lets the worker of a slow cluster end.
fn go(place: &Place) {
    fs::write(place.path("tmp/go"), "").unwrap();
}

/// The process group of the only job.
fn job(place: &Place) -> String {
    let jobs = fs::read_dir(place.path("cluster/jobs")).unwrap().flatten().map(|entry| entry.path());
    let mut jobs: Vec<_> = jobs.filter(|path| path.extension().is_none()).collect();
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    fs::read_to_string(jobs.pop().unwrap()).unwrap().trim().to_string()
}

#[test]
fn a_job_that_is_killed_is_replaced_by_one_that_continues_after_the_last_attempt_that_ended() {
    let place = slow_cluster("");
    let run = place.start(&ONE);
    place.wait_for(&place.path("tmp/up"));
    send("KILL", &format!("-{}", job(&place)));
    go(&place);
    let ran = run.end();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("its job is no longer known to cluster"), "{}", ran.stderr);
    assert_eq!((submitted(&place), place.calls("worker")), (2, 4), "{}", log(&place));
    assert!(hub(&place, &["show", "forkhestra/line:file-1.txt"]).starts_with("1\n2\n3"));
}

#[test]
fn ctrl_c_ends_the_jobs_and_resume_continues_their_units() {
    let place = slow_cluster("");
    let run = place.start(&ONE);
    place.wait_for(&place.path("tmp/up"));
    let ran = run.end_by("INT");
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(log(&place).contains("cancel forkhestra-"), "{}", log(&place));
    go(&place);
    let ran = place.run(&["resume"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!((submitted(&place), place.calls("worker")), (2, 4), "{}", log(&place));
    assert!(hub(&place, &["show", "forkhestra/line:file-1.txt"]).starts_with("1\n2\n3"));
}

#[test]
fn jobs_outlive_a_batch_that_is_killed_or_whose_terminal_is_closed_and_resume_follows_them() {
    for (signal, code) in [("KILL", None), ("HUP", Some(129))] {
        let place = slow_cluster("");
        let run = place.start(&ONE);
        place.wait_for(&place.path("tmp/up"));
        assert_eq!(run.end_alone_by(signal), code);
        assert!(!job(&place).is_empty());
        let resumed = place.start(&["resume"]);
        place.wait_for_event(1, "runResumed");
        go(&place);
        let ran = resumed.end();
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!((submitted(&place), place.calls("worker")), (1, 3), "{signal}: {}", log(&place));
        assert!(hub(&place, &["show", "forkhestra/line:file-1.txt"]).starts_with("1\n2\n3"));
    }
}

#[test]
fn a_unit_that_is_handed_over_while_resume_lists_the_jobs_is_not_submitted_again() {
    let place = slow_cluster("");
    let run = place.start(&ONE);
    place.wait_for(&place.path("tmp/up"));
    assert_eq!(run.end_alone_by("KILL"), None);
    // The list is made once the job has ended.
    let go = place.path("tmp/go").display().to_string();
    let ends = format!("list)\n    touch {go}; while ls \"$jobs\" | grep -q '1-1-1$'; do sleep 0.01; done");
    fs::write(place.path("cluster/engine.sh"), ENGINE.replace("list)", &ends)).unwrap();
    let ran = place.run(&["resume"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!((submitted(&place), place.calls("worker")), (1, 3), "{}", log(&place));
}

#[test]
fn a_unit_that_has_used_up_its_share_of_a_limit_continues_in_another_job() {
    let place = slow_cluster("");
    go(&place);
    // It has one of two lanes, so that it gets half of the attempts first.
    let ran = place.run(&["task", "run", "--on", "cluster", "-j", "2", "--limit", "attempts=6"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("has used up its share of the limit attempts"), "{}", ran.stderr);
    assert_eq!(place.calls("worker"), 3);
}

#[test]
fn runs_come_back_whole_from_workers_that_reach_the_hub_by_its_url() {
    let mut place = cluster(2, WRITES, r#", "hub": "${env:HUB}""#);
    place.set("HUB", &format!("file://{}", place.work(".forkhestra/hub.git").display()));
    place.run(&["task", "run", "--on", "cluster", "-j", "2"]).code(0);
    for run in ["2", "3"] {
        assert!(place.run(&["runs", "show", run]).code(0).stdout.contains("complete"));
        assert!(place.run(&["runs", "log", run]).code(0).stdout.contains("worker"));
    }
}

#[test]
fn workers_fetch_units_by_themselves_from_an_engine_without_commands() {
    let place = cluster(2, WRITES, "");
    let run = place.start(&["task", "run", "--on", "workers", "-j", "2"]);
    let made = place.work(".forkhestra/hub.git").display().to_string();
    place.wait_for(&place.work(".forkhestra/hub.git/refs/forkhestra/units/1-2-1"));
    // Two units and their verification, by three workers in turn.
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while place.events(1).iter().all(|event| event["event"]["type"] != "runFinished") {
        place.beside(&["work", "--next", "--hub", &made]);
        assert!(std::time::Instant::now() < deadline);
    }
    let ran = run.end();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_line_is_green(&place);
}

#[test]
fn a_batch_whose_project_is_removed_ends_and_says_so() {
    let mut place = cluster(1, WAITS, "");
    place.set("FORKHESTRA_TEST_LOOK_MS", "50");
    let log = place.path("tmp/batch.log");
    let mut batch = place.command(&["task", "run", "--on", "workers"]);
    let mut batch = batch.stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
    let made = place.work(".forkhestra/hub.git");
    place.wait_for(&made.join("refs/forkhestra/units/1-1-1"));
    let worker = place.start(&["work", "--next", "--hub", &made.display().to_string()]);
    // Now the batch only waits.
    place.until(|| place.events(1).iter().any(|event| event["event"]["event"]["type"] == "unitClaimed"));
    // At once: a hub that is half removed is another error.
    fs::rename(place.work(".forkhestra"), place.path("tmp/removed")).unwrap();
    place.until(|| is_dead(&batch.id().to_string()));
    let code = batch.wait().unwrap().code();
    let words = fs::read_to_string(&log).unwrap();
    assert!(code == Some(1) && words.contains("was removed during the run"), "{code:?} {words}");
    fs::write(place.path("tmp/go"), "").unwrap();
    worker.end().code(69);
}

#[test]
fn a_job_that_cannot_be_submitted_stops_its_task_and_says_what_the_engine_said() {
    let place = cluster(1, WRITES, r#", "submit": ["sh", "-c", "echo no partition >&2; exit 1", "${WORK}"]"#);
    let config = place.read("forge/chains.json");
    let first = config.find(r#""submit": ["sh", "$"#).or_else(|| config.find(r#""submit": ["sh", "/"#)).unwrap();
    let end = config[first..].find("],").unwrap() + first + 2;
    place.config(&format!("{}{}", &config[..first], &config[end..]));
    git(&place, &["commit", "-q", "-a", "-m", "broken"]);
    let ran = place.run(&ONE);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("! 1  its job could not be submitted: sh: no partition"), "{}", ran.stderr);
    assert!(ran.stderr.contains("next: forkhestra runs show 1\n"), "its run has nothing to show: {}", ran.stderr);
    assert!(place.run(&["resume", "2"]).code(2).stderr.contains("resume/batch"));
    assert!(place.run(&["task", "land"]).code(2).stderr.contains("land/nothing"));
    let listed = place.run(&["runs"]);
    assert!(!listed.code(0).stdout.contains("verify:"), "{}", listed.stdout);
}

#[test]
fn a_job_whose_program_says_nothing_is_not_submitted_and_a_message_names_its_program_once() {
    for (command, said) in [
        (r#"["false", "${WORK}"]"#, "`false` exited with code 1 and printed no error"),
        (r#"["sh", "-c", "echo sh: fatal >&2; exit 1", "${WORK}"]"#, "submitted: sh: fatal"),
    ] {
        let place = cluster(1, WRITES, "");
        place.config(&format!(r#"{{{CHAINS}, "engines": {{ "cluster": {{ "submit": {command} }} }} }}"#));
        git(&place, &["commit", "-q", "-a", "-m", "broken"]);
        let ran = place.run(&ONE);
        assert!(ran.code(1).stderr.contains(said), "{}", ran.stderr);
    }
}

#[test]
fn a_dry_run_on_an_engine_shows_the_engine_its_hub_and_its_command() {
    let place = cluster(1, WRITES, r#", "hub": "ssh://login/shop/.forkhestra/hub.git""#);
    let dry = ["task", "run", "--on", "cluster", "-j", "2", "--dry-run"];
    let words = place.run(&dry).code(0).stdout.clone();
    assert!(words.contains("  engine       cluster\n  hub          ssh://login/shop/.forkhestra/hub.git\n"), "{words}");
    assert!(words.contains("engine.sh submit '${JOB}' '${WORK}'\n"), "{words}");
    assert!(!words.contains("workspaces"), "{words}");
    crate::answers::check("batch-plan", &place.run(&[&dry[..], &["--json"]].concat()).code(0).stdout);
    let words = place.run(&["task", "run", "--on", "workers", "--dry-run"]).code(0).stdout.clone();
    assert!(words.contains("submit       nothing; the workers are your own: "), "{words}");
    assert!(!place.work(".forkhestra/hub.git").exists());
}

#[test]
fn an_engine_is_refused_with_all_errors_before_anything_starts() {
    let mut place = cluster(1, WRITES, "");
    let ran = place.run(&["task", "run", "--on", "clustr"]);
    assert!(ran.code(2).stderr.contains("there is no engine `clustr`"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("did you mean `cluster`? engines: cluster, slurm, temporal, workers"),
        "{}",
        ran.stderr
    );
    let broken = r#"{ "submit": ["sbatch"], "hub": "ssh://host/hub.git" }"#;
    let copy = r#""workspace": { "copy": [".env"] }"#;
    place.config(&format!(r#"{{{CHAINS}, {copy}, "engines": {{ "cluster": {broken} }} }}"#));
    place.write(".gitignore", ".env\n").write(".env", "A=b\n");
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "-m", "broken"]);
    place.set("SHOP_API_KEY", "sk-4711-4711");
    place.run(&["task", "add", "Call the shop with sk-4711-4711"]).code(0);
    let ran = place.run(&["task", "run", "--on", "cluster"]);
    for code in ["engine/no-work", "engine/files", "engine/secret"] {
        assert!(ran.code(2).stderr.contains(code), "{code}: {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("sk-4711"), "{}", ran.stderr);
    assert!(place.run(&["runs"]).stdout.contains("no run"), "{}", ran.stderr);
}
