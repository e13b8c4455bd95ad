//! Which task is next.

use super::{Status, Task};

/// The tasks that one still waits for. A disputed, failed or skipped task does not count as completed.
#[must_use]
pub fn waits_for<'a>(task: &'a Task, all: &[Task]) -> Vec<&'a str> {
    let done = |id: &str| all.iter().any(|other| other.id == id && other.status == Status::Completed);
    task.after.iter().map(String::as_str).filter(|id| !done(id)).collect()
}

/// The next task to work on, one that waits for nothing: first tasks to be judged, then begun ones, then the oldest.
#[must_use]
pub fn next<'a>(all: &'a [Task], but: &[String]) -> Option<&'a Task> {
    let ready = |task: &&Task| !task.status.is_terminal() && !but.contains(&task.id) && waits_for(task, all).is_empty();
    let rank = |task: &Task| match task.status {
        Status::Review => 0,
        Status::InProgress => 1,
        _ => 2,
    };
    // The order of the list is the order in which they were added.
    all.iter().filter(ready).min_by_key(|task| rank(task))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, status: Status, after: &[&str]) -> Task {
        Task {
            id: id.into(),
            title: String::new(),
            spec: None,
            tests: None,
            after: after.iter().map(ToString::to_string).collect(),
            added: String::new(),
            status,
            rejections: 0,
            sent_back: 0,
            notes: None,
            cut_off: false,
        }
    }

    #[test]
    fn review_comes_before_what_was_begun_and_that_before_what_was_not() {
        let mut all = vec![
            task("a", Status::Completed, &[]),
            task("b", Status::Pending, &[]),
            task("c", Status::InProgress, &[]),
            task("d", Status::Review, &[]),
            task("e", Status::Pending, &["f"]),
            task("f", Status::Skipped, &[]),
        ];
        let mut order = Vec::new();
        while let Some(id) = next(&all, &order).map(|task| task.id.clone()) {
            order.push(id);
        }
        assert_eq!(order, ["d", "c", "b"], "what waits for a skipped task is not begun");
        all[5].status = Status::Completed;
        assert_eq!(next(&all, &order).map(|task| task.id.as_str()), Some("e"));
        assert_eq!(waits_for(&task("g", Status::Pending, &["a", "b"]), &all), ["b"]);
    }
}
