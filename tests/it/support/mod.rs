//! A separate place for every test: directories, a hermetic environment, scripted agents, and no process left behind.

use forkhestra::engine::{Event, EventKind, RunRow, RunSummary, State};
use forkhestra::plan::Outline;
use forkhestra::report::{
    Console, Document, Paint, SummaryFacts, Verbosity, closing_table, markdown, reason, summary_json,
};
use serde_json::json;
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The deadline for what should take no time. It is generous, for a loaded machine.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// The output and the exit code of a program.
#[derive(Debug)]
#[must_use = "look at the output or the exit code"]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Returns everything, for a snapshot.
    pub(crate) fn all(&self) -> String {
        let code = self.code.map_or_else(|| "killed".to_string(), |code| code.to_string());
        format!("exit {code}\n--- stdout\n{}--- stderr\n{}", self.stdout, self.stderr)
    }

    /// Returns standard error as one line, without the bars and line breaks of its layout.
    pub(crate) fn words(&self) -> String {
        self.stderr.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Returns standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("{}", self.all()))
    }

    #[track_caller]
    pub(crate) fn code(&self, expected: i32) -> &Self {
        assert_eq!(self.code, Some(expected), "{}", self.all());
        self
    }
}

/// The place of a test.
pub(crate) struct Place {
    folder: TempDir,
    tag: String,
    variables: Vec<(String, String)>,
}

/// After this time, a program that should have ended never will.
const ENDLESS: std::time::Duration = std::time::Duration::from_mins(5);

/// The seam that finds processes as on macOS.
const WEAKER: &str = "FORKHESTRA_TEST_NO_SUBREAPER";

impl Place {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let tag = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        // The path has the same length everywhere, because messages are wrapped with it in them.
        let place = Self { folder: tempfile::tempdir_in("/tmp").unwrap(), tag, variables: Vec::new() };
        for name in ["bin", "home", "project", "tmp", "agents"] {
            fs::create_dir(place.path(name)).unwrap();
        }
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Returns a path in the working directory.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.path("project").join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.work(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn config(&self, text: &str) -> &Self {
        self.write("forge/chains.json", text)
    }

    /// Adds a program to PATH that follows a script (`tests/fake_agent`).
    pub(crate) fn agent(&self, name: &str, script: &str) -> &Self {
        let lines: Vec<&str> = script.lines().map(str::trim).collect();
        fs::write(self.path("agents").join(format!("{name}.script")), lines.join("\n")).unwrap();
        let link = self.path("bin").join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fake-agent"), link).unwrap();
        }
        self
    }

    /// Returns the N-th call of an agent, from 1: its arguments, its variables and the size of its standard input.
    pub(crate) fn call(&self, name: &str, number: u32) -> String {
        let path = self.path("agents").join(format!("{name}.{number}.call"));
        fs::read_to_string(&path).unwrap_or_else(|_| panic!("{name} was not called {number} times"))
    }

    /// Returns the standard input of the N-th call of an agent.
    pub(crate) fn stdin_of(&self, name: &str, number: u32) -> Vec<u8> {
        fs::read(self.path("agents").join(format!("{name}.{number}.stdin"))).unwrap()
    }

    /// Returns how often an agent was called.
    pub(crate) fn calls(&self, name: &str) -> usize {
        (1..100_000).take_while(|number| self.path("agents").join(format!("{name}.{number}.call")).exists()).count()
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Returns the program, ready to be started in the working directory, in a process group of its own.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("forkhestra"));
        command
            .args(arguments)
            .current_dir(self.path("project"))
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()))
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .env("FAKE_AGENT_DIR", self.path("agents"))
            .env("FORKHESTRA_TEST_TAG", &self.tag)
            .env("FORKHESTRA_TEST_STILL_CLOCK", "1")
            .env("FORKHESTRA_TEST_GRACE_MS", "300")
            // As on macOS: see .ci/run.
            .envs(std::env::var_os(WEAKER).map(|value| (WEAKER, value)))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        let output = self.command(arguments).output().unwrap();
        self.assert_nothing_is_left();
        Ran { code: output.status.code(), stdout: self.plain(&output.stdout), stderr: self.plain(&output.stderr) }
    }

    /// Starts the program and leaves it running.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running<'_> {
        Running { child: self.command(arguments).spawn().unwrap(), place: self }
    }

    /// Runs a command while something else of this place is running. Returns its exit code and what it printed.
    pub(crate) fn beside(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command(arguments).output().unwrap();
        (output.status.code(), self.plain(&output.stdout) + &self.plain(&output.stderr))
    }

    /// Changes the journal without the program, and makes the program accept the change.
    pub(crate) fn sql(&self, statement: &str) {
        let database = rusqlite::Connection::open(self.work(".forkhestra/state.db")).unwrap();
        let select = "SELECT name FROM sqlite_schema WHERE type = 'trigger'";
        let triggers = database
            .prepare(select)
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<Vec<String>, _>>();
        for trigger in triggers.unwrap() {
            database.execute_batch(&format!("DROP TRIGGER {trigger}")).unwrap();
        }
        database.execute_batch(statement).unwrap();
        forkhestra::journal::Journal::open(&self.work("")).unwrap().accept().unwrap();
    }

    /// Replaces the test's own paths with names, so that the text is the same everywhere.
    pub(crate) fn plain(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let own = self.path("");
        text.replace(own.to_str().unwrap().trim_end_matches('/'), "$PLACE")
    }

    /// Replaces the names with the test's own paths.
    pub(crate) fn real(&self, text: &str) -> String {
        text.replace("$PLACE", self.path("").to_str().unwrap().trim_end_matches('/'))
    }

    /// Waits until no process of this test is alive. If that takes too long, panics with those that are.
    #[track_caller]
    pub(crate) fn assert_nothing_is_left(&self) {
        let deadline = Instant::now() + LONG;
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "still alive: {left:?}");
            std::thread::yield_now();
        }
    }

    /// Returns the living processes that have this test's tag.
    pub(crate) fn processes(&self) -> Vec<String> {
        let tag = format!("FORKHESTRA_TEST_TAG={}", self.tag);
        let is_ours = |folder: &Path| {
            let environment = fs::read(folder.join("environ")).unwrap_or_default();
            let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
            let zombie = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'));
            !zombie && environment.split(|&byte| byte == 0).any(|entry| entry == tag.as_bytes())
        };
        let entries = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let ours = entries.filter(|folder| is_ours(folder));
        ours.map(|folder| {
            let line = fs::read(folder.join("cmdline")).unwrap_or_default();
            format!("{} {}", folder.display(), String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
    }

    /// Waits until a file exists.
    #[track_caller]
    pub(crate) fn wait_for(&self, path: &Path) {
        let deadline = Instant::now() + LONG;
        while !path.exists() {
            assert!(Instant::now() < deadline, "{} never came; alive: {:?}", path.display(), self.processes());
            std::thread::yield_now();
        }
    }

    /// Waits until something holds.
    #[track_caller]
    pub(crate) fn until(&self, holds: impl Fn() -> bool) {
        let deadline = Instant::now() + LONG;
        while !holds() {
            assert!(Instant::now() < deadline, "it never came; alive: {:?}", self.processes());
            std::thread::yield_now();
        }
    }

    /// Waits until no process of the test has this text in its command line.
    #[track_caller]
    pub(crate) fn wait_until_gone(&self, words: &str) {
        let deadline = Instant::now() + LONG;
        while self.processes().iter().any(|process| process.contains(words)) {
            assert!(Instant::now() < deadline, "{words} never ended; alive: {:?}", self.processes());
            std::thread::yield_now();
        }
    }

    /// Waits until a file in the working directory is not empty.
    #[track_caller]
    pub(crate) fn wait_for_bytes(&self, name: &str) {
        let deadline = Instant::now() + LONG;
        while fs::metadata(self.work(name)).map_or(0, |file| file.len()) == 0 {
            assert!(Instant::now() < deadline, "{name} stayed empty; alive: {:?}", self.processes());
            std::thread::yield_now();
        }
    }

    /// Waits until an event of this type is in the journal of a run.
    #[track_caller]
    pub(crate) fn wait_for_event(&self, run: i64, kind: &str) {
        let deadline = Instant::now() + LONG;
        while !self.work(".forkhestra/state.db").exists()
            || !self.events(run).iter().any(|event| event["event"]["type"] == kind)
        {
            assert!(Instant::now() < deadline, "{kind} never came; alive: {:?}", self.processes());
            std::thread::yield_now();
        }
    }

    /// Checks every event of every run here against the schema, and compares all representations of each run's outcome.
    fn check_events(&self) {
        static SCHEMA: OnceLock<(boon::Schemas, boon::SchemaIndex)> = OnceLock::new();
        let (schemas, index) = SCHEMA.get_or_init(|| {
            let text = include_str!("../../../schemas/event.schema.json");
            let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
            compiler.add_resource("mem:///event.json", serde_json::from_str(text).unwrap()).unwrap();
            let index = compiler.compile("mem:///event.json", &mut schemas).unwrap();
            (schemas, index)
        });
        // Some tests damage the journal, or make it inaccessible.
        let Ok(Some(journal)) = forkhestra::journal::Journal::existing(&self.path("project")) else { return };
        for row in journal.runs().all().unwrap_or_default() {
            let events = journal.events().of(row.id).unwrap_or_default();
            if !events.is_empty() {
                check_totals(&row, &events, journal.runs().outline(row.id).ok().flatten().as_ref());
            }
            for event in events {
                let event = serde_json::to_value(event).unwrap();
                if let Err(error) = schemas.validate(&event, *index) {
                    panic!("an event that the schema does not know: {event}\n{error}");
                }
            }
        }
    }

    /// Returns the events of a run from the journal.
    pub(crate) fn events(&self, run: i64) -> Vec<serde_json::Value> {
        let journal = forkhestra::journal::Journal::open(&self.path("project")).unwrap();
        journal.events().of(run).unwrap().iter().map(|event| serde_json::to_value(event).unwrap()).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // What a failed test has started would slow the others down.
            let deadline = Instant::now() + LONG;
            while let Some(left) = self.processes().first().filter(|_| Instant::now() < deadline) {
                try_send("KILL", left.split(['/', ' ']).nth(2).unwrap_or_default());
                std::thread::yield_now();
            }
        } else {
            self.check_events();
        }
    }
}

/// The outcome of a run is the same in the engine, the list of runs, the console, the report and the JSON summary.
fn check_totals(row: &RunRow, events: &[Event], outline: Option<&Outline>) {
    let summary = RunSummary::of(events);
    let (totals, all) = (&summary.totals, &summary.totals.all);
    let mut state = State::default();
    for event in events {
        forkhestra::engine::evolve(&mut state, &event.event);
    }
    assert_eq!((state.totals(), row.outcome), (totals, totals.outcome), "run {}", row.id);
    if row.kind == forkhestra::engine::RunKind::Batch {
        // The attempts are those of its runs.
        return;
    }
    assert_eq!((row.attempts, row.took_ms), (totals.planned, all.took_ms), "run {}", row.id);
    // SQLite adds floating-point numbers in a way of its own.
    let millionths = |cost: Option<f64>| cost.map(|cost| (cost * 1e6).round());
    assert_eq!((row.tokens, millionths(row.cost_usd)), (all.tokens(), millionths(all.cost_usd())), "run {}", row.id);
    let json = summary_json(&summary, &SummaryFacts::default());
    let sums = json!([all.attempts, all.took_ms, all.tokens(), all.cost_usd(), totals.rejections]);
    assert_eq!(json!([json["attempts"], json["tookMs"], json["tokens"], json["costUsd"], json["rejections"]]), sums);
    let Some((outcome, outline)) = totals.outcome.zip(outline) else { return };
    let mut console = Console::new(outline, None, Paint::plain(), Verbosity::Normal, Path::new(""));
    let told = events.iter().map(|event| (&event.event, console.event(event)));
    let is_end = |event: &EventKind| matches!(event, EventKind::RunFinished { .. });
    let last = told.filter(|(event, _)| is_end(event)).last().unwrap().1.replace(',', "");
    let why = reason(outcome, totals, outline).replace(',', "");
    let tokens = all.tokens().map_or_else(String::new, |tokens| format!("{tokens} tokens"));
    let attempts = format!("({} attempt", totals.planned);
    assert!(
        [&why, &attempts, &tokens].iter().all(|words| last.contains(words.as_str())),
        "{last}{why} {attempts} {tokens}"
    );
    let document = Document {
        summary: &summary,
        outline,
        events,
        reason: &why,
        at_work: false,
        resume: "",
        part: None,
        changes: None,
        patch: "",
        papers: &[],
    };
    let (page, cells) = (markdown(&[document], false), format!("| **all** | {} |", all.attempts));
    assert!(page.contains(&cells), "{page}");
    let rows = 1 + totals.steps.len() + usize::from(totals.rework.attempts > 0);
    let table = closing_table(&summary, Paint::plain());
    assert_eq!(table.lines().count(), if all.attempts < 2 { 0 } else { rows }, "{table}");
}

/// Whether all threads of a process are dead. Until then, its files are open and its locks hold.
pub(crate) fn is_dead(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    stat.map_or(true, |stat| stat.contains(") Z ")) && threads <= 1
}

/// Sends a signal by its name. The shell has `kill` built in, so no package is needed.
pub(crate) fn send(name: &str, pid: &str) {
    assert!(Command::new("/bin/sh").arg("-c").arg(format!("kill -{name} {pid}")).status().unwrap().success());
}

/// Sends a signal to a process that may have exited.
pub(crate) fn try_send(name: &str, pid: &str) {
    let mut shell = Command::new("/bin/sh");
    let _ = shell.arg("-c").arg(format!("kill -{name} {pid}")).stderr(Stdio::null()).status();
}

/// A running program.
pub(crate) struct Running<'a> {
    pub(crate) child: Child,
    place: &'a Place,
}

impl<'a> Running<'a> {
    pub(crate) fn of(child: Child, place: &'a Place) -> Self {
        Self { child, place }
    }

    pub(crate) fn try_signal(&self, name: &str) {
        try_send(name, &self.child.id().to_string());
    }

    pub(crate) fn signal(&self, name: &str) -> &Self {
        send(name, &self.child.id().to_string());
        self
    }

    /// Sends a signal, then waits for the end.
    pub(crate) fn end_by(self, signal: &str) -> Ran {
        self.signal(signal);
        self.end()
    }

    /// Sends a signal, then waits for the end of this process alone. Returns its exit code.
    pub(crate) fn end_alone_by(mut self, signal: &str) -> Option<i32> {
        self.signal(signal);
        self.child.wait().unwrap().code()
    }

    /// Waits for the end and for everything of the test to be gone. What never ends is killed.
    pub(crate) fn end(mut self) -> Ran {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let (ended, hears) = std::sync::mpsc::channel::<()>();
        let group = format!("-{}", self.child.id());
        let watch = std::thread::spawn(move || {
            if hears.recv_timeout(ENDLESS) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                Command::new("kill").args(["-KILL", "--", &group]).status().unwrap();
            }
        });
        let errors = self.child.stderr.take().map(|mut pipe| {
            std::thread::spawn(move || {
                pipe.read_to_end(&mut stderr).unwrap();
                stderr
            })
        });
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_end(&mut stdout).unwrap();
        }
        let stderr = errors.map(|errors| errors.join().unwrap()).unwrap_or_default();
        let status = self.child.wait().unwrap();
        drop(ended);
        watch.join().unwrap();
        self.place.assert_nothing_is_left();
        Ran { code: status.code(), stdout: self.place.plain(&stdout), stderr: self.place.plain(&stderr) }
    }
}

/// Runs git in a project, and returns what it printed.
pub(crate) fn git(place: &Place, words: &[&str]) -> String {
    let identity = ["-c", "user.name=x", "-c", "user.email=x@x"];
    let done = Command::new("git").args(identity).args(words).current_dir(place.work("")).output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}
