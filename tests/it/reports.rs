//! `report`: the first screen, several runs on one page, and a page that follows its runs.

use super::support::{LONG, Place, git};
use std::fs;
use std::time::Instant;

/// Three runs in a repository: one that completes, one that is rejected until no round is left, and one that is
/// stopped by its limit.
fn night() -> Place {
    let place = Place::new();
    place.write("app.txt", "one\n");
    git(&place, &["init", "-q"]);
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "begin"]);
    place.agent("good", "sh printf 'one\\n<b>two</b>\\n' > app.txt").agent("lazy", "sh date +%N >> notes.txt");
    place.agent("judge", "print - app.txt:1: not what was asked\nprint VERDICT: reject");
    place.config(r#"{"agents": {"judge": {"command": "judge", "role": "judge"}}, "chains": {}}"#);
    place.run(&["good", "-p", "Add <two>.\nKeep one."]).code(0);
    place.run(&["(lazy -> judge):2", "-p", "Clean up"]).code(3);
    place.run(&["lazy:9", "--limit", "attempts=2", "-p", "Loop"]).code(4);
    place
}

#[test]
fn the_first_screen_of_a_report_says_what_was_asked_what_came_of_it_and_what_to_do() {
    let place = night();
    let facts = |run: &str| {
        let text = place.run(&["report", run, "--format", "md", "-o", "-"]).code(0).stdout.clone();
        text.lines().take_while(|line| !line.starts_with("| step")).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(facts("1") + "\n" + &facts("2"), @r#"
    # Run 1: good

    - **asked**: Add &lt;two>. Keep one.
    - **outcome**: complete
    - **verified**: no check, no judge
    - **changed**: 1 file changed (+1 -0): app.txt
    - **used**: 1 attempt, 0.0 s
    - **next**: forkhestra diff 1
    - **chain**: good
    - **time**: 2026-01-01 00:00:00 to 2026-01-01 00:00:00

    # Run 2: (lazy -> judge):2

    - **asked**: Clean up
    - **outcome**: stopped at step 2 of 2: judge rejected the work 2 times, and no rounds are left
    - **why**: judge: app.txt:1: not what was asked
    - **changed**: 1 file changed (+2 -0): notes.txt
    - **used**: 4 attempts, 0.0 s
    - **rework**: 2 rejections; then 2 attempts, 0.0 s
    - **next**: forkhestra resume 2 --more 3, or decide with --approve or --reject "why"
    - **chain**: (lazy -> judge):2
    - **time**: 2026-01-01 00:00:00 to 2026-01-01 00:00:00
    "#);
    let page = place.run(&["report", "1", "-o", "-"]).code(0).stdout.clone();
    assert!(page.contains("+&lt;b&gt;two&lt;/b&gt;"), "the changes are there, escaped: {page}");
    assert!(!page.contains("<b>"), "{page}");
}

#[test]
fn report_since_all_and_task_put_several_runs_on_one_page() {
    let place = night();
    let table = |words: &[&str]| {
        let words = [&["report"], words, &["--format", "md", "-o", "-"]].concat();
        let text = place.run(&words).code(0).stdout.clone();
        text.lines().take_while(|line| !line.starts_with("# Run")).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(table(&["--all"]), @r#"
    # 3 runs, 2026-01-01 00:00:00 to 2026-01-01 00:00:00

    1 complete, 1 needs a human, 1 limit reached (7 attempts). Those that need you come first. Their work is in $PLACE/project.

    | run | asked | outcome | changed | used | next |
    |---|---|---|---|---|---|
    | 2 | Clean up | stopped at step 2 of 2: judge rejected the work 2 times, and no rounds are left; judge: app.txt:1: not what was asked | 1 file changed (+2 -0): notes.txt | 4 attempts, 0.0 s | forkhestra resume 2 --more 3, or decide with --approve or --reject "why" |
    | 3 | Loop | the limit `attempts` of 2 was reached | 1 file changed (+2 -0): notes.txt | 2 attempts, 0.0 s | forkhestra resume 3 --limit attempts=4 |
    | 1 | Add &lt;two>. | complete; no check, no judge | 1 file changed (+1 -0): app.txt | 1 attempt, 0.0 s | forkhestra diff 1 |
    "#);
    assert_eq!(table(&["--since", "12h"]), table(&["--all"]));
    place.sql("UPDATE runs SET ended = '2020-01-01T00:00:00Z' WHERE id < 3");
    assert!(table(&["--since", "12h"]).starts_with("# 1 run, "));
    let ran = place.run(&["report", "--all"]);
    assert_eq!(ran.code(0).stdout, ".forkhestra/runs/report.html\n");
    let page = place.read(".forkhestra/runs/report.html");
    for id in page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
    }
    let refused = place.run(&["report", "--task", "7"]);
    assert!(refused.code(2).words().contains("no run matches these options"), "{}", refused.stderr);
    assert!(place.run(&["report", "--since", "soon"]).code(2).words().contains("`soon` is not an age"));
}

#[test]
fn report_follow_writes_the_page_again_until_the_run_has_ended() {
    let place = Place::new();
    let (up, go) = (place.path("tmp/up"), place.path("tmp/go"));
    place.agent("a", &format!("touch {}\nwait-for {}\nprint the end", up.display(), go.display()));
    let run = place.start(&["-q", "a"]);
    place.wait_for(&up);
    let follower = place.command(&["report", "--follow"]).spawn().unwrap();
    let page = place.work(".forkhestra/runs/1/report.html");
    place.wait_for(&page);
    let deadline = Instant::now() + LONG;
    let read = || fs::read_to_string(&page).unwrap_or_default();
    while !read().contains("http-equiv=\"refresh\"") && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert!(read().contains("it is still running"), "{}", read());
    fs::write(&go, "").unwrap();
    run.end().code(0);
    assert_eq!(follower.wait_with_output().unwrap().status.code(), Some(0));
    assert!(read().contains("the end") && !read().contains("http-equiv"), "{}", read());
}
