//! What `doctor` found, for people.

use crate::report::paint::Paint;
use crate::report::phrases::{padded, width};

/// How a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// As it should be.
    Good,
    /// Not there, and not needed.
    Absent,
    /// Something to mend.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// What.
    pub name: String,
    /// How it is.
    pub health: Health,
    /// In words, with what to do where something is to be done.
    pub words: String,
}

/// All findings, one a line.
#[must_use]
pub fn doctor(heading: &str, findings: &[Finding], paint: Paint) -> String {
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
