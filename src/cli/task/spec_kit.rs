//! Tasks in Markdown, as spec-kit writes them to `specs/NNN-NAME/tasks.md`: `- [ ] T012 [P] [US1] What is to be done`.
//! Pure.

use crate::source::{Place, Source};
use std::path::Path;
use std::sync::Arc;

/// An open task of such a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SpecKitTask {
    /// Its ID: the number of the feature, if the directory has one, and the task's own: `001-T012`.
    pub(super) id: String,
    /// What is to be done.
    pub(super) title: String,
    /// The IDs of the open tasks that come first.
    pub(super) after: Vec<String>,
    /// Its line.
    pub(super) at: Place,
}

/// One item of the list.
struct SpecKitItem {
    id: String,
    title: String,
    is_done: bool,
    /// Whether it may be done at the same time as its neighbors.
    is_parallel: bool,
    at: Place,
}

/// Returns the open tasks, in order. Tasks in sequence come after each other. Neighbors marked `[P]` come after the
/// tasks before them, and the next task comes after all of them. A heading begins a new phase, in which nothing is a
/// neighbor of what was before.
pub(super) fn tasks(source: &Arc<Source>, path: &Path) -> Vec<SpecKitTask> {
    let feature = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    let number: String = feature.chars().take_while(char::is_ascii_digit).collect();
    let prefix = if number.is_empty() { String::new() } else { format!("{number}-") };
    let (mut open, mut start) = (Vec::new(), 0);
    // The tasks that the next ones come after, and the group of neighbors that is being read.
    let (mut before, mut group, mut is_parallel): (Vec<String>, Vec<String>, bool) = (Vec::new(), Vec::new(), false);
    for line in source.text.split_inclusive('\n') {
        let at = Place::new(source, start..start + line.trim_end().len());
        start += line.len();
        let heading = line.starts_with('#');
        let item = item(line, at);
        if heading || item.as_ref().is_some_and(|item| !(item.is_parallel && is_parallel)) {
            if !group.is_empty() {
                before = std::mem::take(&mut group);
            }
            is_parallel = false;
        }
        let Some(item) = item else { continue };
        is_parallel = item.is_parallel;
        if item.is_done {
            continue;
        }
        let id = format!("{prefix}{}", item.id);
        group.push(id.clone());
        open.push(SpecKitTask { id, title: item.title, after: before.clone(), at: item.at });
    }
    open
}

/// Reads a line; `None` if it is no task.
fn item(line: &str, at: Place) -> Option<SpecKitItem> {
    let text = line.trim().strip_prefix("- [")?;
    let (mark, text) = text.split_once("] ")?;
    let is_done = match mark {
        " " | "" => false,
        "x" | "X" => true,
        _ => return None,
    };
    let (id, mut text) = text.trim_start().split_once(' ')?;
    let id = id.trim_matches('*');
    let is_id = id
        .strip_prefix('T')
        .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|next| next.is_ascii_digit()));
    let mut is_parallel = false;
    // `[P]`, and the user story: `[US1]`.
    while let Some((label, rest)) = text.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        is_parallel |= label == "P";
        text = rest;
    }
    let title = text.trim().to_string();
    (is_id && !title.is_empty()).then(|| SpecKitItem { id: id.to_string(), title, is_done, is_parallel, at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, path: &str) -> Vec<String> {
        let source = Source::new("tasks.md", text, Path::new("/"));
        let line = |task: SpecKitTask| format!("{} {} after {}", task.id, task.title, task.after.join(","));
        tasks(&source, Path::new(path)).into_iter().map(line).collect()
    }

    #[test]
    fn neighbors_marked_p_come_after_the_same_tasks_and_before_the_next_one() {
        let text = "# Tasks: Login\n\n**Input**: x\n\n## Format: `[ID] [P?] [Story] Description`\n\n## Phase 1: Setup\n\n\
                    - [x] T001 Create the project\n- [ ] T002 Add the crate\n- [ ] T003 [P] Configure linting\n\n\
                    ## Phase 3: Story\n\n- [ ] T004 [P] [US1] Test in tests/a.rs\n- [ ] T005 [P] [US1] Test in tests/b.rs\n\
                    - [ ] T006 [US1] Implement [the] thing in src/a.rs\n- [ ] Not a task\n- [ ] TXX [P] Template\n";
        assert_eq!(
            read(text, "specs/001-login/tasks.md"),
            [
                "001-T002 Add the crate after ",
                "001-T003 Configure linting after 001-T002",
                "001-T004 Test in tests/a.rs after 001-T003",
                "001-T005 Test in tests/b.rs after 001-T003",
                "001-T006 Implement [the] thing in src/a.rs after 001-T004,001-T005",
            ]
        );
    }

    #[test]
    fn a_directory_without_a_number_gives_no_prefix_and_done_tasks_hold_nothing_up() {
        let text = "- [ ] T001 One\n- [X] T002 Two\n- [ ] T003 Three\n";
        assert_eq!(read(text, "tasks.md"), ["T001 One after ", "T003 Three after T001"]);
    }
}
