//! How long a run has been running, computed from its events. Neither pauses count nor the time between a crash or a
//! stop and the resume.

use super::event::{Event, EventKind};
use jiff::Timestamp;

/// The working time of a run: a fold of its events.
#[derive(Debug, Clone, Default)]
pub struct Stopwatch {
    last: Option<Timestamp>,
    paused: bool,
    ms: u64,
}

impl Stopwatch {
    /// Applies the next event.
    pub fn see(&mut self, event: &Event) {
        let now = event.at.parse::<Timestamp>().ok();
        // The wall clock may have been set, so it is used only for events without `worked_ms`.
        if let Some(worked) = event.worked_ms {
            self.ms = worked;
            self.last = now.or(self.last);
            return;
        }
        let resumed = matches!(event.event, EventKind::RunResumed { .. });
        if let (Some(last), Some(now), false) = (self.last, now, resumed || self.paused) {
            let passed = now.as_millisecond().saturating_sub(last.as_millisecond());
            self.ms = self.ms.saturating_add(u64::try_from(passed).unwrap_or(0));
        }
        if let EventKind::RunResumed { worked_ms, .. } = event.event {
            self.ms = self.ms.max(worked_ms);
        }
        self.paused = match event.event {
            EventKind::RunPaused => true,
            EventKind::RunContinued | EventKind::RunResumed { .. } => false,
            _ => self.paused,
        };
        self.last = now.or(self.last);
    }

    /// Records how long an interrupted run had been running when it last reported it, in milliseconds.
    pub fn worked(&mut self, ms: u64) {
        self.ms = self.ms.max(ms);
    }

    /// Returns the time that the run has been running so far, in milliseconds.
    #[must_use]
    pub fn milliseconds(&self) -> u64 {
        self.ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::RunOutcome;

    #[test]
    fn neither_pauses_nor_the_time_before_a_resume_count() {
        let finished = || EventKind::RunFinished { outcome: RunOutcome::Succeeded };
        let resumed = EventKind::RunResumed {
            forkhestra: String::new(),
            attempts: Vec::new(),
            limits: Vec::new(),
            worked_ms: 0,
            more: None,
            tree: None,
        };
        let mut watch = Stopwatch::default();
        for (at, event) in [
            ("00:00:01", finished()),
            ("00:00:03", EventKind::RunPaused),
            ("00:10:00", EventKind::RunContinued),
            ("00:10:05", finished()),
            ("05:00:00", resumed),
            ("05:00:01.500", finished()),
        ] {
            watch.see(&Event {
                version: 1,
                run: 1,
                seq: 1,
                at: format!("2026-01-01T{at}Z"),
                worked_ms: None,
                unit: None,
                event,
            });
        }
        assert_eq!(watch.milliseconds(), 2_000 + 5_000 + 1_500);
    }

    #[test]
    fn a_clock_on_the_wall_that_is_set_changes_nothing() {
        let mut watch = Stopwatch::default();
        for (at, worked_ms) in
            [("2026-01-01T00:00:00Z", 0), ("2026-01-02T00:00:00Z", 1_000), ("2020-01-01T00:00:00Z", 2_500)]
        {
            let event = EventKind::RunFinished { outcome: RunOutcome::Succeeded };
            watch.see(&Event {
                version: 1,
                run: 1,
                seq: 1,
                at: at.into(),
                worked_ms: Some(worked_ms),
                unit: None,
                event,
            });
        }
        watch.worked(3_000);
        assert_eq!(watch.milliseconds(), 3_000);
    }
}
