//! `explain`: what an error code means, with the text of docs/errors.md.

use crate::cli::args::ExplainArgs;
use crate::cli::respond::{Answered, answer, json_line};
use crate::report::{Paint, fitted};
use crate::source::{Diagnostic, nearest};
use crate::world::World;
use serde_json::json;

const ERRORS: &str = include_str!("../../docs/errors.md");

/// Explains a code, or lists all of them.
pub(super) fn explain(world: &World, args: &ExplainArgs) -> Answered {
    let Some(code) = &args.code else {
        let codes: Vec<&str> = codes().collect();
        if args.json {
            return Ok(answer(&json_line(json!({ "codes": codes }))));
        }
        let paint = Paint::for_stdout(world);
        return Ok(answer(&list(paint, if paint.terminal { paint.width } else { usize::MAX })));
    };
    match entries().find(|(known, _)| known == code) {
        Some((code, words)) if args.json => {
            Ok(answer(&json_line(json!({ "code": code, "explanation": words.trim() }))))
        }
        Some((code, words)) => {
            Ok(answer(&format!("{}\n\n{}", Paint::for_stdout(world).bold(code), plain(words.trim()))))
        }
        None => Err(unknown(code).into()),
    }
}

/// The widest code of the page, in columns.
const CODE: usize = 28;

/// Returns all codes with the first sentence of their explanations, below the page's headings.
fn list(paint: Paint, width: usize) -> String {
    let mut text = String::new();
    for section in ERRORS.split("\n## ").skip(1) {
        let heading = section.lines().next().unwrap_or_default();
        text += if text.is_empty() { "" } else { "\n" };
        text += &(paint.bold(heading) + "\n");
        for (code, words) in entries_of(section) {
            let paragraph = words.trim().split("\n\n").next().unwrap_or_default();
            let paragraph: Vec<String> = paragraph.lines().map(without_links).collect();
            let paragraph = paragraph.join(" ");
            let sentence = paragraph.split_once(". ").map_or(paragraph.as_str(), |(first, _)| first);
            let line = format!("  {code:<CODE$}{}", sentence.trim_end_matches(['.', ':']));
            text += &(fitted(line.trim_end(), width) + "\n");
        }
    }
    text
}

/// Returns an explanation for a terminal: the lines of code blocks indented, without their fences.
fn plain(words: &str) -> String {
    let (mut text, mut in_code) = (String::new(), false);
    for line in words.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
            continue;
        }
        text += if in_code && !line.is_empty() { "    " } else { "" };
        text += &if in_code { line.to_string() } else { without_links(line) };
        text.push('\n');
    }
    text
}

/// Returns a line of Markdown with its links as their texts.
fn without_links(line: &str) -> String {
    let (mut text, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once('[')
        && let Some((label, after)) = after.split_once("](")
        && let Some((target, after)) = after.split_once(')')
    {
        text.extend([before, label, " (docs/", target, ")"]);
        rest = after;
    }
    text + rest
}

/// All error codes, in the page's order.
pub(super) fn codes() -> impl Iterator<Item = &'static str> {
    entries().map(|(code, _)| code)
}

/// All error codes with their explanations, in the page's order.
fn entries() -> impl Iterator<Item = (&'static str, &'static str)> {
    entries_of(ERRORS)
}

fn entries_of(page: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    page.split("\n### ").skip(1).map(|entry| {
        let (code, words) = entry.split_once('\n').unwrap_or((entry, ""));
        // A heading of the page ends an entry.
        (code.trim().trim_matches('`'), words.split("\n## ").next().unwrap_or_default())
    })
}

fn unknown(code: &str) -> Diagnostic {
    let near = nearest(code, codes());
    Diagnostic::error("explain/unknown", format!("no error has the code `{code}`")).help(
        near.map_or_else(|| "`forkhestra explain` lists all of them".into(), |near| format!("did you mean `{near}`?")),
    )
}
