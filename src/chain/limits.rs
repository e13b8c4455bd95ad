//! Limits of a run from the command line: `--limit time=2h`.

use super::duration::parse_duration;
use super::errors;
use super::ir::Limits;
use super::keys::LIMITS;
use super::keys::shape::{Key, Shape};
use crate::source::{Diagnostic, Place, Source};
use std::sync::Arc;

/// Returns the names of all limits, each with its description.
pub fn limit_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    LIMITS.keys.iter().map(|key| (key.name, key.about))
}

/// Returns the name of the limit that this `NAME=VALUE` sets, as the config writes it; none for an unknown one.
#[must_use]
pub fn limit_name(text: &str) -> Option<&'static str> {
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    Some(named(name)?.name)
}

/// Names may also be written like options: `stalled-after`. `usage-wait` is an alias of `wait` that cannot be confused
/// with the option `--wait`.
fn named(name: &str) -> Option<&'static Key> {
    let plain = |name: &str| name.replace('-', "").to_lowercase();
    let name = if plain(name) == "usagewait" { "wait" } else { name };
    let is = |known: Option<&str>| known.is_some_and(|known| plain(known) == plain(name));
    LIMITS.keys.iter().find(|key| is(Some(key.name)) || is(key.alias))
}

/// Parses one `NAME=VALUE`, with the names and values of `limits` in a config.
///
/// # Errors
/// One diagnostic: an unknown name, for which it suggests the most similar one, or an invalid value.
pub fn parse_limit(source: &Arc<Source>) -> Result<Limits, Diagnostic> {
    let at = Place::whole(source);
    let known = LIMITS.keys.iter().map(|key| key.name);
    let Some((name, value)) = source.text.split_once('=') else { return Err(errors::limit_without_value(&at, known)) };
    let Some(key) = named(name) else {
        return Err(errors::unknown_limit(&at, name, known));
    };
    let name = key.name;
    let mut limits = Limits::default();
    match key.shape {
        Shape::Duration => {
            let time = parse_duration(value)
                .map_err(|fault| errors::bad_duration(&at, &format!("the limit `{name}`"), value, fault))?;
            match name {
                "time" => limits.time = Some(time),
                "wait" => limits.wait = Some(time),
                _ => limits.grace = Some(time),
            }
        }
        Shape::Count(most) => {
            let number = value.parse::<u32>().ok().filter(|number| (1..=most).contains(number));
            let number =
                number.ok_or_else(|| errors::bad_limit(&at, name, value, "expected a positive whole number"))?;
            match name {
                "tokens" => limits.tokens = Some((number.into(), at)),
                "attempts" => limits.attempts = Some(number),
                "rejections" => limits.rejections = Some(number),
                _ => limits.stalled_after = Some(number),
            }
        }
        _ => {
            let number = value.parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
            let number = number.ok_or_else(|| errors::bad_limit(&at, name, value, "expected a number above zero"))?;
            limits.cost = Some((number, at));
        }
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::time::Duration;

    fn limit(text: &str) -> Result<Limits, Diagnostic> {
        parse_limit(&Source::new("--limit", text, Path::new("/")))
    }

    #[test]
    fn every_limit_of_the_config_can_be_given() {
        let all =
            ["time=2h", "cost=1.5", "tokens=9", "attempts=8", "wait=1m", "stalledAfter=7", "rejections=6", "grace=2s"];
        let limits = all.iter().fold(Limits::default(), |limits, text| limits.or(limit(text).unwrap()));
        assert_eq!((limits.time, limits.wait), (Some(Duration::from_hours(2)), Some(Duration::from_mins(1))));
        assert_eq!((limits.attempts, limits.stalled_after), (Some(8), Some(7)));
        assert_eq!((limits.cost.unwrap().0.to_bits(), limits.tokens.unwrap().0), (1.5_f64.to_bits(), 9));
        assert_eq!((limits.grace, all.len()), (Some(Duration::from_secs(2)), LIMITS.keys.len()));
    }

    #[test]
    fn iterations_is_another_name_for_attempts() {
        for text in ["iterations=8", "Iterations=8", "attempts=8"] {
            assert_eq!(limit(text).unwrap().attempts, Some(8), "{text}");
        }
    }

    #[test]
    fn a_wrong_name_or_value_is_refused() {
        for text in [
            "",
            "time",
            "tiem=2h",
            "time=2",
            "time=-2h",
            "cost=0",
            "cost=NaN",
            "cost=inf",
            "tokens=1.5",
            "attempts=0",
            "iterations=0",
        ] {
            assert!(limit(text).is_err(), "{text}");
        }
    }
}
