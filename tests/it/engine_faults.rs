//! Random faults in a batch on an engine: the batch, its jobs and its agents are killed or stopped, a machine has the
//! wrong time or a full disk, and the network to the hub fails before and after the last byte. After each scenario an
//! oracle checks what has to hold at any time. `FORKHESTRA_ENGINE_FAULTS=500 cargo test --test it engine_faults --
//! --nocapture` runs 500 scenarios.

use crate::batch::{hub, user_git};
use crate::batch_faults::{all_is_well, ends, process, project, scenarios, start, until_all_have_landed};
use crate::engines::ENGINE;
use crate::soak::Chance;
use crate::support::{Place, try_send};
use forkhestra::engine::{BatchEvent, EventKind, RunKind};
use forkhestra::hub::Hub;
use forkhestra::journal::Journal;
use std::collections::HashMap;
use std::fs;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::Duration;

/// The number of scenarios without `FORKHESTRA_ENGINE_FAULTS`.
const ROUNDS: u64 = 2;

/// The program of a job. There are two machines, with a home each. The clock of one is months behind and stands still.
/// The file `full` has how large a file may become on the machine of the next job, in blocks of 512 bytes: then its
/// disk is full (`setrlimit(2)`, `RLIMIT_FSIZE`).
const MACHINE: &str = r#"#!/bin/sh
cluster=$(dirname "$0")
number=$(($$ % 2))
unset XDG_CACHE_HOME XDG_CONFIG_HOME XDG_STATE_HOME
export HOME="$cluster/machine-$number" GIT_SSH_COMMAND="sh $cluster/ssh"
mkdir -p "$HOME"
if [ $number = 1 ]; then
    export FORKHESTRA_TEST_STILL_CLOCK=1 GIT_COMMITTER_DATE='2001-01-01T00:00:00Z' GIT_AUTHOR_DATE='2001-01-01T00:00:00Z'
fi
if mv "$cluster/full" "$cluster/full.$$" 2> /dev/null; then
    read -r blocks < "$cluster/full.$$"
    trap '' XFSZ
    ulimit -f "$blocks"
fi
exec "$FORKHESTRA" "$@"
"#;

/// The network: runs on this machine what it is told to run on the other one. The file `net` has what happens to the
/// next connection: all but its first bytes are lost, on the way there or back; or the answer to a push is lost after
/// the hub has taken it. While there is a file `down`, there is no network.
const NETWORK: &str = r#"
cluster=$(dirname "$0")
shift
[ ! -e "$cluster/down" ] || { echo "ssh: connect to host hub port 22: No route to host" >&2; exit 255; }
if mv "$cluster/net" "$cluster/net.$$" 2> /dev/null; then read -r kind bytes < "$cluster/net.$$"; fi
case $kind in
there) dd bs=1 count="$bytes" 2> /dev/null | sh -c "$*" ;;
back) sh -c "$*" | { dd bs=1 count="$bytes" 2> /dev/null; kill -KILL $$; } ;;
answer)
    case $* in
    *receive-pack*) ;;
    *) mv "$cluster/net.$$" "$cluster/net"; exec sh -c "$*" ;;
    esac
    refs=$(sh -c "$(echo "$*" | sed 's/receive-pack /receive-pack --http-backend-info-refs /')" | wc -c)
    sh -c "$*" | head -c "$refs" ;;
*) exec sh -c "$*" ;;
esac
exit 255
"#;

/// The text of the engine in the config.
fn engine(place: &Place) -> String {
    let cluster = place.path("cluster");
    fs::create_dir_all(&cluster).unwrap();
    for (name, text) in [("engine.sh", ENGINE), ("machine", MACHINE), ("ssh", NETWORK)] {
        fs::write(cluster.join(name), text).unwrap();
    }
    let (cluster, url) = (cluster.display(), place.work(".forkhestra/hub.git"));
    format!(
        r#", "engines": {{ "cluster": {{
            "submit": ["sh", "{cluster}/engine.sh", "submit", "${{JOB}}", "sh {cluster}/${{WORK}}"],
            "list": ["sh", "{cluster}/engine.sh", "list"],
            "cancel": ["sh", "{cluster}/engine.sh", "cancel", "${{JOB}}"],
            "program": "machine", "hub": "builder:{}", "poll": "100ms"
        }} }}"#,
        url.display()
    )
}

/// Makes a random fault, and returns what it was.
fn fault(place: &Place, chance: &mut Chance, host: &Child) -> String {
    let id = host.id().to_string();
    let kind = chance.one(&[
        "host",
        "interrupt",
        "hangup",
        "job",
        "worker",
        "lifeline",
        "agent",
        "pause worker",
        "pause host",
        "pack",
        "down",
        "there",
        "back",
        "answer",
        "answer",
        "full",
    ]);
    let net = |line: String| {
        let (new, path) = (place.path("cluster/net.new"), place.path("cluster/net"));
        fs::write(&new, line).unwrap();
        fs::rename(new, path).unwrap();
    };
    let mut send = |words: &str, signal: &str| {
        let pid = process(place, chance, words);
        if let Some(pid) = &pid {
            try_send(signal, pid);
        }
        pid
    };
    match kind {
        "host" => try_send("KILL", &id),
        "interrupt" => try_send("INT", &id),
        "hangup" => try_send("HUP", &id),
        "job" => drop(send("cluster/jobs", "KILL")),
        "worker" => drop(send("work --hub", "KILL")),
        "lifeline" => drop(send("__lifeline", "KILL")),
        "agent" => drop(send("work.sh", "KILL")),
        "pause worker" => {
            let pid = send("work --hub", "STOP");
            sleep(Duration::from_millis(chance.next(1500)));
            if let Some(pid) = &pid {
                try_send("CONT", pid);
            }
        }
        "pause host" => {
            try_send("TSTP", &id);
            sleep(Duration::from_millis(150));
            try_send("CONT", &id);
        }
        "pack" => {
            let path = place.work(".forkhestra/hub.git").display().to_string();
            drop(Command::new("git").args(["--git-dir", &path, "repack", "-a", "-d", "-q"]).output());
        }
        "down" => {
            fs::write(place.path("cluster/down"), "").unwrap();
            sleep(Duration::from_millis(chance.next(800)));
            fs::remove_file(place.path("cluster/down")).unwrap();
        }
        "full" => fs::write(place.path("cluster/full"), format!("{}\n", 1 + chance.next(1500))).unwrap(),
        kind => net(format!("{kind} {}\n", chance.next(4000))),
    }
    kind.to_string()
}

/// What a unit's run has reported at each commit of its ref is the beginning of what it has reported at the next one.
fn no_event_is_taken_back(place: &Place, what: &str) {
    for name in hub(place, &["for-each-ref", "--format=%(refname)", "refs/forkhestra/units"]).lines() {
        let commits = hub(place, &["log", "--first-parent", "--reverse", "--format=%H %s", name]);
        let mut before = String::new();
        for commit in commits.lines().filter_map(|line| line.split_once(" unit ").map(|(commit, _)| commit)) {
            let has_run = hub(place, &["ls-tree", "--name-only", commit]).contains("events.ndjson");
            if !has_run {
                continue;
            }
            let events = hub(place, &["show", &format!("{commit}:events.ndjson")]);
            // Each journal numbers its runs, and each worker chooses the directory of its workspace.
            let now: String =
                events.lines().filter_map(|line| line.split_once(r#""seq""#)).map(|(_, rest)| rest).collect();
            let (first, rest) = now.split_once(r#""root":""#).unwrap();
            let now = first.to_string() + rest.split_once('"').unwrap().1;
            assert!(now.starts_with(&before), "{name}, {commit}:\n{before}\n\n{now}\n({what})");
            before = now;
        }
    }
}

/// The journal has of each unit whose result was taken all that its run has reported.
fn all_events_have_arrived(place: &Place, what: &str) {
    let (made, journal) = (Hub::at(&place.work(".forkhestra/hub.git")), Journal::open(&place.work("")).unwrap());
    let batches = journal.runs().all().unwrap().into_iter().filter(|row| row.kind == RunKind::Batch);
    let mut runs = HashMap::new();
    for event in batches.flat_map(|row| journal.events().of(row.id).unwrap()) {
        match event.event {
            EventKind::Batch { event: BatchEvent::UnitStarted { unit, run, .. } } => {
                runs.insert(unit, (run, false));
            }
            EventKind::Batch { event: BatchEvent::UnitEnded { unit, work: Some(_), exit: Some(_), .. } } => {
                runs.entry(unit).and_modify(|(_, is_taken)| *is_taken = true);
            }
            _ => {}
        }
    }
    for (unit, (run, _)) in runs.into_iter().filter(|(_, (_, is_taken))| *is_taken) {
        let found = made.units().get(&unit).unwrap().unwrap();
        let reported = made.kept().run(&found).map_or(0, |(_, events)| events.lines().count());
        assert_eq!(journal.events().of(run).unwrap().len(), reported, "unit {unit}, run {run} ({what})");
    }
}

fn round(seed: u64) {
    let mut chance = Chance(seed.max(1));
    let tasks = 2 + chance.next(3);
    let mut place = project(tasks, &mut chance, engine);
    place.set("FORKHESTRA", env!("CARGO_BIN_EXE_forkhestra"));
    let before = user_git(&place);
    let jobs = (1 + chance.next(4)).to_string();
    let all = ["task", "run", "--on", "cluster", "-j", jobs.as_str()];
    let mut what = format!("seed {seed}, {tasks} tasks, {jobs} lanes:");
    let mut child = start(&place, &all);
    for _ in 0..chance.next(6) {
        sleep(Duration::from_millis(chance.next(700)));
        let kind = fault(&place, &mut chance, &child);
        what = format!("{what} {kind},");
        let is_over = child.try_wait().unwrap().is_some();
        if is_over || ["host", "interrupt", "hangup"].contains(&kind.as_str()) {
            ends(&place, &mut child, &what);
            child = start(&place, &["resume", "--wait"]);
        }
    }
    ends(&place, &mut child, &what);
    what = until_all_have_landed(&place, tasks, &all, what);
    all_is_well(&place, tasks, &what);
    no_event_is_taken_back(&place, &what);
    all_events_have_arrived(&place, &what);
    assert!(before == user_git(&place), "the user's .git has changed ({what})");
}

#[test]
fn faults_by_chance_on_an_engine_lose_no_work_and_count_each_result_once() {
    let (rounds, seed) = scenarios("FORKHESTRA_ENGINE_FAULTS", ROUNDS);
    for scenario in 0..rounds {
        println!("scenario {scenario}: seed {}", seed + scenario);
        round(seed + scenario);
    }
}
