//! Linters and formatters that name the file once, above its findings, or have a format of their own.

use super::page::{Location, Page, failure, indent};

/// Reads all such findings.
pub(super) fn errors(page: &mut Page<'_>) {
    let mut file: Option<String> = None;
    for index in 0..page.lines.len() {
        if page.is_claimed(index) {
            continue;
        }
        let line = page.line(index).to_string();
        if line.is_empty() {
            // stylelint, eslint and yamllint print no blank line between a file and its findings.
            continue;
        }
        if let Some(found) =
            regex!(r"^\s+(\d+):(\d+)\s+(error|warning|✖|⚠)\s+(.+)$").and_then(|found| found.captures(&line))
        {
            let Some(file) = &file else { continue };
            let get = |group: usize| found.get(group).map_or("", |text| text.as_str());
            let failure = failure(Location::of(file, get(1)), None, get(4));
            if matches!(get(3), "error" | "✖") {
                page.sure(index, failure);
            } else {
                page.likely(index, failure);
            }
            continue;
        }
        if indent(&line) == 0 {
            file = regex!(r"^\S+\.\w+$|^/\S+$").is_some_and(|path| path.is_match(&line)).then(|| line.clone());
        }
        other(page, index, &line);
    }
}

fn other(page: &mut Page<'_>, index: usize, line: &str) {
    if let Some(place) = page.line(index + 1).trim_start().strip_prefix("--> ").and_then(Location::parse) {
        // ruff; rustc has a reader of its own.
        let ours = ["error", "warning", "note", "help"].iter().all(|word| !line.starts_with(word));
        if ours && indent(line) == 0 {
            page.sure(index, failure(Some(place), None, line));
        }
    } else if let Some(found) =
        regex!(r"^::error .*?file=([^,:]+),line=(\d+).*?::(.+)$").and_then(|found| found.captures(line))
    {
        // GitHub's annotations
        let get = |group: usize| found.get(group).map_or("", |text| text.as_str());
        let message = get(3).split("%0A").next().unwrap_or_default();
        page.sure(index, failure(Location::of(get(1), get(2)), None, message));
    } else if let Some(path) = line.strip_prefix("would reformat ") {
        page.likely(index, failure(Some(Location::file(path)), None, line));
    } else if let Some(place) =
        line.strip_prefix("error: cannot parse: ").or_else(|| line.strip_prefix("error: cannot format "))
    {
        let place = place.split(": ").next().unwrap_or(place);
        let place = Location::parse(place).unwrap_or_else(|| Location::file(place));
        page.sure(index, failure(Some(place), None, line.trim_start_matches("error: ")));
    } else if let Some(rest) = line.strip_prefix("ERROR: ").filter(|rest| rest.contains(" Imports are incorrectly")) {
        let (path, message) = rest.split_once(' ').unwrap_or((rest, ""));
        page.sure(index, failure(Some(Location::file(path)), None, message));
    } else if let Some(rest) = line.strip_prefix("[error] ") {
        let found = regex!(r"^(\S+): (.+) \((\d+):\d+\)$").and_then(|found| found.captures(rest));
        if let Some(found) = found {
            let get = |group: usize| found.get(group).map_or("", |text| text.as_str());
            page.sure(index, failure(Location::of(get(1), get(3)), None, get(2)));
        }
    } else if let Some(path) = line.strip_prefix("[warn] ").filter(|path| path.contains('.') && !path.contains(' ')) {
        page.likely(index, failure(Some(Location::file(path)), None, "not formatted"));
    } else if let Some(found) =
        regex!(r"^L: +(\d+) \| P: +\d+ \| (\w+) \| (.+)$").and_then(|found| found.captures(line))
    {
        // sqlfluff
        let head = (0..index).rev().take(500).find_map(|at| page.line(at).strip_prefix("== [")?.split(']').next());
        let get = |group: usize| found.get(group).map_or("", |text| text.as_str());
        let place = head.and_then(|file| Location::of(file, get(1)));
        page.sure(index, failure(place, Some(get(2)), get(3)));
    } else if let Some(found) = regex!(r"^(\S+:\d+:\d+) lint/\S+").and_then(|found| found.captures(line)) {
        // biome
        let message = page.find(index + 1..index + 5, |line| line.trim_start().starts_with("× "));
        let message = message.map_or("", |at| page.line(at)).trim_start().trim_start_matches("× ").to_string();
        let place = found.get(1).and_then(|place| Location::parse(place.as_str()));
        page.sure(index, failure(place, None, &message));
    } else if let Some(found) =
        regex!(r"^\s*\^-*\^? ?(?:-- )?(SC\d+) \((error|warning)\): (.+)$").and_then(|found| found.captures(line))
    {
        // shellcheck
        let place = (0..index).rev().take(12).find_map(|at| {
            let found = regex!(r"^In (\S+) line (\d+):$")?.captures(page.line(at))?;
            Location::of(found.get(1)?.as_str(), found.get(2)?.as_str())
        });
        let get = |group: usize| found.get(group).map_or("", |text| text.as_str());
        let failure = failure(place, Some(get(1)), get(3));
        page.sure(index, failure);
    } else if let (Some(place), Some(message)) = (
        regex!(r"^(\S+\.\w+:\d+:\d+)$").and_then(|found| Location::parse(found.captures(line)?.get(1)?.as_str())),
        page.line(index + 1).strip_prefix("Error: "),
    ) {
        // svelte-check
        let message = message.to_string();
        page.sure(index + 1, failure(Some(place), None, &message));
    }
}
