//! What a case is given in addition to a text: a tree of files, or a recorded output.

use super::Case;
use super::reading::{Reading, read_text, unreadable};
use crate::chain::json::Reader;
use crate::eval::errors;
use crate::eval::trees::{CaseTree, TreeSource};
use crate::source::{Kind, Place, Text};
use std::path::{Component, Path};

/// Reports cases without a tree among others with one, and a key `into` that names no file of a tree.
pub(super) fn check_trees(reading: &mut Reading<'_>, reader: Reader<'_>, cases: &[(Case, Place)]) {
    let trees = cases.iter().filter(|(case, _)| case.tree.is_some()).count();
    if trees > 0 && trees < cases.len() {
        let without = cases.iter().filter(|(case, _)| case.tree.is_none());
        reading.faults.extend(without.map(|(case, at)| errors::no_tree(at, &case.id)));
    }
    let Some(into) = reader.text("into") else { return };
    let parts: Vec<Component<'_>> = Path::new(&into.value).components().collect();
    let is_plain = !parts.is_empty() && parts.iter().all(|part| matches!(part, Component::Normal(_)));
    if trees == 0 || !is_plain {
        reading.faults.push(errors::bad_into(&into.at, trees == 0));
    }
}

/// Reads the recorded output of a case, and what a person says about it.
pub(super) fn read_recorded(reading: &mut Reading<'_>, reader: Reader<'_>) -> (Option<String>, Option<bool>) {
    // An output can be empty, unlike an input.
    let here = reader.text("output").map(|text| text.value);
    if let (Some(_), Some(file)) = (&here, reader.get("outputFile")) {
        reading.faults.push(errors::both(&file.at(), "output", "outputFile"));
    }
    let output = here.or_else(|| {
        let file = reader.text("outputFile")?;
        let read = read_text(&reading.source.base.join(&file.value), reading.files);
        read.map_err(|why| reading.faults.push(errors::file_unreadable(&file.at, &file.value, &why))).ok()
    });
    let label = reader.text("label");
    if let (Some(label), false) = (&label, reader.get("output").is_some() || reader.get("outputFile").is_some()) {
        reading.faults.push(errors::label_without_output(&label.at));
    }
    (output, label.map(|label| label.value == "pass"))
}

/// Reads where the tree of a case comes from, and checks that the directories exist.
pub(super) fn read_tree(reading: &mut Reading<'_>, reader: Reader<'_>) -> Option<CaseTree> {
    let (folder, commit, hidden) = (reader.text("tree"), reader.text("commit"), reader.text("hidden"));
    if let (Some(_), Some(commit)) = (&folder, &commit) {
        reading.faults.push(errors::both(&commit.at, "tree", "commit"));
    }
    for named in [&folder, &hidden].into_iter().flatten() {
        match reading.files.kind(&reading.source.base.join(&named.value)) {
            Ok(Kind::Folder) => {}
            Ok(_) => {
                let why = "it is not a directory";
                reading.faults.push(errors::file_unreadable(&named.at, &named.value, why));
            }
            Err(error) => {
                reading.faults.push(errors::file_unreadable(&named.at, &named.value, &unreadable(&error)));
            }
        }
    }
    let path = |text: &Text| reading.source.base.join(&text.value);
    let source = match (folder, commit) {
        (Some(folder), _) => TreeSource::Folder(path(&folder)),
        (None, Some(commit)) => TreeSource::Commit(commit.value),
        (None, None) => {
            if let Some(hidden) = &hidden {
                reading.faults.push(errors::hidden_without_tree(&hidden.at));
            }
            return None;
        }
    };
    Some(CaseTree { source, hidden: hidden.as_ref().map(path) })
}
