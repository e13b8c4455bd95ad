//! What a repository makes git run or hide: hooks, filters, attributes, index flags. Ordinary work (`git push -u`) does
//! not change any of it.

use super::repository::{Repository, small};
use crate::source::sha256;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Sections of a config that make git run or hide something.
const SECTIONS: [&str; 10] =
    ["filter", "diff", "merge", "alias", "include", "includeif", "core", "credential", "gpg", "log"];
/// Keys of `core` that are harmless.
const HARMLESS: [&str; 9] = [
    "repositoryformatversion",
    "filemode",
    "bare",
    "logallrefupdates",
    "ignorecase",
    "precomposeunicode",
    "symlinks",
    "autocrlf",
    "untrackedcache",
];

/// Returns each such item, by a name for display, with its digest.
pub(super) fn git_state(root: &Path) -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    let Some(repository) = Repository::of(root) else { return state };
    let hooks = repository.common.join("hooks");
    for entry in fs::read_dir(hooks).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".sample")
            && let Some(text) = small(&entry.path())
        {
            state.insert(format!(".git/hooks/{name}"), digest(&text));
        }
    }
    let configs = [repository.common.join("config"), repository.git_dir.join("config.worktree")];
    let deciding: String = configs.iter().filter_map(|path| small(path)).map(|text| deciding_lines(&text)).collect();
    if !deciding.is_empty() {
        state.insert(".git/config".into(), digest(&deciding));
    }
    for name in ["attributes", "exclude", "grafts"] {
        if let Some(text) = small(&repository.common.join("info").join(name)) {
            let lines: Vec<&str> =
                text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).collect();
            if !lines.is_empty() {
                state.insert(format!(".git/info/{name}"), digest(&lines.join("\n")));
            }
        }
    }
    let commondir = repository.git_dir.join("commondir");
    if repository.git_dir == repository.common
        && let Ok(text) = fs::symlink_metadata(&commondir).map(|_| small(&commondir).unwrap_or_default())
    {
        state.insert(".git/commondir".into(), digest(&text));
    }
    if fs::read_dir(repository.common.join("refs/replace")).is_ok_and(|mut found| found.next().is_some()) {
        state.insert(".git/refs/replace".into(), "there".into());
    }
    if let Some(hidden) = hidden(&repository).filter(|hidden| !hidden.is_empty()) {
        state.insert(".git/index (hidden files)".into(), digest(&hidden.join("\n")));
    }
    state
}

/// Returns the lines of a config that make git run or hide something.
fn deciding_lines(text: &str) -> String {
    let (mut section, mut kept) = (String::new(), String::new());
    for line in text.lines().map(str::trim) {
        if let Some(head) = line.strip_prefix('[') {
            section = head.split([' ', ']', '.']).next().unwrap_or_default().to_lowercase();
            if section != "core" && SECTIONS.contains(&section.as_str()) {
                kept.push_str(line);
            }
            continue;
        }
        let key = line.split(['=', ' ']).next().unwrap_or_default().to_lowercase();
        let harmless = section == "core" && HARMLESS.contains(&key.as_str());
        if SECTIONS.contains(&section.as_str()) && !harmless && !line.is_empty() && !line.starts_with(['#', ';']) {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Returns the files that the index hides from git: those assumed unchanged or skipped in the working tree
/// (gitformat-index(5)). `None` if the index has an unknown format.
fn hidden(repository: &Repository) -> Option<Vec<String>> {
    let index = repository.git_dir.join("index");
    let bytes = super::worktree::ordinary(&index).and_then(|_| read(&index))?;
    let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (version, count) = (word(4)?, word(8)?);
    if bytes.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let name_at = 40 + if repository.is_sha256() { 32 } else { 20 };
    let (mut at, mut name, mut hidden) = (12, Vec::new(), Vec::new());
    for _ in 0..count {
        let flags = u16::from_be_bytes(bytes.get(at + name_at..at + name_at + 2)?.try_into().ok()?);
        let extended = flags & 0x4000 != 0;
        let more = if extended {
            u16::from_be_bytes(bytes.get(at + name_at + 2..at + name_at + 4)?.try_into().ok()?)
        } else {
            0
        };
        let mut start = at + name_at + 2 + if extended { 2 } else { 0 };
        if version == 4 {
            let (dropped, length) = varint(bytes.get(start..)?)?;
            start += length;
            name.truncate(name.len().checked_sub(dropped)?);
        } else {
            name.clear();
        }
        let length = bytes.get(start..)?.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(&bytes[start..start + length]);
        if flags & 0x8000 != 0 || more & 0x4000 != 0 {
            hidden.push(String::from_utf8_lossy(&name).into_owned());
        }
        // Entries are padded with at least one NUL to a multiple of eight bytes, except in version 4.
        at = if version == 4 { start + length + 1 } else { at + ((start - at + length) / 8 + 1) * 8 };
    }
    Some(hidden)
}

/// Parses a variable-width number as git writes offsets. Returns its value and its length in bytes.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut at = 0;
    let mut value = usize::from(bytes.first()? & 0x7f);
    while bytes.get(at)? & 0x80 != 0 {
        at += 1;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(bytes.get(at)? & 0x7f))?;
    }
    Some((value, at + 1))
}

#[expect(clippy::disallowed_methods, reason = "reads the working tree")]
fn read(path: &Path) -> Option<Vec<u8>> {
    fs::read(path).ok()
}

pub(super) fn digest(text: &str) -> String {
    let mut digest = sha256(text);
    digest.truncate(32);
    digest
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes a repository")]
mod tests {
    use super::*;
    use std::process::Command;

    fn git(root: &Path, words: &[&str]) {
        let identity = ["-c", "user.name=x", "-c", "user.email=x@x"];
        assert!(
            Command::new("git").args(identity).args(words).current_dir(root).status().unwrap().success(),
            "{words:?}"
        );
    }

    #[test]
    fn what_git_runs_and_hides_is_seen_and_ordinary_work_is_not() {
        for version in ["2", "4"] {
            let root = tempfile::tempdir().unwrap();
            let root = root.path();
            git(root, &["init", "-q"]);
            git(root, &["config", "index.version", version]);
            for name in ["a.py", "ab.py", "b/c.py"] {
                fs::create_dir_all(root.join("b")).unwrap();
                fs::write(root.join(name), "x").unwrap();
            }
            git(root, &["add", "."]);
            git(root, &["commit", "-qm", "one"]);
            let before = git_state(root);
            git(root, &["config", "branch.main.remote", "origin"]);
            git(root, &["commit", "-q", "--allow-empty", "-m", "two"]);
            git(root, &["gc", "-q"]);
            assert_eq!(git_state(root), before);
            let changed = |words: &[&str]| {
                let before = git_state(root);
                git(root, words);
                let now = git_state(root);
                now.into_iter()
                    .filter(|(name, digest)| before.get(name) != Some(digest))
                    .map(|(name, _)| name)
                    .collect::<Vec<_>>()
            };
            assert_eq!(changed(&["update-index", "--assume-unchanged", "ab.py"]), [".git/index (hidden files)"]);
            assert_eq!(changed(&["update-index", "--skip-worktree", "b/c.py"]), [".git/index (hidden files)"]);
            assert_eq!(changed(&["config", "filter.x.clean", "./evil"]), [".git/config"]);
            assert_eq!(changed(&["config", "core.hooksPath", ".husky"]), [".git/config"]);
            assert_eq!(hidden(&Repository::of(root).unwrap()).unwrap(), ["ab.py", "b/c.py"]);
            fs::write(root.join(".git/hooks/pre-commit"), "#!/bin/sh\n").unwrap();
            fs::write(root.join(".git/info/attributes"), "*.py -diff\n").unwrap();
            let now = git_state(root);
            assert!(now.contains_key(".git/hooks/pre-commit") && now.contains_key(".git/info/attributes"));
        }
    }
}
