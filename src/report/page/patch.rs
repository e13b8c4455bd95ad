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
fn path_of<'a>(words: &'a str, side: &str) -> Option<&'a str> {
    let words = words.trim_end_matches('\t');
    let unquoted = words.strip_prefix('"').and_then(|words| words.strip_suffix('"'));
    unquoted.unwrap_or(words).strip_prefix(side)
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
        path_of(half, "a/").unwrap_or(half)
    });
    let lines = match hunk {
        Some(hunk) => lines[hunk..].to_vec(),
        None => lines,
    };
    let count =
        |sign: char| if hunk.is_some() { lines.iter().filter(|line| line.starts_with(sign)).count() } else { 0 };
    let (added, removed) = (count('+'), count('-'));
    FilePatch { path: path.to_string(), added, removed, lines }
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
                     diff --git a/run b/run\nold mode 100644\nnew mode 100755\n";
        let files = by_file(patch);
        let told: Vec<(&str, usize, usize)> =
            files.iter().map(|file| (file.path.as_str(), file.added, file.removed)).collect();
        assert_eq!(
            told,
            [("x.rs", 1, 1), ("gone", 0, 1), ("a b", 1, 1), ("q\\\"", 0, 1), ("m\\\"", 0, 0), ("run", 0, 0)]
        );
        assert_eq!(files[5].lines.len(), 3);
    }
}
