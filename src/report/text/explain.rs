//! A rendered prompt, piece by piece: where each piece comes from, and how large it is.

use crate::plan::SystemPart;
use crate::prompt::{Origin, Piece, Rendered};
use crate::report::format::{padded, width};
use crate::report::paint::{Paint, printable};
use serde_json::{Value, json};
use std::fmt::Write;

/// The maximum length of the excerpt of a piece, in characters.
const EXCERPT: usize = 60;

fn origin_label(origin: &Origin) -> String {
    match origin {
        Origin::Template(place) => format!("{place}"),
        Origin::Skill(name, place) => format!("skill {name} ({place})"),
        Origin::Variable(name) => format!("variable {name}"),
        Origin::Late(name) => format!("variable {name}, known only in a run"),
        Origin::Note => "note that it was cut".into(),
        Origin::Guard => "fence that the value left open".into(),
    }
}

/// Estimates the number of tokens by the usual rule of thumb: 4 bytes each.
fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// Returns a table of all pieces, and their sum.
#[must_use]
pub fn explained(rendered: &Rendered, system: &[SystemPart], paint: Paint) -> String {
    let mut text = format!("{}\n", paint.dim(&format!("{:>7}  {:>7}  from", "chars", "~tokens")));
    let shown = || rendered.pieces.iter().filter(|piece| !piece.text.trim().is_empty());
    let widest = shown().map(|piece| width(&origin_label(&piece.origin))).max().unwrap_or(0);
    let mut line = |characters: usize, tokens: usize, words: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{characters:>7}  {tokens:>7}  {words}");
    };
    for piece in shown() {
        let excerpt = paint.dim(&excerpt(&piece.text));
        line(
            piece.text.chars().count(),
            tokens(&piece.text),
            &format!("{}  {excerpt}", padded(&origin_label(&piece.origin), widest)),
        );
    }
    let whole = rendered.text();
    line(whole.chars().count(), tokens(&whole), &paint.bold("the whole prompt"));
    for part in system {
        let from = format!("system prompt: {}  {}", part.origin, paint.dim(&excerpt(&part.text)));
        line(part.text.chars().count(), tokens(&part.text), &from);
    }
    text
}

fn excerpt(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let line = printable(line);
    match line.char_indices().nth(EXCERPT) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

/// Returns the pieces as JSON, with their texts.
#[must_use]
pub fn explained_json(rendered: &Rendered, system: &[SystemPart]) -> Value {
    let piece = |piece: &Piece| json!({ "from": origin_label(&piece.origin), "characters": piece.text.chars().count(), "estimatedTokens": tokens(&piece.text), "text": piece.text });
    let text = rendered.text();
    let part = |part: &SystemPart| json!({ "from": part.origin, "characters": part.text.chars().count(), "estimatedTokens": tokens(&part.text), "text": part.text });
    json!({
        "characters": text.chars().count(),
        "estimatedTokens": tokens(&text),
        "pieces": rendered.pieces.iter().map(piece).collect::<Vec<_>>(),
        "text": text,
        "system": system.iter().map(part).collect::<Vec<_>>(),
    })
}
