//! A suite: the prompt, the agents, the cases. All its errors are reported at once, before anything is started.

use super::criteria::{Criterion, JsonSchema, pattern};
use super::errors;
use super::keys::{KINDS, SUITE, keys_of};
use crate::chain::Limits;
use crate::chain::json::{Member, Node, Reader, check, limits, parse_within, thousandths};
use crate::source::{Diagnostic, Files, Kind, Place, Source, Text};
use crate::verdict::ScoreMode;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest suite, and the largest file that a suite names, in bytes.
const LARGEST: usize = 64 << 20;
/// The longest ID, in characters.
const LONGEST_ID: usize = 80;

/// A suite: a prompt, its agents, and the cases that measure it.
#[derive(Debug)]
pub struct Suite {
    /// The path of the suite, as the user gave it.
    pub name: String,
    /// The kind of task, in a few words.
    pub task_type: String,
    /// The prompt to measure.
    pub prompt: String,
    /// The file that contains the prompt, if there is one.
    pub prompt_file: Option<PathBuf>,
    /// What an output must look like.
    pub format_requirements: Option<String>,
    /// The agent that answers the prompt.
    pub executor: Text,
    /// The agent that judges the answers, in addition to criteria.
    pub evaluator: Option<Text>,
    /// The agent that rewrites the prompt.
    pub improver: Option<Text>,
    /// What a score out of bounds means.
    pub score_mode: ScoreMode,
    /// The lowest score that passes, in thousandths.
    pub min_score: Option<u32>,
    /// Texts that a prompt must not give away.
    pub examples: Vec<String>,
    /// The limits of the whole evaluation.
    pub limits: Limits,
    /// The cases that measure the prompt.
    pub cases: Vec<Case>,
}

/// A case: an input, and what its output must be.
#[derive(Debug)]
pub struct Case {
    /// The ID, unique in the suite.
    pub id: String,
    /// The input text.
    pub text: String,
    /// The expected output.
    pub expected: Option<String>,
    /// What the output must be, judged without a model.
    pub criteria: Vec<Criterion>,
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
        let mut reading = Reading { source: &source, files, faults };
        let suite = reading.suite(Reader::new(&source, &node));
        match suite {
            Some(suite) if reading.faults.is_empty() => Ok(suite),
            _ => Err(reading.faults),
        }
    }

    /// Keeps only the cases with these IDs.
    ///
    /// # Errors
    /// The IDs that no case has, with those that exist.
    pub fn keep(&mut self, ids: &[String]) -> Result<(), Vec<Diagnostic>> {
        let known: Vec<&str> = self.cases.iter().map(|case| case.id.as_str()).collect();
        let unknown: Vec<Diagnostic> =
            ids.iter().filter(|id| !known.contains(&id.as_str())).map(|id| errors::unknown_case(id, &known)).collect();
        if !unknown.is_empty() {
            return Err(unknown);
        }
        if !ids.is_empty() {
            self.cases.retain(|case| ids.contains(&case.id));
        }
        Ok(())
    }

    /// The agent that rewrites the prompt: the improver, else the evaluator, else the executor.
    #[must_use]
    pub fn rewriter(&self) -> &Text {
        self.improver.as_ref().or(self.evaluator.as_ref()).unwrap_or(&self.executor)
    }
}

/// Why a file cannot be read, in words.
fn unreadable(error: &io::Error) -> String {
    if error.kind() == ErrorKind::NotFound { "it does not exist".into() } else { error.to_string() }
}

fn read_text(path: &Path, files: &dyn Files) -> Result<String, String> {
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

struct Reading<'a> {
    source: &'a Arc<Source>,
    files: &'a dyn Files,
    faults: Vec<Diagnostic>,
}

impl Reading<'_> {
    fn suite(&mut self, reader: Reader<'_>) -> Option<Suite> {
        let evaluator = self.said(reader, "evaluator");
        let prompt_file = reader.text("promptFile").map(|file| self.source.base.join(&file.value));
        let (task_type, prompt) = (self.said(reader, "taskType"), self.said_or_file(reader, "prompt", "promptFile"));
        let executor = self.said(reader, "executor");
        let cases = reader.get("cases").and_then(Reader::as_list).unwrap_or_default();
        let cases = self.cases(&cases, evaluator.is_some());
        let (improver, mode) = (self.said(reader, "improver"), reader.text("scoreMode"));
        Some(Suite {
            name: self.source.name.clone(),
            task_type: task_type?.value,
            prompt: prompt?.trim().to_string(),
            prompt_file,
            format_requirements: reader.text("formatRequirements").map(|text| text.value),
            executor: executor?,
            evaluator,
            improver,
            score_mode: if mode.is_some_and(|mode| mode.value == "clamp") {
                ScoreMode::Clamp
            } else {
                ScoreMode::Strict
            },
            min_score: thousandths(reader),
            examples: reader.texts("examples").unwrap_or_default().into_iter().map(|text| text.value).collect(),
            limits: reader.get("limits").map(limits).unwrap_or_default(),
            cases,
        })
    }

    /// Reads a string that is not blank.
    fn said(&mut self, reader: Reader<'_>, key: &str) -> Option<Text> {
        let text = reader.text(key)?;
        if text.value.trim().is_empty() {
            self.faults.push(errors::blank(&text.at, key));
            return None;
        }
        Some(text)
    }

    /// Reads a text that is given here or in a file.
    fn said_or_file(&mut self, reader: Reader<'_>, key: &str, file_key: &str) -> Option<String> {
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

    fn cases(&mut self, rows: &[Reader<'_>], evaluated: bool) -> Vec<Case> {
        let (mut cases, mut first): (Vec<Case>, HashMap<String, (usize, Place)>) = (Vec::new(), HashMap::new());
        for (row, reader) in (1..).zip(rows) {
            let id = reader.text("id");
            if let Some(id) = &id {
                let strange = |sign: char| {
                    sign.is_control()
                        || matches!(sign, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
                };
                let one_line = id.value.trim() == id.value && !id.value.contains(strange) && !id.value.is_empty();
                if !one_line || id.value.chars().count() > LONGEST_ID {
                    self.faults.push(errors::no_id(&id.at, row, id.value.trim() != id.value));
                } else if let Some((first_row, at)) = first.get(&id.value) {
                    self.faults.push(errors::duplicate_id(&id.at, &id.value, at, row, *first_row));
                } else {
                    first.insert(id.value.clone(), (row, id.at.clone()));
                }
            }
            let text = self.said_or_file(*reader, "text", "textFile");
            let expected = self.said_or_file(*reader, "expected", "expectedFile");
            let criteria = reader.get("criteria").and_then(Reader::as_list);
            let criteria = self.criteria(criteria.as_deref().unwrap_or_default(), expected.is_some());
            if let (None, false, Some(id)) = (reader.get("criteria"), evaluated, &id) {
                self.faults.push(errors::nobody_judges(&id.at, &id.value));
            }
            if let (Some(id), Some(text)) = (id, text) {
                cases.push(Case { id: id.value, text, expected, criteria });
            }
        }
        cases
    }

    fn criteria(&mut self, readers: &[Reader<'_>], expected: bool) -> Vec<Criterion> {
        readers.iter().filter_map(|reader| self.criterion(*reader, expected)).collect()
    }

    fn criterion(&mut self, reader: Reader<'_>, expected: bool) -> Option<Criterion> {
        let kind = reader.text("type")?;
        let (at, kind) = (kind.at, kind.value);
        let own = keys_of(&kind);
        // What the keys of an unknown type would be, nobody knows.
        if !KINDS.contains(&kind.as_str()) {
            return None;
        }
        let foreign = |member: &&Member| member.key != "type" && !own.contains(&member.key.as_str());
        for member in reader.members().filter(foreign) {
            let place = Place::new(self.source, member.key_span.clone());
            self.faults.push(errors::foreign_key(&place, &member.key, &kind, own));
        }
        let found = match kind.as_str() {
            "exact" if expected => Ok(Criterion::Exact),
            "exact" => Err("an `expected` output in its case"),
            "keywords" => {
                let list = |key| -> Vec<String> {
                    let words = reader.texts(key).unwrap_or_default().into_iter().map(|text| text.value);
                    words.filter(|word| !word.trim().is_empty()).collect()
                };
                let (all, any) = (list("all"), list("any"));
                if all.is_empty() && any.is_empty() {
                    Err("`all` or `any`, a list of words")
                } else {
                    Ok(Criterion::Keywords { all, any })
                }
            }
            "regex" => match reader.text("pattern") {
                None => Err("a `pattern`"),
                Some(text) => match pattern(&text.value) {
                    Ok(pattern) => Ok(Criterion::Pattern(Box::new(pattern))),
                    Err(why) => {
                        self.faults.push(errors::bad_pattern(&text.at, &why));
                        return None;
                    }
                },
            },
            "length" => {
                let bound = |key| reader.count(key).map(std::num::NonZeroU32::get);
                let (min, max) = (bound("min"), bound("max"));
                if let (Some(min), Some(max)) = (min, max)
                    && min > max
                {
                    self.faults.push(errors::bad_bounds(&at, min, max));
                }
                let in_tokens = reader.text("unit").is_some_and(|unit| unit.value == "tokens");
                if min.is_none() && max.is_none() {
                    Err("`min` or `max`")
                } else {
                    Ok(Criterion::Length { min, max, in_tokens })
                }
            }
            "json" => return self.json(reader),
            _ => return None,
        };
        found.map_err(|what| self.faults.push(errors::lacks(&at, &kind, what))).ok()
    }

    fn json(&mut self, reader: Reader<'_>) -> Option<Criterion> {
        let (here, file) = (reader.get("schema"), reader.text("schemaFile"));
        if let (Some(_), Some(file)) = (here, &file) {
            self.faults.push(errors::both(&file.at, "schema", "schemaFile"));
        }
        let (schema, at) = match (here, file) {
            (Some(here), _) => (here.node().to_json(), here.at()),
            (None, None) => return Some(Criterion::Json(None)),
            (None, Some(file)) => {
                let path = self.source.base.join(&file.value);
                let read = read_text(&path, self.files).and_then(|text| {
                    let source = Source::new(file.value.as_str(), text, &self.source.base);
                    parse_within(&source, LARGEST).map_err(|fault| fault.message).map(|node: Node| node.to_json())
                });
                match read {
                    Ok(schema) => (schema, file.at),
                    Err(why) => {
                        self.faults.push(errors::file_unreadable(&file.at, &file.value, &why));
                        return None;
                    }
                }
            }
        };
        match JsonSchema::new(schema) {
            Ok(schema) => Some(Criterion::Json(Some(Box::new(schema)))),
            Err(why) => {
                self.faults.push(errors::bad_schema(&at, &why));
                None
            }
        }
    }
}
