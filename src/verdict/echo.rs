//! What an agent was told is not what it says.

/// The text without the lines that are an echo of the prompt: equal to a line of it, beside a line that stands beside that one there,
/// too. A prompt of one line is an echo by itself.
#[must_use]
pub fn without_echo(message: &str, prompt: &str) -> String {
    let told: Vec<&str> = prompt.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    if told.is_empty() {
        return message.to_string();
    }
    let lines: Vec<&str> = message.lines().map(str::trim_end).collect();
    let said: Vec<(usize, &str)> = lines.iter().copied().enumerate().filter(|(_, line)| !line.is_empty()).collect();
    let mut is_echo = vec![false; lines.len()];
    for (position, (index, line)) in said.iter().enumerate() {
        let beside = |at: usize, told_at: usize, step: isize| {
            let neighbour = |at: usize, most: usize| at.checked_add_signed(step).filter(|at| *at < most);
            match (neighbour(at, said.len()), neighbour(told_at, told.len())) {
                (Some(said_at), Some(told_at)) => said[said_at].1 == told[told_at],
                _ => false,
            }
        };
        let mut places = told.iter().enumerate().filter(|(_, known)| *known == line).map(|(at, _)| at);
        is_echo[*index] = places.any(|at| told.len() == 1 || beside(position, at, 1) || beside(position, at, -1));
    }
    let kept = lines.iter().zip(is_echo).map(|(line, echo)| if echo { "" } else { line });
    kept.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::without_echo;

    #[test]
    fn an_echo_is_told_by_its_neighbours() {
        let prompt = "Judge it.\nEnd with\nVERDICT: approve\nor the other.\n";
        assert_eq!(
            without_echo(&format!("> {prompt}\n{prompt}VERDICT: reject"), prompt).trim(),
            "> Judge it.\n\n\n\n\n\n\n\n\nVERDICT: reject"
        );
        assert_eq!(without_echo("It is fine.\n\nVERDICT: approve", prompt), "It is fine.\n\nVERDICT: approve");
        assert_eq!(without_echo("One line.", "One line.\n"), "");
        assert_eq!(without_echo("x", ""), "x");
    }
}
