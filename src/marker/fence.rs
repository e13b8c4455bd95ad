//! Code fences of Markdown, line by line (the `CommonMark` specification, section 4.5).

/// How a line relates to code fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceLine {
    /// It is not in a fence.
    Outside,
    /// It opens a fence.
    Opens,
    /// It is inside a fence.
    Inside,
    /// It closes the open fence.
    Closes,
}

/// Tracks the code fences of a text that is read line by line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fences {
    /// The character of the open fence, and how often its first line repeats that character.
    open: Option<(u8, usize)>,
}

impl Fences {
    /// Processes the next line, given without its newline.
    pub fn line(&mut self, line: &[u8]) -> FenceLine {
        let Some((sign, length, bare)) = mark(line) else {
            return if self.open.is_some() { FenceLine::Inside } else { FenceLine::Outside };
        };
        match self.open {
            None => {
                self.open = Some((sign, length));
                FenceLine::Opens
            }
            Some((open, least)) if sign == open && length >= least && bare => {
                self.open = None;
                FenceLine::Closes
            }
            Some(_) => FenceLine::Inside,
        }
    }

    /// Returns the line that would open the open fence again; none outside a fence.
    #[must_use]
    pub fn opening(&self) -> Option<String> {
        self.open.map(|(sign, length)| char::from(sign).to_string().repeat(length))
    }

    /// Whether a fence is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

/// Returns the fence character of a line, how often it is repeated, and whether nothing follows; none if the line is
/// not a fence.
fn mark(line: &[u8]) -> Option<(u8, usize, bool)> {
    let indent = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    if indent > 3 {
        return None;
    }
    let line = &line[indent..];
    let sign = *line.first().filter(|sign| matches!(sign, b'`' | b'~'))?;
    let length = line.iter().take_while(|byte| **byte == sign).count();
    let rest = &line[length..];
    // A line may begin with an inline code span.
    let is_span = sign == b'`' && rest.contains(&b'`');
    (length >= 3 && !is_span).then(|| (sign, length, rest.iter().all(u8::is_ascii_whitespace)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        let mut fences = Fences::default();
        text.lines()
            .map(|line| match fences.line(line.as_bytes()) {
                FenceLine::Outside => 'o',
                FenceLine::Opens => '<',
                FenceLine::Inside => 'i',
                FenceLine::Closes => '>',
            })
            .collect()
    }

    #[test]
    fn a_fence_is_closed_by_its_own_sign_of_its_length_or_longer() {
        assert_eq!(told("a\n```rust\nb\n```\nc"), "o<i>o");
        assert_eq!(told("~~~~\n```\nb\n~~~\n~~~~~ \nc"), "<iii>o");
        assert_eq!(told("```not a fence``` x\n    ```\n   ```\nx"), "oo<i");
        assert_eq!(told("```\n``` rust\n```"), "<i>");
    }
}
