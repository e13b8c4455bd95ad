//! Random nights from a seed: eight tasks, an agent to which everything happens that can happen in a night, and a
//! person who restarts what was killed. Only a few here; `FORKHESTRA_NIGHTS=200 cargo test --test it any_night --
//! --nocapture` runs more.

use crate::support::{Place, try_send};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

const TASKS: usize = 8;
/// The cost of an attempt that works, in cents.
const PRICE: u32 = 10;
/// A night that needs more starts than this has failed.
const MOST_STARTS: u32 = 60;

/// A small random number generator (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % most
    }

    /// Returns true with a probability of one in `many`.
    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

fn error(words: &str, more: &str) -> String {
    format!("print {{\"type\":\"result\",\"result\":\"{words}\",\"is_error\":true{more}}}\nexit 1")
}

/// Returns a script for something that happens instead of work. None of it may be charged.
fn incident(dice: &mut Dice) -> String {
    match dice.below(7) {
        0 => error("API Error: 500 overheated", r#","api_error_status":500"#),
        1 => error("API Error: Unable to connect to API (ECONNREFUSED)", ""),
        2 => error("Overloaded", r#","api_error_status":529"#),
        3 => error("You've hit your session limit · resets 3am (UTC)", ""),
        4 => error("limit reached, try again in 2 hours 5 minutes", r#","api_error_status":429"#),
        // It prints nothing after its start.
        5 => "hang".into(),
        _ => error("terminated", ""),
    }
}

const INIT: &str = r#"print {"type":"system","subtype":"init","session_id":"s"}"#;

/// Returns a script that works. Work is charged, also if its stream stalls halfway.
fn work() -> String {
    format!(
        "{INIT}\nsh date +%N > work-$FORKHESTRA_TASK\nprint {{\"type\":\"result\",\"result\":\"done\",\"is_error\":false,\"total_cost_usd\":0.{PRICE},\"usage\":{{\"input_tokens\":100}}}}"
    )
}

struct Night {
    place: Place,
    dice: Dice,
    slept: PathBuf,
    incidents: usize,
    kills: u32,
    starts: u32,
}

impl Night {
    fn new(seed: u64) -> Self {
        let (mut place, mut dice) = (Place::new(), Dice(seed));
        let slept = place.path("tmp/slept");
        place.set("FORKHESTRA_TEST_WAIT_MS", "5");
        place.set("FORKHESTRA_TEST_SLEPT_FILE", &slept.display().to_string());
        place.config(
            // A limit that ends at three may end tomorrow, and the next one a day later.
            r#"{"limits": {"wait": "400h"}, "backends": {"mine": {"program": "mine", "output": "claude-stream", "startTimeout": "250ms", "maxCost": ["--budget", "{}"],
                                      "permissions": {"edit": {}}}},
                "agents": {"c": {"backend": "mine", "idleTimeout": "400ms"}, "j": {"command": "j", "role": "judge"}},
                "chains": {"task": {"steps": [{"group": [{"agent": "c"}, {"agent": "j"}], "iterations": 3}]}}}"#,
        );
        let (mut blocks, mut incidents, mut stalls) = (Vec::new(), 0, 0);
        for _ in 0..TASKS {
            // Three silent starts in a row are one failure, two are not.
            for _ in 0..dice.below(3) {
                blocks.push(incident(&mut dice));
                incidents += 1;
            }
            if stalls < 3 && dice.one_in(4) {
                blocks.push(format!("{INIT}\nhang"));
                stalls += 1;
            }
            blocks.push(work());
        }
        blocks.push(work());
        place.agent("mine", &blocks.join("\nnext\n")).agent("j", "print VERDICT: approve");
        for task in 1..=TASKS {
            place.run(&["task", "add", &format!("Task {task}")]).code(0);
        }
        Self { place, dice, slept, incidents, kills: 0, starts: 0 }
    }

    /// Starts the program, and perhaps kills all of it or lets the machine sleep while it runs.
    fn start(&mut self, arguments: &[&str]) -> Option<i32> {
        self.starts += 1;
        let mut command = self.place.command(arguments);
        let dies = !self.dice.one_in(4);
        if dies {
            command.env("FORKHESTRA_TEST_ABORT_AFTER_WRITES", (1 + self.dice.below(60)).to_string());
        }
        let log = fs::File::create(self.place.path("tmp/log")).unwrap();
        let mut child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        // Someone closes the lid at a random moment, after a given amount of output.
        if self.dice.one_in(4) {
            let printed = self.dice.below(3000);
            let log = self.place.path("tmp/log");
            while fs::metadata(&log).map_or(0, |log| log.len()) < printed && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            let before: u64 = fs::read_to_string(&self.slept).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
            fs::write(&self.slept, (before + 8 * 3_600_000).to_string()).unwrap();
        }
        let code = child.wait().unwrap().code();
        if code.is_none() || dies {
            self.kills += u32::from(code != Some(0));
            // Everything dies with it, also agents and lifelines.
            for process in self.place.processes() {
                let pid = process.trim_start_matches("/proc/").split(' ').next().unwrap_or_default().to_string();
                try_send("KILL", &pid);
            }
        }
        self.place.assert_nothing_is_left();
        code
    }

    fn open_tasks(&self) -> usize {
        let listed = self.place.run(&["task", "list", "--json"]);
        let tasks: serde_json::Value = serde_json::from_str(&listed.code(0).stdout).unwrap();
        tasks.as_array().unwrap().iter().filter(|task| task["status"] != "completed").count()
    }

    /// Returns every attempt that ended, of every run: its outcome, whether it was charged, and what it cost.
    fn ends(&self) -> Vec<(serde_json::Value, bool, f64)> {
        let runs: serde_json::Value =
            serde_json::from_str(&self.place.run(&["runs", "--json"]).code(0).stdout).unwrap();
        let mut ends = Vec::new();
        for run in runs.as_array().unwrap() {
            for event in self.place.events(run["id"].as_i64().unwrap()) {
                let event = &event["event"];
                if event["type"] == "attemptFinished" {
                    let is = event["outcome"]["type"].as_str().unwrap();
                    let charged = !matches!(is, "limited" | "unavailable" | "interrupted");
                    let cost = event["finished"]["tokens"]["costUsd"].as_f64().unwrap_or(0.0);
                    ends.push((event["outcome"].clone(), charged, cost));
                }
            }
        }
        ends
    }
}

/// Simulates one night; returns what was counted in it.
fn live(seed: u64) -> (usize, u32, u32) {
    let mut night = Night::new(seed);
    while night.open_tasks() > 0 {
        assert!(night.starts < MOST_STARTS, "seed {seed}: {}", log(&night));
        // After a restart, the interrupted run is resumed first, whatever its outcome.
        let resumed = night.start(&["resume", "--limit", "time=90h"]);
        assert_ne!(resumed, Some(101), "seed {seed}: a panic: {}", log(&night));
        // Charged incidents would exhaust the iterations of a task, which allow for work, a stall or two, and a judge.
        let code = night.start(&[
            "task",
            "run",
            "--all",
            "--limit-each",
            "attempts=7",
            "--limit",
            "cost=1",
            "--limit",
            "time=90h",
        ]);
        assert!(matches!(code, None | Some(0 | 2 | 134)), "seed {seed}: exit {code:?} of the queue: {}", log(&night));
    }
    let ends = night.ends();
    for (outcome, charged, _) in &ends {
        let worked = matches!(outcome["type"].as_str(), Some("completed" | "idle"));
        assert!(!charged || worked, "seed {seed}: charged: {outcome}");
    }
    // Eight tasks at ten cents each, plus the attempts that were killed after they had cost something: a dollar is
    // enough.
    let cost: f64 = ends.iter().map(|(.., cost)| cost).sum();
    assert!(cost < 0.1 * f64::from(u32::try_from(TASKS).unwrap() + night.kills) + 0.01, "seed {seed}: ${cost}");
    (night.incidents, night.kills, night.starts)
}

fn log(night: &Night) -> String {
    fs::read_to_string(night.place.path("tmp/log")).unwrap_or_default()
}

#[test]
fn all_tasks_of_any_night_end_within_their_budget_and_only_work_is_charged() {
    let nights = std::env::var("FORKHESTRA_NIGHTS").ok().and_then(|text| text.parse().ok()).unwrap_or(6_usize);
    let next = AtomicUsize::new(0);
    let lanes = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(4);
    let lived: Vec<(usize, u32, u32)> = std::thread::scope(|scope| {
        let lane = || {
            let mut lived = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= nights {
                    return lived;
                }
                lived.push(live(seed as u64));
            }
        };
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        lanes.into_iter().flat_map(|lane| lane.join().unwrap()).collect()
    });
    assert_eq!(lived.len(), nights);
    let sum = lived.iter().fold((0, 0, 0), |sum, night| (sum.0 + night.0, sum.1 + night.1, sum.2 + night.2));
    println!("{nights} nights: {} incidents, {} kills, {} starts", sum.0, sum.1, sum.2);
}
