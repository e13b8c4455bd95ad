//! The parser of the chain language (docs/grammar.md). It is written by hand and reports every error with its place.

use super::errors;
use super::ir::{Chain, Group, Item, Limit, MOST_ITERATIONS, Step, StepTarget};
use super::name::{check_part, is_digits};
use crate::source::{Diagnostic, Place, Source, Span, Text};
use std::num::NonZeroU32;
use std::sync::Arc;

/// The deepest nesting of groups.
pub(super) const DEEPEST: usize = 64;

/// Parses a chain.
///
/// # Errors
/// Every error in the text, in order.
pub fn parse(source: &Arc<Source>) -> Result<Chain, Vec<Diagnostic>> {
    let at = Place::whole(source);
    let items = parse_items(&Text { value: source.text.clone(), at: at.clone() }, 0)?;
    Ok(Chain::unnamed(items, at))
}

/// Parses a chain from a string of a config that is nested inside `depth` groups. Places refer to that string.
///
/// # Errors
/// Every error in the text, in order.
pub(super) fn parse_items(text: &Text, depth: usize) -> Result<Vec<Item>, Vec<Diagnostic>> {
    let mut parser = ChainParser { text, tokens: tokens(&text.value), next: 0, faults: Vec::new(), outside: depth };
    let items = parser.chain(0);
    if parser.faults.is_empty() { Ok(items) } else { Err(parser.faults) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    Arrow,
    Open,
    Close,
    Colon,
    Word,
    End,
}

#[derive(Debug, Clone)]
struct Token {
    kind: TokenKind,
    span: Span,
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, character)) = rest.next() {
        let mut end = start + character.len_utf8();
        let kind = match character {
            _ if character.is_whitespace() => continue,
            '(' => TokenKind::Open,
            ')' => TokenKind::Close,
            ':' => TokenKind::Colon,
            '-' if text[end..].starts_with('>') => {
                rest.next();
                end += 1;
                TokenKind::Arrow
            }
            _ => {
                while let Some(&(at, next)) = rest.peek() {
                    let ends = next.is_whitespace() || matches!(next, '(' | ')' | ':');
                    if ends || text[at..].starts_with("->") {
                        break;
                    }
                    end = at + next.len_utf8();
                    rest.next();
                }
                TokenKind::Word
            }
        };
        tokens.push(Token { kind, span: start..end });
    }
    tokens.push(Token { kind: TokenKind::End, span: text.len()..text.len() });
    tokens
}

struct ChainParser<'a> {
    text: &'a Text,
    tokens: Vec<Token>,
    next: usize,
    faults: Vec<Diagnostic>,
    /// The number of groups around this text.
    outside: usize,
}

impl ChainParser<'_> {
    fn peek(&self) -> TokenKind {
        self.tokens[self.next].kind
    }

    /// Takes a token, but never moves past the end.
    fn take(&mut self) -> Span {
        let span = self.tokens[self.next].span.clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        span
    }

    fn text(&self, span: &Span) -> &str {
        &self.text.value[span.clone()]
    }

    fn place(&self, span: Span) -> Place {
        self.text.place_of(span)
    }

    fn give_up(&mut self) {
        self.next = self.tokens.len() - 1;
    }

    fn chain(&mut self, depth: usize) -> Vec<Item> {
        let mut items = Vec::new();
        let mut arrow: Option<Span> = None;
        loop {
            match self.peek() {
                TokenKind::Word | TokenKind::Colon => items.extend(self.step().map(Item::Step)),
                TokenKind::Open => items.extend(self.group(depth).map(Item::Group)),
                TokenKind::Arrow => {
                    let at = self.tokens[self.next].span.clone();
                    self.faults.push(errors::nothing_before_arrow(&self.place(at)));
                }
                TokenKind::Close | TokenKind::End => {
                    let fault = match &arrow {
                        Some(at) => errors::nothing_after_arrow(&self.place(at.clone())),
                        None if depth > 0 => errors::empty_group(&self.place(self.tokens[self.next].span.clone())),
                        None if self.peek() == TokenKind::Close => {
                            let at = self.take();
                            self.faults.push(errors::stray_close(&self.place(at)));
                            continue;
                        }
                        None => errors::empty_chain(&self.text.at),
                    };
                    self.faults.push(fault);
                }
            }
            // After an item, an arrow continues, the end or our parenthesis stops, and anything else lacks its arrow.
            loop {
                match self.peek() {
                    TokenKind::Arrow => {
                        arrow = Some(self.take());
                        break;
                    }
                    TokenKind::End => return items,
                    TokenKind::Close if depth > 0 => return items,
                    TokenKind::Close => {
                        let at = self.take();
                        self.faults.push(errors::stray_close(&self.place(at)));
                    }
                    TokenKind::Word | TokenKind::Open | TokenKind::Colon => {
                        let at = self.tokens[self.next].span.clone();
                        let found = self.text(&at).to_string();
                        self.faults.push(errors::missing_arrow(&self.place(at.clone()), &found));
                        arrow = None;
                        // Something that was meant as an arrow is reported once, then treated as one.
                        while is_arrow_like(self.text(&self.tokens[self.next].span.clone())) {
                            arrow = Some(self.take());
                        }
                        break;
                    }
                }
            }
        }
    }

    fn group(&mut self, depth: usize) -> Option<Group> {
        let open = self.take();
        if self.outside + depth >= DEEPEST {
            self.faults.push(errors::too_deep(&self.place(open), DEEPEST));
            self.give_up();
            return None;
        }
        let items = self.chain(depth + 1);
        if self.peek() != TokenKind::Close {
            // A parser that gave up has already reported why.
            if self.faults.iter().all(|fault| fault.code != errors::TOO_DEEP) {
                self.faults.push(errors::unclosed(&self.place(open)));
            }
            return None;
        }
        let close = self.take();
        let mut rounds = None;
        if self.peek() == TokenKind::Colon {
            let colon = self.take();
            if self.peek() == TokenKind::Word {
                let span = self.take();
                rounds = self.count(span);
            } else {
                self.faults.push(errors::missing_count(&self.place(colon)));
            }
        }
        Some(Group { items, rounds, at: self.place(open.start..close.end) })
    }

    /// Parses `NAME [":" COUNT]`: collects parts and colons first, then separates the name from the count.
    fn step(&mut self) -> Option<Step> {
        let faults_before = self.faults.len();
        let mut parts: Vec<Span> = Vec::new();
        if self.peek() == TokenKind::Word {
            parts.push(self.take());
        } else {
            let at = self.tokens[self.next].span.clone();
            self.faults.push(errors::empty_name(&self.place(at)));
        }
        while self.peek() == TokenKind::Colon {
            let colon = self.take();
            if self.peek() == TokenKind::Word {
                parts.push(self.take());
            } else {
                self.faults.push(errors::missing_count(&self.place(colon)));
            }
        }
        let mut limit = Limit::Once;
        if parts.len() > 1 {
            let last = parts[parts.len() - 1].clone();
            let text = self.text(&last);
            if is_digits(text) || text.starts_with(['+', '-']) {
                parts.pop();
                limit = self.count(last).map_or(Limit::Once, Limit::UpTo);
            }
        }
        let (first, last) = (parts.first()?.clone(), parts.last()?.clone());
        if parts.len() > 1 && is_digits(self.text(&last)) {
            self.faults.push(errors::two_counts(&self.place(last.clone())));
        }
        for pair in parts.windows(2) {
            if self.text(&(pair[0].end..pair[1].start)).contains(char::is_whitespace) {
                let gap = self.place(pair[0].end..pair[1].start);
                self.faults.push(errors::blank_in_name(&gap));
            }
        }
        for part in &parts {
            if let Err(fault) = check_part(self.text(part), part.start) {
                let fault = errors::bad_name(self.text, self.text(part), &fault);
                self.faults.push(fault);
            }
        }
        if self.faults.len() > faults_before {
            return None;
        }
        let span = first.start..last.end;
        let name = Text { value: self.text(&span).to_string(), at: self.place(span) };
        Some(Step { limit, ..Step::once(name, StepTarget::Either) })
    }

    fn count(&mut self, span: Span) -> Option<NonZeroU32> {
        match read_count(self.text(&span)) {
            Ok(count) => Some(count),
            Err(why) => {
                let fault = errors::bad_count(&self.place(span.clone()), self.text(&span), why);
                self.faults.push(fault);
                None
            }
        }
    }
}

/// Whether people write this word in place of an arrow.
fn is_arrow_like(word: &str) -> bool {
    matches!(word, "-" | ">" | "→" | "=>" | ">>" | "|" | "," | "&" | "&&" | "+" | ";" | "-->")
}

/// Parses a COUNT; the error says what a count must be.
fn read_count(text: &str) -> Result<NonZeroU32, &'static str> {
    if !is_digits(text) {
        return Err("a count is a whole number from 1 to 1,000,000");
    }
    if text.starts_with('0') {
        return Err("a count is at least 1 and has no leading zero");
    }
    text.parse::<NonZeroU32>().ok().filter(|count| count.get() <= MOST_ITERATIONS).ok_or("a count is at most 1,000,000")
}

#[cfg(test)]
#[path = "dsl_tests.rs"]
mod tests;
