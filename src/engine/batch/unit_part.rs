//! What the name of a unit says.

/// The part that a unit has in its batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitPart {
    /// It works on a task, or verifies a merge.
    Whole,
    /// It is the try of this number at a task.
    Try(u32),
    /// Its judge chooses one of the tries at this task.
    Choice(String),
}

impl UnitPart {
    /// Reads it from the name of a unit: `31-5-1`, `31-5+2-1`, or `31-5+choice-1`.
    #[must_use]
    pub fn of(unit: &str) -> Self {
        let part = || {
            let (start, rest) = unit.rsplit_once('+')?;
            let (part, _) = rest.split_once('-')?;
            match part {
                "choice" => Some(Self::Choice(start.split_once('-')?.1.to_string())),
                number => number.parse().ok().map(Self::Try),
            }
        };
        part().unwrap_or(Self::Whole)
    }

    /// Returns the task that a unit works on; `None` for a verification.
    #[must_use]
    pub fn task_of(unit: &str) -> Option<&str> {
        let (name, _) = unit.rsplit_once('-')?;
        let (_, task) = name.split_once('-')?;
        let task = task.split_once('+').map_or(task, |(task, _)| task);
        (task != "verify").then_some(task)
    }
}

#[cfg(test)]
mod tests {
    use super::UnitPart;

    #[test]
    fn the_name_of_a_unit_says_which_try_it_is() {
        assert_eq!(UnitPart::of("31-a-b-1"), UnitPart::Whole);
        assert_eq!(UnitPart::of("31-verify-2"), UnitPart::Whole);
        assert_eq!(UnitPart::of("31-a-b+2-1"), UnitPart::Try(2));
        assert_eq!(UnitPart::of("31-a-b+choice-1"), UnitPart::Choice("a-b".into()));
        assert_eq!(UnitPart::task_of("31-a-b-1"), Some("a-b"));
        assert_eq!(UnitPart::task_of("31-a-b+2-1"), Some("a-b"));
        assert_eq!(UnitPart::task_of("31-verify-2"), None);
    }
}
