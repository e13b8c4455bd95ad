//! A suite: the prompt, the agents, the cases. All its errors are reported at once, before anything is started.

mod cases;
mod cases_file;
mod columns;
mod given;
pub(super) mod keys;

use super::criteria::Criterion;
use super::criteria::command::CommandCriterion;
use super::errors;
use super::trees::CaseTree;
use crate::chain::Limits;
use crate::chain::json::{Reader, check, limits, parse_part, parse_within, thousandths};
use crate::source::{Diagnostic, Files, Kind, Place, Source, Span, Text};
use crate::verdict::ScoreMode;
use cases_file::{CaseRows, rows_of};
pub use columns::Column;
use columns::columns;
use indexmap::IndexMap;
pub use keys::suite_schema;
use keys::{CASE, CASES_FILE, SUITE};
use regex::Regex;
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest suite, and the largest file that a suite names, in bytes.
pub(in crate::eval) const LARGEST: usize = 64 << 20;
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
        let suite = reading.suite(Reader::new(&source, &node));
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

/// Why a file cannot be read, in words.
pub(super) fn unreadable(error: &io::Error) -> String {
    if error.kind() == ErrorKind::NotFound { "it does not exist".into() } else { error.to_string() }
}

pub(in crate::eval) fn read_text(path: &Path, files: &dyn Files) -> Result<String, String> {
    match files.kind(path).map_err(|error| unreadable(&error))? {
        Kind::File { bytes, .. } if bytes > LARGEST as u64 => return Err("it is larger than 64 MiB".into()),
        Kind::File { .. } => {}
        Kind::Folder => return Err("it is a directory".into()),
        Kind::Other => return Err("it is not a regular file".into()),
    }
    let bytes = files.read(path).map_err(|error| unreadable(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_string())?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_string(),
        None => text,
    })
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

/// A suite, or a file of cases, that is being read.
pub(in crate::eval) struct Reading<'a> {
    pub(in crate::eval) source: &'a Arc<Source>,
    pub(in crate::eval) files: &'a dyn Files,
    pub(in crate::eval) faults: Vec<Diagnostic>,
    /// The patterns so far, by their text: cases share them.
    pub(in crate::eval) patterns: HashMap<String, Regex>,
    /// The criteria so far, by their JSON, and whether their cases have an expected output: cases share them.
    known: HashMap<(String, bool), Arc<Vec<Criterion>>>,
}

impl Reading<'_> {
    fn suite(&mut self, reader: Reader<'_>) -> Option<Suite> {
        let evaluators = self.agents(reader, "evaluator", "evaluators");
        let prompt_file = reader.text("promptFile").map(|file| self.source.base.join(&file.value));
        let (task_type, prompts) = (self.said(reader, "taskType"), self.prompts(reader));
        let mut executors = self.agents(reader, "executor", "executors");
        let select_best = self.said(reader, "selectBest");
        let defaults = self.defaults(reader, !evaluators.is_empty() || select_best.is_some());
        let cases = self.all_cases(reader, &defaults);
        for (_, prompt) in &prompts {
            self.check_variables(prompt, &cases);
        }
        self.check_trees(reader, &cases);
        if executors.is_empty() && reader.get("executor").is_none() && reader.get("executors").is_none() {
            match evaluators.first().filter(|_| cases.iter().all(|(case, _)| case.output.is_some())) {
                // Nobody is asked for an answer.
                Some(evaluator) => executors.push(evaluator.clone()),
                None => self.faults.push(errors::no_executor(&reader.at())),
            }
        }
        if let Some(agent) = select_best.as_ref().filter(|_| executors.len() * prompts.len() < 2) {
            self.faults.push(errors::nothing_to_select(&agent.at));
        }
        if let Some(agent) = select_best.as_ref().filter(|_| cases.iter().any(|(case, _)| case.tree.is_some())) {
            self.faults.push(errors::select_on_trees(&agent.at));
        }
        let (improver, mode) = (self.said(reader, "improver"), reader.text("scoreMode"));
        let mut cases: Vec<Case> = cases.into_iter().map(|(case, _)| case).collect();
        cases.shrink_to_fit();
        Some(Suite {
            name: self.source.name.clone(),
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
            score_mode: if mode.is_some_and(|mode| mode.value == "clamp") {
                ScoreMode::Clamp
            } else {
                ScoreMode::Strict
            },
            min_score: thousandths(reader),
            examples: reader.texts("examples").unwrap_or_default().into_iter().map(|text| text.value).collect(),
            repeat: reader.count("repeat").map(std::num::NonZeroU32::get),
            into: reader.text("into").map(|path| path.value),
            limits: reader.get("limits").map(limits).unwrap_or_default(),
            criteria: defaults.criteria,
            cases,
        })
    }

    /// Reads a string that is not blank.
    pub(super) fn said(&mut self, reader: Reader<'_>, key: &str) -> Option<Text> {
        let text = reader.text(key)?;
        if text.value.trim().is_empty() {
            self.faults.push(errors::blank(&text.at, key));
            return None;
        }
        Some(text)
    }

    /// Reads a text that is given here or in a file.
    pub(super) fn said_or_file(&mut self, reader: Reader<'_>, key: &str, file_key: &str) -> Option<String> {
        if let (Some(_), Some(file)) = (reader.get(key), reader.get(file_key)) {
            // Keys of which one is required are checked by the table of keys.
            if key == "expected" {
                self.faults.push(errors::both(&file.at(), key, file_key));
            }
        }
        if let Some(text) = self.said(reader, key) {
            return Some(text.value);
        }
        let file = self.said(reader, file_key)?;
        match read_text(&self.source.base.join(&file.value), self.files) {
            Ok(text) if text.trim().is_empty() => self.faults.push(errors::blank(&file.at, key)),
            Ok(text) => return Some(text.strip_suffix('\n').map_or(text.clone(), str::to_string)),
            Err(why) => self.faults.push(errors::file_unreadable(&file.at, &file.value, &why)),
        }
        None
    }

    fn defaults(&mut self, reader: Reader<'_>, evaluated: bool) -> Defaults {
        let Some(defaults) = reader.get("defaults") else {
            return Defaults { judged: evaluated, ..Defaults::default() };
        };
        let criteria = defaults.get("criteria").and_then(Reader::as_list).unwrap_or_default();
        // Whether a case has an expected output is not known here.
        let criteria = self.criteria(&criteria, true);
        Defaults {
            judged: evaluated || !criteria.is_empty(),
            compares: criteria.iter().find_map(Criterion::compares),
            criteria,
            vars: Arc::new(values(defaults.text_map("vars"))),
            tags: Arc::new(defaults.texts("tags").unwrap_or_default().into_iter().map(|tag| tag.value).collect()),
        }
    }

    /// Reads the cases, here or in a file of their own.
    fn all_cases(&mut self, reader: Reader<'_>, defaults: &Defaults) -> Vec<(Case, Place)> {
        let (here, file) = (reader.get("cases"), reader.text("casesFile"));
        let Some(file) = file else {
            if here.is_none() {
                self.faults.push(errors::no_cases(&reader.at()));
            }
            return self.cases(&here.and_then(Reader::as_list).unwrap_or_default(), defaults);
        };
        if here.is_some() {
            self.faults.push(errors::both(&file.at, "cases", "casesFile"));
        }
        let base = &self.source.base;
        let read = read_text(&base.join(&file.value), self.files);
        let CaseRows { source, rows } = match read.and_then(|text| rows_of(&file.value, text, base)) {
            Ok(rows) => rows,
            Err(why) => {
                self.faults.push(errors::file_unreadable(&file.at, &file.value, &why));
                return Vec::new();
            }
        };
        let mut reading = Reading {
            source: &source,
            files: self.files,
            faults: Vec::new(),
            patterns: HashMap::new(),
            known: HashMap::new(),
        };
        let cases = match rows {
            Some(rows) => reading.rows(&rows, defaults),
            None => reading.array(defaults),
        };
        self.faults.append(&mut reading.faults);
        cases
    }

    /// Reads the cases of a source that is an object with the key `cases`.
    fn array(&mut self, defaults: &Defaults) -> Vec<(Case, Place)> {
        let node = match parse_within(self.source, LARGEST * 2) {
            Ok(node) => node,
            Err(fault) => {
                self.faults.push(fault);
                return Vec::new();
            }
        };
        check(self.source, &node, &CASES_FILE, false, &mut self.faults);
        let rows = Reader::new(self.source, &node).get("cases").and_then(Reader::as_list).unwrap_or_default();
        self.cases(&rows, defaults)
    }

    /// Reads cases one by one: the parsed form of all of them takes much more memory than they do.
    fn rows(&mut self, rows: &[Span], defaults: &Defaults) -> Vec<(Case, Place)> {
        let (mut cases, mut first) = (Vec::with_capacity(rows.len()), HashMap::with_capacity(rows.len()));
        for (number, row) in (1..).zip(rows) {
            match parse_part(self.source, row.clone()) {
                Ok(node) => {
                    check(self.source, &node, &CASE, false, &mut self.faults);
                    cases.extend(self.case(number, Reader::new(self.source, &node), defaults, &mut first));
                }
                Err(fault) => self.faults.push(fault),
            }
        }
        cases
    }

    /// Reports cases that lack a variable which the prompt names and other cases have.
    fn check_variables(&mut self, prompt: &str, cases: &[(Case, Place)]) {
        let known: BTreeSet<&String> = cases.iter().flat_map(|(case, _)| case.vars.keys()).collect();
        let named: Vec<&String> = known.into_iter().filter(|name| prompt.contains(&format!("{{{name}}}"))).collect();
        for (case, at) in cases {
            let missing = named.iter().filter(|name| !case.vars.contains_key(**name));
            self.faults.extend(missing.map(|name| errors::no_variable(at, &case.id, name)));
        }
    }
}
