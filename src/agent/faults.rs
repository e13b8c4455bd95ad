//! Classifies the error messages of failed backends. The messages come from many sources and change, so the status
//! code, if there is one, is considered first.

use super::error_class::ErrorClass;

/// Returns the kind of an error from its HTTP status and its message.
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
    // Only a payment helps, so waiting is pointless.
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
        "out of extra usage",
    ];
    // `5-hour limit reached`. Limits on what a model may read or write at once are different: waiting does not lift
    // them.
    let others = ["context", "token", "output", "turn", "length", "budget"];
    let reached = says(&["limit reached"]) && !says(&others);
    // `You've hit your weekly limit`, whatever the limit is called in future versions.
    let hit = words.split_once("hit your ").is_some_and(|(_, rest)| {
        rest.split(['.', '·', '∙', ',', '|', '\n']).next().is_some_and(|what| what.contains("limit"))
    });
    if says(&limited) || reached || hit || matches!(status, Some(429 | 529)) {
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
        // When its service ends an answer, for example because of a content filter, Codex reports a disconnected
        // stream.
        _ if says(&["incomplete response"]) => ErrorClass::Other,
        _ if words.trim() == "terminated" => ErrorClass::Network,
        _ if says(&["connect", "network", "econnrefused", "fetch failed", "unreachable", "getaddrinfo"]) => {
            ErrorClass::Network
        }
        _ => ErrorClass::Other,
    }
}

/// Returns the HTTP status in a message: `status 401`, `API Error: 429 …`, `"code":500`, `(HTTP 401)`.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages that the programs were seen to print (tests/captures), and some that their services are known for.
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
            (None, "You've hit your session limit · resets 8pm (America/New_York)", UsageLimit),
            (None, "You've hit your limit · resets 4:50am (Europe/Rome)", UsageLimit),
            (None, "You've hit your weekly limit · resets Nov 25, 9am (UTC)", UsageLimit),
            (None, "You're out of extra usage · resets 3am (UTC)", UsageLimit),
            (None, "5-hour limit reached ∙ resets 3am", UsageLimit),
            (None, "You have hit your ChatGPT usage limit (plus plan). Try again in ~100 min.", UsageLimit),
            (None, "Context limit reached · /compact or /clear to continue", Other),
            (None, "Output token limit reached", Other),
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

    proptest::proptest! {
        #[test]
        fn any_words_are_taken(status in proptest::option::of(0..1000_u64), words in "\\PC{0,80}") {
            let _ = classify(status, &words);
        }
    }
}
