//! How long ago something happened, by the wall clock.

use super::World;
use std::fs;
use std::path::Path;
use std::time::Duration;

impl World {
    /// Returns the date and time in UTC this long ago, in RFC 3339 with milliseconds.
    #[must_use]
    pub fn timestamp_before(&self, age: Duration) -> String {
        let now = self.timestamp().parse().unwrap_or(jiff::Timestamp::MIN);
        format!("{:.3}", now.checked_sub(age).unwrap_or(jiff::Timestamp::MIN))
    }

    /// Returns how many milliseconds have passed since a time in RFC 3339, by the wall clock; 0 for an invalid time or
    /// one in the future.
    #[must_use]
    pub fn milliseconds_since_time(&self, then: &str) -> u64 {
        let Ok((now, then)) = self.timestamp().parse().and_then(|now: jiff::Timestamp| Ok((now, then.parse()?))) else {
            return 0;
        };
        let then: jiff::Timestamp = then;
        u64::try_from(now.as_millisecond() - then.as_millisecond()).unwrap_or(0)
    }

    /// Returns how many milliseconds ago a file was written to; `None` if there is no such file.
    #[must_use]
    pub fn milliseconds_since_touch(&self, path: &Path) -> Option<u64> {
        let touched = jiff::Timestamp::try_from(fs::metadata(path).ok()?.modified().ok()?).ok()?;
        Some(self.milliseconds_since_time(&touched.to_string()))
    }

    /// Removes the files of our own directory that nobody has written to for this long. What cannot be removed stays.
    pub fn remove_older(&self, folder: &Path, age: Duration) {
        let old = |path: &Path| self.milliseconds_since_touch(path).is_some_and(|ms| u128::from(ms) > age.as_millis());
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| old(&entry.path())) {
            let _ = fs::remove_file(entry.path());
        }
    }

    /// Returns the size of a file, in bytes; `None` if there is no such file.
    #[must_use]
    pub fn size_of(&self, path: &Path) -> Option<u64> {
        fs::metadata(path).ok().map(|found| found.len())
    }

    /// Returns how many whole days have passed since a time in RFC 3339; none for an invalid time.
    #[must_use]
    pub fn days_since(&self, then: &str) -> Option<u64> {
        let (now, then): (jiff::Timestamp, jiff::Timestamp) = (self.timestamp().parse().ok()?, then.parse().ok()?);
        u64::try_from((now.as_second() - then.as_second()) / 86_400).ok()
    }
}
