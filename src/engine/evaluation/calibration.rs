//! How far the judges of an evaluation agree with people.

use super::event::JudgedBy;
use super::ledger::EvalLedger;
use serde::Serialize;
use std::collections::HashMap;

/// How far the judges agree with the labels of recorded outputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Calibration {
    /// How many results have a label.
    pub labels: usize,
    /// Good outputs that passed.
    pub passed_rightly: usize,
    /// Bad outputs that failed.
    pub failed_rightly: usize,
    /// Bad outputs that passed.
    pub passed_wrongly: usize,
    /// Good outputs that failed.
    pub failed_wrongly: usize,
    /// Cohen's kappa: the agreement beyond what chance explains, at most 1; `None` if chance explains all of it.
    pub kappa: Option<f64>,
}

impl Calibration {
    /// Compares the judges with the labels. `None` if no result has a label.
    #[must_use]
    pub fn of(ledger: &EvalLedger) -> Option<Self> {
        let cases = ledger.facts.iter().flat_map(|facts| &facts.cases);
        let labels: HashMap<&str, bool> = cases.filter_map(|case| Some((&*case.id, case.label?))).collect();
        let mut found = Self::default();
        for result in ledger.results.values().filter(|result| result.judged_by != JudgedBy::Nobody) {
            let Some(label) = labels.get(&*result.case) else { continue };
            found.labels += 1;
            match (result.pass, *label) {
                (true, true) => found.passed_rightly += 1,
                (false, false) => found.failed_rightly += 1,
                (true, false) => found.passed_wrongly += 1,
                (false, true) => found.failed_wrongly += 1,
            }
        }
        found.kappa = found.computed_kappa();
        (found.labels > 0).then_some(found)
    }

    /// The number of results that agree with their label.
    #[must_use]
    pub fn agreed(&self) -> usize {
        self.passed_rightly + self.failed_rightly
    }

    #[expect(clippy::cast_precision_loss, reason = "a count of results")]
    fn computed_kappa(&self) -> Option<f64> {
        let share = |count: usize| count as f64 / self.labels.max(1) as f64;
        let judged_good = share(self.passed_rightly + self.passed_wrongly);
        let labelled_good = share(self.passed_rightly + self.failed_wrongly);
        let by_chance = judged_good * labelled_good + (1.0 - judged_good) * (1.0 - labelled_good);
        (by_chance < 1.0).then(|| (share(self.agreed()) - by_chance) / (1.0 - by_chance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kappa_is_one_for_full_agreement_zero_for_chance_and_nothing_if_all_are_the_same() {
        let kappa = |passed_rightly, failed_rightly, passed_wrongly, failed_wrongly| {
            let labels = passed_rightly + failed_rightly + passed_wrongly + failed_wrongly;
            Calibration { labels, passed_rightly, failed_rightly, passed_wrongly, failed_wrongly, kappa: None }
                .computed_kappa()
        };
        assert_eq!(kappa(5, 5, 0, 0), Some(1.0));
        assert_eq!(kappa(5, 5, 5, 5), Some(0.0));
        assert_eq!(kappa(10, 0, 0, 0), None);
        // Cohen (1960): 20 and 15 of 50 agree, 5 and 10 do not.
        assert!((kappa(20, 15, 10, 5).unwrap() - 0.4).abs() < 1e-9);
    }
}
