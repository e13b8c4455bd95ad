//! The head of a Markdown file of another tool: `key: value` lines between two lines of three dashes. It is read as
//! leniently as those tools read it: a colon in a value needs no quotes.

/// The head of a Markdown file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarkdownHead {
    /// The keys with their values, in order. A list is one value, separated by `, `.
    pub entries: Vec<(String, String)>,
    /// Where the text after the head starts, in bytes.
    pub end: usize,
}

impl MarkdownHead {
    /// Reads the head of a text; `None` if it has none.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let first = text.split_inclusive('\n').next().filter(|line| line.trim_end() == "---")?;
        let mut head = Self { entries: Vec::new(), end: first.len() };
        for line in text[first.len()..].split_inclusive('\n') {
            head.end += line.len();
            if line.trim_end() == "---" {
                head.entries.iter_mut().for_each(|(_, value)| *value = unquoted(value.trim()));
                return Some(head);
            }
            head.line(line.trim_end());
        }
        None
    }

    /// Returns the value of a key; `None` if it is missing or empty.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.entries.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    fn line(&mut self, line: &str) {
        let text = line.trim_start();
        let is_key =
            |key: &str| !key.is_empty() && key.chars().all(|next| next.is_alphanumeric() || "-_".contains(next));
        let item = text.strip_prefix("- ").map(str::trim);
        match (line.split_once(':').filter(|(key, _)| is_key(key)), self.entries.last_mut()) {
            _ if text.is_empty() || line.starts_with('#') => {}
            (Some((key, value)), _) if item.is_none() => {
                let value = value.trim();
                let folded = matches!(value, ">" | ">-" | ">+" | "|" | "|-" | "|+");
                self.entries.push((key.into(), if folded { String::new() } else { value.into() }));
            }
            // A list, or the continuation of a value.
            (_, Some((_, value))) => {
                let separator = match (value.is_empty(), item) {
                    (true, _) => "",
                    (false, Some(_)) => ", ",
                    (false, None) => " ",
                };
                *value = format!("{value}{separator}{}", item.map_or_else(|| text.to_string(), unquoted));
            }
            _ => {}
        }
    }
}

/// Returns a value without its quotes, and a list in brackets without them.
fn unquoted(value: &str) -> String {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(inner) = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let items: Vec<String> = inner.split(',').map(|item| unquoted(item.trim())).collect();
        return items.into_iter().filter(|item| !item.is_empty()).collect::<Vec<_>>().join(", ");
    }
    if let Some(inner) = inside('"') {
        return inner.replace("\\n", "\n").replace("\\\"", "\"");
    }
    inside('\'').map_or_else(|| value.to_string(), |inner| inner.replace("''", "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, key: &str) -> Option<String> {
        MarkdownHead::of(text)?.get(key).map(str::to_string)
    }

    #[test]
    fn values_are_read_as_other_tools_write_them() {
        let text = "---\nname: code-reviewer\ndescription: Use it after: each change. E.g. \"user: hi\"\n\
                    tools: Read, Grep\nlist:\n  - A\n  - \"B\"\nflow: [C, 'D']\nempty:\nlong: >\n  one\n  two\n\
                    quoted: \"a \\\"b\\\" c\"\n# remark\n---\nBody: text\n";
        assert_eq!(value(text, "name").unwrap(), "code-reviewer");
        assert_eq!(value(text, "description").unwrap(), "Use it after: each change. E.g. \"user: hi\"");
        assert_eq!(value(text, "tools").unwrap(), "Read, Grep");
        assert_eq!(value(text, "list").unwrap(), "A, B");
        assert_eq!(value(text, "flow").unwrap(), "C, D");
        assert_eq!(value(text, "long").unwrap(), "one two");
        assert_eq!(value(text, "quoted").unwrap(), "a \"b\" c");
        assert_eq!((value(text, "empty"), value(text, "Body")), (None, None));
        assert_eq!(&text[MarkdownHead::of(text).unwrap().end..], "Body: text\n");
    }

    #[test]
    fn a_text_without_a_closed_head_has_none() {
        for text in ["", "# Title\n---\na: b\n---\n", "---\na: b\n", "--- \n"] {
            assert_eq!(MarkdownHead::of(text), None, "{text}");
        }
        assert_eq!(value("---\r\nname: x\r\n---\r\nbody", "name").unwrap(), "x");
    }
}
