//! What every agent CLI is told about running unattended, on top of its own system prompt.

use crate::chain::Form;
use std::fmt::Write;

/// What an agent is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// To work.
    Work,
    /// To judge, in this form.
    Verdict(Form),
    /// For words: an evaluation's prompts are answered, nothing is done.
    Answer,
}

/// The headless contract; for a loop with the marker's rule, whose marker never stands on a line of its own.
#[must_use]
pub fn contract(marker: Option<&str>, asked: Asked) -> String {
    if asked == Asked::Answer {
        return "You run unattended, started by a program. Nobody reads along and nobody can answer: do not ask questions. Change no \
                file. Your last message is taken as the answer, word for word: write the answer into it and nothing else, no \
                preface, no remarks."
            .into();
    }
    let mut text = String::from(
        "You run unattended, started by a program. Nobody reads along and nobody can answer: do not ask questions, decide \
         yourself, and say what you decided. Do the work in the current folder. Your last message is what is read \
         afterwards: say in it what you did, what you checked, and what is left. If a command or a tool is refused, do not try \
         other ways around it: say what you could not run. Leave nothing running in the background, and stay in this folder: no \
         worktree, no copy of it.",
    );
    if asked == Asked::Verdict(Form::Evaluation) {
        text.push_str(
            "\n\nYou are to judge, and you change nothing: your verdict does not count if you edit files. Your last message is one JSON \
             object and nothing else, with the keys pass (true or false), score (a number from 0, all wrong, to 1, perfect), issues (a \
             list of strings: what is wrong; empty only if it passes) and suggestions (a list of strings: what would mend it, without \
             giving the answer away).",
        );
    }
    if asked == Asked::Verdict(Form::Decision) {
        text.push_str(
            "\n\nYou are to judge, and you change nothing: your verdict does not count if you edit files. Name each finding on a \
             line of its own, the worst first, as an item of a list that begins with its place: `- FILE:LINE: what happens, and what \
             would mend it`; one that need not be mended begins with `- minor: FILE:LINE:`. End your last message with a single \
             line: the word VERDICT, a colon, and either approve (what was asked is done and harms nothing), reject (something has \
             to be mended), dispute (a human must decide, say why), or skip (there is nothing to do).",
        );
    }
    if let Some(marker) = marker {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n\nYou may be started again with the same prompt until the work is done, so first look at what is there \
             already. When, and only when, everything that was asked for is done and checked, end your last message with \
             the single word {marker} alone on its line. If anything is left, do not write that word at all."
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Asked, contract};
    use crate::chain::Form;
    use crate::marker::{DEFAULT, count_lines};

    #[test]
    fn the_contract_cannot_end_a_loop_by_its_echo() {
        assert!(contract(Some(DEFAULT), Asked::Work).contains(DEFAULT));
        assert_eq!(count_lines(contract(Some(DEFAULT), Asked::Work).as_bytes(), DEFAULT), 0);
        assert!(!contract(None, Asked::Verdict(Form::Decision)).contains(DEFAULT));
    }
}
