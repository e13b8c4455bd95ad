//! What a template names, gathered from the working tree just before its agent is started. Nothing here fails: what is missing has a
//! fixed text in its place (S0-8).

use ignore::WalkBuilder;
use indexmap::IndexMap;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Asks git; its standard output, or nothing when it fails.
pub type Git<'a> = dyn Fn(&[&str]) -> Option<String> + 'a;

/// The most files that are named as concerned, and by one word of the title (S0-20).
const MOST_FILES: usize = 20;
const MOST_BY_WORD: usize = 5;
/// Files that are concerned in every task.
const STANDARD: [&str; 6] = ["AGENTS.md", "CLAUDE.md", "README.md", "package.json", "tsconfig.json", "pyproject.toml"];
/// The most new files that are shown in a diff, and the largest of them in bytes.
const MOST_NEW: usize = 50;
const LARGEST_NEW: u64 = 64 << 10;
/// The longest diff that is taken from git, in bytes.
const MOST_DIFF: usize = 4 << 20;
/// The most of a file that is read, in bytes.
const MOST_READ: u64 = 1 << 20;

/// The gathered ones of these variables. `spec` is the path of the specification, `title` what the task is about, `base` the
/// commit that changes are shown from: the run's first, so that what agents commit is part of them.
#[must_use]
pub fn gather(
    wanted: &BTreeSet<String>,
    root: &Path,
    spec: &str,
    title: &str,
    base: &str,
    git: &Git<'_>,
) -> IndexMap<String, String> {
    let mut gathered = IndexMap::new();
    for name in wanted {
        let value = match name.as_str() {
            "agents_md_content" => read(&root.join("AGENTS.md"))
                .unwrap_or_else(|| "No AGENTS.md found. Follow standard coding practices.".into()),
            "source_file_content" | "spec" => specification(root, spec),
            "relevant_files_summary" => concerned(root, spec, title),
            "git_status_output" => or(git(&["status", "--short"]), "No uncommitted changes"),
            "git_diff_output" => or(diff(root, base, git), "No changes"),
            "modified_files_list" => or(modified(base, git), "No files modified"),
            _ => continue,
        };
        gathered.insert(name.clone(), value);
    }
    gathered
}

/// A file as far as a prompt could ever show it; a pipe or a device would keep us waiting.
fn read(path: &Path) -> Option<String> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MOST_READ).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.trim_end_matches('\n').to_string())
}

/// What git said; nothing is one thing, and no answer another.
fn or(text: Option<String>, none: &str) -> String {
    let Some(text) = text else { return "Not known: this is no git repository, or git did not answer.".into() };
    if text.trim().is_empty() { none.to_string() } else { text.trim_end_matches('\n').to_string() }
}

fn specification(root: &Path, spec: &str) -> String {
    if spec.is_empty() {
        return "No specification file linked.".into();
    }
    read(&root.join(spec)).unwrap_or_else(|| format!("Specification file not found: {spec}"))
}

/// Everything since the base, committed or not, new files too. A repository without a commit has only new ones.
fn diff(root: &Path, base: &str, git: &Git<'_>) -> Option<String> {
    let options = ["--no-ext-diff", "--no-textconv", "--no-color", "--relative"];
    let of = |what: &[&str]| git(&[&["diff"][..], &options, what].concat());
    let mut diff = of(&[base]).or_else(|| of(&[]))?;
    if diff.len() >= MOST_DIFF {
        diff.extend(["\n[The rest is not shown, it is longer than 4 MiB: git diff ", base, "]\n"]);
    }
    let new = new_files(git);
    for (index, file) in new.iter().enumerate() {
        let found = fs::symlink_metadata(root.join(file));
        let small = found.as_ref().is_ok_and(|file| file.is_file() && file.len() <= LARGEST_NEW);
        let added = if small && index < MOST_NEW { of(&["--no-index", "--", "/dev/null", file]) } else { None };
        // What is not shown is said.
        let bytes = found.map_or(0, |file| file.len());
        diff += &added.unwrap_or_else(|| format!("new file, not shown: {file} ({bytes} bytes)\n"));
    }
    Some(diff)
}

fn new_files(git: &Git<'_>) -> Vec<String> {
    let listed = git(&["ls-files", "--others", "--exclude-standard", "-z"]).unwrap_or_default();
    listed.split('\0').filter(|file| !file.is_empty()).map(str::to_string).collect()
}

fn modified(base: &str, git: &Git<'_>) -> Option<String> {
    let changed =
        git(&["diff", "--name-only", "--relative", base]).or_else(|| git(&["diff", "--name-only", "--relative"]))?;
    let lines = changed.lines().map(str::to_string).chain(new_files(git));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

/// Files that the specification names, that bear a word of the title in their name, and the standard ones; by path, with their size.
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
    let words =
        text.split(|next: char| next.is_whitespace() || matches!(next, '`' | '"' | '\'' | '(' | ')' | '[' | ']' | ','));
    let named: BTreeSet<&str> = words.map(|word| word.trim_end_matches(['.', ':', ';'])).collect();
    let mut found: Vec<&String> = files.iter().filter(|file| named.contains(file.as_str())).collect();
    for word in title.split(|next: char| !next.is_alphanumeric()).filter(|word| word.chars().count() > 3) {
        let word = word.to_lowercase();
        let bears = |file: &&String| file.rsplit('/').next().is_some_and(|name| name.to_lowercase().contains(&word));
        found.extend(files.iter().filter(bears).take(MOST_BY_WORD));
    }
    found.extend(files.iter().filter(|file| STANDARD.contains(&file.as_str())));
    let mut seen = BTreeSet::new();
    found.retain(|file| seen.insert(file.as_str()));
    let line = |file: &&String| {
        let bytes = fs::metadata(root.join(file)).map_or(0, |file| file.len());
        format!("- {file} ({bytes} bytes)")
    };
    found.iter().take(MOST_FILES).map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes a working tree")]
mod tests {
    use super::*;

    fn gathered(root: &Path, spec: &str, name: &str) -> String {
        let git = |words: &[&str]| match words {
            ["diff", .., "HEAD"] if !words.contains(&"--name-only") => Some("diff of old\n".into()),
            ["diff", .., "/dev/null", file] => Some(format!("diff of {file}\n")),
            ["ls-files", ..] => Some("new.txt\0".into()),
            ["diff", "--name-only", "--relative", "HEAD"] => Some("old.txt\n".into()),
            ["status", ..] => Some(String::new()),
            _ => None,
        };
        gather(&[name.to_string()].into(), root, spec, "Mend the parser", "HEAD", &git).swap_remove(name).unwrap()
    }

    #[test]
    fn what_is_missing_has_a_fixed_text_and_what_is_there_is_read() {
        let root = tempfile::tempdir().unwrap();
        let of = |spec: &str, name: &str| gathered(root.path(), spec, name);
        assert_eq!(of("", "agents_md_content"), "No AGENTS.md found. Follow standard coding practices.");
        assert_eq!(of("", "spec"), "No specification file linked.");
        assert_eq!(of("no.md", "source_file_content"), "Specification file not found: no.md");
        assert_eq!(of("", "git_status_output"), "No uncommitted changes");
        let none = gather(
            &["git_diff_output".into(), "modified_files_list".into()].into(),
            root.path(),
            "",
            "",
            "HEAD",
            &|_| None,
        );
        assert_eq!(none["git_diff_output"], "Not known: this is no git repository, or git did not answer.");
        assert_eq!(none["modified_files_list"], none["git_diff_output"]);
        let quiet = |words: &[&str]| (words[0] != "ls-files").then(String::new);
        let none = gather(
            &["git_diff_output".into(), "modified_files_list".into()].into(),
            root.path(),
            "",
            "",
            "HEAD",
            &quiet,
        );
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
    fn new_files_are_part_of_the_diff() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("new.txt"), "x").unwrap();
        assert_eq!(gathered(root.path(), "", "git_diff_output"), "diff of old\ndiff of new.txt");
        assert_eq!(gathered(root.path(), "", "modified_files_list"), "old.txt\nnew.txt");
    }

    /// T0-19.
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
