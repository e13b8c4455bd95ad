//! The pages about signals and security are true sentence by sentence. For each sentence, `tests/promises` names the
//! tests that show it, or the limit that it states.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Returns the sentences of a page, and the rows of its tables without their headings.
fn promises(page: &str) -> Vec<String> {
    let (mut found, mut open, mut in_code, mut rows) = (Vec::new(), String::new(), false, 0);
    for line in page.lines() {
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        rows = if line.starts_with('|') { rows + 1 } else { 0 };
        let is_prose = !(in_code || is_fence || rows > 0 || line.starts_with('#'));
        if !is_prose || line.is_empty() || line.starts_with("- ") {
            found.extend(sentences(&std::mem::take(&mut open)));
        }
        if rows > 2 {
            found.push(line.trim_start_matches("| ").to_string());
        } else if is_prose {
            open = format!("{open} {}", line.trim_start()).trim().to_string();
        }
    }
    found.extend(sentences(&open));
    found
}

fn sentences(text: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), text);
    let begins = |text: &str| text.starts_with(|first: char| first.is_uppercase() || first == '`');
    let mut from = 0;
    while let Some(end) = rest[from..].find(". ").map(|end| from + end + 2) {
        if begins(&rest[end..]) {
            found.push(rest[..end].trim().to_string());
            (rest, from) = (&rest[end..], 0);
        } else {
            from = end;
        }
    }
    found.extend((!rest.is_empty()).then(|| rest.to_string()));
    found
}

/// Collects the name of every function below a directory.
fn functions(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            functions(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            into.extend(text.lines().filter_map(|line| {
                Some(
                    line.trim()
                        .strip_prefix("fn ")
                        .or(line.trim().strip_prefix("async fn "))?
                        .split_once('(')?
                        .0
                        .to_string(),
                )
            }));
        }
    }
}

#[test]
fn every_sentence_about_signals_and_security_has_a_test_or_states_a_limit() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut known = BTreeSet::new();
    functions(&here.join("src"), &mut known);
    functions(&here.join("tests"), &mut known);
    for page in ["signals", "security"] {
        let text = fs::read_to_string(here.join(format!("docs/{page}.md"))).unwrap();
        let kept = fs::read_to_string(here.join(format!("tests/promises/{page}.txt"))).unwrap();
        let mut open: Vec<String> = promises(&text);
        assert!(open.len() > 30, "{open:#?}");
        let mut shown_by = 1;
        for line in kept.lines() {
            if let Some(by) = line.strip_prefix("    ") {
                assert!(by.starts_with("limit: ") || known.contains(by), "{page}: no test is called {by}");
                shown_by += 1;
            } else {
                assert!(shown_by > 0, "{page}: nothing shows what stands before {line:?}");
                let before = open.len();
                open.retain(|promise| !promise.starts_with(line));
                assert_eq!(before - open.len(), 1, "{page}: begins no sentence, or several: {line:?}");
                shown_by = 0;
            }
        }
        assert_eq!(open, Vec::<String>::new(), "{page}: shown by no test");
    }
}
