//! Task IDs.

/// What is wrong with an ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadId {
    /// It is empty.
    Empty,
    /// It has more than 64 characters.
    Long,
    /// It has a character other than letters, digits, `.`, `_`, `-`.
    Character(char),
    /// It is `.` or contains `..`, which are directories.
    Dots,
}

impl std::fmt::Display for BadId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty"),
            Self::Long => f.write_str("it has more than 64 characters"),
            Self::Character(character) => write!(f, "{character:?} is not a letter, digit, `.`, `_` or `-`"),
            Self::Dots => f.write_str("`.` and `..` are directories"),
        }
    }
}

/// Checks an ID.
///
/// # Errors
/// The first problem that is found.
pub fn check_id(id: &str) -> Result<(), BadId> {
    let allowed = |next: &char| next.is_ascii_alphanumeric() || matches!(next, '.' | '_' | '-');
    match id {
        "" => Err(BadId::Empty),
        _ if id.chars().count() > 64 => Err(BadId::Long),
        _ => match id.chars().find(|next| !allowed(next)) {
            Some(character) => Err(BadId::Character(character)),
            None if id == "." || id.contains("..") => Err(BadId::Dots),
            None => Ok(()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_lead_nowhere() {
        for good in ["task-1", "a", "A0._-", "1"] {
            assert_eq!(check_id(good), Ok(()));
        }
        let long = "x".repeat(65);
        for bad in ["", ".", "a/b", "a\\b", "../x", "/abs", "C:\\x", "a b", "a..b", long.as_str()] {
            assert!(check_id(bad).is_err(), "{bad}");
        }
    }
}
