//! Random `kill -9` of forkhestra, of its lifeline, or of both in any order, followed at once by a `resume` or a new
//! run: no orphans, no two agents at the same time, no step twice. Takes a few seconds here. `FORKHESTRA_KILLS=1000
//! cargo test --test it kills -- --nocapture` runs a thousand rounds.

use super::batch_faults::scenarios;
use super::soak::Chance;
use super::support::{LONG, Place, try_send};
use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The number of rounds without `FORKHESTRA_KILLS`.
const ROUNDS: u64 = 12;

/// Records which other agents are running, leaves a daemon and a child, and works for a moment.
const AGENT: &str = r#"
for other in $(ls "$ALIVE"); do
    state=$(sed -n 's/^State:[^A-Za-z]*//p' "/proc/$other/status" 2>/dev/null)
    case $state in ''|Z*|X*) rm -f "$ALIVE/$other" ;; *) echo "$other beside $$: $state" >> "$ALIVE/../overlaps" ;; esac
done
touch "$ALIVE/$$"
(setsid sleep 1000 &)
sleep 1000 &
sleep 0.0$((FORKHESTRA_STEP * 2))
rm -f "$ALIVE/$$"
"#;

fn start(place: &Place, words: &[&str]) -> Child {
    let mut command = place.command(words);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn lifelines(host: u32) -> Vec<String> {
    let children = fs::read_to_string(format!("/proc/{host}/task/{host}/children")).unwrap_or_default();
    // The host also has a holder of systemd's lock, which nothing continues once it was stopped.
    let is_lifeline = |pid: &&str| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        !line.contains("systemd-inhibit")
    };
    children.split_whitespace().filter(is_lifeline).map(str::to_string).collect()
}

/// Kills at random; returns what was killed, and how.
fn kill(chance: &mut Chance, child: &mut Child) -> &'static str {
    let host = child.id().to_string();
    let modes = ["host", "lifeline", "host lifeline", "lifeline host", "stopped lifeline", "stopped both", "none"];
    let mode = modes[usize::try_from(chance.next(modes.len() as u64)).unwrap()];
    let lifelines = lifelines(child.id());
    let all = |name: &str| lifelines.iter().for_each(|pid| try_send(name, pid));
    match mode {
        "host" => try_send("KILL", &host),
        "lifeline" => all("KILL"),
        "host lifeline" => {
            try_send("KILL", &host);
            all("KILL");
        }
        "lifeline host" => {
            all("KILL");
            try_send("KILL", &host);
        }
        "stopped lifeline" => {
            all("STOP");
            try_send("KILL", &host);
        }
        "stopped both" => {
            all("STOP");
            try_send("KILL", &host);
            all("KILL");
        }
        _ => {}
    }
    mode
}

fn ends(child: &mut Child, what: &str) {
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < LONG, "hangs: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Fails if a step was started again after the journal had it as complete.
pub(super) fn no_step_twice(place: &Place, what: &str) {
    let journal = forkhestra::journal::Journal::open(&place.work("")).unwrap();
    for row in journal.runs().all().unwrap() {
        let mut complete = BTreeSet::new();
        for event in place.events(row.id) {
            let (kind, at) = (&event["event"]["type"], &event["event"]["at"]["step"]);
            if *kind == "attemptPlanned" {
                assert!(!complete.contains(&at.as_u64()), "step {at} of run {} was done twice: {what}", row.id);
            }
            if *kind == "attemptFinished" && event["event"]["outcome"]["type"] == "completed" {
                complete.insert(at.as_u64());
            }
        }
    }
}

#[test]
fn kills_by_chance_leave_no_orphan_no_two_agents_at_once_and_no_step_twice() {
    let (rounds, seed) = scenarios("FORKHESTRA_KILLS", ROUNDS);
    let (mut chance, mut place) = (Chance(seed.max(1)), Place::new());
    let alive = place.path("tmp/alive");
    fs::create_dir(&alive).unwrap();
    place.set("ALIVE", alive.to_str().unwrap()).set("FORKHESTRA_TEST_GRACE_MS", "50");
    place.write("a.sh", AGENT);
    place.config(r#"{ "agents": { "a": { "command": ["sh", "a.sh"] } }, "chains": { "four": "a -> a -> a -> a" } }"#);
    for round in 0..rounds {
        let words = if chance.next(3) == 0 { vec!["four", "--wait"] } else { vec!["resume", "--wait"] };
        let mut child = start(&place, &words);
        std::thread::sleep(Duration::from_millis(chance.next(220)));
        let mode = kill(&mut chance, &mut child);
        let what = format!("seed {seed}, round {round}: {} after {mode}", words.join(" "));
        // A host that was not killed continues alongside the next one, which waits for it.
        if mode.contains("host") || mode.contains("stopped") {
            ends(&mut child, &what);
        } else if chance.next(2) == 0 {
            try_send("TERM", &child.id().to_string());
        }
        let mut next = start(&place, &["resume", "--wait"]);
        ends(&mut child, &what);
        ends(&mut next, &what);
        let overlaps = fs::read_to_string(place.path("tmp/overlaps")).unwrap_or_default();
        assert_eq!(overlaps, "", "two agents at once: {what}");
        if round % 50 == 49 || round + 1 == rounds {
            no_step_twice(&place, &what);
        }
    }
    // The next run stops whatever the last kill left running.
    assert_eq!(place.run(&["four"]).code, Some(0), "seed {seed}");
}
