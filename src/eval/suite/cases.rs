//! Reads the cases of a suite.

use super::given::{read_recorded, read_tree};
use super::reading::Reading;
use super::{Case, Defaults, LONGEST_ID, values};
use crate::chain::json::Reader;
use crate::eval::criteria::Criterion;
use crate::eval::criteria::read::read_criteria;
use crate::eval::errors;
use crate::source::{Place, Span, Text};
use std::collections::HashMap;
use std::sync::Arc;

/// Reads the criteria of a case. Equal ones are read once, unless they have errors.
fn shared_criteria(reading: &mut Reading<'_>, reader: Option<Reader<'_>>, expected: bool) -> Arc<Vec<Criterion>> {
    let key = (reader.map_or_else(String::new, |reader| reader.node().to_json().to_string()), expected);
    if let Some(known) = reading.known.get(&key) {
        return Arc::clone(known);
    }
    let errors = reading.faults.len();
    let criteria = Arc::new(read_criteria(reading, &reader.and_then(Reader::as_list).unwrap_or_default(), expected));
    if reading.faults.len() == errors {
        reading.known.insert(key, Arc::clone(&criteria));
    }
    criteria
}

/// Reads cases that are given as rows, with their places.
pub(super) fn read_cases(reading: &mut Reading<'_>, rows: &[Reader<'_>], defaults: &Defaults) -> Vec<(Case, Place)> {
    let mut first = HashMap::new();
    (1..).zip(rows).filter_map(|(number, reader)| read_case(reading, number, *reader, defaults, &mut first)).collect()
}

/// Reads a case, by its number from 1. `first` has the number and the place of each id so far.
pub(super) fn read_case(
    reading: &mut Reading<'_>,
    row: usize,
    reader: Reader<'_>,
    defaults: &Defaults,
    first: &mut HashMap<Arc<str>, (usize, Span)>,
) -> Option<(Case, Place)> {
    let id = reader.text("id").map(|Text { value, at }| (Arc::<str>::from(value), at));
    if let Some((id, at)) = &id {
        let strange = |sign: char| {
            sign.is_control()
                || matches!(sign, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        let one_line = id.trim() == &**id && !id.contains(strange) && !id.is_empty();
        if !one_line || id.chars().count() > LONGEST_ID {
            reading.faults.push(errors::no_id(at, row, id.trim() != &**id));
        } else if let Some((first_row, span)) = first.get(id) {
            let first = Place::new(reading.source, span.clone());
            reading.faults.push(errors::duplicate_id(at, id, &first, row, *first_row));
        } else {
            first.insert(Arc::clone(id), (row, at.span.clone()));
        }
    }
    let text = reading.said_or_file(reader, "text", "textFile");
    let expected = reading.said_or_file(reader, "expected", "expectedFile");
    let (output, label) = read_recorded(reading, reader);
    let criteria = shared_criteria(reading, reader.get("criteria"), expected.is_some());
    let tree = read_tree(reading, reader).map(Box::new);
    let (id, at) = id?;
    if reader.get("criteria").is_none() && !defaults.judged {
        reading.faults.push(errors::nobody_judges(&at, &id));
    }
    if let (Some(kind), None) = (defaults.compares, &expected) {
        reading.faults.push(errors::lacks(&at, kind, "an `expected` output in its case"));
    }
    let mut vars = Arc::clone(&defaults.vars);
    let own = values(reader.text_map("vars"));
    if !own.is_empty() {
        Arc::make_mut(&mut vars).extend(own);
    }
    if text.is_none() && vars.is_empty() && reader.get("text").is_none() && reader.get("textFile").is_none() {
        reading.faults.push(errors::no_text(&at, &id));
    }
    let mut tags = Arc::clone(&defaults.tags);
    if let Some(own) = reader.texts("tags") {
        Arc::make_mut(&mut tags).extend(own.into_iter().map(|tag| tag.value));
    }
    let repeat = reader.count("repeat").map(std::num::NonZeroU32::get);
    let text = text.unwrap_or_default().into_boxed_str();
    let (output, expected) = (output.map(String::into_boxed_str), expected.map(String::into_boxed_str));
    Some((Case { id, text, vars, tags, tree, output, label, expected, repeat, criteria }, at))
}
