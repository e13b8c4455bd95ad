//! When a usage limit ends, as backends report it: a point in time, a length of time, or a time of day.

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};
use std::time::Duration;

/// An end at most this far in the past is taken as just past, not as tomorrow's, because programs round to minutes.
const JUST_OVER: Duration = Duration::from_mins(15);

/// When a limit ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitEnd {
    /// At this time, in seconds since 1970.
    At(i64),
    /// After this length of time.
    In(Duration),
    /// At this time of day.
    Clock(WallClock),
}

/// A time of day, as a person reads it from a clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WallClock {
    time: Time,
    day: Option<Day>,
    /// The name of its time zone (IANA); none means the zone of this machine.
    zone: Option<String>,
}

/// The date of a time, if given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Day {
    OfWeek(Weekday),
    OfYear { year: Option<i16>, month: i8, day: i8 },
}

impl LimitEnd {
    /// Returns the end that a message names, if it names one.
    #[must_use]
    pub fn parse(words: &str) -> Option<Self> {
        epoch(words).map(Self::At).or_else(|| length(words).map(Self::In)).or_else(|| clock(words).map(Self::Clock))
    }

    /// Returns the end as a point in time; none if its time zone is unknown here or its day does not exist.
    #[must_use]
    pub fn moment(&self, now: Timestamp, here: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::At(seconds) => Timestamp::from_second(*seconds).ok(),
            Self::In(wait) => now.checked_add(*wait).ok(),
            Self::Clock(clock) => clock.moment(now, here),
        }
    }
}

impl WallClock {
    /// Returns the point in time that is meant: the last one if it has only just passed, otherwise the next.
    fn moment(&self, now: Timestamp, here: &TimeZone) -> Option<Timestamp> {
        let zone = self.zone.as_deref().map_or_else(|| Ok(here.clone()), TimeZone::get).ok()?;
        let since = now.checked_sub(JUST_OVER).ok()?.to_zoned(zone.clone());
        let on = |day: Date| day.to_datetime(self.time).to_zoned(zone.clone()).ok();
        let later = |moment: &Zoned| *moment >= since;
        let found = match self.day {
            None => (0..3).filter_map(|days| on(days_after(since.date(), days)?)).find(later),
            Some(Day::OfWeek(weekday)) => (0..9)
                .filter_map(|days| days_after(since.date(), days))
                .filter(|day| day.weekday() == weekday)
                .filter_map(on)
                .find(later),
            Some(Day::OfYear { year: Some(year), month, day }) => on(Date::new(year, month, day).ok()?),
            Some(Day::OfYear { year: None, month, day }) => (since.year()..since.year().saturating_add(3))
                .filter_map(|year| on(Date::new(year, month, day).ok()?))
                .find(later),
        };
        found.map(|zoned| zoned.timestamp())
    }
}

fn days_after(day: Date, days: i64) -> Option<Date> {
    day.checked_add(Span::new().days(days)).ok()
}

/// Parses the form of older versions of claude: `Claude AI usage limit reached|1753980000`.
fn epoch(words: &str) -> Option<i64> {
    let (words, seconds) = words.trim().rsplit_once('|')?;
    seconds.parse().ok().filter(|_| words.ends_with("limit reached"))
}

/// Parses `try again in 1 day 2 hours 5 minutes`, `retry in 41.2s`, `reset after 5h12m3s`, `Try again in ~100 min.`
fn length(words: &str) -> Option<Duration> {
    let words = words.to_ascii_lowercase();
    let before = ["again in ", "retry in ", "reset after ", "resets in ", "retry after "];
    let start = before.iter().find_map(|before| Some(words.find(before)? + before.len()))?;
    let (mut rest, mut total) = (words.get(start..)?, Duration::ZERO);
    loop {
        let trimmed =
            rest.trim_start_matches([' ', ',', '~', '.']).trim_start_matches("and ").trim_start_matches("about ");
        let number = trimmed.find(|next: char| !next.is_ascii_digit() && next != '.').unwrap_or(trimmed.len());
        let Ok(amount) = trimmed[..number].trim_end_matches('.').parse::<f64>() else { break };
        let unit = trimmed[number..].trim_start();
        let letters = unit.find(|next: char| !next.is_ascii_alphabetic()).unwrap_or(unit.len());
        let seconds = match &unit[..letters] {
            "ms" => 0.001,
            "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => break,
        };
        total = total.checked_add(Duration::try_from_secs_f64(amount * seconds).ok()?)?;
        rest = &unit[letters..];
    }
    (!total.is_zero()).then_some(total)
}

/// Parses `resets 4:50am (Europe/Rome)`, `resets Nov 25, 9am (UTC)`, `try again at Nov 24th, 2026 7:39 PM`.
fn clock(words: &str) -> Option<WallClock> {
    let lower = words.to_ascii_lowercase();
    let before = ["resets at ", "resets on ", "resets ", "reset at ", "again at ", "again on ", "reset on "];
    let start = before.iter().find_map(|before| Some(lower.find(before)? + before.len()))?;
    let zone =
        words.get(start..)?.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(zone, _)| zone.trim());
    let said = lower.get(start..)?.split('(').next()?;
    let parts: Vec<&str> =
        said.split(|next: char| next.is_whitespace() || next == ',').filter(|part| !part.is_empty()).collect();
    let (mut day, mut parts) = (None, parts.as_slice());
    if let Some(weekday) = parts.first().and_then(|part| weekday(part)) {
        (day, parts) = (Some(Day::OfWeek(weekday)), &parts[1..]);
    }
    if let Some(month) = parts.first().and_then(|part| month(part)) {
        let number: i8 = parts.get(1)?.trim_end_matches(|next: char| next.is_ascii_alphabetic()).parse().ok()?;
        let year = parts.get(2).and_then(|part| part.parse().ok()).filter(|year: &i16| *year > 2000);
        day = Some(Day::OfYear { year, month, day: number });
        parts = parts.get(if year.is_some() { 3 } else { 2 }..)?;
    }
    let parts = if parts.first() == Some(&"at") { &parts[1..] } else { parts };
    let time = time_of_day(parts.first()?, parts.get(1).copied().unwrap_or_default())?;
    Some(WallClock { time, day, zone: zone.filter(|zone| !zone.is_empty()).map(str::to_string) })
}

/// Parses `8pm`, `4:50am`, `10:39 PM`, `22:39`. A bare number is not a time.
fn time_of_day(first: &str, second: &str) -> Option<Time> {
    let first = first.trim_end_matches(['.', ';']);
    let digits = first.trim_end_matches(|next: char| next.is_ascii_alphabetic());
    let half = if digits.len() < first.len() { &first[digits.len()..] } else { second };
    let half = half.trim_matches(|next: char| !next.is_ascii_alphabetic());
    let (hour, minute) = digits.split_once(':').unwrap_or((digits, ""));
    let hour: i8 = hour.parse().ok()?;
    let minute: i8 = if minute.is_empty() { 0 } else { minute.split(':').next()?.parse().ok()? };
    let hour = match half {
        "am" if (1..=12).contains(&hour) => hour % 12,
        "pm" if (1..=12).contains(&hour) => hour % 12 + 12,
        "am" | "pm" => return None,
        _ if digits.contains(':') => hour,
        _ => return None,
    };
    Time::new(hour, minute, 0, 0).ok()
}

fn month(word: &str) -> Option<i8> {
    let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    (1..).zip(months).find_map(|(number, month)| word.starts_with(month).then_some(number))
}

fn weekday(word: &str) -> Option<Weekday> {
    let days = [
        ("mon", Weekday::Monday),
        ("tue", Weekday::Tuesday),
        ("wed", Weekday::Wednesday),
        ("thu", Weekday::Thursday),
        ("fri", Weekday::Friday),
        ("sat", Weekday::Saturday),
        ("sun", Weekday::Sunday),
    ];
    days.into_iter().find_map(|(name, day)| word.starts_with(name).then_some(day))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the end that a message names, as seen from noon on Sunday, 22 November 2026, in UTC.
    fn end(words: &str) -> Option<String> {
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        Some(LimitEnd::parse(words)?.moment(now, &TimeZone::UTC)?.to_string())
    }

    #[test]
    fn the_end_of_a_limit_is_read_in_the_words_of_every_program() {
        for (words, expected) in [
            ("You've hit your session limit · resets 8pm (UTC)", "2026-11-22T20:00:00Z"),
            ("You've hit your session limit · resets 8pm (America/New_York)", "2026-11-23T01:00:00Z"),
            ("You've hit your limit · resets 4:50am (Europe/Rome)", "2026-11-23T03:50:00Z"),
            ("You've hit your weekly limit · resets Nov 25, 9am (UTC)", "2026-11-25T09:00:00Z"),
            ("You've hit your weekly limit · resets Jan 2 at 9:30am", "2027-01-02T09:30:00Z"),
            ("You've hit your Opus limit · resets Mon 12:00 AM", "2026-11-23T00:00:00Z"),
            ("You're out of extra usage · resets 3am (UTC)", "2026-11-23T03:00:00Z"),
            ("5-hour limit reached ∙ resets 3am", "2026-11-23T03:00:00Z"),
            ("Claude AI usage limit reached|1795330000", "2026-11-22T06:46:40Z"),
            ("You've hit your usage limit. Try again at 10:39 PM.", "2026-11-22T22:39:00Z"),
            ("You've hit your usage limit. Try again at Nov 24th, 2026 7:39 PM.", "2026-11-24T19:39:00Z"),
            ("You have hit your ChatGPT usage limit (plus plan). Try again in ~100 min.", "2026-11-22T13:40:00Z"),
            ("or try again in 1 day 3 hours 5 minutes.", "2026-11-23T15:05:00Z"),
            ("Please retry in 41.9s.", "2026-11-22T12:00:41.9Z"),
            ("Your quota will reset after 5h12m3s.", "2026-11-22T17:12:03Z"),
        ] {
            assert_eq!(end(words).as_deref(), Some(expected), "{words}");
        }
    }

    #[test]
    fn a_time_that_has_just_passed_is_not_the_one_of_tomorrow() {
        assert_eq!(end("resets 11:59am").as_deref(), Some("2026-11-22T11:59:00Z"));
        assert_eq!(end("resets 11:30am").as_deref(), Some("2026-11-23T11:30:00Z"));
    }

    #[test]
    fn words_without_an_end_name_none() {
        for words in [
            "Please wait and try again later.",
            "try again in a while",
            "resets soon",
            "try again at 10",
            "resets 13pm",
            "resets Feb 30, 2027 9am",
            "resets 8pm (Nowhere/Atlantis)",
        ] {
            assert_eq!(end(words), None, "{words}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_words_are_taken(words in "\\PC{0,60}", before in "(resets|try again in|try again at|reset after) ") {
            let _ = (end(&words), end(&format!("{before}{words}")));
        }
    }
}
