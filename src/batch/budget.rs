//! The limits of a whole batch. Each unit gets a share before it starts, which its own run keeps to; what it does not
//! use returns at its end. So all units together never use more than the limit, except for the turn in progress in each
//! of them.

use crate::chain::{Limits, show_duration};
use crate::engine::{LimitKind, Totals};
use std::collections::HashMap;
use std::time::Duration;

/// What a unit may use, and has used.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    cost: Option<f64>,
    tokens: Option<u64>,
    attempts: Option<u32>,
    used: Used,
    has_ended: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Used {
    cost: f64,
    tokens: u64,
    attempts: u32,
}

/// Limits as plain amounts.
#[derive(Debug, Clone, Copy, Default)]
struct LimitAmounts {
    time: Option<Duration>,
    cost: Option<f64>,
    tokens: Option<u64>,
    attempts: Option<u32>,
}

impl LimitAmounts {
    fn of(limits: &Limits) -> Self {
        Self {
            time: limits.time,
            cost: limits.cost.as_ref().map(|(cost, _)| *cost),
            tokens: limits.tokens.as_ref().map(|(tokens, _)| *tokens),
            attempts: limits.attempts,
        }
    }
}

/// The limits of a batch and what was used of them.
#[derive(Debug, Default)]
pub struct Budget {
    /// Those of the whole batch.
    whole: LimitAmounts,
    /// Those of each run.
    each: LimitAmounts,
    /// When the batch began, by the clock that includes sleep, less what it had worked before.
    begun: Duration,
    shares: HashMap<String, Share>,
}

/// The share of a time limit is in whole seconds, so a run may end this much earlier.
const SECOND: Duration = Duration::from_secs(1);

/// The least cost that is worth a unit, in US dollars.
const LEAST_COST: f64 = 0.005;

impl Budget {
    /// The limits of a whole batch, and those of each of its runs. `begun`: its start by `World::uptime`, less the time
    /// worked before.
    #[must_use]
    pub fn new(whole: &Limits, each: &Limits, begun: Duration) -> Self {
        Self { whole: LimitAmounts::of(whole), each: LimitAmounts::of(each), begun, shares: HashMap::new() }
    }

    /// Records what a run of the batch has used before this process.
    pub fn used_before(&mut self, unit: &str, totals: &Totals) {
        self.spent(unit, totals);
        self.ended(unit);
    }

    /// Records what a unit has used so far.
    pub fn spent(&mut self, unit: &str, totals: &Totals) {
        let spent = totals.all.spent.unwrap_or_default();
        let share = self.shares.entry(unit.to_string()).or_default();
        share.used = Used { cost: spent.cost_usd.unwrap_or(0.0), tokens: spent.total(), attempts: totals.all.attempts };
    }

    /// Records the end of a unit: what it did not use is free again.
    pub fn ended(&mut self, unit: &str) {
        if let Some(share) = self.shares.get_mut(unit) {
            share.has_ended = true;
        }
    }

    /// What is used or reserved of a limit.
    fn taken<T: std::iter::Sum<T> + PartialOrd + Copy>(
        &self,
        used: impl Fn(&Used) -> T,
        reserved: impl Fn(&Share) -> Option<T>,
    ) -> T {
        let of = |share: &Share| {
            let used = used(&share.used);
            match reserved(share).filter(|_| !share.has_ended) {
                Some(reserved) if reserved > used => reserved,
                _ => used,
            }
        };
        self.shares.values().map(of).sum()
    }

    /// Reserves the share of a unit, and returns the limits of its run as `--limit` takes them. `lanes` is how many
    /// lanes share what is left.
    ///
    /// # Errors
    /// The limit of which nothing is left.
    pub fn share(
        &mut self,
        unit: &str,
        lanes: u32,
        uses_agents: bool,
        now: Duration,
    ) -> Result<Vec<String>, LimitKind> {
        let LimitAmounts { time, mut cost, mut tokens, attempts } = self.whole;
        let mut each = self.each;
        if !uses_agents {
            // A verification uses no model, so it needs no share of what models cost.
            (cost, tokens, each.cost, each.tokens) = (None, None, None, None);
        }
        let time = match time {
            Some(time) => {
                let left = time.checked_sub(now.saturating_sub(self.begun)).filter(|left| left.as_secs() > 0);
                let left = left.ok_or(LimitKind::Time)?;
                Some(each.time.map_or(left, |each| each.min(left)))
            }
            None => each.time,
        };
        let mut share = self.shares.get(unit).copied().unwrap_or_default();
        // What a run that continues has used before is part of its limits.
        let used = share.used;
        share.has_ended = false;
        (share.cost, share.tokens, share.attempts) = (each.cost, each.tokens, each.attempts);
        if let Some(whole) = cost {
            let left = whole - self.taken(|used| used.cost, |share| share.cost);
            let more = Some(left / f64::from(lanes)).filter(|more| *more >= LEAST_COST).ok_or(LimitKind::Cost)?;
            share.cost = Some((used.cost + more).min(each.cost.unwrap_or(f64::INFINITY)));
        }
        if let Some(whole) = tokens {
            let left = whole.saturating_sub(self.taken(|used| used.tokens, |share| share.tokens));
            let more = Some(left / u64::from(lanes)).filter(|more| *more > 0).ok_or(LimitKind::Tokens)?;
            share.tokens = Some(used.tokens.saturating_add(more).min(each.tokens.unwrap_or(u64::MAX)));
        }
        if let Some(whole) = attempts {
            let left = whole.saturating_sub(self.taken(|used| used.attempts, |share| share.attempts));
            let more = Some(left.div_ceil(lanes)).filter(|more| *more > 0).ok_or(LimitKind::Attempts)?;
            share.attempts = Some(used.attempts.saturating_add(more).min(each.attempts.unwrap_or(u32::MAX)));
        }
        self.shares.insert(unit.to_string(), share);
        let words = [
            time.map(|time| format!("time={}", show_duration(Duration::from_secs(time.as_secs().max(1))))),
            share.cost.map(|cost| format!("cost={cost:.4}")),
            share.tokens.map(|tokens| format!("tokens={tokens}")),
            share.attempts.map(|attempts| format!("attempts={attempts}")),
        ];
        Ok(words.into_iter().flatten().collect())
    }

    /// Returns whether a unit that has reached a limit has only used up its share of it, and could get more.
    #[must_use]
    pub fn is_of_share(&self, unit: &str, limit: LimitKind) -> bool {
        let (Some(share), whole, each) = (self.shares.get(unit), self.whole, self.each) else { return false };
        match limit {
            LimitKind::Cost => whole.cost.is_some() && each.cost.is_none_or(|each| share.used.cost < each),
            LimitKind::Tokens => whole.tokens.is_some() && each.tokens.is_none_or(|each| share.used.tokens < each),
            LimitKind::Attempts => {
                whole.attempts.is_some() && each.attempts.is_none_or(|each| share.used.attempts < each)
            }
            LimitKind::Time | LimitKind::Wait => false,
        }
    }

    /// Returns whether a limit of the whole batch is used up, so that no other unit gets a share of it.
    #[must_use]
    pub fn is_used_up(&self, limit: LimitKind, now: Duration) -> bool {
        match limit {
            LimitKind::Time => self.whole.time.is_some_and(|time| now.saturating_sub(self.begun) + SECOND >= time),
            LimitKind::Cost => {
                self.whole.cost.is_some_and(|whole| whole - self.taken(|used| used.cost, |_| None) < LEAST_COST)
            }
            LimitKind::Tokens => {
                self.whole.tokens.is_some_and(|whole| whole <= self.taken(|used| used.tokens, |_| None))
            }
            LimitKind::Attempts => {
                self.whole.attempts.is_some_and(|whole| whole <= self.taken(|used| used.attempts, |_| None))
            }
            LimitKind::Wait => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verification_needs_no_share_of_the_cost_and_the_tokens() {
        let place = crate::source::Place::whole(&crate::source::Source::new("t", "", std::path::Path::new("/")));
        let whole = Limits {
            cost: Some((0.001, place.clone())),
            tokens: Some((0, place)),
            attempts: Some(9),
            ..Limits::default()
        };
        let mut budget = Budget::new(&whole, &Limits::default(), Duration::ZERO);
        assert_eq!(budget.share("task", 1, true, Duration::ZERO), Err(LimitKind::Cost));
        assert_eq!(budget.share("verify", 1, false, Duration::ZERO), Ok(vec!["attempts=9".to_string()]));
    }
}
