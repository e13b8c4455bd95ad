//! What the words of a failed agent CLI mean. They come from many hands and change; the status code, where one is named, is
//! asked first.

use super::output::ErrorClass;
use std::time::Duration;

/// The kind of an error, by its HTTP status and its words.
pub(super) fn classify(status: Option<u64>, words: &str) -> ErrorClass {
    let words = words.to_ascii_lowercase();
    let says = |any: &[&str]| any.iter().any(|part| words.contains(part));
    let status = status.or_else(|| named_status(&words));
    let refused = ["not found", "not exist", "not supported", "unknown model", "invalid model", "may not have access"];
    let about_model = says(&[
        "model `",
        "model '",
        "model \"",
        "selected model",
        "models/",
        "unknown model",
        "invalid model",
        "the model",
        "model:",
        "' model",
        "` model",
    ]) && says(&refused);
    // Only payment helps: nobody waits for that.
    if says(&["billing", "insufficient_quota", "credit balance"]) {
        return ErrorClass::Credentials;
    }
    let limited = [
        "usage limit",
        "rate limit",
        "rate_limit",
        "quota",
        "too many requests",
        "overloaded",
        "at capacity",
        "limit reached|",
    ];
    if says(&limited) || matches!(status, Some(429 | 529)) {
        return ErrorClass::UsageLimit;
    }
    match status {
        Some(401 | 403) => ErrorClass::Credentials,
        Some(400 | 404) if about_model => ErrorClass::Model,
        Some(500..) => ErrorClass::Service,
        _ if says(&["turns", "budget"]) && says(&["max", "limit", "exceed"]) => ErrorClass::Turns,
        _ if says(&[
            "unauthorized",
            "authenticat",
            "api key",
            "api_key",
            "not logged in",
            "/login",
            "credential",
            "auth type",
            "missing environment variable",
        ]) =>
        {
            ErrorClass::Credentials
        }
        None if about_model => ErrorClass::Model,
        _ if says(&["high demand", "server error", "internal error", "unavailable"]) => ErrorClass::Service,
        // Codex calls an answer that its service has ended, by a content filter too, a stream that was disconnected.
        _ if says(&["incomplete response"]) => ErrorClass::Other,
        _ if words.trim() == "terminated" => ErrorClass::Network,
        _ if says(&["connect", "network", "econnrefused", "fetch failed", "unreachable", "getaddrinfo"]) => {
            ErrorClass::Network
        }
        _ => ErrorClass::Other,
    }
}

/// The HTTP status in the words: `status 401`, `API Error: 429 …`, `"code":500`, `(HTTP 401)`.
fn named_status(words: &str) -> Option<u64> {
    let after = ["status: ", "status ", "api error: ", "http ", "\"code\":", "last error: ", ""];
    after.iter().find_map(|before| {
        let at = if before.is_empty() { 0 } else { words.find(before)? + before.len() };
        let rest = words.get(at..)?.trim_start();
        let digits = rest.find(|next: char| !next.is_ascii_digit()).unwrap_or(rest.len());
        let status: u64 = rest.get(..digits).filter(|digits| digits.len() == 3)?.parse().ok()?;
        (400..600).contains(&status).then_some(status)
    })
}

/// The end of a limit as older versions of claude name it: `Claude AI usage limit reached|1753980000`.
pub(super) fn said_reset(words: &str) -> Option<i64> {
    let (words, seconds) = words.trim().rsplit_once('|')?;
    seconds.parse().ok().filter(|_| words.ends_with("limit reached"))
}

/// How long a limit still holds, where it is named so: `try again in 1 day 2 hours 5 minutes`, `retry in 41.2s`,
/// `reset after 5h12m3s`.
pub(super) fn said_wait(words: &str) -> Option<Duration> {
    let words = words.to_ascii_lowercase();
    let start = ["again in ", "retry in ", "reset after ", "resets in ", "retry after "]
        .iter()
        .find_map(|before| Some(words.find(before)? + before.len()))?;
    let (mut rest, mut total) = (words.get(start..)?, Duration::ZERO);
    loop {
        let trimmed = rest.trim_start_matches([' ', ',']).trim_start_matches("and ");
        let number = trimmed.find(|next: char| !next.is_ascii_digit() && next != '.').unwrap_or(trimmed.len());
        let Ok(amount) = trimmed[..number].trim_end_matches('.').parse::<f64>() else { break };
        let unit = trimmed[number..].trim_start();
        let letters = unit.find(|next: char| !next.is_ascii_alphabetic()).unwrap_or(unit.len());
        let seconds = match &unit[..letters] {
            "ms" => 0.001,
            "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => break,
        };
        total = total.checked_add(Duration::try_from_secs_f64(amount * seconds).ok()?)?;
        rest = &unit[letters..];
    }
    (!total.is_zero()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that the programs were seen to say (corpus/captures), and some that their services are known for.
    #[test]
    fn the_kind_of_an_error_is_read_from_its_status_or_its_words() {
        use ErrorClass::{Credentials, Model, Network, Other, Service, Turns, UsageLimit};
        for (status, words, expected) in [
            (None, "unexpected status 401 Unauthorized: stub says 401, url: http://x", Credentials),
            (None, "exceeded retry limit, last status: 429 Too Many Requests", UsageLimit),
            (None, "You've hit your usage limit. Upgrade to Pro or try again in 2 hours 5 minutes.", UsageLimit),
            (None, "Claude AI usage limit reached|1753980000", UsageLimit),
            (None, "[API Error: {\"error\":{\"code\":500,\"message\":\"x\"}}]", Service),
            (None, "We're currently experiencing high demand, which may cause temporary errors.", Service),
            (None, "[API Error: 401 stub says 401]", Credentials),
            (None, "401 stub says 401", Credentials),
            (Some(429), "stub says 429", UsageLimit),
            (Some(404), "There's an issue with the selected model (x). It may not exist", Model),
            (None, "The 'x' model is not supported when using Codex with a ChatGPT account.", Model),
            (Some(404), "no such path", Other),
            (None, "Cannot connect to API: Unable to connect.", Network),
            (None, "Reached max session turns for this session.", Turns),
            (None, "Not logged in · Please run /login", Credentials),
            (None, "No auth type is selected. Please configure an auth type", Credentials),
            (Some(403), "You have exceeded a secondary rate limit. Please wait a few minutes", UsageLimit),
            (Some(503), "The model is overloaded. Please try again later.", UsageLimit),
            (None, "model tool 'x' not found in MCP server", Other),
            (Some(429), "Quota exceeded. Check your plan and billing details.", Credentials),
            (None, "Selected model is at capacity. Please try a different model.", UsageLimit),
            (None, "Missing environment variable: `OPENAI_API_KEY`.", Credentials),
            (
                None,
                "stream disconnected before completion: Incomplete response returned, reason: content_filter",
                Other,
            ),
            (None, "terminated", Network),
            (None, "it broke", Other),
        ] {
            assert_eq!(classify(status, words), expected, "{words}");
        }
    }

    #[test]
    fn the_time_until_a_limit_ends_is_read_where_it_is_named() {
        let seconds = |words| said_wait(words).map(|wait| wait.as_secs());
        assert_eq!(seconds("or try again in 1 day 3 hours 5 minutes."), Some(97_500));
        assert_eq!(seconds("Please retry in 41.9s."), Some(41));
        assert_eq!(seconds("Your quota will reset after 5h12m3s."), Some(18_723));
        assert_eq!(seconds("Please wait and try again later."), None);
        assert_eq!(seconds("try again in a while"), None);
        assert_eq!(said_reset("Claude AI usage limit reached|1753980000"), Some(1_753_980_000));
    }

    proptest::proptest! {
        #[test]
        fn any_words_are_taken(status in proptest::option::of(0..1000_u64), words in "\\PC{0,80}") {
            let _ = (classify(status, &words), said_reset(&words), said_wait(&format!("retry in {words}")));
        }
    }
}
