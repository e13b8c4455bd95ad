//! What makes an approval uncertain: text after it that takes it back, or text before it that makes it an example. When
//! in doubt, it is not an approval: asking again costs one call.

use super::findings::{is_marked_blocking, item, place_of_item};
use crate::marker::{FenceLine, Fences};
use regex::Regex;
use std::sync::LazyLock;

/// Words that take an approval back, anywhere after it.
static RETRACTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = [
        r"but|however|wait|correction|except|unless|although|though|nevertheless|nonetheless|unfortunately|actually|instead",
        r"until|oops|hmm+|whoops|disregard|reconsider\w*|retract\w*|withdraw\w*|revok\w*|overlook\w*|mistak\w*|reject\w*",
        r"(?:on |at )?(?:second|closer|further) (?:thoughts?|look|reading|glance|inspection|reflection)|on reflection",
        r"(?:take|took|taking) (?:that|it|this) back|scratch that|strike that|hold on|never ?mind|changed? my mind|that said",
        r"(?:do not|don't|must not|mustn't|should not|shouldn't|cannot|can't|not) (?:be )?(?:approved?|merged?|ship(?:ped)?|accept(?:ed)?|ready)",
        r"not yet|not done|not correct|not right|is wrong|was wrong|is broken|still (?:fails?|broken|wrong|leaks?|open)",
        r"subject to|if|only|assum\w*|could not|couldn't|provided|would|sorry|just kidding|p\.?\s?s\.|edit:|update:|ignore|too (?:quick|soon|early)|once more|to do|todo|has to|have to|before (?:merging|the merge|this|it)|so no",
        r"fail\w*|red|broken|fix\w*|blocker\w*|blocking|hole|yet|vulnerab\w*|leak\w*|crash\w*|insecure|unsafe|missing|problem\w*|bug\w*|wrong\w*",
        r"must (?:still )?be (?:fixed|changed|resolved)|needs? to be (?:fixed|changed|resolved)|once (?:that|this|it|f\d+)|only (?:if|when|after)",
        r"aber|jedoch|allerdings|halt|stopp|moment mal|doch nicht|cependant|toutefois|attendez|pero|sin embargo|espera|ma però",
    ];
    Regex::new(&format!(r"(?i)(?:^|[^\w`'])(?:{})(?:$|[^\w`])", words.join("|"))).ok()
});

/// Words that negate one of those, and so say that all is well.
static DENIED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let nothing = r"no|0|zero|none|without(?: any)?|not a single";
    Regex::new(&format!(
        r"(?i)(?:^|\W)(?:{nothing}) (?:\w+ )?(?:fail\w*|errors?|warnings?|problems?|bugs?|leaks?|crash\w*|blockers?)"
    ))
    .ok()
});

/// What may follow an approval: thanks, a signature, what was checked and passed, and what programs print at their end.
static HARMLESS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = [
        r"thanks?|thank you|cheers|regards|signed|reviewed|congratulations|well done|nothing (?:further|else|more)|(?:good|nice|great) (?:work|job)|danke|merci|gracias|grazie",
        r"check(?:s|ed)?|ran|run|tested|verified|tests?|build|builds|linter|formatting|pass(?:es|ed|ing)?|green|clean|no (?:warnings?|errors?)",
        r"tokens?|cost|usage|session|duration|seconds|took|elapsed|finished|done|exit(?:ed)?|model|saved|log",
    ];
    Regex::new(&format!(r"(?i)(?:^|\W)(?:{})(?:$|\W)", words.join("|"))).ok()
});

/// An item that only says that its place is fine.
static GOOD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(?:all |looks? |is |are )?(?:good|fine|ok|okay|right|correct)[.!]*$").ok());

/// Words that forbid what an approval allows, anywhere in the text.
static FORBIDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = r"(?:do not|don't|must not|mustn't|should not|shouldn't|cannot|can't) (?:be )?(?:merged?|ship(?:ped)?|approved?|accept(?:ed)?|land(?:ed)?)|must (?:first )?be (?:fixed|changed)|not an approval";
    Regex::new(&format!(r"(?i)(?:^|\W)(?:{words})(?:$|\W)")).ok()
});

/// Words that take an approval back in its own notes. Before the approval, they only explain how the judge came to it.
static TAKEN_BACK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words =
        r"(?:on )?second thoughts?|wait,|scratch that|disregard|take (?:that|it|this) back|once .{1,60} is fixed";
    Regex::new(&format!(r"(?i)(?:^|\W)(?:{words})(?:$|\W)")).ok()
});

/// A line that ends where a quotation would begin: `Once it is fixed I will say`.
static SAYS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let says = r"say|says|said|write|writes|wrote|answer|answers|reply|print|prints|give|gives|output|respond|return|with|as|like|add|adds|post|sagen|schreiben|dit|dirai";
    Regex::new(&format!(r"(?i)(?:^|\W)(?:{says})$")).ok()
});

/// An announcement of the judge's own verdict: `My verdict:`, `Conclusion:`.
static OWN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let own = r"verdict|conclusion|conclude|decision|decide|summary|recommendation|overall|therefore|result|urteil|fazit|conclusion|veredicto|verdetto";
    Regex::new(&format!(r"(?i)(?:^|\W)(?:{own})(?:\W|$)")).ok()
});

/// Words that make an announcement a condition, or that of another author.
static FOREIGN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let foreign = r"would|could|might|will|once|if|unless|until|when|after|before|instead|rather|never|cannot|can't|not|no|example|e\.g\.|such as|draft|expected|possible|other|previous|earlier|last|wenn|sobald|würde";
    Regex::new(&format!(r"(?i)(?:^|\W)(?:{foreign})(?:\W|$)")).ok()
});

/// Returns whether a line takes an approval back.
fn takes_back(line: &str) -> bool {
    let denied = DENIED.as_ref().map_or_else(|| line.into(), |denied| denied.replace_all(line, " "));
    holds(&RETRACTION, &denied)
}

fn holds(words: &LazyLock<Option<Regex>>, text: &str) -> bool {
    words.as_ref().is_none_or(|words| words.is_match(text))
}

/// Returns the line after an approval that makes it uncertain. `after` is what follows the approval. With `explained`,
/// as for a skip, an explanation may follow.
pub(super) fn retraction(after: &str, explained: bool) -> Option<&str> {
    let mut fences = Fences::default();
    after.lines().find(|line| {
        let text = line.trim();
        let place = fences.line(line.as_bytes());
        if place != FenceLine::Outside {
            // After a fence that is never closed, the inside and the outside of the others are swapped.
            return place == FenceLine::Inside && (takes_back(text) || quoted_key(line));
        }
        if is_frame(text) {
            return false;
        }
        if let Some(minor) = place_of_item(line) {
            return !minor && !holds(&GOOD, text) || takes_back(text);
        }
        let signature = text.starts_with("-- ") || text.starts_with("— ");
        let heading = text.starts_with('#') || text.ends_with(':') && text.len() < 40;
        takes_back(text) || quoted_key(line) || !heading && !explained && !signature && !holds(&HARMLESS, text)
    })
}

/// Returns whether a line has no words: blank, a rule, or the line below a heading.
fn is_frame(text: &str) -> bool {
    text.chars().all(|next| matches!(next, '-' | '*' | '_' | '=' | ' ' | '\t'))
}

/// Returns the first line of an approval's own notes that forbids what it allows.
pub(super) fn forbids(notes: &str) -> Option<&str> {
    notes.lines().find(|line| holds(&FORBIDS, line) || holds(&TAKEN_BACK, line))
}

/// Returns whether a line is a quotation that begins like a verdict.
fn quoted_key(line: &str) -> bool {
    let quoted = line.trim_start().strip_prefix('>').map(|rest| rest.trim_start_matches(['>', ' ']).to_lowercase());
    quoted.is_some_and(|text| text.starts_with("verdict:") || text.starts_with("decision:"))
}

/// Returns the line directly before an approval that makes it an example, or that of another author. `before` is what
/// precedes the approval.
pub(super) fn announcement(before: &str) -> Option<&str> {
    let adjoins = before.lines().next_back().is_some_and(|line| !line.trim().is_empty());
    let mut lines = before.lines().rev().map(str::trim);
    let last = lines.find(|line| !line.is_empty() && !line.starts_with("```") && !is_frame(line))?;
    let bare = last.trim_matches(['*', '_', '#', ' ']);
    let announces = bare.ends_with(':') && (!holds(&OWN, bare) || holds(&FOREIGN, bare));
    let is_command = adjoins && (bare.starts_with("$ ") || bare.starts_with("% "));
    (announces || is_command || holds(&SAYS, bare.trim_end_matches(':'))).then_some(last)
}

/// Returns a line that forbids an approval: it says so, or it is an item that is marked blocking or follows such a
/// heading.
pub(super) fn blocking_item(text: &str) -> Option<&str> {
    let (mut fences, mut blocking) = (Fences::default(), false);
    text.lines().find(|line| {
        let bare = line.trim();
        if fences.line(line.as_bytes()) != FenceLine::Outside || bare.starts_with('>') {
            return false;
        }
        if bare.starts_with('#') {
            blocking = holds(&BLOCKING, bare);
        }
        let item = item(line).is_some_and(|item| !holds(&NOTHING, item));
        is_marked_blocking(line) || holds(&FORBIDS, bare) || blocking && item
    })
}

/// Headings above what has to be fixed.
static BLOCKING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:^|\W)(?:block(?:ing|ers?)|critical|must[- ]fix|to be fixed|required changes)(?:$|\W)").ok()
});

/// Items that say that there is nothing.
static NOTHING: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)^\W*(?:none|nothing|no|n/?a|keine?|aucune?|~~)(?:\W|$)").ok());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_take_an_approval_back_make_it_uncertain() {
        for after in [
            "Wait, that is wrong: it leaks.",
            "However, the lock is held.",
            "I looked again.\n\nOn second thought, no.",
            "This should not be merged before F1 is fixed.",
            "- a.py:3: leaks",
            "> VERDICT: reject",
            "Aber der Test fehlt.",
            "👎",
            "is not what I would do.",
            "$",
        ] {
            assert!(retraction(after, false).is_some(), "{after}");
        }
        for after in [
            "",
            "Thanks for the quick work!",
            "I ran the tests: 12 passed, no test fails.",
            "- minor: a.py:3: a name",
            "Tokens: 5.2k sent, 310 received.",
            "```\n$ make test\n48 tests, 0 failures\n```",
            "The button and the waiter were checked.",
            "-- the second judge\n---",
        ] {
            assert_eq!(retraction(after, false), None, "{after}");
        }
    }

    #[test]
    fn an_announced_approval_is_an_example() {
        for before in [
            "Once it is fixed I will say",
            "If it were so I would say:\n",
            "I cannot in good conscience write:\n\n",
            "For example:",
            "Only if the slow tests pass:",
            "The other reviewer wrote:",
            "$ ./judge --dry-run",
        ] {
            assert!(announcement(before).is_some(), "{before}");
        }
        for before in [
            "",
            "My verdict:",
            "All tests pass once the cache is warm.",
            "Here is what I conclude:\n```json",
            "$ make test\nall passed\n",
        ] {
            assert_eq!(announcement(before), None, "{before}");
        }
    }
}
