//! A suite, or a file of cases, while it is read: its source, and the errors so far.

use crate::chain::json::Reader;
use crate::eval::criteria::Criterion;
use crate::eval::errors;
use crate::source::{Diagnostic, Files, Kind, Source, Text};
use regex::Regex;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// The largest suite, and the largest file that a suite names, in bytes.
pub(in crate::eval) const LARGEST: usize = 64 << 20;

/// A suite, or a file of cases, that is being read.
pub(in crate::eval) struct Reading<'a> {
    pub(in crate::eval) source: &'a Arc<Source>,
    pub(in crate::eval) files: &'a dyn Files,
    pub(in crate::eval) faults: Vec<Diagnostic>,
    /// The patterns so far, by their text: cases share them.
    pub(in crate::eval) patterns: HashMap<String, Regex>,
    /// The criteria so far, by their JSON, and whether their cases have an expected output: cases share them.
    pub(super) known: HashMap<(String, bool), Arc<Vec<Criterion>>>,
}

impl Reading<'_> {
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
