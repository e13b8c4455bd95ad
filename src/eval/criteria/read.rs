//! Reads the criteria of a suite.

use super::command::{CommandCriterion, USUAL_TIMEOUT};
use super::path::{JsonPathCriterion, Wanted};
use super::{Criterion, JsonSchema, pattern};
use crate::chain::json::{Member, Node, Reader, parse_within, run, thousandths};
use crate::eval::errors;
use crate::eval::suite::keys::{KINDS, keys_of};
use crate::eval::suite::reading::{LARGEST, Reading, read_text};
use crate::source::{Place, Source, Text};
use regex::Regex;

/// Reads criteria. `expected`: whether their case has an expected output.
pub(in crate::eval) fn read_criteria(
    reading: &mut Reading<'_>,
    readers: &[Reader<'_>],
    expected: bool,
) -> Vec<Criterion> {
    readers.iter().filter_map(|reader| criterion(reading, *reader, expected)).collect()
}

fn criterion(reading: &mut Reading<'_>, reader: Reader<'_>, expected: bool) -> Option<Criterion> {
    let kind = reader.text("type")?;
    let (at, kind) = (kind.at, kind.value);
    let own = keys_of(&kind);
    // What the keys of an unknown type would be, nobody knows.
    if !KINDS.contains(&kind.as_str()) {
        return None;
    }
    let foreign = |member: &&Member<'_>| member.key != "type" && !own.contains(&member.key.as_ref());
    for member in reader.members().filter(foreign) {
        let place = Place::new(reading.source, member.key_span.clone());
        reading.faults.push(errors::foreign_key(&place, &member.key, &kind, own));
    }
    let found = match kind.as_str() {
        "exact" if expected => Ok(Criterion::Exact),
        "exact" => Err("an `expected` output in its case"),
        "keywords" => {
            let list = |key| -> Vec<String> {
                let words = reader.texts(key).unwrap_or_default().into_iter().map(|text| text.value);
                words.filter(|word| !word.trim().is_empty()).collect()
            };
            let (all, any, none) = (list("all"), list("any"), list("none"));
            if all.is_empty() && any.is_empty() && none.is_empty() {
                Err("`all`, `any` or `none`, a list of words")
            } else {
                Ok(Criterion::Keywords { all, any, none })
            }
        }
        "regex" => match reader.text("pattern") {
            None => Err("a `pattern`"),
            Some(text) => {
                let pattern = Box::new(shared_pattern(reading, &text)?);
                let not = reader.flag("not") == Some(true);
                Ok(if not { Criterion::NoPattern(pattern) } else { Criterion::Pattern(pattern) })
            }
        },
        "length" => {
            let bound = |key| reader.count(key).map(std::num::NonZeroU32::get);
            let (min, max) = (bound("min"), bound("max"));
            if let (Some(min), Some(max)) = (min, max)
                && min > max
            {
                reading.faults.push(errors::bad_bounds(&at, min, max));
            }
            let in_tokens = reader.text("unit").is_some_and(|unit| unit.value == "tokens");
            if min.is_none() && max.is_none() {
                Err("`min` or `max`")
            } else {
                Ok(Criterion::Length { min, max, in_tokens })
            }
        }
        "json" => return json(reading, reader),
        "jsonPath" => match reader.text("path") {
            None => Err("a `path`"),
            Some(path) => return json_path(reading, reader, &path),
        },
        "similar" => match thousandths(reader) {
            None => Err("a `minScore`"),
            Some(_) if !expected => Err("an `expected` output in its case"),
            Some(least) => Ok(Criterion::Similar(least)),
        },
        "cost" => reader.number("maxCost").map(Criterion::Cost).ok_or("a `maxCost`, in dollars"),
        "time" => reader.duration("maxTime").map(Criterion::Time).ok_or("a `maxTime`"),
        "run" => {
            let count = |key| reader.count(key).map(std::num::NonZeroU32::get);
            let (state, max_attempts, max_rounds) =
                (reader.text("state").map(|state| state.value), count("maxAttempts"), count("maxRounds"));
            if state.is_none() && max_attempts.is_none() && max_rounds.is_none() {
                Err("a `state`, `maxAttempts` or `maxRounds`")
            } else {
                Ok(Criterion::Run { state, max_attempts, max_rounds })
            }
        }
        "command" => match reader.get("run").and_then(run) {
            None => Err("a command, `run`"),
            Some(run) => Ok(Criterion::Command(CommandCriterion {
                run,
                folder: reading.source.base.clone(),
                timeout: reader.duration("timeout").unwrap_or(USUAL_TIMEOUT),
            })),
        },
        _ => return None,
    };
    found.map_err(|what| reading.faults.push(errors::lacks(&at, &kind, what))).ok()
}

fn shared_pattern(reading: &mut Reading<'_>, text: &Text) -> Option<Regex> {
    if let Some(known) = reading.patterns.get(&text.value) {
        return Some(known.clone());
    }
    let found = pattern(&text.value).map_err(|why| reading.faults.push(errors::bad_pattern(&text.at, &why))).ok()?;
    reading.patterns.insert(text.value.clone(), found.clone());
    Some(found)
}

fn json_path(reading: &mut Reading<'_>, reader: Reader<'_>, path: &Text) -> Option<Criterion> {
    let (equals, matches) = (reader.get("equals"), reader.text("pattern"));
    if let (Some(_), Some(matches)) = (equals, &matches) {
        reading.faults.push(errors::both(&matches.at, "equals", "pattern"));
    }
    let wanted = match (equals, matches) {
        (Some(equals), _) => Wanted::Equal(equals.node().to_json()),
        (None, Some(text)) => Wanted::Match(Box::new(shared_pattern(reading, &text)?)),
        (None, None) => Wanted::Anything,
    };
    let found = JsonPathCriterion::new(&path.value, wanted);
    found
        .map(|found| Criterion::JsonPath(Box::new(found)))
        .map_err(|why| reading.faults.push(errors::bad_path(&path.at, &why)))
        .ok()
}

fn json(reading: &mut Reading<'_>, reader: Reader<'_>) -> Option<Criterion> {
    let (here, file) = (reader.get("schema"), reader.text("schemaFile"));
    if let (Some(_), Some(file)) = (here, &file) {
        reading.faults.push(errors::both(&file.at, "schema", "schemaFile"));
    }
    let (schema, at) = match (here, file) {
        (Some(here), _) => (here.node().to_json(), here.at()),
        (None, None) => return Some(Criterion::Json(None)),
        (None, Some(file)) => {
            let path = reading.source.base.join(&file.value);
            let read = read_text(&path, reading.files).and_then(|text| {
                let source = Source::new(file.value.as_str(), text, &reading.source.base);
                parse_within(&source, LARGEST).map_err(|fault| fault.message).map(|node: Node<'_>| node.to_json())
            });
            match read {
                Ok(schema) => (schema, file.at),
                Err(why) => {
                    reading.faults.push(errors::file_unreadable(&file.at, &file.value, &why));
                    return None;
                }
            }
        }
    };
    match JsonSchema::new(schema) {
        Ok(schema) => Some(Criterion::Json(Some(Box::new(schema)))),
        Err(why) => {
            reading.faults.push(errors::bad_schema(&at, &why));
            None
        }
    }
}
