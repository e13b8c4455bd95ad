//! Lengths of time as people write them: `90s`, `10m`, `1h30m`.

use std::time::Duration;

/// The longest duration that makes sense and cannot overflow a clock: ten years.
const LONGEST: Duration = Duration::from_hours(10 * 365 * 24);

/// Why a text is not a valid length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurationError {
    /// A number without a unit.
    NoUnit,
    /// Zero or negative.
    NotPositive,
    /// More than ten years.
    TooLong,
    /// Any other mistake.
    Malformed,
}

/// Parses whole numbers with the units `d`, `h`, `m`, `s` and `ms`, each at most once, largest first.
///
/// # Errors
/// Why the text is not a valid length of time.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    if text.starts_with('-') {
        return Err(DurationError::NotPositive);
    }
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1_u64)];
    let (mut rest, mut next_unit, mut total) = (text, 0, 0_u64);
    if rest.is_empty() {
        return Err(DurationError::Malformed);
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|next: char| next.is_ascii_digit()).len();
        if digits == 0 {
            return Err(DurationError::Malformed);
        }
        let (number, tail) = rest.split_at(digits);
        let letters = tail.len() - tail.trim_start_matches(|next: char| next.is_ascii_alphabetic()).len();
        let (unit, tail) = tail.split_at(letters);
        if unit.is_empty() {
            let is_zero = total == 0 && number.bytes().all(|digit| digit == b'0');
            return Err(match tail.is_empty() {
                // No unit makes it right.
                true if is_zero => DurationError::NotPositive,
                true => DurationError::NoUnit,
                false => DurationError::Malformed,
            });
        }
        let known = units.iter().skip(next_unit).position(|(name, _)| *name == unit);
        let index = next_unit + known.ok_or(DurationError::Malformed)?;
        let milliseconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(units[index].1));
        total = milliseconds.and_then(|more| total.checked_add(more)).ok_or(DurationError::TooLong)?;
        (rest, next_unit) = (tail, index + 1);
    }
    match Duration::from_millis(total) {
        Duration::ZERO => Err(DurationError::NotPositive),
        long if long > LONGEST => Err(DurationError::TooLong),
        fine => Ok(fine),
    }
}

/// Formats a length of time with the same units, except `d`, largest first.
#[must_use]
pub fn show_duration(duration: Duration) -> String {
    let mut left = duration.as_millis();
    let mut text = String::new();
    for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if left >= size {
            text.extend([(left / size).to_string().as_str(), unit]);
            left %= size;
        }
    }
    if text.is_empty() { "0s".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_and_shown_in_the_words_of_people() {
        for (text, milliseconds) in [
            ("90s", 90_000),
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("2h5s", 7_205_000),
            ("30d", 2_592_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["1m30s", "10m", "1h30m", "250ms", "2h5s"] {
            assert_eq!(parse_duration(text).map(show_duration).as_deref(), Ok(text));
        }
    }

    #[test]
    fn what_is_no_length_is_refused_with_its_reason() {
        for (text, fault) in [
            ("90", DurationError::NoUnit),
            ("1h30", DurationError::NoUnit),
            ("0s", DurationError::NotPositive),
            ("0", DurationError::NotPositive),
            ("-5m", DurationError::NotPositive),
            ("", DurationError::Malformed),
            ("m", DurationError::Malformed),
            ("1.5h", DurationError::Malformed),
            ("5m1h", DurationError::Malformed),
            ("5 m", DurationError::Malformed),
            ("1w", DurationError::Malformed),
            ("99999999999999999999h", DurationError::TooLong),
            ("100000h", DurationError::TooLong),
        ] {
            assert_eq!(parse_duration(text), Err(fault), "{text}");
        }
    }
}
