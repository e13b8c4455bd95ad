//! `explain`: what the code of an error means. The words are those of docs/errors.md.

use crate::cli::args::ExplainArgs;
use crate::cli::respond::{Answered, answer, json_line};
use crate::report::Paint;
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
        return Ok(answer(&(codes.join("\n") + "\n")));
    };
    match entries().find(|(known, _)| known == code) {
        Some((code, words)) if args.json => {
            Ok(answer(&json_line(json!({ "code": code, "explanation": words.trim() }))))
        }
        Some((code, words)) => Ok(answer(&format!("{}\n\n{}\n", Paint::for_stdout(world).bold(code), words.trim()))),
        None => Err(unknown(code).into()),
    }
}

/// Every code.
pub(super) fn codes() -> impl Iterator<Item = &'static str> {
    entries().map(|(code, _)| code)
}

/// Every code with its words, in the page's order.
fn entries() -> impl Iterator<Item = (&'static str, &'static str)> {
    ERRORS.split("\n### ").skip(1).map(|entry| {
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
