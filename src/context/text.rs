//! Texts of files for prompts, and the paths that a text names.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;

/// The most bytes that are read of a file.
const MOST_READ: u64 = 1 << 20;
/// Characters around a path as people write it: `**src/a.rs**`, `<src/a.rs>`, `(src/a.rs)`.
const SIGNS: [char; 16] = ['`', '"', '\'', '(', ')', '[', ']', ',', '<', '>', '*', '{', '}', '|', ';', '“'];

/// Reads as much of a file as a prompt can ever show. A pipe or a device is not read, as it could block.
pub(super) fn read(path: &Path) -> Option<String> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MOST_READ).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.trim_end_matches('\n').to_string())
}

/// Returns the path in a word: `./src/a.rs:12:3`, `src/a.rs#L3`, `src/a.rs!`.
fn path_of(word: &str) -> &str {
    let word = word.trim_start_matches("./").trim_end_matches(['.', ':', ';', '!', '?', '…']);
    let word = word.split('#').next().unwrap_or(word);
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|next| next.is_ascii_digit());
    let mut path = word;
    while let Some((before, last)) = path.rsplit_once(':').filter(|(_, last)| is_number(last)) {
        let _ = last;
        path = before;
    }
    path
}

/// Returns the words of a text that may be paths.
pub(super) fn named_in(text: &str) -> BTreeSet<&str> {
    text.split(|next: char| next.is_whitespace() || SIGNS.contains(&next)).map(path_of).collect()
}
