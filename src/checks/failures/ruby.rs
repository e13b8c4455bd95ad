//! rspec, minitest, rake, and errors of Ruby programs.

use super::page::{Location, Page, failure, indent, joined_lines};

/// Reads test results.
pub(super) fn results(page: &mut Page<'_>) {
    // A test may print results of another run above its own results.
    let section = (0..page.lines.len()).rev().find(|at| page.line(*at) == "Failures:").unwrap_or(0);
    for index in section..page.lines.len() {
        let line = page.line(index);
        if let Some(asked) = line.trim_start().strip_prefix("Failure/Error: ") {
            let asked = asked.to_string();
            let is_place = |line: &str| line.trim_start().starts_with("# ");
            let end = page.find(index + 1..index + 60, is_place).unwrap_or(index + 1);
            let place =
                (end..page.lines.len()).map(|at| page.line(at)).take_while(|line| is_place(line)).find_map(|line| {
                    Location::parse(line.trim_start().trim_start_matches("# ").split(":in ").next()?)
                        .filter(Location::is_own)
                });
            // Up to the comparison, or to the source line.
            let first = page.next_words(index + 1..end);
            let stop = first.and_then(|first| page.find(first + 1..end, str::is_empty)).unwrap_or(end);
            let said = first.map_or(String::new(), |first| joined_lines(page, first..stop));
            let message = if said.is_empty() { asked } else { said };
            page.has_results = true;
            page.sure(first.unwrap_or(index), failure(place, None, &message));
        } else if regex!(r"^\s+\d+\) (Failure|Error):$").is_some_and(|head| head.is_match(line)) {
            let title = page.line(index + 1).to_string();
            let named =
                regex!(r"\[(.+:\d+)\]:$").and_then(|place| Location::parse(place.captures(&title)?.get(1)?.as_str()));
            let end = page.find(index + 2..index + 40, str::is_empty).unwrap_or(index + 6);
            let place = named.or_else(|| (index + 3..end).find_map(|at| ruby_frame(page.line(at))));
            let said = (index + 2..end).take_while(|at| ruby_frame(page.line(*at)).is_none());
            let message = said.map(|at| page.line(at).trim()).collect::<Vec<_>>().join(", ");
            page.has_results = true;
            page.sure(index + 2, failure(place, None, &message));
            page.claim(index..end);
        }
    }
}

/// Parses a stack frame in the project: `lib/cart.rb:15:in 'first'`.
fn ruby_frame(line: &str) -> Option<Location> {
    let (place, _) = line.trim_start().trim_start_matches("from ").split_once(":in ")?;
    Location::parse(place).filter(Location::is_own)
}

/// Reads errors of programs and of rake.
pub(super) fn errors(page: &mut Page<'_>) {
    for index in 0..page.lines.len() {
        if page.is_claimed(index) {
            continue;
        }
        let line = page.line(index).to_string();
        if line == "rake aborted!" {
            let Some(at) = page.next_words(index + 1..index + 3) else { continue };
            let place = (at + 1..at + 6).find_map(|next| ruby_frame(page.line(next)));
            let message = page.line(at).to_string();
            if !message.starts_with("Command failed with status") {
                page.sure_unless_printed(at, failure(place, None, &message));
            }
        } else if let Some(found) =
            regex!(r"^(\S+):(\d+):in .+?: (.+ \([A-Z][\w:]*\))$").and_then(|error| error.captures(&line))
        {
            let place =
                found.get(1).zip(found.get(2)).and_then(|(file, line)| Location::of(file.as_str(), line.as_str()));
            let frames =
                (index + 1..page.lines.len()).take_while(|at| indent(page.line(*at)) > 0 || page.line(*at).is_empty());
            let place =
                place.filter(Location::is_own).or_else(|| frames.take(40).find_map(|at| ruby_frame(page.line(at))));
            let message = found.get(3).map_or("", |message| message.as_str());
            page.sure_unless_printed(index, failure(place, None, message));
        }
    }
}
