//! Commits and trees in the hub: work is merged without a working tree.

use super::HubError;
use super::hub_git::HubGit;

/// The result of merging work into the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// There is no conflict.
    Clean {
        /// The merged tree.
        tree: String,
    },
    /// Some files conflict.
    Conflict {
        /// The merged tree, with conflict markers in these files.
        tree: String,
        /// The paths of the files, from the top of the repository.
        files: Vec<String>,
    },
}

/// The most lines of conflicts that a task's chain is told about. The files have all of them.
const MOST_LINES: usize = 120;

/// The commits and trees in a hub.
#[derive(Debug, Clone, Copy)]
pub struct HubCommits<'a>(pub(super) &'a HubGit);

impl HubCommits<'_> {
    /// Merges work into a commit, without a working tree.
    ///
    /// # Errors
    /// When git fails.
    pub fn merge(self, onto: &str, work: &str) -> Result<Merged, HubError> {
        let words = ["merge-tree", "--write-tree", "--name-only", "-z", "--no-messages", onto, work];
        let answer = self.0.answer(&words, &[], &[])?;
        let mut parts = answer.stdout.split('\0').filter(|part| !part.is_empty());
        let tree = parts.next().unwrap_or_default().trim().to_string();
        if answer.code == 0 {
            return Ok(Merged::Clean { tree });
        }
        Ok(Merged::Conflict { tree, files: parts.map(str::to_string).collect() })
    }

    /// Creates a commit and returns its ID.
    ///
    /// # Errors
    /// When git fails.
    pub fn create(self, tree: &str, parents: &[&str], message: &str) -> Result<String, HubError> {
        let mut words = vec!["commit-tree", tree];
        for parent in parents {
            words.extend(["-p", parent]);
        }
        words.extend(["-F", "-"]);
        self.0.ask_with(&words, &[], message.as_bytes())
    }

    /// Returns the tree of a commit.
    ///
    /// # Errors
    /// When there is no such commit.
    pub fn tree_of(self, commit: &str) -> Result<String, HubError> {
        self.0.ask(&["rev-parse", "--verify", "--quiet", &format!("{commit}^{{tree}}")])
    }

    /// Returns what differs between two commits: the diffstat, and the patch.
    ///
    /// # Errors
    /// When git fails.
    pub fn difference(self, before: &str, after: &str) -> Result<(String, String), HubError> {
        let stat = self.0.ask(&["diff-tree", "--stat=100", "--no-color", before, after])?;
        let patch = self.0.ask(&["diff-tree", "-p", "--no-color", "--no-ext-diff", "--no-textconv", before, after])?;
        Ok((stat, patch))
    }

    /// Returns the files of a commit that another one has changed or deleted. Files that it has added do not count.
    ///
    /// # Errors
    /// When git fails.
    pub fn changed_files(self, before: &str, after: &str) -> Result<Vec<String>, HubError> {
        let words = ["diff-tree", "-r", "-z", "--no-renames", "--diff-filter=a", "--name-only", before, after];
        let told = self.0.ask(&words)?;
        Ok(told.split('\0').filter(|name| !name.is_empty()).map(str::to_string).collect())
    }

    /// Returns whether one commit is an ancestor of the other, or the same.
    #[must_use]
    pub fn is_ancestor(self, one: &str, other: &str) -> bool {
        self.0.ask(&["merge-base", "--is-ancestor", one, other]).is_ok()
    }

    /// Returns the number of commits on the line that a commit does not have, along first parents.
    #[must_use]
    pub fn ahead(self, line: &str, of: &str) -> usize {
        let range = format!("{of}..{line}");
        let count = self.0.ask(&["rev-list", "--count", "--first-parent", &range]);
        count.ok().and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// Returns the number of commits on the line that a commit does not have, as `git log` counts them.
    #[must_use]
    pub fn new_commits(self, line: &str, of: &str) -> usize {
        let count = self.0.ask(&["rev-list", "--count", &format!("{of}..{line}")]);
        count.ok().and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// Returns the commits of the line that a commit does not have, the oldest first, each with its title.
    ///
    /// # Errors
    /// When git fails.
    pub fn landed_since(self, commit: &str, line: &str) -> Result<Vec<(String, String)>, HubError> {
        let range = format!("{commit}..{line}");
        let told = self.0.ask(&["log", "--first-parent", "--reverse", "--format=%H%x00%s", &range])?;
        let lines = told.lines().filter_map(|line| line.split_once('\0'));
        Ok(lines.map(|(commit, title)| (commit.to_string(), title.to_string())).collect())
    }

    /// Returns the conflicts in these files of a merged tree, as text for an agent: each file with the lines around its
    /// conflict markers.
    #[must_use]
    pub fn conflicts(self, tree: &str, files: &[String]) -> String {
        let texts = files.iter().map(|file| {
            let text = self.0.ask(&["cat-file", "blob", &format!("{tree}:{file}")]).unwrap_or_default();
            (file.as_str(), text)
        });
        conflict_text(texts)
    }
}

/// Returns the parts of these files that are between conflict markers, with the names of the files.
#[must_use]
pub fn conflict_text<'a>(files: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let (mut lines, mut left_out) = (Vec::new(), 0_usize);
    for (file, text) in files {
        let mut inside = false;
        let mut any = false;
        for (number, line) in text.lines().enumerate() {
            if line.starts_with("<<<<<<<") {
                inside = true;
                lines.push(format!("{file}:{}:", number + 1));
                any = true;
            }
            if inside {
                lines.push(line.to_string());
            }
            inside &= !line.starts_with(">>>>>>>");
        }
        if !any {
            lines.push(format!("{file}: one side deleted, renamed or replaced it, and the other changed it"));
        }
    }
    if lines.len() > MOST_LINES {
        left_out = lines.len() - MOST_LINES;
        lines.truncate(MOST_LINES);
    }
    if left_out > 0 {
        lines.push(format!("… {left_out} more lines; the files have all of them"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conflicts_of_a_file_are_shown_with_both_sides() {
        let text = "one\n<<<<<<< line\ntwo\n=======\nzwei\n>>>>>>> work\nthree\n".to_string();
        assert_eq!(
            conflict_text([("a.txt", text), ("b.png", "\u{fffd}".into())]),
            "a.txt:2:\n<<<<<<< line\ntwo\n=======\nzwei\n>>>>>>> work\n\
             b.png: one side deleted, renamed or replaced it, and the other changed it"
        );
    }
}
