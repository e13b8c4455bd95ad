//! How a run or an attempt is named on the command line: `RUN`, `RUN.STEP` or `RUN.STEP.ATTEMPT`.

use crate::engine::AttemptRow;
use crate::source::Diagnostic;
use std::fmt::{self, Display, Formatter};

/// An attempt of a run, or a step of which the last attempt is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct AttemptPlace {
    /// The step's number, from 1.
    pub(in crate::cli) step: u32,
    /// The attempt's number within its step, from 1.
    pub(in crate::cli) attempt: Option<u32>,
}

impl Display for AttemptPlace {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self.attempt {
            Some(attempt) => write!(formatter, "attempt {}.{attempt}", self.step),
            None => write!(formatter, "step {}", self.step),
        }
    }
}

impl AttemptPlace {
    /// Parses `STEP` or `STEP.ATTEMPT`.
    ///
    /// # Errors
    /// When the text has another form.
    pub(in crate::cli) fn parse(text: &str) -> Result<Self, Diagnostic> {
        let (step, attempt) = match text.split_once('.') {
            Some((step, attempt)) => (step, Some(attempt)),
            None => (text, None),
        };
        let number = |digits: &str| digits.parse::<u32>().map_err(|_| no_place(text));
        Ok(Self { step: number(step)?, attempt: attempt.map(number).transpose()? })
    }

    /// Returns whether an attempt can be meant.
    pub(in crate::cli) fn names(self, step: u32, attempt: u32) -> bool {
        step == self.step && self.attempt.is_none_or(|number| number == attempt)
    }

    /// Returns the attempt that is meant: the last one of the step unless it is named.
    pub(in crate::cli) fn find(self, attempts: &[AttemptRow]) -> Option<&AttemptRow> {
        attempts.iter().rfind(|row| self.names(row.step, row.attempt))
    }
}

/// A run, and possibly an attempt of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::cli) struct RunPlace {
    /// The run's number; `None` means the last run.
    pub(in crate::cli) run: Option<i64>,
    /// The attempt; `None` means the whole run.
    pub(in crate::cli) attempt: Option<AttemptPlace>,
}

impl RunPlace {
    /// Parses `RUN`, `RUN.STEP` or `RUN.STEP.ATTEMPT`.
    ///
    /// # Errors
    /// When the text has another form.
    pub(in crate::cli) fn parse(text: &str) -> Result<Self, Diagnostic> {
        let (run, rest) = match text.split_once('.') {
            Some((run, rest)) => (run, Some(rest)),
            None => (text, None),
        };
        let run = run.parse().map_err(|_| no_run(text))?;
        Ok(Self { run: Some(run), attempt: rest.map(AttemptPlace::parse).transpose()? })
    }

    /// Parses the two arguments `RUN` and `STEP[.ATTEMPT]`, which can also be one.
    ///
    /// # Errors
    /// When one of them has another form, or both name an attempt.
    pub(in crate::cli) fn of(run: Option<&str>, attempt: Option<&str>) -> Result<Self, Diagnostic> {
        let whole = run.map(Self::parse).transpose()?.unwrap_or_default();
        match (whole.attempt, attempt) {
            (Some(_), Some(twice)) => Err(no_place(twice)),
            (None, Some(text)) => Ok(Self { attempt: Some(AttemptPlace::parse(text)?), ..whole }),
            _ => Ok(whole),
        }
    }
}

fn no_place(text: &str) -> Diagnostic {
    let what = if text.is_empty() { "an attempt is missing".into() } else { format!("`{text}` is not an attempt") };
    Diagnostic::error("runs/place", what)
        .help("write STEP.ATTEMPT, as the console and `forkhestra runs show` do: 2.3; or STEP for its last attempt: 2")
}

fn no_run(text: &str) -> Diagnostic {
    Diagnostic::error("runs/place", format!("`{text}` is not a run"))
        .help("write the number of a run, or of an attempt of it: 12, or 12.2.3")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_and_an_attempt_are_one_word_or_two() {
        let of = |run: &str, attempt: Option<&str>| {
            let place = RunPlace::of(Some(run), attempt).ok()?;
            Some((place.run?, place.attempt.map(|at| (at.step, at.attempt))))
        };
        assert_eq!(of("7", None), Some((7, None)));
        assert_eq!(of("7.2", None), Some((7, Some((2, None)))));
        assert_eq!(of("7.2.3", None), of("7", Some("2.3")));
        assert_eq!(of("7", Some("2.3")), Some((7, Some((2, Some(3))))));
        for (run, attempt) in [("seven", None), ("7.x", None), ("7.2.3.4", None), ("7.2", Some("3")), ("7", Some(""))] {
            assert_eq!(of(run, attempt), None, "{run} {attempt:?}");
        }
        assert_eq!(RunPlace::of(None, None).ok(), Some(RunPlace::default()));
    }
}
