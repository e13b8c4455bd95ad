//! "Did you mean": finds the known name that is nearest to an unknown one.

/// Returns the candidate that `wanted` most likely misspells, if there is one: a wrong guess is worse than none.
///
/// As in cargo, at most a third of the characters may be wrong, swapped, missing or extra. Case, `_` and `-` do not
/// matter. An abbreviation of three or more characters is accepted if it fits only one candidate. Ties go to the
/// earlier candidate.
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The algorithm is quadratic in the length, and a name of this size is not a misspelling.
    if wanted.len() > 200 {
        return None;
    }
    let (wanted, typed) = (plain(wanted), wanted);
    let mut best: Option<(usize, &str)> = None;
    let mut longer = Vec::new();
    for candidate in candidates.into_iter().filter(|candidate| *candidate != typed) {
        let known = plain(candidate);
        let allowed = known.chars().count().max(wanted.chars().count()) / 3;
        let distance = strsim::osa_distance(&wanted, &known);
        if distance <= allowed && best.is_none_or(|(so_far, _)| distance < so_far) {
            best = Some((distance, candidate));
        }
        if wanted.len() >= SHORTEST && known.starts_with(&wanted) && !longer.contains(&candidate) {
            longer.push(candidate);
        }
    }
    match (best, longer.as_slice()) {
        (Some((_, best)), _) => Some(best),
        (None, [only]) => Some(only),
        _ => None,
    }
}

/// The shortest text that is accepted as an abbreviation, in bytes.
const SHORTEST: usize = 3;

fn plain(name: &str) -> String {
    name.chars().filter(|next| !matches!(next, '_' | '-')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not_offered() {
        let known = ["prompt", "promptFile", "steps", "reviewer", "helium", "carbon", "coder", "a", "doctor", "resume"];
        for (wanted, near) in [
            ("promt", Some("prompt")),
            ("prompt_file", Some("promptFile")),
            ("rev", Some("reviewer")),
            ("reveiwer", Some("reviewer")),
            ("docter", Some("doctor")),
            ("resum", Some("resume")),
            ("Coder", Some("coder")),
            ("zzz", None),
            ("hello", None),
            ("b", None),
            ("loop", None),
            ("pro", None),
        ] {
            assert_eq!(nearest(wanted, known), near, "{wanted}");
        }
    }
}
