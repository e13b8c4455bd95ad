//! Random faults in a batch: kill -9 of the batch, of a lane, of a lifeline or of an agent, signals, a paused lane, a
//! hub that is packed meanwhile. After each scenario an oracle checks what has to hold at any time. Takes a few seconds
//! here; `FORKHESTRA_BATCH_FAULTS=500 cargo test --test it batch_faults -- --nocapture` runs 500 scenarios.

use crate::batch::{assert_line_is_green, hub, user_git};
use crate::kills::no_step_twice;
use crate::soak::Chance;
use crate::support::{LONG, Place, git, try_send};
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The number of scenarios without `FORKHESTRA_BATCH_FAULTS`.
const ROUNDS: u64 = 3;

/// The longest time until a batch ends. A scenario takes about eight seconds alone, and more among others.
const HANGS: Duration = LONG.saturating_mul(6);

/// Odd tasks edit the same file. Tasks 2 and 4 pass their check alone and fail it together. Each leaves a daemon.
const WORK: &str = r#"
echo "begin $FORKHESTRA_TASK" >> "$CALLS"
(setsid sleep 1000 &)
me=$FORKHESTRA_TASK
if grep -q '<<<<<<<' shared.txt; then
    grep -v '^[<=>|]\{7\}' shared.txt > shared.new; mv shared.new shared.txt
elif [ $((me % 2)) = 1 ] && ! grep -q "line of $me" shared.txt; then
    echo "line of $me" >> shared.txt
fi
sleep 0.0$((me * 3 % 10))
echo work > "file-$me.txt"
if [ -e file-2.txt ] && [ -e file-4.txt ]; then touch both; fi
echo "end $FORKHESTRA_TASK" >> "$CALLS"
"#;

const CHECK: &str = "! grep '<<<<<<<' shared.txt || exit 1\n\
    if [ -e file-2.txt ] && [ -e file-4.txt ] && [ ! -e both ]; then echo 'error: 2 beside 4'; exit 1; fi\n";

/// Approves all work. Of several tries at a task, it chooses the last one.
const JUDGE: &str = r#"
if [ -n "$FORKHESTRA_TASK" ]; then echo "VERDICT: approve"; exit; fi
printf '%s\n' "$1" | sed -n 's/^## Try \([0-9]\).*/CHOICE: \1/p' | tail -1
"#;

/// Makes a place with tasks. `more` is further text of its config, after a comma.
pub(crate) fn project(tasks: u64, chance: &mut Chance, more: impl Fn(&Place) -> String) -> Place {
    let mut place = Place::new();
    let calls = place.path("tmp/calls").display().to_string();
    place.set("CALLS", &calls).set("FORKHESTRA_TEST_GRACE_MS", "50");
    let more = more(&place);
    place
        .config(&format!(
            r#"{{ "agents": {{ "worker": {{ "command": ["sh", "work.sh"] }},
                               "judge": {{ "command": ["sh", "judge.sh"], "role": "judge" }} }},
                  "checks": {{ "check": "sh check.sh" }},
                  "chains": {{ "task": "worker -> check", "judged": "worker -> check -> judge" }}{more} }}"#
        ))
        .write("work.sh", WORK)
        .write("check.sh", CHECK)
        .write("judge.sh", JUDGE)
        .write("shared.txt", "base\n");
    git(&place, &["init", "-q", "-b", "main"]);
    for (key, value) in [("user.name", "n"), ("user.email", "a@b.c")] {
        git(&place, &["config", key, value]);
    }
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "-m", "begin"]);
    for task in 1..=tasks {
        let before = if task > 1 && chance.next(4) == 0 { Some((task - 1).to_string()) } else { None };
        let after: Vec<&str> = before.iter().flat_map(|before| ["--after", before.as_str()]).collect();
        place.run(&[&["task", "add", &format!("Task {task}")], &after[..]].concat()).code(0);
    }
    place
}

pub(crate) fn start(place: &Place, words: &[&str]) -> Child {
    place.command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// A random process of the place whose command line has these words.
pub(crate) fn process(place: &Place, chance: &mut Chance, words: &str) -> Option<String> {
    let found: Vec<String> = place.processes().into_iter().filter(|line| line.contains(words)).collect();
    let chosen = found.get(usize::try_from(chance.next(found.len().max(1) as u64)).unwrap())?;
    Some(chosen.split_whitespace().next()?.trim_start_matches("/proc/").to_string())
}

/// Makes a random fault, and returns what it was.
fn fault(place: &Place, chance: &mut Chance, host: &Child) -> &'static str {
    let id = host.id().to_string();
    let kinds = ["host", "host", "interrupt", "worker", "lifeline", "agent", "pause worker", "pause host", "pack"];
    let kind = kinds[usize::try_from(chance.next(kinds.len() as u64)).unwrap()];
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
        "worker" => drop(send("work --hub", "KILL")),
        "lifeline" => drop(send("__lifeline", "KILL")),
        "agent" => drop(send("work.sh", "KILL")),
        "pause worker" => {
            let pid = send("work --hub", "STOP");
            std::thread::sleep(Duration::from_millis(60));
            if let Some(pid) = &pid {
                try_send("CONT", pid);
            }
        }
        "pause host" => {
            try_send("TSTP", &id);
            std::thread::sleep(Duration::from_millis(150));
            try_send("CONT", &id);
        }
        _ => {
            let path = place.work(".forkhestra/hub.git").display().to_string();
            let mut pack = std::process::Command::new("git");
            drop(pack.args(["--git-dir", &path, "repack", "-a", "-d", "-q"]).output());
        }
    }
    kind
}

/// The name, the state and the system call of each thread of a process.
fn threads(child: &Child) -> String {
    let folder = format!("/proc/{}/task", child.id());
    let about = |folder: std::path::PathBuf| {
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let status = read("status");
        let lines = status.lines().filter(|line| line.starts_with("Name:") || line.starts_with("State:"));
        format!("{} {}", lines.collect::<Vec<_>>().join(" "), read("syscall").trim())
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| about(entry.path())).collect::<Vec<_>>().join("; ")
}

pub(crate) fn ends(place: &Place, child: &mut Child, what: &str) -> Option<i32> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(begun.elapsed() < HANGS, "hangs: {what}; {}; alive: {:?}", threads(child), place.processes());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Checks what has to hold, whoever was killed.
pub(crate) fn oracle(place: &Place, what: &str) {
    // Claims of a unit only count up, and it has one result.
    for name in hub(place, &["for-each-ref", "--format=%(refname)", "refs/forkhestra/units"]).lines() {
        let log = hub(place, &["log", "--first-parent", "--reverse", "--format=%B%x00", name]);
        let value = |message: &str, key: &str| {
            message.lines().find_map(|line| line.strip_prefix(key)).map(str::to_string).unwrap_or_default()
        };
        let (mut last, mut done) = (0, 0);
        // Below the unit's commits is the one with which its work began.
        for message in log.split('\0').filter(|message| message.trim_start().starts_with("unit ")) {
            let fence: u32 = value(message, "Forkhestra-Fence: ").parse().unwrap();
            let stage = value(message, "Forkhestra-Stage: ");
            assert!(fence >= last && (stage != "claimed" || fence == last + 1), "{name}: {log} ({what})");
            assert_eq!(done, 0, "{name} goes on after its result ({what})");
            done += u32::from(stage == "done");
            last = fence;
        }
    }
    // The journal has every event of every run, once and in order, and no finished attempt was repeated.
    let journal = forkhestra::journal::Journal::open(&place.work("")).unwrap();
    for row in journal.runs().all().unwrap() {
        let numbers: Vec<u64> = journal.events().of(row.id).unwrap().iter().map(|event| event.seq).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "run {} ({what})", row.id);
    }
    no_step_twice(place, what);
    assert_line_is_green(place);
}

/// The tasks that have landed, in the order in which they did.
pub(crate) fn landed(place: &Place) -> Vec<String> {
    // A batch that was killed at once has no hub, or no line.
    let has_hub = place.work(".forkhestra/hub.git").exists();
    if !has_hub || hub(place, &["for-each-ref", "refs/heads/forkhestra/line"]).is_empty() {
        return Vec::new();
    }
    let log = hub(
        place,
        &["log", "--reverse", "--format=%(trailers:key=Forkhestra-Task,valueonly)", "main..forkhestra/line"],
    );
    log.lines().filter(|line| !line.trim().is_empty()).map(|line| line.trim().to_string()).collect()
}

fn round(seed: u64) {
    let mut chance = Chance(seed.max(1));
    let tasks = 2 + chance.next(4);
    let place = project(tasks, &mut chance, |_| String::new());
    let before = user_git(&place);
    let jobs = (1 + chance.next(4)).to_string();
    let tries = ["--chain", "judged", "--tries", "2"];
    let tries = if chance.next(3) == 0 { &tries[..] } else { &[] };
    let all = [&["task", "run", "-j", jobs.as_str()], tries].concat();
    let mut what = format!("seed {seed}, {tasks} tasks, {jobs} lanes, {tries:?}:");
    let mut child = start(&place, &all);
    for _ in 0..chance.next(5) {
        std::thread::sleep(Duration::from_millis(chance.next(500)));
        what = format!("{what} {},", fault(&place, &mut chance, &child));
        let is_over = child.try_wait().unwrap().is_some();
        if is_over || what.ends_with("host,") && !what.ends_with("pause host,") || what.ends_with("interrupt,") {
            ends(&place, &mut child, &what);
            child = start(&place, &["resume", "--wait"]);
        }
    }
    ends(&place, &mut child, &what);
    what = until_all_have_landed(&place, tasks, &all, what);
    all_is_well(&place, tasks, &what);
    assert!(before == user_git(&place), "the user's .git has changed ({what})");
}

/// Resumes what was interrupted, and begins again what has failed because an agent was killed. Returns what happened.
pub(crate) fn until_all_have_landed(place: &Place, tasks: u64, all: &[&str], mut what: String) -> String {
    for _ in 0..8 {
        if landed(place).len() as u64 == tasks {
            break;
        }
        let (code, text) = place.beside(&["resume", "--wait"]);
        if code == Some(2) {
            what = format!("{what}\n{text}\n{}", place.beside(all).1);
        }
    }
    what
}

/// The number of scenarios, and the seed of the first one. Unless `FORKHESTRA_SOAK_SEED` sets it, it is always the
/// same, so that a change is not refused for what it has not done.
pub(crate) fn scenarios(variable: &str, rounds: u64) -> (u64, u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    (number(variable).unwrap_or(rounds), number("FORKHESTRA_SOAK_SEED").unwrap_or(1))
}

/// Checks that all tasks have landed in their order, and what has to hold besides.
pub(crate) fn all_is_well(place: &Place, tasks: u64, what: &str) {
    place.assert_nothing_is_left();
    oracle(place, what);
    let order = landed(place);
    let mut sorted = order.clone();
    sorted.sort();
    assert_eq!(
        sorted,
        (1..=tasks).map(|task| task.to_string()).collect::<Vec<_>>(),
        "{what} {:?}",
        place.run(&["task", "list"]).stdout
    );
    let journal = forkhestra::journal::Journal::open(&place.work("")).unwrap();
    for task in journal.tasks().all().unwrap() {
        let at = |id: &String| order.iter().position(|other| other == id);
        assert!(task.after.iter().all(|earlier| at(earlier) < at(&task.id)), "{order:?} ({what})");
    }
    assert!(fs::read_to_string(place.path("tmp/calls")).unwrap().lines().count() > 0);
}

#[test]
fn faults_by_chance_lose_no_work_repeat_none_and_leave_nobody_behind() {
    let (rounds, seed) = scenarios("FORKHESTRA_BATCH_FAULTS", ROUNDS);
    for scenario in 0..rounds {
        println!("scenario {scenario}: seed {}", seed + scenario);
        round(seed + scenario);
    }
}
