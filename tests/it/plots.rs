//! The plots of a report: time, cost and errors over the rounds or attempts of a run.

use super::support::Place;
use forkhestra::engine::{Event, RunSummary};
use forkhestra::plan::Outline;
use forkhestra::report::{Document, Refresh, html_page};
use serde_json::{Value, json};

/// Returns the section with the plots; empty if there is none.
fn plots(page: &str) -> &str {
    let section = page.split("<section aria-labelledby=\"plots\">").nth(1);
    section.map_or("", |rest| rest.split("</section>").next().unwrap())
}

/// Returns a section as text: a line for each element that has any.
fn text(section: &str) -> String {
    let mut lines = section.replace("<th", " | <th").replace("<td", " | <td").replace("</span><span", "</span> <span");
    for tag in ["<p>", "<details", "<tr>", "<figure", "<div"] {
        lines = lines.replace(tag, &format!("\n{tag}"));
    }
    let (mut text, mut inside) = (String::new(), false);
    for next in lines.chars() {
        match next {
            '<' => inside = true,
            '>' => inside = false,
            next if !inside => text.push(next),
            _ => {}
        }
    }
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// What an agent prints at its end, as `claude` does.
fn result(cost: &str, tokens: u32) -> String {
    let usage = format!(r#""total_cost_usd":{cost},"usage":{{"input_tokens":{tokens}}}"#);
    format!("sh date +%N >> n\nprint {{\"type\":\"result\",\"result\":\"done\",\"is_error\":false,{usage}}}")
}

#[test]
fn rounds_have_plots_of_their_cost_and_their_errors_and_a_table_with_the_same_numbers() {
    let place = Place::new();
    place.agent("claude", &[result("0.5", 100), result("0.25", 100), result("0.125", 100)].join("\nnext\n"));
    place.write(
        "check.sh",
        "case $(wc -l < n) in 1) echo a.c:1:1: error: x; echo a.c:2:1: error: y; exit 1;; 2) exit 1;; esac\n",
    );
    place.config(r#"{"agents": {"a": {"backend": "claude"}}, "checks": {"t": "sh check.sh"}, "chains": {}}"#);
    place.run(&["(a -> t):5", "-p", "x"]).code(0);
    let page = place.run(&["report", "-o", "-"]).code(0).stdout.clone();
    insta::assert_snapshot!(text(plots(&page)), @r"
    Round by round
    Cost per round: $0.12 to $0.50, most in round 1
    1 3
    Errors that the checks found: 0 to 2, most in round 1
    1 3
    The numbers |
    | round | attempts | cost | errors
    | 1 | 2 | $0.50 | 2
    | 2 | 2 | $0.25 | 1
    | 3 | 2 | $0.12 | 0
    ");
    for image in plots(&page).split("<svg").skip(1) {
        assert!(image.contains("role=\"img\""), "{image}");
        let name = image.split("aria-labelledby=\"").nth(1).unwrap().split('"').next().unwrap();
        assert!(page.contains(&format!("id=\"{name}\"")), "{name} names the plot");
    }
}

#[test]
fn a_loop_has_plots_of_its_attempts_and_what_says_nothing_has_none() {
    let place = Place::new();
    place.agent("claude", &[result("null", 1200), result("null", 1000)].join("\nnext\n"));
    place.config(r#"{"agents": {"a": {"backend": "claude"}}, "checks": {"t": "true"}, "chains": {}}"#);
    place.run(&["a:2", "-p", "x"]).code(1);
    place.run(&["a -> t", "-p", "x"]).code(0);
    let page = |run: &str| place.run(&["report", run, "-o", "-"]).code(0).stdout.clone();
    insta::assert_snapshot!(text(plots(&page("1"))), @r"
    Attempt by attempt
    Tokens per attempt: 1,000 to 1,200, most in attempt 1.1
    1.1 1.2
    The numbers |
    | attempt | tokens
    | 1.1 | 1,200
    | 1.2 | 1,000
    ");
    assert_eq!(plots(&page("2")), "", "each step was tried once");
    let all = place.run(&["report", "--all", "-o", "-"]).code(0).stdout.clone();
    assert_eq!(all.matches("<svg").count(), 1);
}

/// The events of a run of a loop, with as many attempts.
fn long(attempts: u32) -> Vec<Event> {
    let mut events: Vec<Value> = vec![json!({
        "type": "runStarted", "chain": "a:10000", "name": null, "prompt": "x", "vars": {}, "digest": "", "root": "/",
        "forkhestra": "", "steps": 1,
    })];
    for attempt in 1..=attempts {
        let at = json!({ "step": 1, "name": "a", "round": 1, "iteration": attempt, "attempt": attempt, "lane": 1 });
        let tokens = json!({ "input": attempt, "output": 0, "cacheRead": 0, "cacheWrite": 0, "costUsd": null });
        events.push(json!({ "type": "attemptPlanned", "at": at, "iterations": 10_000, "retry": 0, "feedback": null }));
        events.push(json!({
            "type": "attemptFinished", "at": at, "outcome": { "type": "unfinished" }, "marker": false,
            "finished": { "tookMs": attempt * 10, "stdoutBytes": 0, "stderrBytes": 0, "heldOpen": false, "leftovers": [],
                "nearMiss": null, "tokens": tokens, "session": null, "denials": [], "error": null, "usageLimit": null,
                "fingerprint": null },
        }));
    }
    let event =
        |(seq, event)| json!({ "version": 1, "run": 1, "seq": seq, "at": "2026-01-01T00:00:00Z", "event": event });
    (1..).zip(events).map(|numbered| serde_json::from_value(event(numbered)).unwrap()).collect()
}

#[test]
fn ten_thousand_attempts_are_forty_bars() {
    let page = |events: &[Event]| {
        let document = Document {
            summary: &RunSummary::of(events),
            outline: &Outline::default(),
            events,
            reason: "",
            at_work: false,
            resume: "",
            part: None,
            changes: None,
            patch: "",
            papers: &[],
        };
        html_page(&[document], None, false, Refresh::Never)
    };
    let long = page(&long(10_000));
    let section = plots(&long);
    assert!(section.len() < 8_000, "{} bytes", section.len());
    let told = text(section);
    assert!(told.starts_with("Attempt by attempt\nEach bar is 250 attempts: their mean"), "{told}");
    assert!(told.contains("\n| 1.1 to 1.250 | 250 | 1.2 s | 126\n"), "{told}");
    assert_eq!(section.matches('M').count(), 80, "two plots of forty bars");
}
