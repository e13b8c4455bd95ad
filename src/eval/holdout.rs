//! Which cases are held out: they decide which prompt wins, and the improver never sees them.

use sha2::{Digest, Sha256};

/// Returns for each case, in order, whether it is held out. The choice depends on the seed and the IDs only, not on the
/// order of the cases. A share above zero holds out at least one case, and always leaves one.
#[must_use]
pub fn held_out(ids: &[&str], share: f64, seed: u64) -> Vec<bool> {
    let mut held = vec![false; ids.len()];
    if share <= 0.0 || ids.len() < 2 {
        return held;
    }
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by_key(|index| Sha256::digest(format!("{seed}\n{}", ids[*index])).to_vec());
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a file's cases"
    )]
    let most = ((ids.len() as f64 * share).round() as usize).clamp(1, ids.len() - 1);
    for index in &order[..most] {
        held[*index] = true;
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_follows_from_seed_and_ids_alone() {
        let ids: Vec<String> = (0..10).map(|number| format!("case-{number}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let held = held_out(&ids, 0.3, 7);
        assert_eq!(held.iter().filter(|held| **held).count(), 3);
        let turned: Vec<&str> = ids.iter().rev().copied().collect();
        assert_eq!(held_out(&turned, 0.3, 7).into_iter().rev().collect::<Vec<_>>(), held);
        assert_ne!((1..9).map(|seed| held_out(&ids, 0.3, seed)).filter(|other| *other != held).count(), 0);
    }

    #[test]
    fn some_case_is_always_left_and_one_is_always_held() {
        let count = |cases: usize, share| held_out(&vec!["x"; cases], share, 0).iter().filter(|held| **held).count();
        assert_eq!([count(2, 0.01), count(2, 0.99), count(1, 0.5), count(5, 0.0)], [1, 1, 0, 0]);
    }
}
