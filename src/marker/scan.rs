//! Finds marker lines in a stream of bytes, whatever its chunks: one search per chunk, no allocation, no copy but of
//! the unfinished last line.

use super::line::is_marker_line;
use memchr::memmem::Finder;
use memchr::{memchr, memrchr};

/// A longer line cannot be the marker with any decoration that a person or a program would give it.
const LONGEST_LINE: usize = 4096;

/// What the scanner saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sighting<'a> {
    /// A marker line, with the offset of the line's start in the stream.
    Marker(u64),
    /// The marker inside a longer line, which does not count.
    NearMiss(&'a [u8]),
}

/// The state between two chunks.
#[derive(Debug)]
pub struct Scanner {
    finder: Finder<'static>,
    marker: Vec<u8>,
    /// The unfinished last line, or, when `long`, just its last `marker.len() - 1` bytes.
    open: Vec<u8>,
    long: bool,
    /// Where the unfinished line began in the stream, and how far the stream has gone.
    line_start: u64,
    offset: u64,
}

impl Scanner {
    /// A scanner for this marker, which must not be empty.
    #[must_use]
    pub fn new(marker: &str) -> Self {
        Self {
            finder: Finder::new(marker.as_bytes()).into_owned(),
            marker: marker.as_bytes().to_vec(),
            open: Vec::with_capacity(LONGEST_LINE + marker.len()),
            long: false,
            line_start: 0,
            offset: 0,
        }
    }

    /// Takes the next bytes of the stream, in any cut.
    pub fn feed(&mut self, chunk: &[u8], mut saw: impl FnMut(Sighting<'_>)) {
        let mut rest = chunk;
        if self.offset > self.line_start {
            let Some(newline) = memchr(b'\n', rest) else {
                self.offset += rest.len() as u64;
                self.extend_open_line(rest, &mut saw);
                return;
            };
            self.extend_open_line(&rest[..newline], &mut saw);
            self.judge_open_line(&mut saw);
            self.offset += newline as u64 + 1;
            self.line_start = self.offset;
            rest = &rest[newline + 1..];
        }
        let whole = memrchr(b'\n', rest).map_or(0, |newline| newline + 1);
        self.search_whole_lines(&rest[..whole], &mut saw);
        self.line_start = self.offset + whole as u64;
        self.offset += rest.len() as u64;
        self.extend_open_line(&rest[whole..], &mut saw);
    }

    /// The stream is over: an unfinished last line is a line too.
    pub fn finish(&mut self, mut saw: impl FnMut(Sighting<'_>)) {
        self.judge_open_line(&mut saw);
        self.line_start = self.offset;
    }

    fn search_whole_lines(&self, lines: &[u8], saw: &mut impl FnMut(Sighting<'_>)) {
        let mut from = 0;
        while let Some(hit) = self.finder.find(&lines[from..]).map(|hit| hit + from) {
            let start = memrchr(b'\n', &lines[..hit]).map_or(0, |newline| newline + 1);
            let end = memchr(b'\n', &lines[hit..]).map_or(lines.len(), |newline| hit + newline);
            let line = &lines[start..end];
            if line.len() <= LONGEST_LINE && is_marker_line(line, &self.marker) {
                saw(Sighting::Marker(self.offset + start as u64));
            } else {
                saw(Sighting::NearMiss(line));
            }
            from = end;
        }
    }

    fn extend_open_line(&mut self, bytes: &[u8], saw: &mut impl FnMut(Sighting<'_>)) {
        if !self.long && self.open.len() + bytes.len() <= LONGEST_LINE {
            self.open.extend_from_slice(bytes);
            return;
        }
        // Too long to be the marker; only a near miss can still be in it, so the seam is enough.
        self.long = true;
        let keep = self.marker.len() - 1;
        let head = &bytes[..bytes.len().min(keep)];
        self.open.extend_from_slice(head);
        if self.finder.find(&self.open).is_some() {
            saw(Sighting::NearMiss(&self.open));
        } else if self.finder.find(bytes).is_some() {
            saw(Sighting::NearMiss(bytes));
        }
        if bytes.len() >= keep {
            self.open.clear();
            self.open.extend_from_slice(&bytes[bytes.len() - keep..]);
        } else {
            let surplus = self.open.len().saturating_sub(keep);
            self.open.drain(..surplus);
        }
    }

    fn judge_open_line(&mut self, saw: &mut impl FnMut(Sighting<'_>)) {
        if !self.long && self.finder.find(&self.open).is_some() {
            if is_marker_line(&self.open, &self.marker) {
                saw(Sighting::Marker(self.line_start));
            } else {
                saw(Sighting::NearMiss(&self.open));
            }
        }
        self.open.clear();
        self.long = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marker::DEFAULT;
    use proptest::prelude::*;

    fn markers(chunks: &[&[u8]]) -> (Vec<u64>, usize) {
        let (mut scanner, mut offsets, mut near) = (Scanner::new(DEFAULT), Vec::new(), 0);
        let mut saw = |sighting: Sighting<'_>| match sighting {
            Sighting::Marker(offset) => offsets.push(offset),
            Sighting::NearMiss(_) => near += 1,
        };
        for chunk in chunks {
            scanner.feed(chunk, &mut saw);
        }
        scanner.finish(&mut saw);
        (offsets, near)
    }

    #[test]
    fn a_marker_split_at_every_byte_is_seen_once() {
        let stream = b"working\n  **FORKHESTRA_COMPLETE**\r\nbye";
        for cut in 0..=stream.len() {
            assert_eq!(markers(&[&stream[..cut], &stream[cut..]]), (vec![8], 0), "cut at {cut}");
        }
    }

    #[test]
    fn a_marker_without_a_final_newline_is_seen() {
        assert_eq!(markers(&[b"x\nFORKHESTRA_", b"COMPLETE"]), (vec![2], 0));
    }

    #[test]
    fn a_marker_in_a_line_without_end_is_a_near_miss() {
        let long = vec![b'x'; 100_000];
        assert_eq!(markers(&[&long, b"FORKHESTRA_", b"COMPLETE", &long]), (vec![], 1));
        assert_eq!(markers(&[&long, b"\nFORKHESTRA_COMPLETE"]), (vec![100_001], 0));
    }

    /// The naive answer: split the whole stream at its newlines.
    fn oracle(stream: &[u8]) -> Vec<u64> {
        let mut offset = 0;
        let mut found = Vec::new();
        for line in stream.split(|&byte| byte == b'\n') {
            if line.len() <= LONGEST_LINE && is_marker_line(line, DEFAULT.as_bytes()) {
                found.push(offset);
            }
            offset += line.len() as u64 + 1;
        }
        found
    }

    proptest! {
        #[test]
        fn any_cut_of_any_stream_gives_the_answer_of_a_plain_split(
            parts in proptest::collection::vec(prop_oneof![
                Just("FORKHESTRA_COMPLETE".to_string()), Just("\n".to_string()), Just("\r\n".to_string()),
                Just("**".to_string()), Just("\x1b[1m".to_string()), Just("FORKHESTRA_".to_string()),
                Just("COMPLETE".to_string()), "[a-z ]{0,9}", Just("y".repeat(5000)),
            ], 0..24),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let stream = parts.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
            prop_assert_eq!(markers(&chunks).0, oracle(&stream));
        }
    }
}
