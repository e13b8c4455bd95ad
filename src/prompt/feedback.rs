//! What the next round of a group is told about the last one.

use std::fmt::Write;

/// The longest output of one stream that is quoted, in Unicode scalars; the end is what matters, so the beginning is cut, at a line end.
pub const FEEDBACK_CHARACTERS: usize = 8_000;

/// The longest line of a check that is quoted, in Unicode scalars.
const LINE_CHARACTERS: usize = 300;

/// What an agent is told of what happened before, and under which heading where it has no place in a template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeedbackText {
    /// The heading; empty for none.
    pub heading: &'static str,
    /// The text, without a line break around it; empty for nothing.
    pub body: String,
    /// Whether a judge has rejected the work.
    pub rejected: bool,
    /// What a judge said when it rejected the work last; empty if none did.
    pub notes: String,
}

impl FeedbackText {
    /// As it is appended to a prompt.
    #[must_use]
    pub fn appended(&self) -> String {
        if self.body.is_empty() { String::new() } else { format!("\n\n## {}\n\n{}\n", self.heading, self.body) }
    }
}

/// Feedback after a failed check: its words, its end, the first `errors` that were read from it, and the last lines of its two streams. `folder` is the attempt's.
#[must_use]
pub fn failed_check_feedback(
    round: u32,
    check: &str,
    line: &str,
    how: &str,
    errors: &str,
    output: &[String; 2],
    folder: &str,
) -> String {
    let first = line.lines().next().unwrap_or_default();
    let cut = first.char_indices().nth(LINE_CHARACTERS).map_or(first.len(), |(cut, _)| cut);
    let more = if cut < line.trim_end().len() { " …" } else { "" };
    let first =
        format!("The check `{check}` {how} in round {round}. Mend what it found. It ran: {}{more}", &first[..cut]);
    let errors = if errors.is_empty() {
        String::new()
    } else {
        let fence = fence_for(errors);
        format!("\n\nThe first errors:\n\n{fence}\n{errors}\n{fence}\n\nThe end of its output:")
    };
    section(&(first + &errors), output, folder)
}

/// What judges found so far, for the next judgement; nothing in the first one.
#[must_use]
pub fn found_so_far(ledger: &str, notes: &str) -> String {
    if ledger.is_empty() {
        return String::new();
    }
    let quoted: Vec<String> = notes.lines().map(|line| format!("> {line}").trim_end().to_string()).collect();
    let last = if quoted.is_empty() {
        String::new()
    } else {
        format!("\n\nThe last verdict, in full:\n\n{}", quoted.join("\n"))
    };
    format!("{}{last}", ledger.trim_end())
}

/// Feedback after a reject: the judge's words, and every finding so far with what became of it.
#[must_use]
pub fn rejected_feedback(round: u32, judge: &str, rejection: u32, notes: &str, ledger: &str) -> String {
    let mut text = format!("{judge} rejected round {round} (rejection {rejection}). In its words:\n\n");
    for line in notes.lines() {
        let quoted = format!("> {line}");
        text.push_str(quoted.trim_end());
        text.push('\n');
    }
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "\nAll findings so far:\n\n{ledger}\nMend what is new, open or reopened. Answer each of them in your last message, one line \
         each: `F1: mended`, or `F1: not mended, because …`.\n"
    );
    text
}

/// Feedback after a loop that did not reach its marker.
#[must_use]
pub fn exhausted_feedback(round: u32, agent: &str, iterations: u32, output: &[String; 2], folder: &str) -> String {
    let first = format!(
        "In round {round} `{agent}` did not finish within {iterations} iterations. Go on where it stopped. Its last words:"
    );
    section(&first, output, folder)
}

fn section(first: &str, output: &[String; 2], folder: &str) -> String {
    let mut text = format!("{first}\n");
    for (output, (heading, log)) in output.iter().zip([("", "stdout.log"), ("On standard error:\n\n", "stderr.log")]) {
        let (tail, cut) = tail(output);
        if tail.is_empty() {
            continue;
        }
        let fence = fence_for(tail);
        let newline = if tail.ends_with('\n') { "" } else { "\n" };
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{heading}{fence}\n{tail}{newline}{fence}\n");
        if cut {
            let _ = write!(text, "\n[The beginning is cut. The whole: {folder}/{log}]\n");
        }
    }
    text
}

/// The end of a text, from a line's beginning where it has lines.
fn tail(text: &str) -> (&str, bool) {
    let Some((cut, _)) = text.char_indices().rev().nth(FEEDBACK_CHARACTERS - 1).filter(|(cut, _)| *cut > 0) else {
        return (text, false);
    };
    let end = &text[cut..];
    let line = end.find('\n').map_or(0, |newline| newline + 1);
    (if line < end.len() { &end[line..] } else { end }, true)
}

/// A fence longer than any run of backticks in the text (C8).
fn fence_for(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(3.max(longest + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(out: &str, err: &str) -> [String; 2] {
        [out.into(), err.into()]
    }

    #[test]
    fn feedback_quotes_the_end_of_the_output_in_a_fence_that_holds_it() {
        let text = failed_check_feedback(2, "build", "make", "failed (exit 2)", "", &words("a ``` b\n", ""), "/log");
        assert_eq!(
            text,
            "The check `build` failed (exit 2) in round 2. Mend what it found. It \
             ran: make\n\n````\na ``` b\n````\n"
        );
    }

    #[test]
    fn long_output_is_cut_at_a_line_and_says_where_the_whole_is() {
        let text = exhausted_feedback(1, "a", 3, &words(&"é line\n".repeat(5_000), ""), "/log");
        assert!(text.contains("\n```\né line\n"));
        assert!(text.contains("[The beginning is cut. The whole: /log/stdout.log]"));
        assert!(text.chars().count() < FEEDBACK_CHARACTERS + 300);
        assert_eq!(tail(&"x".repeat(FEEDBACK_CHARACTERS)), ("x".repeat(FEEDBACK_CHARACTERS).as_str(), false));
    }

    #[test]
    fn a_flood_of_warnings_on_stderr_does_not_push_the_failure_out() {
        let text = failed_check_feedback(
            1,
            "t",
            "cargo test",
            "failed",
            "",
            &words("THE FAILURE\n", &"warning\n".repeat(9_000)),
            "/log",
        );
        assert!(
            text.contains("THE FAILURE") && text.contains("On standard error:") && text.contains("/log/stderr.log")
        );
    }

    #[test]
    fn of_a_long_check_one_line_is_quoted() {
        let text = failed_check_feedback(
            1,
            "t",
            &format!("{}\nsecond", "x".repeat(400)),
            "failed",
            "",
            &words("", ""),
            "/log",
        );
        assert!(text.ends_with(&format!("It ran: {} …\n", "x".repeat(300))), "{text}");
    }
}
