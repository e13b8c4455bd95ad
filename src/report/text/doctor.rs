//! The findings of `doctor`, for people.

use crate::report::format::{padded, width};
use crate::report::paint::Paint;

/// The state of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// As it should be.
    Good,
    /// Missing, but not needed.
    Absent,
    /// Wrong, and has to be fixed.
    Bad,
}

/// One thing that `doctor` checked.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct DoctorFinding {
    /// The name of what was checked.
    pub name: String,
    /// Its state: `good`, `absent` or `bad`.
    pub health: Health,
    /// What was found, and what to do about it if something has to be done.
    pub words: String,
}

/// Returns all findings, one on each line.
#[must_use]
pub fn doctor(heading: &str, findings: &[DoctorFinding], paint: Paint) -> String {
    let widest = findings.iter().map(|finding| width(&finding.name)).max().unwrap_or(0);
    let lines = findings.iter().map(|finding| {
        let sign = match finding.health {
            Health::Good => paint.good(paint.sign("✓", "+")),
            Health::Absent => paint.dim(paint.sign("·", "-")),
            Health::Bad => paint.bad(paint.sign("✗", "x")),
        };
        format!("{sign} {}  {}\n", padded(&finding.name, widest), finding.words)
    });
    std::iter::once(format!("{}\n\n", paint.bold(heading))).chain(lines).collect()
}
