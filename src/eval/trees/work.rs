//! The work on one tree, by a process of its own: it lays the tree out, runs the chain in it, and prints what has
//! changed.

use super::store::git;
use super::{CaseTreeStore, FORGE, TreeRequest, TreeWork};
use crate::proc::{ByHand, Interrupts};
use crate::source::{Env, Files};
use crate::world::World;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// The variable with the path of the store.
pub(in crate::eval) const TREES: &str = "FORKHESTRA_TREES";
/// The variable with the directory of the attempt, which gets the change of the chain.
pub(in crate::eval) const WORK: &str = "FORKHESTRA_WORK";
/// The name of the file with the change.
pub(in crate::eval) const PATCH: &str = "work.patch";
/// How much of the change is shown to an evaluator, in bytes.
const SHOWN: usize = 256 << 10;
/// The longest that a chain may work on a tree. Its agents have limits of their own.
const LONGEST: Duration = Duration::from_hours(24 * 7);
/// Who commits in a tree, unless an agent says something else.
const PERSON: [[&str; 2]; 2] = [["user.name", "forkhestra"], ["user.email", "forkhestra@localhost"]];
/// The directories of a workspace that are not the work of the chain.
const NOT_WORK: [&str; 2] = [".forkhestra", FORGE];

/// What the work on a tree has come to.
#[derive(Debug)]
pub struct TreeAnswer {
    /// What the run of the chain has printed for people.
    pub log: String,
    /// The last line of Claude Code's `stream-json`. After a signal, it has no answer, only what the chain has spent;
    /// it is empty if that is not known.
    pub answer: String,
    /// Whether the chain has run. If not, the answer says why.
    pub has_run: bool,
}

/// Works on a request, which is JSON. `options` are options of the chain's run.
#[must_use]
pub fn work_on_tree(world: &World, request: &[u8], options: &[String]) -> TreeAnswer {
    let mut log = String::new();
    // From here on, a signal ends the chain and not us: the copy of the tree has to be removed.
    let interrupts = Interrupts::listen(|signal| world.ignores(signal)).map_err(|error| error.to_string());
    let answer = interrupts.and_then(|interrupts| work(world, request, (options, &interrupts), &mut log));
    let has_run = matches!(&answer, Ok(Some(answer)) if answer["is_error"] == false);
    let answer = answer.unwrap_or_else(|why| Some(json!({ "type": "result", "is_error": true, "result": why })));
    TreeAnswer { log, answer: answer.map(|answer| answer.to_string()).unwrap_or_default(), has_run }
}

fn work(
    world: &World,
    request: &[u8],
    (options, interrupts): (&[String], &Interrupts),
    log: &mut String,
) -> Result<Option<Value>, String> {
    let store = world.var(TREES).ok_or("there is no store of trees: this command is internal to forkhestra")?;
    let patch = world.var(WORK).ok_or("there is no directory for the change")?;
    let patch = Path::new(&patch).join(PATCH);
    let request: TreeRequest = serde_json::from_slice(request).map_err(|error| format!("the request: {error}"))?;
    let store = CaseTreeStore::at(Path::new(&store));
    let folder = world.scratch_folder().map_err(|error| format!("there is no temporary directory: {error}"))?;
    let start = match &request.file {
        Some(file) => store.with_file(&request.tree, &file.path, &file.text)?,
        None => request.tree.clone(),
    };
    store.lay_out(&start, folder.path())?;
    commit(folder.path())?;
    let words = ["run", &request.chain, "--prompt", "-", "--output", "json"].map(str::to_string);
    let words = [&words, options].concat();
    let own = world.own_program();
    let chain = ByHand {
        lifeline: own,
        program: own,
        arguments: &words,
        folder: folder.path(),
        timeout: LONGEST,
        input: request.prompt.as_bytes(),
        interrupts,
        // The store has the hidden files.
        without: &[TREES, WORK],
    };
    let ran = chain.run(&mut |_| {}).ok_or("the chain could not be started")?;
    *log = ran.stderr;
    let summary = ran.stdout.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let summary = summary.filter(|summary| summary["state"].is_string());
    if interrupts.signal().is_some() {
        return Ok(summary.map(|summary| spent(&summary, true)));
    }
    let summary = summary.ok_or_else(|| {
        let why = log.lines().find(|line| line.trim_start().starts_with('×')).unwrap_or("it printed no summary");
        format!("the chain did not run: {}", why.trim().trim_start_matches(['×', ' ']))
    })?;
    // The chain has been paid for: from here on, an error is an answer.
    let changed = store.changes(&start, folder.path(), &NOT_WORK, &patch);
    let changed = changed.and_then(|()| world.read(&patch).map_err(|error| format!("{}: {error}", patch.display())));
    Ok(Some(answer(&summary, changed.map(|patch| shown(&patch)))))
}

/// Makes the files the first commit of a repository, so that agents can ask git what they have changed.
fn commit(folder: &Path) -> Result<(), String> {
    let call = |words: &[&str]| git(words, folder, &[], &[]);
    call(&["init", "--quiet", "--initial-branch=main", "."])?;
    for [name, value] in PERSON {
        call(&["config", name, value])?;
    }
    call(&["add", "--all"])?;
    call(&["commit", "--quiet", "--allow-empty", "--message", "The tree of the case"]).map(drop)
}

/// Returns a change as text, as far as an evaluator sees it.
fn shown(patch: &[u8]) -> String {
    let text = String::from_utf8_lossy(patch);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}\n(the rest of {} bytes is left out)\n", &text[..end], patch.len()),
        None => text.into_owned(),
    }
}

fn answer(summary: &Value, diff: Result<String, String>) -> Value {
    let number = |key: &str| summary[key].as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
    let state = summary["state"].as_str().unwrap_or_default().to_string();
    let (diff, error) = match diff {
        Ok(diff) => (diff, None),
        Err(why) => (String::new(), Some(why)),
    };
    let work = TreeWork { state, attempts: number("attempts"), rejections: number("rejections"), diff, error };
    let mut answer = spent(summary, false);
    answer["result"] = serde_json::to_string(&work).unwrap_or_default().into();
    answer
}

/// Returns an answer that only says what the chain has spent.
fn spent(summary: &Value, is_error: bool) -> Value {
    json!({
        "type": "result",
        "is_error": is_error,
        "total_cost_usd": summary["costUsd"],
        "usage": { "input_tokens": summary["tokens"].as_u64().unwrap_or(0), "output_tokens": 0 },
    })
}
