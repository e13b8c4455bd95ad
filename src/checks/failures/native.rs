//! Compilers and build tools whose errors span several lines: cmake, ghc, gfortran, OCaml, the linker, sanitizers, and
//! assertions.

use super::page::{Location, Page, failure, indent, joined_lines};

/// Reads all such errors.
pub(super) fn errors(page: &mut Page<'_>) {
    for index in 0..page.lines.len() {
        if page.is_claimed(index) {
            continue;
        }
        let line = page.line(index).to_string();
        let captured = |pattern: Option<&regex::Regex>| {
            let found = pattern?.captures(&line)?;
            let place = Location::of(found.get(1)?.as_str(), found.get(2)?.as_str());
            Some((place, found.get(3).map_or("", |message| message.as_str()).to_string()))
        };
        if let Some((place, _)) = captured(regex!(r"^CMake Error at (\S+?):(\d+) \(")) {
            let end = page
                .find(index + 1..usize::MAX, |line| indent(line) == 0 && !line.is_empty())
                .unwrap_or(page.lines.len());
            let missing = page.find(index + 1..end, |line| line.contains("Could not find"));
            let Some(at) = missing.or_else(|| page.next_words(index + 1..end)) else { continue };
            let stop = page.find(at..end, |line| line.is_empty() || line.ends_with(':')).unwrap_or(end);
            let stop = if page.line(stop).ends_with(':') { (stop + 3).min(end) } else { stop };
            let message = joined_lines(page, at..stop.max(at + 1));
            page.sure(at, failure(place, None, &message));
        } else if let Some((place, _)) = captured(regex!(r"^(\S+\.\w+):(\d+):\d+: error:(?: \[.*\])?$")) {
            // ghc
            let Some(at) = page.next_words(index + 1..index + 4) else { continue };
            let message = page.line(at).trim().trim_start_matches("• ").to_string();
            page.sure(at, failure(place, None, &message));
        } else if let Some((place, _)) = captured(regex!(r"^(\S+\.[fF]\w*):(\d+):\d+:$")) {
            let Some(at) = page.find(index + 1..index + 8, |line| line.starts_with("Error: ")) else { continue };
            let message = page.line(at).trim_start_matches("Error: ").to_string();
            page.sure(at, failure(place, None, &message));
        } else if let Some((place, _)) = captured(regex!(r#"^File "([^"]+\.mli?)", lines? (\d+)"#)) {
            let Some(at) = page.find(index + 1..index + 12, |line| line.starts_with("Error: ")) else { continue };
            let end = page.find(at + 1..at + 4, |line| indent(line) == 0).unwrap_or(at + 1);
            let message = joined_lines(page, at..end);
            page.sure(at, failure(place, None, message.trim_start_matches("Error: ")));
        } else if let Some((_, message)) = line
            .split_once("ERROR: ")
            .filter(|(before, message)| before.starts_with("==") && message.contains("Sanitizer: "))
        {
            let place = (index + 1..index + 30).find_map(|at| {
                let frame = page.line(at).trim_start();
                let (_, place) = frame.strip_prefix('#')?.rsplit_once(' ')?;
                Location::parse(place).filter(Location::is_own)
            });
            page.sure(index, failure(place, None, message));
        } else if let Some((place, message)) =
            captured(regex!(r"^(?:\S+: )?(\S+?):(\d+): (?:.*: )?(Assertion .* failed\.?)$"))
        {
            page.sure_unless_printed(index, failure(place, None, &message));
        } else if let Some(found) =
            regex!(r"^(?:\S*ld: )?(\S+\.\w+):\(\S+\): (undefined reference to .*|multiple definition of .*)$")
                .and_then(|found| found.captures(&line))
        {
            let place = found.get(1).map(|file| Location::file(file.as_str()));
            page.sure(index, failure(place, None, found.get(2).map_or("", |message| message.as_str())));
        } else if let Some(message) = line.strip_prefix("Error: ") {
            // sass
            let place = (index + 1..index + 10).find_map(|at| {
                let found = regex!(r"^\s+(\S+\.(?:scss|sass|css|less)) (\d+):\d+")?.captures(page.line(at))?;
                Location::of(found.get(1)?.as_str(), found.get(2)?.as_str())
            });
            if place.is_some() {
                page.sure(index, failure(place, None, message));
            }
        } else if let Some(message) = regex!(r"^\S*ld: (?:error: )?(cannot find -l.*|undefined symbol: .*)$")
            .and_then(|found| found.captures(&line))
        {
            page.sure(index, failure(None, None, message.get(1).map_or("", |message| message.as_str())));
        }
    }
}
