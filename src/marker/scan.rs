//! Finds marker lines in a stream of bytes, however it is split into chunks. Each chunk is searched three times,
//! without allocation, and only the unfinished last line is copied. A chunk with code fences is read line by line.

use super::fence::{FenceLine, Fences};
use super::line::is_marker_line;
use memchr::memmem::Finder;
use memchr::{memchr, memrchr};
use std::sync::LazyLock;

/// The longest line that can be the marker with any decoration that a person or a program would add, in bytes.
const LONGEST_LINE: usize = 4096;

/// What a code fence begins with.
static TICKS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"```"));
static TILDES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"~~~"));

/// What the scanner saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sighting<'a> {
    /// A marker line, with the offset of the line's start in the stream.
    Marker(u64),
    /// A marker line alone in a code fence, with the offset of the line's start. It counts until other text follows.
    Alone(u64),
    /// A marker line in an open code fence, which does not count yet.
    Fenced(&'a [u8]),
    /// This many of the markers seen no longer count: they were alone in a code fence, and other text follows it.
    Withdrawn(usize),
    /// The marker inside a longer line, or in a code fence with other lines, which does not count.
    NearMiss(&'a [u8]),
}

/// Scans a stream for marker lines; holds the state between two chunks.
#[derive(Debug)]
pub struct Scanner {
    finder: Finder<'static>,
    marker: Vec<u8>,
    /// The unfinished last line; if it is `long`, only its last `marker.len() - 1` bytes.
    open: Vec<u8>,
    long: bool,
    /// Where the unfinished line begins in the stream, and how many bytes of the stream have been read.
    line_start: u64,
    offset: u64,
    fences: Fences,
    /// The offsets of the marker lines in the open fence, and whether the fence also holds other text.
    fenced: Vec<u64>,
    mixed: bool,
    /// How many markers count because they are alone in a fence that no other text has followed yet.
    tentative: usize,
}

/// How many markers of one fence are remembered.
const MOST_FENCED: usize = 64;

impl Scanner {
    /// Creates a scanner for this marker, which must not be empty.
    #[must_use]
    pub fn new(marker: &str) -> Self {
        Self {
            finder: Finder::new(marker.as_bytes()).into_owned(),
            marker: marker.as_bytes().to_vec(),
            open: Vec::with_capacity(LONGEST_LINE + marker.len()),
            long: false,
            line_start: 0,
            offset: 0,
            fences: Fences::default(),
            fenced: Vec::new(),
            mixed: false,
            tentative: 0,
        }
    }

    /// Processes the next bytes of the stream, which may be split anywhere.
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

    /// Ends the stream: an unfinished last line is a line, too.
    pub fn finish(&mut self, mut saw: impl FnMut(Sighting<'_>)) {
        self.judge_open_line(&mut saw);
        self.line_start = self.offset;
    }

    fn search_whole_lines(&mut self, lines: &[u8], saw: &mut impl FnMut(Sighting<'_>)) {
        let fenced = self.fences.is_open() || TICKS.find(lines).is_some() || TILDES.find(lines).is_some();
        if fenced || self.tentative > 0 {
            let mut start = 0;
            while start < lines.len() {
                let end = memchr(b'\n', &lines[start..]).map_or(lines.len(), |newline| start + newline);
                self.line(&lines[start..end], self.offset + start as u64, saw);
                start = end + 1;
            }
            return;
        }
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

    /// Processes one whole line where fences matter.
    fn line(&mut self, line: &[u8], at: u64, saw: &mut impl FnMut(Sighting<'_>)) {
        let long = line.len() > LONGEST_LINE;
        let marker = !long && is_marker_line(line, &self.marker);
        let place = match (long, self.fences.is_open()) {
            (true, true) => FenceLine::Inside,
            (true, false) => FenceLine::Outside,
            (false, _) => self.fences.line(line),
        };
        let blank = line.iter().all(u8::is_ascii_whitespace);
        if !blank && self.tentative > 0 {
            saw(Sighting::Withdrawn(self.tentative));
            self.tentative = 0;
        }
        match place {
            FenceLine::Opens => (self.fenced, self.mixed) = (Vec::new(), false),
            FenceLine::Closes => {
                for at in self.fenced.drain(..).filter(|_| !self.mixed) {
                    saw(Sighting::Alone(at));
                    self.tentative += 1;
                }
            }
            FenceLine::Inside if marker => {
                saw(Sighting::Fenced(line));
                if self.fenced.len() < MOST_FENCED {
                    self.fenced.push(at);
                }
            }
            FenceLine::Outside if marker => saw(Sighting::Marker(at)),
            FenceLine::Inside | FenceLine::Outside => {
                self.mixed |= !blank && place == FenceLine::Inside;
                if self.finder.find(line).is_some() {
                    saw(Sighting::NearMiss(line));
                }
            }
        }
    }

    fn extend_open_line(&mut self, bytes: &[u8], saw: &mut impl FnMut(Sighting<'_>)) {
        if !self.long && self.open.len() + bytes.len() <= LONGEST_LINE {
            self.open.extend_from_slice(bytes);
            return;
        }
        // The line is too long to be the marker. Only a near miss can still be in it, so its last bytes are enough.
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
        let open = std::mem::take(&mut self.open);
        if !self.long {
            self.line(&open, self.line_start, saw);
        } else if self.fences.is_open() {
            self.mixed = true;
        } else if self.tentative > 0 {
            saw(Sighting::Withdrawn(self.tentative));
            self.tentative = 0;
        }
        self.open = open;
        self.open.clear();
        self.long = false;
    }
}

/// Returns how many lines of a text are the marker and count, and the first line that holds the marker without
/// counting.
#[must_use]
pub fn marker_lines(text: &str, marker: &str) -> (usize, Option<String>) {
    let (mut seen, mut near) = (0_usize, None);
    let mut saw = |sighting: Sighting<'_>| match sighting {
        Sighting::Marker(_) | Sighting::Alone(_) => seen += 1,
        Sighting::Withdrawn(count) => seen = seen.saturating_sub(count),
        Sighting::NearMiss(line) | Sighting::Fenced(line) => {
            near.get_or_insert_with(|| String::from_utf8_lossy(line).into_owned());
        }
    };
    let mut scanner = Scanner::new(marker);
    scanner.feed(text.as_bytes(), &mut saw);
    scanner.finish(&mut saw);
    (seen, near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marker::DEFAULT;
    use proptest::prelude::*;

    fn markers(chunks: &[&[u8]]) -> (Vec<u64>, usize) {
        let (mut scanner, mut offsets, mut near) = (Scanner::new(DEFAULT), Vec::new(), 0);
        let mut saw = |sighting: Sighting<'_>| match sighting {
            Sighting::Marker(offset) | Sighting::Alone(offset) => offsets.push(offset),
            Sighting::Withdrawn(count) => offsets.truncate(offsets.len() - count),
            Sighting::NearMiss(_) | Sighting::Fenced(_) => near += 1,
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

    #[test]
    fn in_a_code_fence_the_marker_counts_alone_and_last_only() {
        let count = |text: &str| marker_lines(text, DEFAULT).0;
        assert_eq!(count("```\nFORKHESTRA_COMPLETE\n```\n"), 1);
        assert_eq!(count("```\nFORKHESTRA_COMPLETE\n```\n\nBut it is not done yet.\n"), 0);
        assert_eq!(count("```\necho\nFORKHESTRA_COMPLETE\n```\n"), 0);
        assert_eq!(count("```\nFORKHESTRA_COMPLETE\n"), 0, "a fence that nobody closes");
        assert_eq!(count("```\nls\n```\nFORKHESTRA_COMPLETE\n"), 1);
    }

    /// The naive answer, which splits the whole stream at its newlines.
    fn oracle(stream: &[u8]) -> Vec<u64> {
        let (mut offset, mut found, mut fences) = (0, Vec::new(), Fences::default());
        let (mut inside, mut mixed, mut tentative) = (Vec::new(), false, 0);
        for line in stream.split(|&byte| byte == b'\n') {
            let long = line.len() > LONGEST_LINE;
            let is_marker = !long && is_marker_line(line, DEFAULT.as_bytes());
            let open = fences.is_open();
            let place = match (long, open) {
                (true, true) => FenceLine::Inside,
                (true, false) => FenceLine::Outside,
                _ => fences.line(line),
            };
            if !line.iter().all(u8::is_ascii_whitespace) {
                found.truncate(found.len() - tentative);
                tentative = 0;
            }
            match place {
                FenceLine::Opens => (inside, mixed) = (Vec::new(), false),
                FenceLine::Closes if !mixed => {
                    tentative = inside.len();
                    found.append(&mut inside);
                }
                FenceLine::Inside if is_marker => inside.push(offset),
                FenceLine::Inside => mixed |= !line.iter().all(u8::is_ascii_whitespace),
                FenceLine::Outside if is_marker => found.push(offset),
                FenceLine::Closes | FenceLine::Outside => {}
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
                Just("COMPLETE".to_string()), "[a-z ]{0,9}", Just("y".repeat(5000)), Just("\n```\n".to_string()), Just("~~~".to_string()),
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
