//! Decides whether a line is the marker.

use memchr::memmem;

/// The marker, unless the config sets another one.
pub const DEFAULT: &str = "FORKHESTRA_COMPLETE";

/// Whether a line, given without its newline, is the marker. Nothing else may be on the line except spaces, tabs, CR,
/// color, `*`, `_` and backticks.
#[must_use]
pub fn is_marker_line(line: &[u8], marker: &[u8]) -> bool {
    // With color inside it, the text is not the marker. The scanner has the same rule.
    if memmem::find(line, marker).is_none() {
        return false;
    }
    let plain = without_escapes(line);
    let decoration = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'*' | b'_' | b'`');
    let Some(start) = plain.iter().position(|byte| !decoration(byte)) else {
        return false;
    };
    let end = plain.iter().rposition(|byte| !decoration(byte)).map_or(0, |last| last + 1);
    plain.get(start..end) == Some(marker)
}

/// Returns how many lines of a text are the marker.
#[must_use]
pub fn count_lines(text: &[u8], marker: &str) -> usize {
    text.split(|&byte| byte == b'\n').filter(|line| is_marker_line(line, marker.as_bytes())).count()
}

/// Returns the line without its terminal escapes (ECMA-48: CSI, OSC, and two-byte ones).
fn without_escapes(line: &[u8]) -> Vec<u8> {
    const ESC: u8 = 0x1b;
    const BEL: u8 = 0x07;
    let mut plain = Vec::with_capacity(line.len());
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != ESC {
            plain.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'[') => while bytes.next().is_some_and(|byte| !(0x40..=0x7e).contains(&byte)) {},
            Some(b']') => {
                while let Some(byte) = bytes.next() {
                    if byte == BEL {
                        break;
                    }
                    if byte == ESC {
                        bytes.next_if_eq(&b'\\');
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(line: &str) -> bool {
        is_marker_line(line.as_bytes(), DEFAULT.as_bytes())
    }

    #[test]
    fn the_marker_counts_with_blanks_colour_and_markdown_around_it() {
        for line in [
            "FORKHESTRA_COMPLETE",
            "  FORKHESTRA_COMPLETE\t\r",
            "**FORKHESTRA_COMPLETE**",
            "__FORKHESTRA_COMPLETE__",
            "`FORKHESTRA_COMPLETE`",
            "\x1b[32m\x1b[1mFORKHESTRA_COMPLETE\x1b[0m",
            "\x1b]8;;x\x07FORKHESTRA_COMPLETE\x1b]8;;\x1b\\",
            "\x1b(BFORKHESTRA_COMPLETE".trim_start_matches("\x1b(B"),
        ] {
            assert!(is(line), "{line:?}");
        }
    }

    #[test]
    fn the_marker_does_not_count_inside_a_longer_line() {
        for line in [
            "",
            "not FORKHESTRA_COMPLETE yet",
            "FORKHESTRA_COMPLETED",
            "FORKHESTRA_COMPLETE.",
            "I will print FORKHESTRA_COMPLETE",
            "\"text\":\"done\\nFORKHESTRA_COMPLETE\"}",
            "forkhestra_complete",
            "FORKHESTRA_\x1b[1mCOMPLETE",
            "***",
        ] {
            assert!(!is(line), "{line:?}");
        }
    }

    #[test]
    fn marker_lines_of_a_text_are_counted() {
        let text = b"x\nFORKHESTRA_COMPLETE\n  `FORKHESTRA_COMPLETE`\nsay FORKHESTRA_COMPLETE";
        assert_eq!(count_lines(text, DEFAULT), 2);
    }
}
