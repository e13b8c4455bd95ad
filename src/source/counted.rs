//! Numbers with their nouns, in agreement.

/// Returns a count with its noun: `1 attempt`, `2 attempts`. The noun is given in the singular; its plural ends in `s`.
#[must_use]
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_singular_and_none_is_plural() {
        assert_eq!([0_usize, 1, 2].map(|count| counted(count, "attempt")), ["0 attempts", "1 attempt", "2 attempts"]);
    }
}
