//! Runs a chain inside another program, with an observer of its own.
//!
//! ```text
//! cargo run --example embed -- "true -> false" /tmp/somewhere
//! ```
#![expect(clippy::print_stdout, reason = "an example for a terminal")]

use forkhestra::chain::{Config, PromptSource, parse};
use forkhestra::engine::{Event, Evidence, Observer};
use forkhestra::journal::{Journal, LockAttempt, NewRun, RunLock, Worker};
use forkhestra::plan::{Overrides, Request, RunSettings, build, digest, outline};
use forkhestra::proc::{lifeline, start_time};
use forkhestra::runner::{RunContext, RunStart, StartPoint, drive};
use forkhestra::source::Source;
use forkhestra::world::World;
use indexmap::IndexMap;
use std::error::Error;
use std::io;
use std::path::Path;

/// Collects the events of a run.
#[derive(Debug, Default)]
struct Collected(Vec<Event>);

impl Observer for Collected {
    fn event(&mut self, event: &Event, _evidence: &dyn Evidence) -> io::Result<()> {
        self.0.push(event.clone());
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    // The lifeline, which supervises the agents, is this same program: it is started with this argument.
    if arguments.get(1).is_some_and(|first| first == "__lifeline") {
        return Ok(lifeline()?);
    }
    let [_, chain, root] = arguments.as_slice() else { return Err("usage: embed CHAIN DIR".into()) };
    let collected = run(chain, &Path::new(root).canonicalize()?)?;
    for event in &collected.0 {
        println!("{}", serde_json::to_string(&event.event)?);
    }
    Ok(())
}

fn run(chain: &str, root: &Path) -> Result<Collected, Box<dyn Error>> {
    let world = World::look()?;
    let refused = |errors: Vec<_>| format!("{errors:?}");
    let chain = parse(&Source::new("chain", chain, root)).map_err(refused)?;
    let request = Request {
        chain: &chain,
        config: &Config::default(),
        root,
        prompt: &PromptSource::default(),
        given: &IndexMap::new(),
        settings: &RunSettings::default(),
        task: None,
        part: None,
        own_program: world.own_program(),
    };
    let plan = build(&request, &world, &world).map_err(refused)?;
    let LockAttempt::Held(lock) = RunLock::take(root)? else { return Err("another run is in progress there".into()) };
    let mut journal = Journal::open(root)?;
    let pid = i32::try_from(std::process::id())?;
    let worker = Worker { pid, start_time: start_time(pid).unwrap_or(0) };
    let (outline, digest) = (outline(&plan), digest(&plan));
    let new = NewRun { worker, started: &world.timestamp(), digest: &digest, outline: &outline };
    let number = journal.begin(new)?;
    journal.hold(lock);
    let mut collected = Collected::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let context = RunContext {
        plan: &plan,
        root,
        replan: None,
        world: &world,
        journal: &mut journal,
        run: number,
        origin: None,
        observer: &mut collected,
    };
    let start = StartPoint { digest, overrides: Overrides::default(), logins: None };
    runtime.block_on(drive(context, RunStart::New(Box::new(start))))?;
    Ok(collected)
}
