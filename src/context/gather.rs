//! Gathers the variables that a template names from the working tree, just before its agent starts. This never fails:
//! anything missing is replaced by a fixed text.

use super::instructions::{Instructions, concerned_files};
use super::snapshots::Changed;
use super::text::{named_in, read};
use crate::source::counted;
use ignore::WalkBuilder;
use indexmap::IndexMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The highest number of files listed as relevant, and of those found by one word of the title.
const MOST_FILES: usize = 20;
const MOST_BY_WORD: usize = 5;
/// Files that are relevant to every task.
const STANDARD: [&str; 6] = ["AGENTS.md", "CLAUDE.md", "README.md", "package.json", "tsconfig.json", "pyproject.toml"];
/// The largest diff that is shown, in bytes.
const MOST_DIFF: usize = 4 << 20;
/// The share of binary characters, in percent, above which a file's part of a diff counts as binary.
const MOST_BINARY: usize = 10;
/// A part of a diff up to this size never counts as binary, in bytes.
const SMALL_BINARY: usize = 4 << 10;
/// The changes since the work began, as recorded by snapshots.
#[derive(Debug, Clone, Default)]
pub struct TreeChanges {
    /// The changes as a patch; `None` if git gave no answer.
    pub diff: Option<String>,
    /// Every changed file.
    pub changed: Vec<Changed>,
    /// The files that differ from the commit that is checked out.
    pub uncommitted: Vec<Changed>,
    /// Changed files that the snapshots do not contain, by path from the root.
    pub unseen: Vec<String>,
}

/// The variables that describe the work so far.
pub const OF_WORK: [&str; 3] = ["git_status_output", "git_diff_output", "modified_files_list"];

/// What a task is about.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The path of the specification, from the root; empty for none.
    pub spec: &'a str,
    /// The subject of the task.
    pub title: &'a str,
    /// What was done since the work began; `None` if unknown.
    pub changes: Option<&'a TreeChanges>,
}

/// Returns the values of those `wanted` variables that can be gathered.
#[must_use]
pub fn gather(
    wanted: &BTreeSet<String>,
    root: &Path,
    subject: Subject<'_>,
    instructions: &Instructions,
) -> IndexMap<String, String> {
    let Subject { spec, title, changes } = subject;
    let mut gathered = IndexMap::new();
    for name in wanted {
        let value = match name.as_str() {
            "agents_md_content" => {
                let changed = changes.map(|changes| {
                    let changed = changes.changed.iter().map(|change| &change.path);
                    changed.chain(&changes.unseen).cloned().collect()
                });
                instructions.text(root, &concerned_files(root, spec, changed))
            }
            "skills" => instructions.skills(root),
            "source_file_content" | "spec" => specification(root, spec),
            "relevant_files_summary" => concerned(root, spec, title),
            "git_status_output" => or(changes.map(|changes| status(&changes.uncommitted)), "No uncommitted changes"),
            "git_diff_output" => or(changes.map(diff), "No changes"),
            "modified_files_list" => or(changes.map(modified), "No files modified"),
            _ => continue,
        };
        gathered.insert(name.clone(), value);
    }
    gathered
}

/// Tells an empty answer of git from no answer at all.
fn or(text: Option<String>, none: &str) -> String {
    let Some(text) = text else { return "Not known: this is not a git repository, or git did not answer.".into() };
    if text.trim().is_empty() { none.to_string() } else { text.trim_end_matches('\n').to_string() }
}

fn specification(root: &Path, spec: &str) -> String {
    if spec.is_empty() {
        return "No specification file linked.".into();
    }
    read(&root.join(spec)).unwrap_or_else(|| format!("Specification file not found: {spec}"))
}

/// Returns everything since the work began, committed or not, with new files. Files that cannot be shown are named.
fn diff(changes: &TreeChanges) -> String {
    let mut shown = String::new();
    let (mut hidden, mut named): (Vec<String>, BTreeSet<&str>) = (Vec::new(), BTreeSet::new());
    let Some(patch) = &changes.diff else {
        let named: Vec<String> = changes.unseen.iter().map(|file| format!("changed, not shown: {file}\n")).collect();
        return format!("Not known: this is not a git repository, or git did not answer.\n{}", named.concat());
    };
    for part in parts(patch) {
        let head = part.lines().next().and_then(|line| line.rsplit_once(" b/"));
        let name = head.map_or("a file", |(_, name)| name);
        named.insert(name);
        // A moved file has two names.
        named.extend(head.and_then(|(before, _)| before.strip_prefix("diff --git a/")));
        if is_binary(part) {
            hidden.push(format!("not text, not shown: {name} (a diff of {} bytes)\n", part.len()));
        } else if shown.len() + part.len() > MOST_DIFF {
            hidden.push(format!("too long, not shown: {name} (a diff of {} bytes)\n", part.len()));
        } else {
            shown.push_str(part);
        }
    }
    let missing = changes.changed.iter().map(|change| &change.path).filter(|path| !named.contains(path.as_str()));
    hidden.extend(missing.chain(&changes.unseen).map(|file| format!("changed, not shown: {file}\n")));
    shown + &hidden.concat()
}

/// Returns the parts of a patch, one per file.
fn parts(diff: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = diff.match_indices("\ndiff --git ").map(|(at, _)| at + 1).collect();
    if !diff.is_empty() {
        starts.insert(0, 0);
    }
    starts.push(diff.len());
    starts.windows(2).map(|pair| &diff[pair[0]..pair[1]]).collect()
}

/// Returns whether a part of a patch is binary. A few binary characters must not hide a source file.
fn is_binary(part: &str) -> bool {
    let strange = part.chars().filter(|next| *next == '\u{fffd}' || *next == '\0').count();
    part.len() > SMALL_BINARY && strange * 100 > part.chars().count() * MOST_BINARY
}

fn status(uncommitted: &[Changed]) -> String {
    let line = |change: &Changed| match change.status {
        'A' => format!("?? {}", change.path),
        status => format!(" {status} {}", change.path),
    };
    uncommitted.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn modified(changes: &TreeChanges) -> String {
    let named = changes.changed.iter().map(|change| change.path.clone());
    named.chain(changes.unseen.iter().cloned()).collect::<Vec<_>>().join("\n")
}

/// Short words that do not name a file.
const COMMON: [&str; 24] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "do", "fix", "for", "in", "is", "it", "its", "new", "not", "of",
    "on", "or", "rs", "the", "to", "py",
];

/// Lists the files that the specification names, those with a word of the title in their name, and the standard ones,
/// with their sizes.
fn concerned(root: &Path, spec: &str, title: &str) -> String {
    let ours = |name: &std::ffi::OsStr| name == ".git" || name == ".forkhestra" || name == "node_modules";
    let walk = WalkBuilder::new(root)
        .hidden(false)
        .require_git(false)
        .git_global(false)
        .filter_entry(move |entry| entry.depth() == 0 || !ours(entry.file_name()))
        .sort_by_file_path(Path::cmp)
        .build();
    let files = walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let files: Vec<String> =
        files.filter_map(|entry| Some(entry.path().strip_prefix(root).ok()?.to_str()?.to_string())).collect();
    let text = if spec.is_empty() { String::new() } else { read(&root.join(spec)).unwrap_or_default() };
    let text = format!("{title}\n{text}");
    let named = named_in(&text);
    let mut found: Vec<&String> = files.iter().filter(|file| named.contains(file.as_str())).collect();
    for word in title.split(|next: char| !next.is_alphanumeric()) {
        let word = word.to_lowercase();
        // A short word must be a whole part of a name (`api`, `cli`); a longer one may be anywhere in it.
        let bears = |file: &&String| {
            let name = file.rsplit('/').next().unwrap_or_default().to_lowercase();
            match word.chars().count() {
                0 | 1 => false,
                2 | 3 => {
                    !COMMON.contains(&word.as_str())
                        && name.split(|next: char| !next.is_alphanumeric()).any(|part| part == word)
                }
                _ => {
                    name.contains(&word)
                        || word.strip_suffix('s').is_some_and(|one| one.len() > 3 && name.contains(one))
                }
            }
        };
        found.extend(files.iter().filter(bears).take(MOST_BY_WORD));
    }
    // Standard files are a useful hint next to others, but misleading alone.
    if !found.is_empty() {
        found.extend(files.iter().filter(|file| STANDARD.contains(&file.as_str())));
    }
    let mut seen = BTreeSet::new();
    found.retain(|file| seen.insert(file.as_str()));
    let line = |file: &&String| {
        let bytes = fs::metadata(root.join(file)).map_or(0, |file| file.len());
        format!("- {file} ({})", counted(bytes, "byte"))
    };
    found.iter().take(MOST_FILES).map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes a working tree")]
mod tests {
    use super::*;

    fn gathered(root: &Path, spec: &str, name: &str) -> String {
        let change = |status, path: &str| Changed { status, path: path.into() };
        let work = TreeChanges {
            diff: Some("diff --git a/old.txt b/old.txt\n+x\ndiff --git a/new.txt b/new.txt\n+y\n".into()),
            changed: vec![change('M', "old.txt"), change('A', "new.txt"), change('A', "link")],
            uncommitted: Vec::new(),
            unseen: vec!["sub/x".into()],
        };
        let subject = Subject { spec, title: "Fix the parser", changes: Some(&work) };
        gather(&[name.to_string()].into(), root, subject, &Instructions::default()).swap_remove(name).unwrap()
    }

    #[test]
    fn what_is_missing_has_a_fixed_text_and_what_is_there_is_read() {
        let root = tempfile::tempdir().unwrap();
        let of = |spec: &str, name: &str| gathered(root.path(), spec, name);
        assert_eq!(of("", "agents_md_content"), "No AGENTS.md found. Follow standard coding practices.");
        assert_eq!(of("", "spec"), "No specification file linked.");
        assert_eq!(of("no.md", "source_file_content"), "Specification file not found: no.md");
        assert_eq!(of("", "git_status_output"), "No uncommitted changes");
        let names = ["git_diff_output".into(), "modified_files_list".into()].into();
        let nothing = |changes| Subject { spec: "", title: "", changes };
        let none = gather(&names, root.path(), nothing(None), &Instructions::default());
        assert_eq!(none["git_diff_output"], "Not known: this is not a git repository, or git did not answer.");
        assert_eq!(none["modified_files_list"], none["git_diff_output"]);
        let none = TreeChanges { diff: Some(String::new()), ..TreeChanges::default() };
        let none = gather(&names, root.path(), nothing(Some(&none)), &Instructions::default());
        assert_eq!(
            (none["git_diff_output"].as_str(), none["modified_files_list"].as_str()),
            ("No changes", "No files modified")
        );
        let pipe = std::process::Command::new("mkfifo").arg(root.path().join("pipe")).status();
        assert!(pipe.is_ok_and(|status| status.success()));
        assert_eq!(of("pipe", "spec"), "Specification file not found: pipe");
        fs::write(root.path().join("AGENTS.md"), "Be kind.\n").unwrap();
        assert_eq!(of("AGENTS.md", "spec"), "Be kind.");
    }

    #[test]
    fn new_files_are_part_of_the_diff_and_what_is_not_shown_is_named() {
        let root = tempfile::tempdir().unwrap();
        let diff = gathered(root.path(), "", "git_diff_output");
        assert!(
            diff.contains("+x")
                && diff.contains("+y")
                && diff.contains("+y\nchanged, not shown: link\nchanged, not shown: sub/x"),
            "{diff}"
        );
        assert_eq!(gathered(root.path(), "", "modified_files_list"), "old.txt\nnew.txt\nlink\nsub/x");
    }

    #[test]
    fn a_picture_is_named_and_a_source_file_with_a_strange_byte_is_shown() {
        let of =
            |text: String| TreeChanges { diff: Some(format!("diff --git a/x b/x\n{text}")), ..TreeChanges::default() };
        assert!(diff(&of("+\u{fffd}".repeat(4_000))).starts_with("not text, not shown: x ("));
        assert!(diff(&of(format!("+{}\0", "x = 1\n".repeat(2_000)))).contains("x = 1"));
        assert!(diff(&of("+x\n".repeat(2 << 20))).starts_with("too long, not shown: x ("));
    }

    #[test]
    fn of_many_files_a_few_by_each_word_are_named_and_each_once() {
        let root = tempfile::tempdir().unwrap();
        for number in 0..8 {
            fs::write(root.path().join(format!("parser-{number}.rs")), "").unwrap();
        }
        let files: Vec<String> = (0..30).map(|number| format!("f{number}.rs")).collect();
        for file in &files {
            fs::write(root.path().join(file), "").unwrap();
        }
        let by_word = gathered(root.path(), "", "relevant_files_summary");
        assert_eq!(by_word.matches("parser-").count(), 5);
        fs::write(root.path().join("spec.md"), files.join(", ") + " and f1.rs").unwrap();
        let all = gathered(root.path(), "spec.md", "relevant_files_summary");
        assert_eq!((all.lines().count(), all.matches("- f1.rs").count()), (20, 1));
    }

    #[test]
    fn files_are_found_by_the_specification_the_title_and_by_custom() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("src")).unwrap();
        for file in ["src/Parser.rs", "src/other.rs", "README.md", "spec.md"] {
            fs::write(root.path().join(file), "").unwrap();
        }
        fs::write(root.path().join("spec.md"), "See `src/other.rs`.").unwrap();
        let found = gathered(root.path(), "spec.md", "relevant_files_summary");
        assert_eq!(found, "- src/other.rs (0 bytes)\n- src/Parser.rs (0 bytes)\n- README.md (0 bytes)");
    }
}
