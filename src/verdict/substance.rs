//! Finds what has to be fixed in a judge's text: everything except items marked minor and headings that say nothing.

use super::doubt::forbids;
use super::findings::{item, marked_severity};
use super::{Finding, Severity};
use crate::marker::{FenceLine, Fences};

/// How many blocks are kept at most.
const MOST: usize = 50;
/// Maximum length of a title, in Unicode scalars.
const TITLE: usize = 200;

/// Words of headings that say nothing about the work.
const NEUTRAL: &str = "a all an and are blockers change changes code comment comments cosmetic cosmetics decision details do feedback few \
    finding findings first for fourth here in is issue issues item items left list minor my nit nitpick nitpicks nits none note notes \
    observations of only open optional point points remain remaining remains remark remarks result results review round second severity \
    small still style suggestion suggestions summary that the things third to verdict what";

/// A part of a judge's text, other than its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// Its first line, without markup.
    pub(super) title: String,
    /// Whether it is a list item.
    pub(super) is_item: bool,
    /// Whether it is a heading.
    pub(super) is_heading: bool,
}

/// The parts of a text that are not marked minor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Substance {
    /// Every item and paragraph that is not marked minor.
    pub(super) blocks: Vec<Block>,
    /// How many items are marked minor.
    pub(super) minor: usize,
}

impl Substance {
    /// Returns whether there are items marked minor, and nothing else.
    #[cfg(test)]
    pub(super) fn is_minor(&self) -> bool {
        self.blocks.is_empty() && self.minor > 0
    }

    /// Returns whether there is nothing, or only headings.
    pub(super) fn is_nothing(&self) -> bool {
        self.minor == 0 && self.blocks.iter().all(|block| block.is_heading)
    }

    /// Returns what has to be fixed, if no finding with a place says it: every item, or else the last paragraph. A
    /// program prints its logs first and its conclusion last.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let finding = |block: &Block| Finding { title: block.title.clone(), ..Finding::default() };
        let items: Vec<Finding> = self.blocks.iter().filter(|block| block.is_item).map(finding).collect();
        if items.is_empty() { self.blocks.last().map(finding).into_iter().collect() } else { items }
    }
}

/// Reads a judge's text without its verdict lines.
pub(super) fn substance(notes: &str) -> Substance {
    let mut found = Substance::default();
    let mut fences = Fences::default();
    // Whether the previous line belongs to an item marked minor, and whether it belongs to any block.
    let (mut in_minor, mut in_block) = (false, false);
    for line in notes.lines() {
        let place = fences.line(line.as_bytes());
        let trimmed = line.trim();
        if trimmed.is_empty() && place == FenceLine::Outside {
            // The next paragraph, even of an item marked minor, may be about anything.
            (in_block, in_minor) = (false, false);
            continue;
        }
        // The lines that open and close a fence are not text. What is between them is.
        if matches!(place, FenceLine::Opens | FenceLine::Closes) {
            in_minor &= line.starts_with("  ");
            in_block &= in_minor;
            continue;
        }
        let indented = line.starts_with("  ") || line.starts_with('\t');
        let item = if place == FenceLine::Outside { item(line) } else { None };
        if in_minor && indented && item.is_none() {
            continue;
        }
        if place == FenceLine::Outside && (is_rule(trimmed) || item.is_none() && says_nothing(trimmed)) {
            (in_minor, in_block) = (false, false);
            continue;
        }
        let severity = if place == FenceLine::Outside { marked_severity(item.unwrap_or(trimmed)) } else { None };
        if severity == Some(Severity::Minor)
            && forbids(trimmed).is_none()
            && !trimmed.to_lowercase().contains("(blocking)")
        {
            found.minor += 1;
            (in_minor, in_block) = (true, true);
            continue;
        }
        let has_title = found.blocks.last().is_some_and(|block| block.title.chars().any(char::is_alphanumeric));
        let continues = in_block && !in_minor && item.is_none() && has_title;
        in_minor = false;
        if !continues && found.blocks.len() < MOST {
            let title: String =
                item.unwrap_or(trimmed).trim_matches(['#', '*', ' ', '>', '`']).chars().take(TITLE).collect();
            let is_heading = place == FenceLine::Outside && trimmed.starts_with('#');
            found.blocks.push(Block { title, is_item: item.is_some(), is_heading });
        }
        in_block = true;
    }
    // A block without words, such as an empty fence, does not count.
    found.blocks.retain(|block| block.title.chars().any(char::is_alphanumeric));
    found
}

/// Returns whether a line is a rule (`---`, `***`) or the frame of a table with one column.
fn is_rule(line: &str) -> bool {
    line.len() >= 3 && line.chars().all(|next| matches!(next, '-' | '*' | '_' | '=' | ' '))
}

/// Returns whether a line is a heading, or announces a list, in words that say nothing about the work.
fn says_nothing(line: &str) -> bool {
    let heading = line.starts_with('#') || line.ends_with(':') || line.starts_with("**") && line.ends_with("**");
    let words = line.split(|next: char| !next.is_alphanumeric()).filter(|word| !word.is_empty());
    let neutral = |word: &str| {
        let word = word.to_lowercase();
        NEUTRAL.split_whitespace().any(|neutral| neutral == word) || word.chars().all(|next| next.is_ascii_digit())
    };
    heading && words.clone().count() <= 6 && words.clone().all(neutral) && line.chars().any(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_items_marked_minor_is_minor() {
        for notes in [
            "- minor: a.py:3: naming",
            "## Review\n\nFindings:\n\n- minor: a.py:3: naming\n  `x` would be better\n- [nit] b.py: a blank\n",
            "**Minor only:**\n1. (minor) a.py:3: naming\n\n---\n",
            "minor: a.py:3: naming",
            "- minor: a.py:3: so\n  ```\n  x = 1\n  ```\n",
        ] {
            assert!(substance(notes).is_minor(), "{notes}: {:?}", substance(notes));
        }
    }

    #[test]
    fn any_other_paragraph_or_item_is_full() {
        for notes in [
            "The login accepts every password. This must not ship.\n\n- minor: a.py:3: naming",
            "- minor: a.py:3: naming\n- every password is accepted",
            "- minor: a.py:3: naming\n- **Blocking**: `login()` accepts everything",
            "- minor: a.py:3: naming\n1. Makefile: the tests are off",
            "- minor: a.py:3: naming\nThe login is open.",
            "- minor: a.py:3: naming\n\n```\nassert False\n```",
            "# The login accepts every password\n\n- minor: a.py:3: naming",
            "This must not ship because:\n- minor: a.py:3: naming",
            "- minor: a.py:3: naming\n  - and the login is open",
            "",
        ] {
            assert!(!substance(notes).is_minor(), "{notes}");
        }
    }

    #[test]
    fn what_has_to_be_fixed_is_named_by_its_items_else_by_the_last_paragraph() {
        let titles = |notes: &str| {
            let found = substance(notes).findings();
            found.into_iter().map(|finding| finding.title).collect::<Vec<_>>().join(" | ")
        };
        assert_eq!(
            titles("I read it.\n\n- every password is accepted\n- Makefile: off"),
            "every password is accepted | Makefile: off"
        );
        assert_eq!(titles("reading a file\n\nTHE SUM IS WRONG\nin a.rs"), "THE SUM IS WRONG");
    }
}
