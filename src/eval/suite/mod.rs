//! A suite: the prompt, the agents, the cases. All its errors are reported at once, before anything is started.

mod cases;
mod cases_file;
mod columns;
mod given;
pub(super) mod keys;
pub(super) mod reading;

use super::criteria::Criterion;
use super::criteria::command::CommandCriterion;
use super::criteria::read::read_criteria;
use super::errors;
use super::trees::CaseTree;
use crate::chain::Limits;
use crate::chain::json::{Reader, check, limits, parse_part, parse_within, thousandths};
use crate::source::{Diagnostic, Files, Place, Source, Span, Text};
use crate::verdict::ScoreMode;
use cases::{read_case, read_cases};
use cases_file::{CaseRows, rows_of};
pub use columns::Column;
use columns::{columns, read_agents, read_prompts};
use given::check_trees;
use indexmap::IndexMap;
pub use keys::suite_schema;
use keys::{CASE, CASES_FILE, SUITE};
pub(super) use reading::LARGEST;
use reading::{Reading, read_text};
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest ID, in characters.
const LONGEST_ID: usize = 80;

/// A suite: a prompt, its agents, and the cases that measure it.
#[derive(Debug)]
pub struct Suite {
    /// The path of the suite, as the user gave it.
    pub name: String,
    /// The kind of task, in a few words.
    pub task_type: String,
    /// The prompt to measure; the first one, if there are several.
    pub prompt: String,
    /// The file that contains the prompt, if there is one.
    pub prompt_file: Option<PathBuf>,
    /// What an output must look like.
    pub format_requirements: Option<String>,
    /// The agent that answers the prompt; the first one, if there are several.
    pub executor: Text,
    /// Every executor with every prompt.
    pub columns: Vec<Column>,
    /// The agents that judge the answers, in addition to criteria.
    pub evaluators: Vec<Text>,
    /// What several of them decide together.
    pub decide: Decide,
    /// The agent that compares the outputs of every two columns.
    pub select_best: Option<Text>,
    /// The agent that rewrites the prompt.
    pub improver: Option<Text>,
    /// What a score out of bounds means.
    pub score_mode: ScoreMode,
    /// The lowest score that passes, in thousandths.
    pub min_score: Option<u32>,
    /// Texts that a prompt must not give away.
    pub examples: Vec<String>,
    /// How often every case is run that says nothing else; `None` means once.
    pub repeat: Option<u32>,
    /// The file of each tree into which the prompt is written; none if the chain gets the prompt itself.
    pub into: Option<String>,
    /// The limits of the whole evaluation.
    pub limits: Limits,
    /// What every output must be, in addition to the criteria of its case.
    pub criteria: Vec<Criterion>,
    /// The cases that measure the prompt.
    pub cases: Vec<Case>,
}

/// What several evaluators decide together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Decide {
    /// An output passes if more than half of them pass it.
    #[default]
    Majority,
    /// An output passes if all of them pass it.
    All,
    /// An output passes if the mean of their scores is at least 0.5.
    Mean,
}

/// A case: an input, and what its output must be.
#[derive(Debug)]
pub struct Case {
    /// The ID, unique in the suite.
    pub id: Arc<str>,
    /// The input text; empty if the case has only variables.
    pub text: Box<str>,
    /// Variables, which the prompt names as `{NAME}`. Cases without their own share the defaults.
    pub vars: Arc<IndexMap<String, String>>,
    /// The tags of the case.
    pub tags: Arc<Vec<String>>,
    /// The tree of files in which a chain works; none if an agent only answers.
    pub tree: Option<Box<CaseTree>>,
    /// A recorded output, which is judged instead of that of the executor.
    pub output: Option<Box<str>>,
    /// Whether a person has found the recorded output good.
    pub label: Option<bool>,
    /// The expected output.
    pub expected: Option<Box<str>>,
    /// How often it is run; `None` means as often as the suite says.
    pub repeat: Option<u32>,
    /// What the output must be, judged without a model. Equal lists are shared.
    pub criteria: Arc<Vec<Criterion>>,
}

impl Case {
    /// Returns everything that the case gives to agents: its input, variables and expected output.
    pub(in crate::eval) fn texts(&self) -> impl Iterator<Item = &str> {
        let text = Some(&*self.text).filter(|text| !text.is_empty());
        text.into_iter().chain(self.expected.as_deref()).chain(self.vars.values().map(String::as_str))
    }
}

impl Suite {
    /// Reads a suite; `name` is its path as the user gave it.
    ///
    /// # Errors
    /// All errors of the suite.
    pub fn read(path: &Path, name: &str, files: &dyn Files) -> Result<Self, Vec<Diagnostic>> {
        let text = read_text(path, files).map_err(|why| vec![errors::unreadable(name, &why)])?;
        let source = Source::new(name, text, path.parent().unwrap_or(path));
        let node = parse_within(&source, LARGEST).map_err(|fault| vec![fault])?;
        let mut faults = Vec::new();
        check(&source, &node, &SUITE, false, &mut faults);
        let mut reading = Reading { source: &source, files, faults, patterns: HashMap::new(), known: HashMap::new() };
        let suite = read_suite(&mut reading, Reader::new(&source, &node));
        match suite {
            Some(suite) if reading.faults.is_empty() => Ok(suite),
            _ => Err(reading.faults),
        }
    }

    /// Keeps only the cases with these IDs that have one of these tags. Without IDs or tags, it keeps all.
    ///
    /// # Errors
    /// The IDs and tags that no case has, with those that exist.
    pub fn keep(&mut self, ids: &[String], tags: &[String]) -> Result<(), Vec<Diagnostic>> {
        let known: Vec<&str> = self.cases.iter().map(|case| &*case.id).collect();
        let known_tags: BTreeSet<&str> =
            self.cases.iter().flat_map(|case| case.tags.iter()).map(String::as_str).collect();
        let known_tags: Vec<&str> = known_tags.into_iter().collect();
        let unknown: Vec<Diagnostic> = (ids.iter().filter(|id| !known.contains(&id.as_str())))
            .map(|id| errors::unknown_case(id, &known))
            .chain(
                tags.iter()
                    .filter(|tag| !known_tags.contains(&tag.as_str()))
                    .map(|tag| errors::unknown_tag(tag, &known_tags)),
            )
            .collect();
        if !unknown.is_empty() {
            return Err(unknown);
        }
        let has_tag = |case: &Case| case.tags.iter().any(|tag| tags.contains(tag));
        self.cases.retain(|case| {
            (ids.is_empty() || ids.iter().any(|id| **id == *case.id)) && (tags.is_empty() || has_tag(case))
        });
        if self.cases.is_empty() { Err(vec![errors::none_left()]) } else { Ok(()) }
    }

    /// Whether several executors or prompts are measured side by side.
    #[must_use]
    pub fn is_matrix(&self) -> bool {
        self.columns.len() > 1
    }

    /// The executor of a generation, and the prompt whose placeholders are filled in. Each column of a matrix is a
    /// generation; otherwise, all generations come from the same prompt.
    pub(in crate::eval) fn column(&self, generation: u32) -> (&Text, &str) {
        let column = self.columns.get(generation as usize).filter(|_| self.is_matrix());
        column.map_or((&self.executor, &self.prompt), |column| (&column.executor, &column.prompt))
    }

    /// Whether a case has a recorded output, which says nothing about the prompt.
    #[must_use]
    pub fn has_outputs(&self) -> bool {
        self.cases.iter().any(|case| case.output.is_some())
    }

    /// Whether its cases are trees of files. All of them are, or none is.
    #[must_use]
    pub fn has_trees(&self) -> bool {
        self.cases.iter().any(|case| case.tree.is_some())
    }

    /// All commands that are criteria.
    pub(in crate::eval) fn commands(&self) -> impl Iterator<Item = &CommandCriterion> {
        let all = self.criteria.iter().chain(self.cases.iter().flat_map(|case| case.criteria.iter()));
        all.filter_map(Criterion::command)
    }

    /// Whether a criterion is a command.
    #[must_use]
    pub fn runs_commands(&self) -> bool {
        self.commands().next().is_some()
    }

    /// The agent that rewrites the prompt: the improver, else the evaluator, else the executor.
    #[must_use]
    pub fn rewriter(&self) -> &Text {
        self.improver.as_ref().or(self.evaluator()).unwrap_or(&self.executor)
    }

    /// The agent that judges the answers first, if there is one.
    #[must_use]
    pub fn evaluator(&self) -> Option<&Text> {
        self.evaluators.first()
    }
}

/// What holds for every case.
#[derive(Default)]
struct Defaults {
    criteria: Vec<Criterion>,
    /// Whether every case is judged even without criteria of its own.
    judged: bool,
    /// The kind of criterion because of which every case needs an expected output.
    compares: Option<&'static str>,
    vars: Arc<IndexMap<String, String>>,
    tags: Arc<Vec<String>>,
}

fn values(texts: IndexMap<String, Text>) -> IndexMap<String, String> {
    texts.into_iter().map(|(name, text)| (name, text.value)).collect()
}

fn read_suite(reading: &mut Reading<'_>, reader: Reader<'_>) -> Option<Suite> {
    let evaluators = read_agents(reading, reader, "evaluator", "evaluators");
    let prompt_file = reader.text("promptFile").map(|file| reading.source.base.join(&file.value));
    let (task_type, prompts) = (reading.said(reader, "taskType"), read_prompts(reading, reader));
    let mut executors = read_agents(reading, reader, "executor", "executors");
    let select_best = reading.said(reader, "selectBest");
    let defaults = defaults(reading, reader, !evaluators.is_empty() || select_best.is_some());
    let cases = all_cases(reading, reader, &defaults);
    for (_, prompt) in &prompts {
        check_variables(reading, prompt, &cases);
    }
    check_trees(reading, reader, &cases);
    if executors.is_empty() && reader.get("executor").is_none() && reader.get("executors").is_none() {
        match evaluators.first().filter(|_| cases.iter().all(|(case, _)| case.output.is_some())) {
            // Nobody is asked for an answer.
            Some(evaluator) => executors.push(evaluator.clone()),
            None => reading.faults.push(errors::no_executor(&reader.at())),
        }
    }
    if let Some(agent) = select_best.as_ref().filter(|_| executors.len() * prompts.len() < 2) {
        reading.faults.push(errors::nothing_to_select(&agent.at));
    }
    if let Some(agent) = select_best.as_ref().filter(|_| cases.iter().any(|(case, _)| case.tree.is_some())) {
        reading.faults.push(errors::select_on_trees(&agent.at));
    }
    let (improver, mode) = (reading.said(reader, "improver"), reader.text("scoreMode"));
    let mut cases: Vec<Case> = cases.into_iter().map(|(case, _)| case).collect();
    cases.shrink_to_fit();
    Some(Suite {
        name: reading.source.name.clone(),
        task_type: task_type?.value,
        prompt: prompts.first()?.1.clone(),
        prompt_file,
        format_requirements: reader.text("formatRequirements").map(|text| text.value),
        executor: executors.first()?.clone(),
        columns: columns(&executors, &prompts),
        evaluators,
        decide: match reader.text("decide").as_ref().map(|text| text.value.as_str()) {
            Some("all") => Decide::All,
            Some("mean") => Decide::Mean,
            _ => Decide::Majority,
        },
        select_best,
        improver,
        score_mode: if mode.is_some_and(|mode| mode.value == "clamp") { ScoreMode::Clamp } else { ScoreMode::Strict },
        min_score: thousandths(reader),
        examples: reader.texts("examples").unwrap_or_default().into_iter().map(|text| text.value).collect(),
        repeat: reader.count("repeat").map(std::num::NonZeroU32::get),
        into: reader.text("into").map(|path| path.value),
        limits: reader.get("limits").map(limits).unwrap_or_default(),
        criteria: defaults.criteria,
        cases,
    })
}

fn defaults(reading: &mut Reading<'_>, reader: Reader<'_>, evaluated: bool) -> Defaults {
    let Some(defaults) = reader.get("defaults") else {
        return Defaults { judged: evaluated, ..Defaults::default() };
    };
    let criteria = defaults.get("criteria").and_then(Reader::as_list).unwrap_or_default();
    // Whether a case has an expected output is not known here.
    let criteria = read_criteria(reading, &criteria, true);
    Defaults {
        judged: evaluated || !criteria.is_empty(),
        compares: criteria.iter().find_map(Criterion::compares),
        criteria,
        vars: Arc::new(values(defaults.text_map("vars"))),
        tags: Arc::new(defaults.texts("tags").unwrap_or_default().into_iter().map(|tag| tag.value).collect()),
    }
}

/// Reads the cases, here or in a file of their own.
fn all_cases(reading: &mut Reading<'_>, reader: Reader<'_>, defaults: &Defaults) -> Vec<(Case, Place)> {
    let (here, file) = (reader.get("cases"), reader.text("casesFile"));
    let Some(file) = file else {
        if here.is_none() {
            reading.faults.push(errors::no_cases(&reader.at()));
        }
        return read_cases(reading, &here.and_then(Reader::as_list).unwrap_or_default(), defaults);
    };
    if here.is_some() {
        reading.faults.push(errors::both(&file.at, "cases", "casesFile"));
    }
    let base = &reading.source.base;
    let read = read_text(&base.join(&file.value), reading.files);
    let CaseRows { source, rows } = match read.and_then(|text| rows_of(&file.value, text, base)) {
        Ok(rows) => rows,
        Err(why) => {
            reading.faults.push(errors::file_unreadable(&file.at, &file.value, &why));
            return Vec::new();
        }
    };
    let mut of_file = Reading {
        source: &source,
        files: reading.files,
        faults: Vec::new(),
        patterns: HashMap::new(),
        known: HashMap::new(),
    };
    let cases = match rows {
        Some(rows) => one_by_one(&mut of_file, &rows, defaults),
        None => listed(&mut of_file, defaults),
    };
    reading.faults.append(&mut of_file.faults);
    cases
}

/// Reads the cases of a source that is an object with the key `cases`.
fn listed(reading: &mut Reading<'_>, defaults: &Defaults) -> Vec<(Case, Place)> {
    let node = match parse_within(reading.source, LARGEST * 2) {
        Ok(node) => node,
        Err(fault) => {
            reading.faults.push(fault);
            return Vec::new();
        }
    };
    check(reading.source, &node, &CASES_FILE, false, &mut reading.faults);
    let rows = Reader::new(reading.source, &node).get("cases").and_then(Reader::as_list).unwrap_or_default();
    read_cases(reading, &rows, defaults)
}

/// Reads cases one by one: the parsed form of all of them takes much more memory than they do.
fn one_by_one(reading: &mut Reading<'_>, rows: &[Span], defaults: &Defaults) -> Vec<(Case, Place)> {
    let (mut cases, mut first) = (Vec::with_capacity(rows.len()), HashMap::with_capacity(rows.len()));
    for (number, row) in (1..).zip(rows) {
        match parse_part(reading.source, row.clone()) {
            Ok(node) => {
                check(reading.source, &node, &CASE, false, &mut reading.faults);
                cases.extend(read_case(reading, number, Reader::new(reading.source, &node), defaults, &mut first));
            }
            Err(fault) => reading.faults.push(fault),
        }
    }
    cases
}

/// Reports cases that lack a variable which the prompt names and other cases have.
fn check_variables(reading: &mut Reading<'_>, prompt: &str, cases: &[(Case, Place)]) {
    let known: BTreeSet<&String> = cases.iter().flat_map(|(case, _)| case.vars.keys()).collect();
    let named: Vec<&String> = known.into_iter().filter(|name| prompt.contains(&format!("{{{name}}}"))).collect();
    for (case, at) in cases {
        let missing = named.iter().filter(|name| !case.vars.contains_key(**name));
        reading.faults.extend(missing.map(|name| errors::no_variable(at, &case.id, name)));
    }
}
