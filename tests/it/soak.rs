//! Random hostile agents and random signals: no orphans, no hangs, no lost markers. Takes a few seconds here, and five
//! minutes with `FORKHESTRA_SOAK_SECONDS=300 cargo test --test it soak -- --nocapture`. `FORKHESTRA_SOAK_SEED` sets the
//! seed.

use super::support::{LONG, Place, Ran, Running};
use std::time::{Duration, Instant};

/// A random number generator: xorshift64*, which is small and the same everywhere.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % below
    }

    pub(super) fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[usize::try_from(self.next(of.len() as u64)).unwrap()]
    }
}

/// Returns the script of a random agent, and whether it prints its marker on a line of its own and succeeds.
fn agent(chance: &mut Chance, place: &Place) -> (String, bool) {
    let file = |name: &str| place.path(&format!("tmp/{name}")).display().to_string();
    let mut lines = Vec::new();
    for _ in 0..chance.next(4) {
        lines.push(match chance.next(12) {
            0 => "ignore INT".into(),
            1 => "ignore TERM".into(),
            2 => "ignore HUP".into(),
            3 => format!("flood {}", chance.next(3_000_000)),
            4 => format!("child {}", file("child")),
            5 => format!("quiet-child {}", file("quiet")),
            6 => format!("daemon {}", file("daemon")),
            7 => "sh (setsid sh -c 'while :; do echo flood; done' &) ; sleep 0.05".into(),
            8 => "sh trap '' INT TERM HUP; sleep 0.1 & wait; sleep 0.05".into(),
            9 => "hex ff fe 00 0d 0a".into(),
            10 => "sh for i in 1 2 3 4 5; do (sleep 100 &) ; done".into(),
            _ => format!("sh sleep 0.{}", chance.next(3)),
        });
    }
    let end =
        chance.one(&["marker", "marker", "marker", "print no marker", "exit 3", "die SEGV", "hang", "marker\nhang"]);
    // The output of a flooding daemon may split a line, so the marker comes after a newline of its own.
    lines.push(if end.starts_with("marker") { format!("print \n{end}") } else { end.into() });
    (lines.join("\n"), end == "marker")
}

fn ends(mut running: Running<'_>, what: &str) -> Ran {
    let begun = Instant::now();
    while running.child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < LONG, "hangs: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
    running.end()
}

fn round(seed: u64) {
    let mut chance = Chance(seed.max(1));
    let mut place = Place::new();
    place.set("FORKHESTRA_TEST_GRACE_MS", "50").set("FORKHESTRA_TEST_LINGER_MS", "100");
    let (script, completes) = agent(&mut chance, &place);
    place.agent("a", &script);
    let what = format!("seed {seed}\n{script}");
    let mut command = place.command(&["-q", "a:1", "--timeout", "3s", "--idle-timeout", "2s"]);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let running = Running::of(command.spawn().unwrap(), &place);
    let signal = chance.one(&["", "", "", "INT", "TERM", "HUP", "KILL", "TSTP", "INT INT", "lifeline"]);
    std::thread::sleep(Duration::from_millis(chance.next(120)));
    match signal {
        "" => {}
        "TSTP" => {
            running.try_signal("TSTP");
            std::thread::sleep(Duration::from_millis(chance.next(60)));
            running.try_signal("CONT");
        }
        "INT INT" => {
            running.try_signal("INT");
            std::thread::sleep(Duration::from_millis(chance.next(20)));
            running.try_signal("INT");
        }
        "lifeline" => {
            let lifelines = place.processes().into_iter().filter(|line| line.contains("__lifeline"));
            for pid in lifelines.filter_map(|line| line.split(['/', ' ']).nth(2).map(str::to_string)) {
                super::support::try_send("KILL", &pid);
            }
        }
        signal => running.try_signal(signal),
    }
    let ran = ends(running, &format!("{what}\nsignal {signal}"));
    if completes && (signal.is_empty() || signal == "TSTP") {
        assert_eq!(ran.code, Some(0), "{what}\nsignal {signal}: the marker was lost");
    }
    if signal != "KILL" && place.work(".forkhestra/state.db").exists() && ran.code != Some(2) {
        let last = place.events(1).pop();
        // If the default action of a signal ended it before the run began, there are no events.
        assert!(ran.code.is_none() || last.is_some_and(|last| last["event"]["type"] == "runFinished"), "{what}");
    }
}

#[test]
fn hostile_agents_and_signals_by_chance_leave_nothing_hang_nothing_and_lose_no_marker() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (long, first) = (number("FORKHESTRA_SOAK_SECONDS").unwrap_or(4), number("FORKHESTRA_SOAK_SEED"));
    let begun = Instant::now();
    let mut seed = first.unwrap_or_else(|| std::process::id().into());
    let mut rounds = 0;
    while begun.elapsed() < Duration::from_secs(long) {
        round(seed);
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        rounds += 1;
    }
    assert!(rounds > 0);
    println!("{rounds} rounds; the next seed is {seed}");
}
