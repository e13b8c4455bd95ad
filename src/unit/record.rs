//! What the commits on a unit's ref say: who has claimed it, and what became of it. Each is a commit message with
//! trailers (git-interpret-trailers(1)).

use crate::source::names;

/// How far a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitStage {
    /// The unit waits for a worker.
    Queued,
    /// A worker has claimed it.
    Claimed,
    /// The work so far is kept; a worker may continue it.
    Checkpoint,
    /// The work has ended. The unit never runs again.
    Done,
}

names!(UnitStage { Queued = "queued", Claimed = "claimed", Checkpoint = "checkpoint", Done = "done" });

/// One commit on a unit's ref.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitRecord {
    /// The number of the claim, which increases with each; 0 before the first.
    pub fence: u32,
    /// The unit's stage after this commit.
    pub stage: UnitStage,
    /// The exit code of the work, if it has ended.
    pub exit: Option<u8>,
}

const FENCE: &str = "Forkhestra-Fence: ";
const STAGE: &str = "Forkhestra-Stage: ";
const EXIT: &str = "Forkhestra-Exit: ";
const WORKER: &str = "Forkhestra-Worker: ";

impl UnitRecord {
    /// Returns the record of a unit that waits for a worker.
    #[must_use]
    pub fn queued() -> Self {
        Self { fence: 0, stage: UnitStage::Queued, exit: None }
    }

    /// Returns the commit message. Each worker has a name of its own, so that no two claims are the same commit.
    #[must_use]
    pub fn message(&self, unit: &str, worker: &str) -> String {
        let exit = self.exit.map_or_else(String::new, |exit| format!("{EXIT}{exit}\n"));
        let stage = self.stage.name();
        format!("unit {unit}: {stage}\n\n{FENCE}{}\n{STAGE}{stage}\n{exit}{WORKER}{worker}\n", self.fence)
    }

    /// Returns the name of the worker in a commit message; empty if there is none.
    #[must_use]
    pub fn worker_of(message: &str) -> &str {
        message.lines().find_map(|line| line.strip_prefix(WORKER)).unwrap_or_default().trim()
    }

    /// Parses a commit message; `None` if it is not the message of such a commit.
    #[must_use]
    pub fn parse(message: &str) -> Option<Self> {
        let value = |key: &str| message.lines().find_map(|line| line.strip_prefix(key));
        let exit = match value(EXIT) {
            Some(exit) => Some(exit.trim().parse().ok()?),
            None => None,
        };
        Some(Self { fence: value(FENCE)?.trim().parse().ok()?, stage: UnitStage::named(value(STAGE)?.trim())?, exit })
    }
}

/// Returns whether a text can be the name of a unit: letters, digits, `-`, `_`, `+` and single dots inside, so that it
/// is also a valid name of a ref (git-check-ref-format(1)) and of a directory.
#[must_use]
pub fn is_unit_name(text: &str) -> bool {
    let letters = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_+.".contains(&byte));
    let edges = text.starts_with(['.', '-']) || text.ends_with(['.', '-']);
    let ends_as_lock = text.rsplit('.').next() == Some("lock");
    (1..=200).contains(&text.len()) && letters && !edges && !text.contains("..") && !ends_as_lock
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_record_is_parsed_from_its_own_message(fence: u32, stage in 0..4_usize, exit: Option<u8>) {
            let stage = [UnitStage::Queued, UnitStage::Claimed, UnitStage::Checkpoint, UnitStage::Done][stage];
            let record = UnitRecord { fence, stage, exit };
            prop_assert_eq!(UnitRecord::parse(&record.message("31-5", "a")), Some(record));
        }

        #[test]
        fn any_message_can_be_parsed(message: String) {
            let _ = UnitRecord::parse(&message);
        }
    }

    #[test]
    fn a_unit_has_a_name_that_git_and_the_file_system_accept() {
        for good in ["31-5", "31-a_b.2", "x", "31-5+2-1"] {
            assert!(is_unit_name(good), "{good}");
        }
        for bad in ["", ".a", "a..b", "a/b", "a b", "a.lock", "a.", "-x", "a\n", "ä"] {
            assert!(!is_unit_name(bad), "{bad}");
        }
    }
}
