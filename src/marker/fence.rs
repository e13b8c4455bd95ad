//! Code fences of Markdown, line by line (the specification of Markdown at commonmark.org, 4.5).

/// What a line is to the fences around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceLine {
    /// It stands in no fence.
    Outside,
    /// It opens one.
    Opens,
    /// It stands in one.
    Inside,
    /// It closes the open one.
    Closes,
}

/// Follows the fences of a text that is read line by line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fences {
    /// The sign of the open fence, and how often it stands in its first line.
    open: Option<(u8, usize)>,
}

impl Fences {
    /// Takes the next line, without its newline.
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

    /// The line that would open the open fence again; none outside of fences.
    #[must_use]
    pub fn opening(&self) -> Option<String> {
        self.open.map(|(sign, length)| char::from(sign).to_string().repeat(length))
    }

    /// Whether the next line stands in a fence.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

/// The sign of a fence line, its length, and whether nothing follows it.
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
