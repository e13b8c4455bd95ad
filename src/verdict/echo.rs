//! Removes echoes of the prompt from what an agent prints.

/// Returns the text without echoes of the prompt. An echo begins with the prompt's first line, and lasts as long as its
/// lines follow in order. A part that does not begin there may be an answer in the form that was requested.
#[must_use]
pub fn without_echo(message: &str, prompt: &str) -> String {
    let told: Vec<&str> = prompt.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let Some(first) = told.first() else { return message.to_string() };
    let lines: Vec<&str> = message.lines().map(str::trim_end).collect();
    let mut kept = Vec::with_capacity(lines.len());
    let mut at = 0;
    while at < lines.len() {
        if lines[at] != *first {
            kept.push(lines[at]);
            at += 1;
            continue;
        }
        let mut rest = told.iter();
        while at < lines.len() && (lines[at].is_empty() || rest.next() == Some(&lines[at])) {
            kept.push("");
            at += 1;
        }
    }
    kept.join("\n")
}

#[cfg(test)]
mod tests {
    use super::without_echo;

    #[test]
    fn an_echo_begins_where_the_prompt_does_and_an_answer_in_its_form_is_none() {
        let prompt =
            "Judge it.\nEnd with\n```json\n{\n  \"verdict\": \"approve\"\n}\n```\nVERDICT: approve\nor the other.\n";
        assert_eq!(without_echo(&format!("{prompt}VERDICT: reject"), prompt).trim(), "VERDICT: reject");
        let answer = "It is fine.\n```json\n{\n  \"verdict\": \"approve\"\n}\n```";
        assert_eq!(without_echo(answer, prompt), answer);
        assert_eq!(without_echo("or the other.\nVERDICT: approve", prompt), "or the other.\nVERDICT: approve");
        assert_eq!(without_echo("One line.", "One line.\n"), "");
        assert_eq!(without_echo("x", ""), "x");
    }
}
