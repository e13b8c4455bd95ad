//! The instructions for unattended work that every backend is given in addition to its own system prompt.

use crate::chain::Form;
use std::fmt::Write;

/// What an agent is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContractKind {
    /// Do the work.
    Work,
    /// Give a verdict in this form.
    Verdict(Form),
    /// Answer in text and change nothing, as for the prompts of an evaluation.
    Answer,
}

/// The JSON Schema of an evaluation, as strict as services require it: every key is there, and no other one.
pub const EVALUATION_SCHEMA: &str = r#"{"type":"object","properties":{"pass":{"type":"boolean"},"score":{"type":"number"},"issues":{"type":"array","items":{"type":"string"}},"suggestions":{"type":"array","items":{"type":"string"}}},"required":["pass","score","issues","suggestions"],"additionalProperties":false}"#;

/// Returns the instructions for unattended work. For a loop they include the rule about the marker, in which the marker
/// is never alone on a line. `tools` are the names of the tools that the agent is offered.
#[must_use]
pub fn contract(marker: Option<&str>, asked: ContractKind, tools: &[String]) -> String {
    if asked == ContractKind::Answer {
        return "You run unattended, started by a program. Nobody is watching and nobody can answer: do not ask questions. Do not \
                change any files. Your last message is used as the answer, word for word: write only the answer in it, without \
                preface or remarks."
            .into();
    }
    let mut text = String::from(
        "You run unattended, started by a program. Nobody is watching and nobody can answer: do not ask questions; decide \
         yourself, and say what you decided. Do the work in the current directory. Your last message is what is read \
         afterwards: say in it what you did, what you checked, and what is left. If a command or a tool is refused, do not try \
         to work around it: say what you could not run. Leave nothing running in the background, and stay in this directory: \
         use no worktree and no copy of it.",
    );
    if asked == ContractKind::Verdict(Form::Evaluation) {
        text.push_str(
            "\n\nYou are to judge, and you must not change anything: your verdict does not count if you edit files. Your last message \
             must be one JSON object and nothing else, with the keys pass (true or false), score (a number from 0, all wrong, to 1, \
             perfect), issues (a list of strings: what is wrong; empty only if it passes) and suggestions (a list of strings: what \
             would fix it, without giving the answer away).",
        );
    }
    if asked == ContractKind::Verdict(Form::Decision) {
        text.push_str(
            "\n\nYou are to judge, and you must not change anything: your verdict does not count if you edit files. Name each finding \
             on a line of its own, the worst first, as a list item that begins with its place: `- FILE:LINE: what happens, and what \
             would fix it`; one that need not be fixed begins with `- minor: FILE:LINE:`. End your last message with a single \
             line: the word VERDICT, a colon, and either approve (what was asked is done and harms nothing), reject (something has \
             to be fixed), dispute (a human must decide; say why), or skip (there is nothing to do).",
        );
    }
    if !tools.is_empty() {
        let judges = matches!(asked, ContractKind::Verdict(_));
        let why = if judges {
            "Call exactly one of them for your verdict, with each finding as an argument of its own, and then write the line as well"
        } else {
            "Use them for what they say; what you record takes effect when you have finished"
        };
        // Writing to a String cannot fail.
        let _ = write!(text, "\n\nYou have these tools of forkhestra: {}. {why}.", tools.join(", "));
    }
    if let Some(marker) = marker {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n\nYou may be started again with the same prompt until the work is done, so first look at what is already \
             there. When, and only when, everything that was asked for is done and checked, end your last message with \
             the single word {marker} alone on its line. If anything is left to do, do not write that word at all."
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{ContractKind, contract};
    use crate::chain::Form;
    use crate::marker::{DEFAULT, count_lines};

    #[test]
    fn the_contract_cannot_end_a_loop_by_its_echo() {
        assert!(contract(Some(DEFAULT), ContractKind::Work, &[]).contains(DEFAULT));
        assert_eq!(count_lines(contract(Some(DEFAULT), ContractKind::Work, &[]).as_bytes(), DEFAULT), 0);
        assert!(!contract(None, ContractKind::Verdict(Form::Decision), &[]).contains(DEFAULT));
    }
}
