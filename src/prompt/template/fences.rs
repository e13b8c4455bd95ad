//! Protects code fences around values. A fence of the template is made longer than any run of fence characters in a
//! value inside it. A fence that a value leaves open is closed after the value. The note of a truncated value is put
//! outside the fence.

use super::piece::{Origin, Piece};
use std::collections::BTreeMap;

/// A code fence: at least three of the same character, at any depth of lists and block quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FenceRun {
    sign: char,
    /// Where the fence characters start in the line, in bytes.
    at: usize,
    length: usize,
    /// Whether the fence is in a block quote, whose end also ends the fence.
    quoted: bool,
    /// Whether only spaces follow, so that the fence may be a closing one.
    bare: bool,
    /// Whether it is a fence outside lists too: at most three spaces precede it.
    shallow: bool,
}

fn run_of(line: &str) -> Option<FenceRun> {
    let mut at = line.len() - line.trim_start_matches([' ', '>', '\t']).len();
    let quote = line[..at].rfind('>');
    let indent = quote.map_or(at, |quote| (at - quote).saturating_sub(2));
    let blanks = at;
    // A list item may start with a fence; how deeply it is nested does not matter here.
    while let Some(length) = list_mark(&line[at..]) {
        at += length;
        at += line[at..].len() - line[at..].trim_start_matches([' ', '>', '\t']).len();
    }
    let rest = &line[at..];
    let sign = rest.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let length = rest.len() - rest.trim_start_matches(sign).len();
    let after = rest[length..].trim_end_matches('\n');
    // The info string after an opening fence of backticks cannot contain backticks.
    let opens = sign == '~' || !after.contains('`');
    (length >= 3 && opens).then_some(FenceRun {
        sign,
        at,
        length,
        quoted: line[..at].contains('>'),
        bare: after.trim().is_empty(),
        shallow: indent <= 3 && at == blanks,
    })
}

/// Returns the length of a list marker and its blank: `- `, `12. `.
fn list_mark(text: &str) -> Option<usize> {
    let digits = text.len() - text.trim_start_matches(|next: char| next.is_ascii_digit()).len();
    let mark = match text[digits..].chars().next()? {
        '-' | '*' | '+' if digits == 0 => 1,
        '.' | ')' if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    text[mark..].starts_with(' ').then_some(mark + 1)
}

/// Returns the length of the longest run of a character in a text.
fn longest(text: &str, sign: char) -> usize {
    let (mut most, mut now) = (0, 0);
    for next in text.chars() {
        now = if next == sign { now + 1 } else { 0 };
        most = most.max(now);
    }
    most
}

/// The changes to one piece.
#[derive(Default)]
struct FenceChange {
    /// Fence characters to insert at these offsets.
    grow: Vec<(usize, String)>,
    /// Pieces to insert after these offsets.
    insert: Vec<(usize, Piece)>,
}

enum FenceState {
    Outside,
    /// In a fence of the template: where its characters are, and the longest run in the values so far.
    Inside {
        run: FenceRun,
        at: (usize, usize),
        most: usize,
    },
    /// In a fence of this value.
    InValue {
        run: FenceRun,
        piece: usize,
    },
}

/// Protects the fences around and inside every value of a rendered prompt.
pub(super) fn protect(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut changes: BTreeMap<usize, FenceChange> = BTreeMap::new();
    let mut notes: Vec<Piece> = Vec::new();
    let mut state = FenceState::Outside;
    for line in lines(&pieces) {
        let mut parts = &line[..];
        // After a value that leaves a fence open, the rest of its line counts as a line of its own.
        while let Some(first) = parts.first() {
            if let FenceState::InValue { run, piece } = state
                && first.piece != piece
            {
                guard(&pieces, &mut changes, run, piece);
                state = FenceState::Outside;
            }
            let split = match state {
                FenceState::InValue { piece, .. } => {
                    parts.iter().position(|part| part.piece != piece).unwrap_or(parts.len())
                }
                _ => parts.len(),
            };
            state = one_line(&pieces, &parts[..split], state, &mut changes);
            for part in parts[..split].iter().filter(|part| part.ends) {
                if let Some(note) = &pieces[part.piece].note {
                    let note = Piece::new(format!("\n{note}\n"), Origin::Note);
                    match state {
                        FenceState::Inside { .. } => notes.push(note),
                        _ => changes.entry(part.piece).or_default().insert.push((part.from + part.text.len(), note)),
                    }
                }
            }
            if !matches!(state, FenceState::Inside { .. })
                && let Some(last) = parts[..split].last()
            {
                let at = last.from + last.text.len();
                changes.entry(last.piece).or_default().insert.extend(notes.drain(..).map(|note| (at, note)));
            }
            parts = &parts[split..];
        }
    }
    if let FenceState::InValue { run, piece } = state {
        guard(&pieces, &mut changes, run, piece);
    }
    rebuilt(pieces, changes, notes)
}

/// A part of a line, from one piece.
struct FencePart<'a> {
    piece: usize,
    from: usize,
    text: &'a str,
    /// Whether the piece ends with this part.
    ends: bool,
}

fn lines(pieces: &[Piece]) -> Vec<Vec<FencePart<'_>>> {
    let mut lines = vec![Vec::new()];
    for (piece, of) in pieces.iter().enumerate() {
        let mut from = 0;
        for text in of.text.split_inclusive('\n') {
            let part = FencePart { piece, from, text, ends: from + text.len() == of.text.len() };
            from += text.len();
            if let Some(line) = lines.last_mut() {
                line.push(part);
            }
            if text.ends_with('\n') {
                lines.push(Vec::new());
            }
        }
    }
    lines
}

fn one_line(
    pieces: &[Piece],
    parts: &[FencePart<'_>],
    state: FenceState,
    changes: &mut BTreeMap<usize, FenceChange>,
) -> FenceState {
    let text: String = parts.iter().map(|part| part.text).collect();
    let run = run_of(&text);
    // A run belongs to a value if any of its characters does.
    let owner = run.and_then(|run| {
        let (mut at, mut found) = (0, None);
        for part in parts {
            let (begin, end) = (at, at + part.text.len());
            at = end;
            if begin < run.at + run.length && run.at < end {
                let value = pieces[part.piece].is_value();
                let (piece, offset, known) =
                    found.unwrap_or((part.piece, part.from + run.at.saturating_sub(begin), false));
                found = Some((piece, offset, known || value));
            }
        }
        found
    });
    match (state, run, owner) {
        (FenceState::Outside, Some(run), Some((piece, at, false))) => {
            FenceState::Inside { run, at: (piece, at), most: 0 }
        }
        (FenceState::Outside, Some(run), Some((piece, _, true))) if !run.quoted && run.shallow => {
            FenceState::InValue { run, piece }
        }
        (FenceState::Inside { run: open, at, most }, Some(run), Some((piece, offset, false)))
            if run.sign == open.sign && run.bare && run.length >= open.length =>
        {
            if most >= open.length {
                let more = |length: usize| open.sign.to_string().repeat((most + 1).saturating_sub(length));
                changes.entry(at.0).or_default().grow.push((at.1, more(open.length)));
                changes.entry(piece).or_default().grow.push((offset, more(run.length)));
            }
            FenceState::Outside
        }
        (FenceState::Inside { run: open, at, most }, ..) => {
            // Measured over the whole line, as two adjacent values can form one run.
            let any = parts.iter().any(|part| pieces[part.piece].is_value());
            let here = if any { longest(&text, open.sign) } else { 0 };
            FenceState::Inside { run: open, at, most: most.max(here) }
        }
        (FenceState::InValue { run: open, .. }, Some(run), _)
            if run.sign == open.sign && run.bare && run.shallow && !run.quoted && run.length >= open.length =>
        {
            FenceState::Outside
        }
        (state, ..) => state,
    }
}

fn guard(pieces: &[Piece], changes: &mut BTreeMap<usize, FenceChange>, run: FenceRun, piece: usize) {
    let newline = if pieces[piece].text.ends_with('\n') { "" } else { "\n" };
    // Indented like the fence that it closes: at the start of the line, it would leave a list and open a block.
    let indent = " ".repeat(run.at);
    let text = format!("{newline}{indent}{}\n", run.sign.to_string().repeat(run.length));
    let change = changes.entry(piece).or_default();
    change.insert.insert(0, (pieces[piece].text.len(), Piece::new(text, Origin::Guard)));
}

fn rebuilt(pieces: Vec<Piece>, mut changes: BTreeMap<usize, FenceChange>, notes: Vec<Piece>) -> Vec<Piece> {
    let mut rebuilt = Vec::with_capacity(pieces.len());
    for (index, piece) in pieces.into_iter().enumerate() {
        let FenceChange { mut grow, mut insert } = changes.remove(&index).unwrap_or_default();
        grow.sort_by_key(|(at, _)| *at);
        insert.sort_by_key(|(at, _)| *at);
        let (mut from, mut grow) = (0, grow.into_iter().peekable());
        let ends = insert.into_iter().map(|(at, piece)| (at, Some(piece))).chain([(piece.text.len(), None)]);
        for (end, added) in ends {
            let mut text = String::new();
            while let Some((at, signs)) = grow.next_if(|(at, _)| *at < end) {
                text.push_str(&piece.text[from..at]);
                text.push_str(&signs);
                from = at;
            }
            text.push_str(&piece.text[from..end]);
            from = end;
            if !text.is_empty() || added.is_none() && index == 0 {
                rebuilt.push(Piece::new(text, piece.origin.clone()));
            }
            rebuilt.extend(added);
        }
    }
    rebuilt.extend(notes);
    rebuilt
}
