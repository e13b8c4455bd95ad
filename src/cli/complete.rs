//! The candidates of shell completions, from the same tables as the parser.

use crate::chain::limit_names;
use crate::cli::args::{Cli, ExplainArgs, ManArgs, RenderArgs, ResumeArgs, RunArgs, ShowArgs};
use crate::cli::config::project;
use crate::cli::explain::codes;
use crate::cli::options::Common;
use crate::cli::parse::argv;
use crate::cli::parse::deferred::Deferred;
use crate::cli::runs::args::{ReportArgs, RunsArgs};
use crate::cli::task::args::TaskArgs;
use crate::exit::Exit;
use crate::journal::Journal;
use crate::report::print;
use crate::world::World;
use clap::{Args, Command, CommandFactory};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate, complete};
use std::ffi::OsString;
use std::path::PathBuf;

/// Prints the completions of one argument, one per line: a candidate, a tab, its help. `arguments` is `INDEX WORDS…`.
pub(super) fn candidates(world: &World, arguments: &[OsString]) -> Exit {
    let Some((index, words)) = arguments.split_first() else { return Exit::Refused };
    let Some(mut index) = index.to_str().and_then(|index| index.parse::<usize>().ok()) else { return Exit::Refused };
    let mut words = words.to_vec();
    words.resize(words.len().max(index + 1), OsString::new());
    // As on a real command line, a chain without a command is a run.
    let first = words.get(1).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let (mut lines, typing_first) = (Vec::new(), index == 1 && !first.starts_with('-'));
    if typing_first {
        lines.extend(lines_of(&mut command(world), words.clone(), index));
    }
    if !argv::is_verb(&first) {
        words.insert(1, "run".into());
        index += 1;
    }
    for line in lines_of(&mut command(world), words, index) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    // A shell that has gone away needs no candidates.
    let _ = print(&lines.concat());
    Exit::Success
}

fn lines_of(command: &mut Command, words: Vec<OsString>, index: usize) -> Vec<String> {
    let found = complete(command, words, index, None).unwrap_or_default();
    let shown = found.into_iter().filter(|candidate| !candidate.is_hide_set());
    shown
        .map(|candidate| {
            let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
            let help = help.lines().next().unwrap_or_default().to_string();
            format!("{}\t{help}\n", candidate.get_value().to_string_lossy())
        })
        .collect()
}

/// The parser's tables, with the names of this project.
fn command(world: &World) -> Command {
    let common = Common {
        cwd: None::<PathBuf>,
        verbose: false,
        quiet: true,
        trust: false,
        color: None,
        setup: Vec::new(),
        chooser: None,
        origin: None,
        keeper: None,
    };
    let project = project(world, &common);
    let named = |names: Vec<(String, String)>| {
        ArgValueCandidates::new(move || {
            let candidate = |(name, about): &(String, String)| {
                let about =
                    Some(about.as_str()).filter(|about| !about.is_empty()).map(|about| about.to_string().into());
                CompletionCandidate::new(name).help(about)
            };
            names.iter().map(candidate).collect()
        })
    };
    let about = |text: Option<&crate::source::Text>| text.map(|text| text.value.clone()).unwrap_or_default();
    let chains: Vec<(String, String)> = project
        .config
        .chains
        .iter()
        .map(|(name, entry)| (name.clone(), about(entry.value.description.as_ref())))
        .collect();
    let agents: Vec<(String, String)> = project
        .config
        .agents
        .iter()
        .map(|(name, entry)| (name.clone(), about(entry.value.description.as_ref())))
        .collect();
    let tasks: Vec<(String, String)> = Journal::existing(&project.root)
        .ok()
        .flatten()
        .and_then(|journal| journal.tasks().all().ok())
        .unwrap_or_default()
        .into_iter()
        .map(|task| (task.id, task.title))
        .collect();
    let runs: Vec<(String, String)> = Journal::existing(&project.root)
        .ok()
        .flatten()
        .and_then(|journal| journal.runs().all().ok())
        .unwrap_or_default()
        .into_iter()
        .map(|row| (row.id.to_string(), row.name.unwrap_or(row.chain)))
        .collect();
    let verbs: Vec<(String, String)> = Cli::command()
        .get_subcommands()
        .map(|verb| (verb.get_name().to_string(), verb.get_about().map(ToString::to_string).unwrap_or_default()))
        .collect();
    let limits: Vec<(String, String)> =
        limit_names().map(|(name, about)| (format!("{name}="), about.to_string())).collect();
    let codes: Vec<(String, String)> = codes().map(|code| (code.to_string(), String::new())).collect();
    let vars = project.config.chains.iter().flat_map(|(chain, entry)| {
        entry
            .value
            .vars
            .keys()
            .chain(entry.value.secrets.keys())
            .map(move |name| (format!("{name}="), format!("a variable of the chain {chain}")))
    });
    let words: Vec<(String, String)> = agents.iter().cloned().chain(vars).collect();
    let limited = |verb: Command, argument| verb.mut_arg(argument, |arg| arg.add(named(limits.clone())));
    let root = expanded::<RunArgs>(Cli::command(), "run", |run| {
        limited(run, "limit")
            .mut_arg("chain", |arg| arg.add(named(chains.clone())))
            .mut_arg("words", |arg| arg.add(named(words)))
            .mut_arg("task", |arg| arg.add(named(tasks.clone())))
    });
    let of_run = |verb: Command| verb.mut_arg("run", |arg| arg.add(named(runs.clone())));
    let root = expanded::<ResumeArgs>(root, "resume", |resume| of_run(limited(resume, "limit")));
    let root = expanded::<ReportArgs>(root, "report", of_run);
    // `mut_arg` moves an argument to the end, so positions are set again.
    let root = expanded::<RunsArgs>(root, "runs", |all| {
        all.mut_subcommand("show", of_run).mut_subcommand("log", |log| {
            of_run(log).mut_arg("run", |arg| arg.index(1)).mut_arg("attempt", |arg| arg.index(2))
        })
    });
    let root = expanded::<TaskArgs>(root, "task", |task| {
        let task = task.mut_subcommand("run", |run| limited(limited(run, "limit"), "limit_each"));
        ["show", "approve", "reject", "skip", "reset", "delete"].into_iter().fold(task, |task, verb| {
            task.mut_subcommand(verb, |verb| verb.mut_arg("id", |arg| arg.index(1).add(named(tasks.clone()))))
        })
    });
    let root = expanded::<ExplainArgs>(root, "explain", |verb| verb.mut_arg("code", |arg| arg.add(named(codes))));
    let root = expanded::<ManArgs>(root, "man", |man| man.mut_arg("verb", |arg| arg.add(named(verbs))));
    let root = expanded::<ShowArgs>(root, "show", |show| show.mut_arg("name", |arg| arg.add(named(chains))));
    expanded::<RenderArgs>(root, "render", |render| {
        render.mut_arg("agent", |arg| arg.index(1).add(named(agents))).mut_arg("words", |arg| arg.index(2))
    })
}

/// Changes a command whose arguments are `A`.
fn expanded<A: Args>(root: Command, verb: &str, change: impl FnOnce(Command) -> Command) -> Command {
    root.mut_subcommand(verb, |command| change(Deferred::<A>::expand(command)))
}
