//! Maven, the console of `JUnit`, and exceptions of Java programs. Errors of javac have the common compiler format.

use super::page::{Location, Page, failure, indent};
use std::ops::Range;

/// Parses a stack frame in the project: `\tat shop.Main.main(Main.java:11)`.
fn java_frame(line: &str) -> Option<Location> {
    let line = line.trim_start();
    let line = line.strip_prefix("at ").unwrap_or(line);
    let (method, place) = line.split_once('(')?;
    let of_others = [
        "java.",
        "jdk.",
        "javax.",
        "sun.",
        "org.junit.",
        "junit.",
        "org.opentest4j.",
        "org.apache.maven.",
        "java.base/",
    ];
    if of_others.iter().any(|other| method.starts_with(other)) || method.contains(' ') {
        return None;
    }
    Location::parse(place.trim_end_matches(')'))
}

fn own_frame(page: &Page<'_>, lines: Range<usize>) -> Option<Location> {
    lines.take_while(|at| *at < page.lines.len()).find_map(|at| java_frame(page.line(at)))
}

/// Reads test results.
pub(super) fn results(page: &mut Page<'_>) {
    for index in 0..page.lines.len() {
        let line = page.line(index).to_string();
        let of_maven = line.starts_with("[ERROR] ") && (line.ends_with("<<< FAILURE!") || line.ends_with("<<< ERROR!"));
        // JUnit's console prints the class of the exception.
        let of_console = line.trim_start().strip_prefix("=> ").filter(|words| {
            regex!(r"^[a-z]\w*(\.\w+)+(Error|Exception|Failure)\w*\b").is_some_and(|class| class.is_match(words))
        });
        if of_maven && !line.contains("Tests run:") || of_console.is_some() {
            let at = if of_maven { index + 1 } else { index };
            let message = page.line(at).trim_start().trim_start_matches("=> ").to_string();
            let end = page.find(at + 1..at + 60, str::is_empty).unwrap_or(at + 30);
            let place = own_frame(page, at + 1..end);
            page.has_results = true;
            page.claim(index..end);
            page.sure(at, failure(place, None, &message));
        }
    }
}

/// Reads exceptions of programs, and errors of Maven that are not test results.
pub(super) fn errors(page: &mut Page<'_>) {
    for index in 0..page.lines.len() {
        if page.is_claimed(index) {
            continue;
        }
        let line = page.line(index).to_string();
        if let Some(message) = line.strip_prefix("Exception in thread ") {
            let message = message.split_once("\" ").map_or(message, |(_, message)| message).to_string();
            let end = page
                .find(index + 1..usize::MAX, |line| indent(line) == 0 && !line.starts_with("Caused by"))
                .unwrap_or(page.lines.len());
            let place = own_frame(page, index + 1..end);
            page.claim(index..end);
            page.sure_unless_printed(index, failure(place, None, &message));
        } else if let Some(found) =
            regex!(r"^\[ERROR\] (\S+):\[(\d+),(\d+)\] (.+)$").and_then(|error| error.captures(&line))
        {
            let place =
                found.get(1).zip(found.get(2)).and_then(|(file, line)| Location::of(file.as_str(), line.as_str()));
            page.sure(index, failure(place, None, found.get(4).map_or("", |message| message.as_str())));
        } else if let Some(message) = line.strip_prefix("[FATAL] ") {
            let found = regex!(r"(/\S+\.xml)(?:, line (\d+)|.*@(\d+):\d+)").and_then(|place| place.captures(&line));
            let place =
                found.and_then(|found| Location::of(found.get(1)?.as_str(), found.get(2).or(found.get(3))?.as_str()));
            page.sure(index, failure(place, None, message));
        } else if let Some(message) = line.strip_prefix("[ERROR] Failed to execute goal") {
            page.likely(index, failure(None, None, message.trim_end_matches("-> [Help 1]")));
        }
    }
}
