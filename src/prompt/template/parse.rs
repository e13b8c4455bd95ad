//! Parses a template's text into nodes, in one of two dialects. Anything that is not a tag of the dialect is text.
//! Values are never parsed.

use super::errors;
use crate::source::{Diagnostic, Place, Source, Span};
use std::sync::Arc;

/// The most errors reported for one template.
const MOST_FAULTS: usize = 100;
/// The deepest nesting of blocks.
const DEEPEST: usize = 64;

/// The dialect: how tags are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Syntax {
    /// `{{name}}`, `{{name + 1}}`, `{{skill:name}}`, `{{#if name}}…{{else}}…{{/if}}`; `\{{` is text.
    #[default]
    Mustache,
    /// `{name}`, `{name + 1}`, `{if_name}…{end_if}`, for names that are known; `{{` and `}}` are text.
    Braces,
}

/// A piece of a parsed template. Spans are bytes of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TemplateNode {
    Text(String, Span),
    Variable { name: String, plus: i64, span: Span },
    Skill { name: String, span: Span },
    If { name: String, then: Vec<TemplateNode>, otherwise: Vec<TemplateNode>, span: Span },
}

/// A parsed tag.
enum TemplateTag {
    /// An escaped character sequence, as text.
    Literal(&'static str),
    Variable(String, i64),
    Skill(String),
    If(String),
    Else,
    End,
}

/// Parses `text`, which starts at `offset` of its source. `known` tells whether a variable exists. A block without its
/// end, or an end without its block, is an error; the nodes that can be parsed are returned all the same.
pub(super) fn parse(
    source: &Arc<Source>,
    text: &str,
    offset: usize,
    syntax: Syntax,
    known: &dyn Fn(&str) -> bool,
) -> (Vec<TemplateNode>, Vec<Diagnostic>) {
    let mut parser =
        TemplateParser { source, offset, faults: Vec::new(), open: vec![TemplateBlock::default()], beyond: 0 };
    let (mut at, mut escaped) = (0, 0);
    while let Some(next) = text[at..].find(['{', '}', '\\']).map(|found| at + found) {
        if text[at..next].contains('\n') {
            escaped = 0;
        }
        let found = match syntax {
            Syntax::Mustache => mustache(&text[next..]),
            Syntax::Braces => braces(&text[next..], &mut escaped, known),
        };
        let Some((tag, length)) = found else {
            if syntax == Syntax::Mustache
                && let Some((length, is_closed)) = bad_tag(&text[next..], known)
            {
                parser.bad_tag(next, next + length, is_closed);
            }
            let sign = text[next..].chars().next().map_or(1, char::len_utf8);
            parser.text(&text[at..next + sign], at);
            at = next + sign;
            continue;
        };
        let (mut from, mut end) = (next, next + length);
        if matches!(tag, TemplateTag::If(_) | TemplateTag::Else | TemplateTag::End) {
            // A block tag alone on its line takes the whole line with it.
            if let (Some(line), Some(rest)) = (blank_before(text, at, next), blank_after(text, end)) {
                (from, end) = (line, rest);
            }
        }
        parser.text(&text[at..from], at);
        parser.tag(tag, next, next + length);
        at = end;
    }
    parser.text(&text[at..], at);
    parser.finish()
}

/// Returns where the line of the tag at `next` starts, if only spaces precede it; `at` is the end of the previous tag.
fn blank_before(text: &str, at: usize, next: usize) -> Option<usize> {
    let blanks = text[at..next].trim_end_matches(|next: char| next != '\n' && next.is_whitespace());
    let line = at + blanks.len();
    (line == 0 || text[..line].ends_with('\n')).then_some(line)
}

/// Returns where the line after the tag that ends at `end` starts, if only spaces follow the tag.
fn blank_after(text: &str, end: usize) -> Option<usize> {
    let words = text[end..].find(|next: char| next == '\n' || !next.is_whitespace());
    match words.map(|words| end + words) {
        None => Some(text.len()),
        Some(at) => text[at..].starts_with('\n').then_some(at + 1),
    }
}

/// An open block: its name, its nodes, and those after its `else`, if there was one.
#[derive(Default)]
struct TemplateBlock {
    name: String,
    span: Span,
    then: Vec<TemplateNode>,
    otherwise: Option<Vec<TemplateNode>>,
}

struct TemplateParser<'a> {
    source: &'a Arc<Source>,
    offset: usize,
    faults: Vec<Diagnostic>,
    /// The open blocks. Never empty: the first one is the template itself.
    open: Vec<TemplateBlock>,
    /// The number of open blocks beyond the deepest nesting.
    beyond: usize,
}

impl TemplateParser<'_> {
    fn push(&mut self, node: TemplateNode) {
        if let Some(block) = self.open.last_mut() {
            block.otherwise.as_mut().unwrap_or(&mut block.then).push(node);
        }
    }

    fn text(&mut self, text: &str, at: usize) {
        if text.is_empty() {
            return;
        }
        let span = self.offset + at..self.offset + at + text.len();
        let last =
            self.open.last_mut().and_then(|block| block.otherwise.as_mut().unwrap_or(&mut block.then).last_mut());
        match last {
            Some(TemplateNode::Text(known, place)) if place.end == span.start => {
                known.push_str(text);
                place.end = span.end;
            }
            _ => self.push(TemplateNode::Text(text.to_string(), span)),
        }
    }

    fn tag(&mut self, tag: TemplateTag, from: usize, to: usize) {
        let span = self.offset + from..self.offset + to;
        self.faults.truncate(MOST_FAULTS);
        match tag {
            TemplateTag::Literal(sign) => self.push(TemplateNode::Text(sign.to_string(), span)),
            TemplateTag::Variable(name, plus) => self.push(TemplateNode::Variable { name, plus, span }),
            TemplateTag::Skill(name) => self.push(TemplateNode::Skill { name, span }),
            TemplateTag::If(_) if self.open.len() > DEEPEST => {
                if self.beyond == 0 {
                    self.faults.push(errors::nested_too_deep(&Place::new(self.source, span), DEEPEST));
                }
                self.beyond += 1;
            }
            TemplateTag::End if self.beyond > 0 => self.beyond -= 1,
            TemplateTag::Else if self.beyond > 0 => {}
            TemplateTag::If(name) => self.open.push(TemplateBlock { name, span, ..TemplateBlock::default() }),
            TemplateTag::Else => match self.open.last_mut() {
                Some(block) if !block.name.is_empty() && block.otherwise.is_none() => {
                    block.otherwise = Some(Vec::new());
                }
                _ => self.faults.push(errors::not_open(&Place::new(self.source, span))),
            },
            TemplateTag::End if self.open.len() > 1 => {
                if let Some(TemplateBlock { name, span, then, otherwise }) = self.open.pop() {
                    self.push(TemplateNode::If { name, then, otherwise: otherwise.unwrap_or_default(), span });
                }
            }
            TemplateTag::End => self.faults.push(errors::not_open(&Place::new(self.source, span))),
        }
    }

    fn bad_tag(&mut self, from: usize, to: usize, is_closed: bool) {
        self.faults.truncate(MOST_FAULTS);
        let place = Place::new(self.source, self.offset + from..self.offset + to);
        self.faults.push(errors::bad_tag(&place, is_closed));
    }

    fn finish(mut self) -> (Vec<TemplateNode>, Vec<Diagnostic>) {
        while self.open.len() > 1 {
            if let Some(TemplateBlock { span, then, otherwise, .. }) = self.open.pop() {
                self.faults.push(errors::not_closed(&Place::new(self.source, span)));
                then.into_iter().chain(otherwise.into_iter().flatten()).for_each(|node| self.push(node));
            }
        }
        (self.open.swap_remove(0).then, self.faults)
    }
}

/// Parses the mustache tag at the start of the text. Returns it with its length.
fn mustache(text: &str) -> Option<(TemplateTag, usize)> {
    if text.starts_with("\\{{") {
        return Some((TemplateTag::Literal("{{"), 3));
    }
    let inside = beginning(text.strip_prefix("{{")?);
    let close = inside.find("}}")?;
    let (inside, length) = (inside[..close].trim(), close + 4);
    let tag = match inside {
        "else" => TemplateTag::Else,
        "/if" => TemplateTag::End,
        _ => {
            if let Some(name) = inside.strip_prefix("skill:") {
                TemplateTag::Skill(name.trim().to_string())
            } else if let Some(name) = inside.strip_prefix("#if ") {
                TemplateTag::If(Some(name.trim()).filter(|name| is_name(name))?.to_string())
            } else {
                let (name, plus) = with_sum(inside)?;
                TemplateTag::Variable(name, plus)
            }
        }
    };
    Some((tag, length))
}

/// Returns the length of what is meant as a tag but is none, such as `{{task_id` or `{{skill name}}`, and whether it is
/// closed. Two braces before any other word are text.
fn bad_tag(text: &str, known: &dyn Fn(&str) -> bool) -> Option<(usize, bool)> {
    let inside = beginning(text.strip_prefix("{{")?);
    let blanks = inside.len() - inside.trim_start().len();
    let is_part = |next: char| next.is_ascii_alphanumeric() || matches!(next, '_' | '.' | '#' | '/');
    let end = inside[blanks..].find(|next| !is_part(next)).map_or(inside.len(), |end| blanks + end);
    let word = &inside[blanks..end];
    if !["skill", "#if", "/if", "else"].contains(&word) && !known(word) {
        return None;
    }
    let close = inside.find("}}").filter(|close| !inside[..*close].contains("{{"));
    Some((2 + close.map_or(end, |close| close + 2), close.is_some()))
}

/// Returns the part of a text that a tag may span: up to the end of its line, and at most 200 characters.
fn beginning(text: &str) -> &str {
    const LONGEST: usize = 200;
    let end = text.char_indices().take(LONGEST).find(|(_, next)| *next == '\n').map(|(at, _)| at);
    let end = end.or_else(|| text.char_indices().nth(LONGEST).map(|(at, _)| at));
    &text[..end.unwrap_or(text.len())]
}

/// Parses the braces tag at the start of the text. `escaped` counts the open `{{`: without one, a `}}` may end JSON.
fn braces(text: &str, escaped: &mut usize, known: &dyn Fn(&str) -> bool) -> Option<(TemplateTag, usize)> {
    if text.starts_with("{{") {
        *escaped += 1;
        return Some((TemplateTag::Literal("{"), 2));
    }
    if *escaped > 0 && text.starts_with("}}") {
        *escaped -= 1;
        return Some((TemplateTag::Literal("}"), 2));
    }
    let inside = beginning(text.strip_prefix('{')?);
    let close = inside.find('}')?;
    let (inside, length) = (&inside[..close], close + 2);
    if inside == "end_if" {
        return Some((TemplateTag::End, length));
    }
    if let Some(name) = inside.strip_prefix("if_").filter(|name| is_name(name)) {
        return Some((TemplateTag::If(name.to_string()), length));
    }
    let (name, plus) = with_sum(inside).filter(|(name, _)| known(name))?;
    Some((TemplateTag::Variable(name, plus), length))
}

/// Parses `name`, `name + 1` or `name - 1`.
fn with_sum(inside: &str) -> Option<(String, i64)> {
    let end = inside.find([' ', '+', '-']).unwrap_or(inside.len());
    let (name, rest) = inside.split_at(end);
    let plus = match rest.trim_start() {
        "" => 0,
        rest => {
            let (sign, digits) = match rest.strip_prefix('+') {
                Some(digits) => (1, digits),
                None => (-1, rest.strip_prefix('-')?),
            };
            sign * digits.trim().parse::<i32>().ok().map(i64::from)?
        }
    };
    is_name(name).then(|| (name.to_string(), plus))
}

/// Returns whether a name is `[a-z_][a-z0-9_]*`, or `vars.` and the name of a chain variable.
fn is_name(name: &str) -> bool {
    if let Some(variable) = name.strip_prefix("vars.") {
        return !variable.is_empty() && variable.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    }
    name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}
