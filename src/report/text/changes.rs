//! What was changed: files with the numbers of their lines, and patches.

use crate::engine::FileChange;
use crate::report::format::{padded, thousands, width};
use crate::report::paint::{Paint, printable};
use crate::source::counted;
use std::fmt::Write;

/// How many files the short form names.
const NAMED: usize = 3;

/// Returns a table of changed files.
#[must_use]
pub fn changed_files(files: &[FileChange], paint: Paint) -> String {
    let mut text = String::new();
    let widest = files.iter().map(|file| width(&printable(&file.path))).max().unwrap_or(0);
    for file in files {
        let (added, removed) = (file.added.map(thousands), file.removed.map(thousands));
        let lines = match added.zip(removed) {
            Some((added, removed)) => {
                format!("{} {}", paint.good(&format!("+{added}")), paint.bad(&format!("-{removed}")))
            }
            None => "binary".into(),
        };
        let path = padded(&printable(&file.path).replace('\n', "\\n"), widest);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} {path}  {lines}", file.status);
    }
    text + &total(files) + "\n"
}

/// Returns what was changed in one line: `2 files changed (+12 -4): src/a.rs, src/b.rs`.
pub(in crate::report) fn changes_line(files: &[FileChange]) -> String {
    let names: Vec<String> = files.iter().take(NAMED).map(|file| printable(&file.path).replace('\n', "\\n")).collect();
    let more = if files.len() > NAMED { ", …" } else { "" };
    let colon = if files.is_empty() { "" } else { ": " };
    format!("{}{colon}{}{more}", total(files), names.join(", "))
}

fn total(files: &[FileChange]) -> String {
    let sum = |of: fn(&FileChange) -> Option<u64>| thousands(files.iter().filter_map(of).sum());
    match files.len() {
        0 => "no file changed".into(),
        count => {
            format!("{} changed (+{} -{})", counted(count, "file"), sum(|file| file.added), sum(|file| file.removed))
        }
    }
}

/// Returns a patch for a terminal, in color. Control characters of the files are made visible.
#[must_use]
pub fn painted_patch(patch: &str, paint: Paint) -> String {
    patch.lines().fold(String::new(), |mut text, line| {
        let shown = printable(line);
        let bold = ["diff --git ", "index ", "--- ", "+++ ", "new file ", "deleted file ", "similarity ", "rename "];
        text.push_str(&match line.as_bytes().first() {
            _ if bold.iter().any(|start| line.starts_with(start)) => paint.bold(&shown),
            Some(b'+') => paint.good(&shown),
            Some(b'-') => paint.bad(&shown),
            Some(b'@') => paint.dim(&shown),
            _ => shown,
        });
        text.push('\n');
        text
    })
}
