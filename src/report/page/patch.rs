//! A patch, file by file.

/// The part of a patch that is about one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::report) struct FilePatch<'a> {
    /// The path of the file; of a deleted one, as it was.
    pub(in crate::report) path: String,
    /// The numbers of added and removed lines.
    pub(in crate::report) added: usize,
    pub(in crate::report) removed: usize,
    /// The lines from the first hunk on; for a change without one, such as that of a mode, the header.
    pub(in crate::report) lines: Vec<&'a str>,
}

/// Splits a patch in git's format (git-diff(1)) into files.
pub(in crate::report) fn by_file(patch: &str) -> Vec<FilePatch<'_>> {
    let mut files: Vec<Vec<&str>> = Vec::new();
    for line in patch.lines() {
        if line.starts_with("diff --git ") {
            files.push(Vec::new());
        }
        if let Some(file) = files.last_mut() {
            file.push(line);
        }
    }
    files.into_iter().map(file).collect()
}

/// Returns the path in a line of a header. git ends a path that has spaces with a tab, and quotes one that has quotes.
fn path_of(words: &str, side: &str) -> Option<String> {
    let words = words.trim_end_matches('\t');
    match words.strip_prefix('"').and_then(|words| words.strip_suffix('"')) {
        Some(quoted) => unescaped(quoted).strip_prefix(side).map(str::to_string),
        None => words.strip_prefix(side).map(str::to_string),
    }
}

/// Resolves the escapes in a quoted path: those of C, and bytes as three octal digits (git-config(1),
/// `core.quotePath`).
fn unescaped(quoted: &str) -> String {
    let mut bytes = Vec::with_capacity(quoted.len());
    let mut rest = quoted.bytes();
    while let Some(byte) = rest.next() {
        let escape = if byte == b'\\' { rest.next() } else { None };
        bytes.push(match escape {
            None => byte,
            Some(b'a') => 7,
            Some(b'b') => 8,
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'v') => 11,
            Some(b'f') => 12,
            Some(b'r') => b'\r',
            Some(first @ b'0'..=b'3') => {
                let digits = [Some(first), rest.next(), rest.next()].into_iter().flatten();
                digits.fold(0, |value, digit| value << 3 | (digit & 7))
            }
            Some(other) => other,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn file(lines: Vec<&str>) -> FilePatch<'_> {
    let hunk = lines.iter().position(|line| line.starts_with("@@"));
    let header = &lines[..hunk.unwrap_or(lines.len())];
    let named = |start: &str| header.iter().find_map(|line| line.strip_prefix(start));
    let path = named("+++ ").and_then(|words| path_of(words, "b/"));
    let path = path.or_else(|| named("--- ").and_then(|words| path_of(words, "a/")));
    let path = path.or_else(|| named("rename to ").and_then(|words| path_of(words, "")));
    // `diff --git a/PATH b/PATH`
    let path = path.unwrap_or_else(|| {
        let both = named("diff --git ").unwrap_or_default();
        let half = both.get(..both.len().saturating_sub(1) / 2).unwrap_or(both);
        path_of(half, "a/").unwrap_or_else(|| half.to_string())
    });
    let lines = match hunk {
        Some(hunk) => lines[hunk..].to_vec(),
        None => lines,
    };
    let count =
        |sign: char| if hunk.is_some() { lines.iter().filter(|line| line.starts_with(sign)).count() } else { 0 };
    let (added, removed) = (count('+'), count('-'));
    FilePatch { path, added, removed, lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_patch_has_its_path_and_its_lines() {
        let patch = "diff --git a/x.rs b/x.rs\nindex 1..2 100644\n--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,2 @@\n a\n--- c\n+++ d\n\
                     diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
                     diff --git a/a b b/a b\n--- a/a b\t\n+++ b/a b\t\n@@ -1 +1 @@\n-x\n+y\n\
                     diff --git \"a/q\\\"\" \"b/q\\\"\"\n--- \"a/q\\\"\"\n+++ \"b/q\\\"\"\n@@ -1 +0,0 @@\n-x\n\
                     diff --git \"a/m\\\"\" \"b/m\\\"\"\nold mode 100644\nnew mode 100755\n\
                     diff --git \"a/\\303\\244\\t\" \"b/\\303\\244\\t\"\n--- \"a/\\303\\244\\t\"\n+++ \"b/\\303\\244\\t\"\n@@ -1 +0,0 @@\n-x\n\
                     diff --git a/run b/run\nold mode 100644\nnew mode 100755\n";
        let files = by_file(patch);
        let told: Vec<(&str, usize, usize)> =
            files.iter().map(|file| (file.path.as_str(), file.added, file.removed)).collect();
        assert_eq!(
            told,
            [("x.rs", 1, 1), ("gone", 0, 1), ("a b", 1, 1), ("q\"", 0, 1), ("m\"", 0, 0), ("ä\t", 0, 1), ("run", 0, 0)]
        );
        assert_eq!(files[6].lines.len(), 3);
    }
}
