//! "Did you mean": the known name that is nearest to an unknown one.

/// The candidate most like `wanted`, if any is like it at all.
///
/// Jaro-Winkler, as clap does it, so that both give the same advice; ties go to the earlier candidate.
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LIKENESS: f64 = 0.7;
    // Quadratic in the length, and nobody misspells a name of this size.
    if wanted.len() > 200 {
        return None;
    }
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        if candidate == wanted {
            continue;
        }
        let likeness = strsim::jaro_winkler(&wanted.to_lowercase(), &candidate.to_lowercase());
        if likeness >= LIKENESS && best.is_none_or(|(so_far, _)| likeness > so_far) {
            best = Some((likeness, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not_offered() {
        let known = ["prompt", "promptFile", "steps"];
        assert_eq!(nearest("promt", known), Some("prompt"));
        assert_eq!(nearest("prompt_file", known), Some("promptFile"));
        assert_eq!(nearest("zzz", known), None);
    }
}
