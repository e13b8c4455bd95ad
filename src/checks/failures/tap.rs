//! The Test Anything Protocol (<https://testanything.org>): node --test on a pipe, tap, tape, ava --tap, bats, prove.

use super::page::{Location, Page, failure, indent, own_frame};
use std::ops::Range;

/// The longest block of one result, in lines.
const LONGEST: usize = 500;

/// Reads `not ok 2 - greets`, and the details below it.
pub(super) fn results(page: &mut Page<'_>) {
    let head = |line: &str| regex!(r"^\s*not ok \d+").is_some_and(|head| head.is_match(line));
    let heads: Vec<usize> = (0..page.lines.len()).filter(|at| !page.is_claimed(*at) && head(page.line(*at))).collect();
    let mut deeper: Option<usize> = None;
    for at in heads {
        let line = page.line(at).to_string();
        let depth = indent(&line);
        let had_part = deeper.is_some_and(|before| before > depth);
        deeper = Some(depth);
        let directive = regex!(r"(?i)# (todo|skip)\b").is_some_and(|directive| directive.is_match(&line));
        if had_part || directive {
            continue;
        }
        let below = |line: &str| {
            indent(line) <= depth && regex!(r"^\s*(not ok|ok|1\.\.)").is_some_and(|next| next.is_match(line))
        };
        let limit = (at + LONGEST).min(page.lines.len());
        let end = page.find(at + 1..limit, below).unwrap_or(limit);
        let opened = page.find(at + 1..end.min(at + 3), |line| line.trim() == "---");
        let closed = opened.and_then(|open| page.find(open + 1..end, |line| line.trim() == "..."));
        let name =
            regex!(r"not ok \d+ ?-? ?(.*)$").and_then(|name| Some(name.captures(&line)?.get(1)?.as_str().to_string()));
        let name = name.unwrap_or_default();
        page.has_results = true;
        match (opened, closed) {
            (Some(open), Some(close)) => {
                if let Some((reason, place)) = of_yaml(page, open + 1..close, &name) {
                    page.claim(open..close + 1);
                    page.sure(at, failure(place, None, &reason));
                }
            }
            _ => of_comments(page, at, end, &name),
        }
    }
}

/// Reads a block of YAML; none if the error is in the comments above it.
fn of_yaml(page: &Page<'_>, block: Range<usize>, name: &str) -> Option<(String, Option<Location>)> {
    let value = |key: &str| {
        let at = block.clone().find(|at| page.line(*at).trim_start().starts_with(&format!("{key}:")))?;
        let value = page.line(at).split_once(':').map_or("", |(_, value)| value).trim();
        if !value.is_empty() && !value.starts_with(['|', '>']) {
            return Some(value.trim_matches(['\'', '"', ',']).to_string());
        }
        // A value of several lines.
        let depth = indent(page.line(at));
        let lines =
            (at + 1..block.end).map(|at| page.line(at)).take_while(|line| indent(line) > depth || line.is_empty());
        Some(lines.filter(|line| !line.trim().is_empty()).take(3).map(str::trim).collect::<Vec<_>>().join(" "))
    };
    let error = value("error");
    if value("failureType").is_some_and(|kind| kind.contains("subtestsFailed"))
        || error.as_deref() == Some("test failed")
    {
        return None;
    }
    let reason = match (error, value("message")) {
        (Some(error), _) if !error.is_empty() => error,
        (_, Some(message)) if !message.is_empty() => format!("{name}: {message}"),
        _ => match (value("expected"), value("actual")) {
            (Some(expected), Some(actual)) => format!("{name}: expected {expected}, got {actual}"),
            _ => name.to_string(),
        },
    };
    let quoted = |key: &str| value(key).and_then(|text| Location::parse(text.rsplit('(').next().unwrap_or(&text)));
    let line_of = || {
        let file = value("fileName").or_else(|| value("file"))?;
        Location::of(&file, &value("lineNumber").or_else(|| value("line"))?)
    };
    let at_line = block.clone().find_map(|at| Location::parse(page.line(at).trim_start().strip_prefix("at: ")?));
    let in_stack = block.clone().find_map(|at| {
        let (_, place) = page.line(at).rsplit_once(" (")?;
        Location::parse(place).filter(|place| place.is_own() && place.column.is_some())
    });
    let place = own_frame(page, block.clone())
        .or(in_stack)
        .or_else(|| quoted("at"))
        .or(at_line)
        .or_else(line_of)
        .or_else(|| quoted("location"));
    Some((reason, place.filter(Location::is_own)))
}

/// Reads the comments below a result, as bats and Perl write them.
fn of_comments(page: &mut Page<'_>, at: usize, end: usize, name: &str) {
    let comments: Vec<usize> = (at + 1..end).take_while(|next| page.line(*next).starts_with('#')).collect();
    let place = comments.iter().find_map(|next| {
        let found = regex!(r"in test file ([^,]+), line (\d+)\)")?.captures(page.line(*next))?;
        Location::of(found.get(1)?.as_str(), found.get(2)?.as_str())
    });
    let Some(place) = place else {
        page.likely(at, failure(None, None, &format!("not ok: {name}")));
        return;
    };
    let said = |line: &str| !line.contains("in test file ") && !line.contains("(from function");
    let reason = comments.iter().find(|next| said(page.line(**next))).copied().unwrap_or(at);
    let text = |at: usize| page.line(at).trim_start_matches(['#', ' ']);
    let more = Some(reason + 1).filter(|next| comments.contains(next) && said(page.line(*next)));
    let message = more.map_or(text(reason).to_string(), |more| format!("{}: {}", text(reason), text(more)));
    page.claim(at..end.min(at + 1 + comments.len()));
    page.sure(reason, failure(Some(place), None, &message));
}
