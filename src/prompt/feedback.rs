//! The feedback on the previous round of a group that the next round gets.

use std::fmt::Write;

/// The longest quoted output of one stream, in characters. The end matters most, so the start is cut, at a line end.
pub const FEEDBACK_CHARACTERS: usize = 8_000;

/// The longest quoted command line of a check, in characters.
const LINE_CHARACTERS: usize = 300;

/// What an agent is told about earlier work, with its heading for a template that has no place for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeedbackText {
    /// The heading; empty for none.
    pub heading: &'static str,
    /// The text, without line breaks around it; empty if there is nothing to tell.
    pub body: String,
    /// Whether a judge has rejected the work.
    pub rejected: bool,
    /// The notes of the last rejection by a judge; empty if there was none.
    pub notes: String,
}

impl FeedbackText {
    /// Returns the text as it is appended to a prompt.
    #[must_use]
    pub fn appended(&self) -> String {
        if self.body.is_empty() { String::new() } else { format!("\n\n## {}\n\n{}\n", self.heading, self.body) }
    }
}

/// Returns the feedback after a failed check: its command line, how it ended, the first `errors` in its output, and the
/// last lines of its two streams. `folder` is the attempt's directory.
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
        format!("The check `{check}` {how} in round {round}. Fix what it found. It ran: {}{more}", &first[..cut]);
    let errors = if errors.is_empty() {
        String::new()
    } else {
        let fence = fence_for(errors);
        format!("\n\nThe first errors:\n\n{fence}\n{errors}\n{fence}\n\nThe end of its output:")
    };
    section(&(first + &errors), output, folder)
}

/// Returns what judges have found so far, for the next judgment; empty for the first one.
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

/// Returns the feedback after a rejection: the judge's notes, and every finding so far with its state.
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
        "\nAll findings so far:\n\n{ledger}\nFix what is new, open or reopened. Answer each of them in your last message, one line \
         each: `F1: fixed`, or `F1: not fixed, because …`.\n"
    );
    text
}

/// Returns the feedback after a loop that did not reach its marker.
#[must_use]
pub fn exhausted_feedback(round: u32, agent: &str, iterations: u32, output: &[String; 2], folder: &str) -> String {
    let unit = if iterations == 1 { "iteration" } else { "iterations" };
    let first = format!(
        "In round {round} `{agent}` did not finish within {iterations} {unit}. Continue where it stopped. Its last output:"
    );
    section(&first, output, folder)
}

/// Returns what people told the run while it was running, as it is appended to a prompt; empty if there was nothing.
#[must_use]
pub fn told_by_people<'a>(messages: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = messages
        .map(|text| text.lines().map(|line| format!("> {line}").trim_end().to_string() + "\n").collect::<String>())
        .collect();
    if quoted.is_empty() {
        return String::new();
    }
    format!(
        "\n\n## Messages from the person who supervises this work\n\n{}\nThey came after the work began. Where they \
         contradict the task, follow them; a later one overrides an earlier one.\n",
        quoted.join("\n")
    )
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
            let _ = write!(text, "\n[The beginning is omitted. Full output: {folder}/{log}]\n");
        }
    }
    text
}

/// Returns the end of a text, from the start of a line if it has lines, and whether anything was cut.
fn tail(text: &str) -> (&str, bool) {
    let Some((cut, _)) = text.char_indices().rev().nth(FEEDBACK_CHARACTERS - 1).filter(|(cut, _)| *cut > 0) else {
        return (text, false);
    };
    let end = &text[cut..];
    let line = end.find('\n').map_or(0, |newline| newline + 1);
    (if line < end.len() { &end[line..] } else { end }, true)
}

/// Returns a fence longer than any run of backticks in the text.
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
            "The check `build` failed (exit 2) in round 2. Fix what it found. It \
             ran: make\n\n````\na ``` b\n````\n"
        );
    }

    #[test]
    fn long_output_is_cut_at_a_line_and_says_where_the_whole_is() {
        let text = exhausted_feedback(1, "a", 3, &words(&"é line\n".repeat(5_000), ""), "/log");
        assert!(text.contains("\n```\né line\n"));
        assert!(text.contains("[The beginning is omitted. Full output: /log/stdout.log]"));
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
