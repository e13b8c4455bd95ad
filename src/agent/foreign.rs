//! Filters the output of other programs for a terminal. Text, tabs, line ends and colors pass. Other control sequences
//! do not: they could write to the clipboard, or remove or imitate our own lines. A pipe gets every byte.

/// The longest color sequence, in bytes. Anything longer does not count as one.
const LONGEST: usize = 64;
/// The beginnings of our own lines.
const SIGNS: [&str; 7] = ["✓ ", "✗ ", "▶ ", "○ ", "● ", "↻ ", "! "];
/// The mark put before a line of another program that looks like one of forkhestra's.
const MARK: &[u8] = b"| ";

/// The filter of one stream, with the bytes that are not decided yet (ECMA-48, section 5).
#[derive(Debug, Default)]
pub struct ForeignOutput {
    state: ScanState,
    /// Whether lines that look like ours are marked.
    marks: bool,
    /// Whether the beginning of the line is decided, so that nothing more of it is held back.
    in_line: bool,
    /// The beginning of a line that may still turn out to look like ours, without colors.
    begins: Vec<u8>,
    /// The same beginning, as it is shown.
    held: Vec<u8>,
}

#[derive(Debug, Default)]
enum ScanState {
    #[default]
    Text,
    /// After 0xC2, which begins the characters from U+0080 on. The first 32 of those are controls.
    HighControl,
    /// After a carriage return, which may be part of a line end.
    Return,
    Escape,
    /// In a sequence that may be a color.
    Control(Vec<u8>),
    /// In a string for the terminal, up to its end.
    String,
    StringEscape,
}

impl ForeignOutput {
    /// Creates a filter that also marks lines that look like ours.
    #[must_use]
    pub fn marking() -> Self {
        Self { marks: true, ..Self::default() }
    }

    /// Takes more bytes and returns what may be shown of them.
    #[must_use]
    pub fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(bytes.len() + MARK.len());
        for &byte in bytes {
            self.take(byte, &mut shown);
        }
        shown
    }

    /// Returns what was held back, at the end of the stream.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        let mut shown = Vec::new();
        self.let_go(&mut shown);
        *self = Self { marks: self.marks, ..Self::default() };
        shown
    }

    fn take(&mut self, byte: u8, shown: &mut Vec<u8>) {
        match std::mem::take(&mut self.state) {
            ScanState::Text => self.text(byte, shown),
            ScanState::HighControl if (0x80..0xa0).contains(&byte) => {
                // These C1 controls begin sequences, as an escape followed by a letter does.
                self.state = match byte {
                    0x9b => ScanState::Control(Vec::new()),
                    0x90 | 0x98 | 0x9d..=0x9f => ScanState::String,
                    _ => ScanState::Text,
                };
            }
            ScanState::HighControl => {
                self.show(0xc2, shown);
                self.text(byte, shown);
            }
            ScanState::Return => {
                // Alone it would move the cursor back over text that was written.
                self.end_line(shown);
                if byte != b'\n' {
                    self.text(byte, shown);
                }
            }
            ScanState::Escape => match byte {
                b'[' => self.state = ScanState::Control(Vec::new()),
                b']' | b'P' | b'X' | b'^' | b'_' => self.state = ScanState::String,
                // Intermediate bytes: more bytes follow.
                0x20..=0x2f | 0x1b => self.state = ScanState::Escape,
                0x30..=0x7e => {}
                // It was not a sequence.
                _ => self.text(byte, shown),
            },
            ScanState::Control(mut parameters) => match byte {
                0x20..=0x3f if parameters.len() < LONGEST => {
                    parameters.push(byte);
                    self.state = ScanState::Control(parameters);
                }
                b'm' if parameters.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b';' | b':')) => {
                    let color = [b"\x1b[".as_slice(), &parameters, b"m"].concat();
                    if self.holds_back() { self.held.extend(color) } else { shown.extend(color) }
                }
                0x20..=0x7e => {}
                _ => self.text(byte, shown),
            },
            ScanState::String => {
                self.state = match byte {
                    0x07 | 0x18 | 0x1a => ScanState::Text,
                    0x1b => ScanState::StringEscape,
                    _ => ScanState::String,
                };
            }
            ScanState::StringEscape => match byte {
                b'\\' => {}
                b'[' => self.state = ScanState::Control(Vec::new()),
                0x1b => self.state = ScanState::StringEscape,
                _ => self.state = ScanState::String,
            },
        }
    }

    fn text(&mut self, byte: u8, shown: &mut Vec<u8>) {
        match byte {
            b'\n' => self.end_line(shown),
            b'\r' => self.state = ScanState::Return,
            0x1b => self.state = ScanState::Escape,
            0xc2 => self.state = ScanState::HighControl,
            b'\t' | 0x20..=0x7e | 0x80.. => self.show(byte, shown),
            _ => {}
        }
    }

    fn holds_back(&self) -> bool {
        self.marks && !self.in_line
    }

    fn show(&mut self, byte: u8, shown: &mut Vec<u8>) {
        if !self.holds_back() {
            shown.push(byte);
            return;
        }
        self.held.push(byte);
        // Leading spaces do not change how the line looks.
        if !self.begins.is_empty() || !matches!(byte, b' ' | b'\t') {
            self.begins.push(byte);
        }
        let may_become = |sign: &str| sign.as_bytes().starts_with(&self.begins);
        if SIGNS.iter().any(|sign| sign.as_bytes() == self.begins) {
            shown.extend_from_slice(MARK);
            self.let_go(shown);
        } else if !SIGNS.iter().any(|sign| may_become(sign)) {
            self.let_go(shown);
        }
    }

    fn let_go(&mut self, shown: &mut Vec<u8>) {
        shown.append(&mut self.held);
        self.begins.clear();
        self.in_line = true;
    }

    fn end_line(&mut self, shown: &mut Vec<u8>) {
        self.let_go(shown);
        shown.push(b'\n');
        self.in_line = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn passed(marks: bool, text: &str) -> String {
        let mut words = ForeignOutput { marks, ..ForeignOutput::default() };
        let mut shown = words.pass(text.as_bytes());
        shown.extend(words.finish());
        String::from_utf8(shown).unwrap()
    }

    #[test]
    fn text_tabs_ends_of_lines_and_colors_pass_and_what_steers_a_terminal_does_not() {
        for (text, shown) in [
            ("plain\ttext\r\nünïcode 日本 é\u{a0}x\n", "plain\ttext\nünïcode 日本 é\u{a0}x\n"),
            ("\u{1b}[1;38:5:3mred\u{1b}[0m", "\u{1b}[1;38:5:3mred\u{1b}[0m"),
            ("a\u{1b}]52;c;aGk=\u{7}b\u{1b}]0;title\u{1b}\\c", "abc"),
            ("a\u{1b}[2J\u{1b}[1A\u{1b}[K\u{1b}[?1049h\u{1b}[?2004h\u{1b}[6nb", "ab"),
            ("a\u{1b}Pq#0;2\u{1b}\\b\u{1b}_x\u{1b}\\c\u{1b}(Bd\u{1b}ce", "abcde"),
            ("a\u{9b}2Jb\u{9d}52;c;x\u{7}c\u{85}d", "abcd"),
            ("over\rwritten\u{8}\u{b}\u{c}\u{7}\u{0}\u{7f}", "over\nwritten"),
            ("\u{1b}[>4;2m\u{1b}[?1mx", "x"),
            ("half\u{1b}[3", "half"),
        ] {
            assert_eq!(passed(false, text), shown, "{text:?}");
        }
    }

    #[test]
    fn a_line_that_looks_like_ours_is_marked() {
        for (text, shown) in [
            ("✓ reviewer approves\n", "| ✓ reviewer approves\n"),
            ("  \u{1b}[32m✓ fine\n✓no\n", "|   \u{1b}[32m✓ fine\n✓no\n"),
            ("! take care\n!important\nwow ! so\n", "| ! take care\n!important\nwow ! so\n"),
            ("x\r✗ y\n", "x\n| ✗ y\n"),
            ("✓", "✓"),
            ("\n\n  \n", "\n\n  \n"),
        ] {
            assert_eq!(passed(true, text), shown, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn how_the_bytes_come_changes_nothing_and_no_control_is_left(
            text in "([a-z ✓!\n\r\t\u{9b}\u{9d}é]|\u{1b}\\[[0-9;?]{0,4}[mKJh]|\u{1b}[\\]PX^_c\\\\]|\u{7}){0,40}", cut in 0usize..80
        ) {
            let whole = passed(true, &text);
            let cut = cut.min(text.len());
            let mut words = ForeignOutput::marking();
            let mut pieces = words.pass(&text.as_bytes()[..cut]);
            pieces.extend(words.pass(&text.as_bytes()[cut..]));
            pieces.extend(words.finish());
            prop_assert_eq!(&String::from_utf8(pieces).unwrap(), &whole);
            let mut rest = whole.as_str();
            while let Some((before, after)) = rest.split_once('\u{1b}') {
                prop_assert!(!before.contains(|next: char| next.is_control() && !matches!(next, '\n' | '\t')));
                let end = after.find('m').unwrap();
                prop_assert!(after.starts_with('[') && after[1..end].bytes().all(|byte| byte.is_ascii_digit() || byte == b';'));
                rest = &after[end + 1..];
            }
            prop_assert!(!rest.contains(|next: char| next.is_control() && !matches!(next, '\n' | '\t')));
            prop_assert!(!whole.lines().any(|line| line.trim_start().starts_with("✓ ")));
        }
    }
}
