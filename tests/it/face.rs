//! What people and programs see around a run: events, summaries, hooks, reports, completions, explanations.

use crate::support::Place;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

const CONFIG: &str = r#"{
  "agents": { "j": { "command": "j", "role": "judge" } },
  "checks": { "t": { "run": "sh check.sh" } },
  "chains": { "loop": { "vars": { "WHAT": "x" }, "description": "codes until it is right", "steps": [{ "group": [{ "agent": "c" }, { "check": "t" }, { "agent": "j" }], "iterations": 3 }] } }
}"#;

fn judged() -> Place {
    let place = Place::new();
    place
        .config(CONFIG)
        .write("check.sh", "[ -f good ] || { echo 'src/a.rs:3:1: error: it is <b>broken</b>'; exit 1; }\n");
    place.agent(
        "c",
        "print Working.\nsh date +%N >> work.txt\nnext\nsh touch good; date +%N >> work.txt\nprint ::error::not yours\nnext\nsh date +%N >> work.txt\nprint F1: fixed",
    );
    place.agent(
        "j",
        "print - work.txt:1: <script>alert(1)</script> is wrong\nprint VERDICT: reject\nnext\nprint VERDICT: approve",
    );
    place
}

#[test]
fn events_go_to_standard_output_or_to_a_file_and_are_those_of_the_journal() {
    let place = judged();
    let ran = place.run(&["--chain", "loop", "-p", "Do it.", "--events", "ndjson"]);
    assert!(lines(&place.real(&ran.code(0).stdout)) == place.events(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("✓ loop: complete"), "people are told as ever: {}", ran.stderr);
    let ran = place.run(&["c", "-p", "x", "-q", "--events=ndjson=events.ndjson"]);
    place.run(&["c", "-p", "x", "-q", "--events=ndjson=events.ndjson"]).code(0);
    assert_eq!((ran.code(0).stdout.as_str(), ran.stderr.as_str()), ("", ""));
    let kept = lines(&place.read("events.ndjson"));
    assert!(kept == [place.events(2), place.events(3)].concat(), "{kept:?}");
    let ran = place.run(&["c", "--events", "xml"]).code(2).stderr.clone()
        + &place.run(&["c", "--events", "ndjson", "--output", "json"]).code(2).stderr
        + &place.run(&["c", "--events", "ndjson=missing/events"]).code(2).stderr;
    insta::assert_snapshot!("events_refused", ran);
}

#[test]
fn the_summary_for_machines_says_what_happened_why_and_what_it_cost() {
    let place = judged();
    let ran = place.run(&["--chain", "loop", "-p", "Do it.", "--output", "json"]);
    let summary: Value = serde_json::from_str(&ran.code(0).stdout).unwrap();
    insta::assert_snapshot!("summary", serde_json::to_string_pretty(&summary).unwrap());
    place.agent("c", "exit 3");
    let ran = place.run(&["c", "-p", "x", "--output", "json"]);
    let summary: Value = serde_json::from_str(&ran.code(1).stdout).unwrap();
    assert_eq!(
        (&summary["exitCode"], &summary["state"], &summary["reason"], &summary["next"]),
        (
            &1.into(),
            &"incomplete".into(),
            &"stopped at step 1 of 1: c failed with exit code 3".into(),
            &"forkhestra runs log 2.1.1".into()
        )
    );
}

#[test]
fn after_a_limit_the_next_command_is_one_that_runs() {
    let place = Place::new();
    place.agent("a", "print 1\nnext\nprint 2\nnext\nprint 3\nmarker");
    let ran = place.run(&["a:9", "-p", "x", "--limit", "attempts=2", "--output", "json"]);
    let summary: Value = serde_json::from_str(&ran.code(4).stdout).unwrap();
    assert_eq!(summary["next"], "forkhestra resume 1 --limit attempts=4");
    place.run(&["resume", "1", "--limit", "attempts=4"]).code(0);
}

#[test]
fn hooks_get_the_summary_and_change_nothing() {
    let place = Place::new();
    place.config(
        r#"{ "chains": {}, "hooks": {
            "onFinish": "cat > finished.json; echo noted",
            "onFail": ["sh", "-c", "cat > failed.json; exit 7"],
            "onHuman": "cat > human.json" } }"#,
    );
    place.agent("a", "print x\nnext\nexit 3\nnext\nprint I cannot.\nprint VERDICT: dispute");
    let ran = place.run(&["a", "-p", "x"]);
    assert!(ran.code(0).stderr.ends_with("noted\n"), "{}", ran.stderr);
    let told: Value = serde_json::from_str(&place.read("finished.json")).unwrap();
    assert_eq!((&told["run"], &told["state"]), (&1.into(), &"complete".into()));
    assert!(!place.work("failed.json").exists() && !place.work("human.json").exists());
    let ran = place.run(&["a", "-p", "x"]);
    assert!(
        ran.code(1)
            .stderr
            .contains("! the hook onFail failed with exit code 7; the outcome of the run does not change"),
        "{}",
        ran.stderr
    );
    place.run(&["a", "-p", "x"]).code(3);
    let told: Value = serde_json::from_str(&place.read("human.json")).unwrap();
    assert_eq!(told["exitCode"], 3);
    let plan = place.run(&["a", "-p", "x", "--dry-run"]);
    assert!(plan.code(0).stdout.contains("onFail       sh -c 'cat > failed.json; exit 7'"), "{}", plan.stdout);
}

#[test]
fn in_a_job_of_github_actions_an_error_that_nobody_fixed_is_an_error_and_a_fixed_one_a_notice() {
    let mut place = Place::new();
    place.set("GITHUB_ACTIONS", "true");
    place.agent("c", "sh date > w\nnext\nsh touch one");
    place.config(
        r#"{"checks": {"t": "test -e one || echo 'a.py:1: error: no one'; test -e two || { echo 'a.py:2: error: no two'; exit 1; }"},
            "chains": {}}"#,
    );
    let annotations = |rounds: &str| {
        let ran = place.run(&[rounds]);
        let lines = ran.stderr.lines().filter(|line| line.starts_with("::error") || line.starts_with("::notice"));
        lines.map(str::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(annotations("(c -> t):2"), "::notice file=a.py,line=1::t: no one\n::error file=a.py,line=2::t: no two",);
}

#[test]
fn a_job_of_github_actions_has_groups_annotations_and_a_summary_and_agents_cannot_write_commands() {
    let mut place = judged();
    let summary = place.work("summary.md").display().to_string();
    place.set("GITHUB_ACTIONS", "true").set("GITHUB_STEP_SUMMARY", &summary);
    let ran = place.run(&["--chain", "loop", "-p", "Do it."]);
    let log = &ran.code(0).stderr;
    let words: Vec<&str> = log.lines().filter_map(|line| line.strip_prefix("::stop-commands::")).collect();
    let different: BTreeSet<&&str> = words.iter().collect();
    assert!(
        words.iter().all(|word| word.len() >= 32) && different.len() == words.len(),
        "nobody guesses them: {words:?}"
    );
    let log = words.iter().fold(log.clone(), |log, word| log.replace(*word, "WORD"));
    assert_eq!(ran.stdout, "", "one stream has one order");
    insta::assert_snapshot!("github_log", log);
    insta::assert_snapshot!("github_summary", place.read("summary.md"));
}

#[test]
fn what_an_agent_said_is_no_command_where_we_say_it_again() {
    let mut place = Place::new();
    place.set("GITHUB_ACTIONS", "true");
    place.agent("bad", "eprint ::add-mask::x\neprint ##[error]y\nexit 1");
    let ran = place.run(&["bad:9", "-p", "x"]);
    let after = ran.code(1).stderr.rsplit("the end of its stderr:").next().unwrap().to_string();
    assert!(after.contains("    : :add-mask::x\n    ## [error]y\n"), "{}", ran.stderr);
}

#[test]
fn a_hook_that_hangs_floods_or_leaves_a_daemon_holds_nobody_up() {
    let place = Place::new();
    let hook = |line: &str| {
        place.config(&format!(r#"{{ "chains": {{}}, "hooks": {{ "onFinish": {line:?} }} }}"#));
    };
    place.agent("a", "print x");
    // The hook closes its streams and continues.
    hook("exec > /dev/null 2>&1; sleep 1.3; touch late");
    place.run(&["a", "-p", "x"]).code(0);
    assert!(place.work("late").exists());
    // A background process keeps the pipes of the hook open.
    let began = std::time::Instant::now();
    hook("sleep 25 & echo noted");
    assert!(place.run(&["a", "-p", "x"]).code(0).stderr.ends_with("noted\n"));
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "it was not waited for");
    // Ctrl-C stops the hook, and the run stays complete. The directory is free while the hook runs.
    hook("touch up; sleep 1000");
    let running = place.start(&["a", "-p", "x"]);
    place.wait_for(&place.work("up"));
    place.config(r#"{ "chains": {} }"#);
    assert_eq!(place.command(&["a", "-p", "x", "-q"]).output().unwrap().status.code(), Some(0));
    let ran = running.end_by("INT");
    assert!(ran.code(0).stderr.contains("! the hook onFinish was stopped by a signal"), "{}", ran.stderr);
}

#[test]
fn a_report_of_what_was_cut_off_or_measured_says_so_and_a_device_stays_one() {
    let place = Place::new();
    let up = place.path("tmp/up");
    place.agent("a", &format!("hang {}", up.display()));
    let running = place.start(&["a", "-p", "x"]);
    place.wait_for(&up);
    let _ = running.end_by("KILL");
    let page = place.run(&["report", "--format", "md", "-o", "-"]).code(0).stdout.clone();
    assert!(
        page.contains("its process died")
            && page.contains("**next**: forkhestra resume 1")
            && page.contains("1.1 a: interrupted"),
        "{page}"
    );
    place.agent("a", "print 4");
    let case = r#"{ "id": "sum", "text": "2 + 2", "expected": "5", "criteria": [{ "type": "exact" }] }"#;
    place.write("suite.json", format!(r#"{{ "taskType": "t", "prompt": "p", "executor": "a", "cases": [{case}] }}"#));
    place.run(&["eval", "run", "suite.json"]).code(1);
    let page = place.run(&["report", "-o", "/dev/stdout"]).code(0).stdout.clone();
    assert!(page.contains("sum       fail 0.00"), "{page}");
}

#[test]
fn each_line_of_an_agent_begins_with_its_name_where_that_is_asked_for() {
    let place = Place::new();
    place.agent("a", "write one\nwrite  more\nprint \nprint two").agent("b", "print three");
    let ran = place.run(&["a -> b", "-p", "x", "--prefix"]);
    assert_eq!(ran.code(0).stdout, "a │ one more\na │ two\nb │ three\n");
}

#[test]
fn a_report_is_one_page_with_everything_escaped_and_a_markdown_one_has_the_same_facts() {
    let place = judged();
    place.run(&["--chain", "loop", "-p", "Do <it> & more."]).code(0);
    let ran = place.run(&["report"]);
    assert_eq!(ran.code(0).stdout, ".forkhestra/runs/1/report.html\n");
    let page = place.read(".forkhestra/runs/1/report.html");
    assert!(page.contains("Do &lt;it&gt; &amp; more.") && page.contains("&lt;script&gt;alert(1)"), "{page}");
    assert!(
        !page.contains("<script") && !page.contains("http:") && !page.contains("https:"),
        "nothing runs and nothing is fetched"
    );
    assert_eq!((page.matches("<details>").count(), page.matches("<article").count()), (12, 8));
    for id in page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(page.contains(&format!("id=\"{id}\"")), "{id} is nowhere");
    }
    place.run(&["report", "-o", "out.html"]).code(0);
    assert_eq!(place.read("out.html"), page);
    let markdown = place.run(&["report", "--format", "md", "-o", "-"]);
    insta::assert_snapshot!("report_markdown", markdown.code(0).stdout);
}

#[test]
fn every_error_has_an_explanation_and_every_explanation_an_error() {
    fn sources(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                sources(&entry.path(), found);
            } else {
                found.push(fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
    let mut texts = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut texts);
    let is_code = |word: &str| {
        let of = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        };
        word.split_once('/').is_some_and(|(room, name)| of(room) && of(name))
    };
    let mut codes = BTreeSet::new();
    for text in &texts {
        for kind in ["Diagnostic::error(", "Diagnostic::warning("] {
            for rest in text.split(kind).skip(1) {
                let first = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
                codes.extend(first.filter(|code| is_code(code)).map(str::to_string));
            }
        }
        if let Some(code) = text.split("const TOO_DEEP: &str = \"").nth(1).and_then(|rest| rest.split('"').next()) {
            codes.insert(code.to_string());
        }
    }
    let place = Place::new();
    let listed = place.run(&["explain"]);
    insta::assert_snapshot!(listed.code(0).stdout.lines().take(3).collect::<Vec<_>>().join("\n"), @r"
    The chain language
      chain/empty                 The text of the chain is empty or contains only spaces
      chain/arrow                 An arrow has nothing on one of its sides: the chain or a group begins or ends with `->`, or there are two arrows in a row
    ");
    let lines = listed.stdout.lines().filter_map(|line| line.strip_prefix("  "));
    let listed: BTreeSet<String> = lines.filter_map(|line| line.split(' ').next().map(str::to_string)).collect();
    let missing: Vec<&String> = codes.difference(&listed).collect();
    let unknown: Vec<&String> = listed.difference(&codes).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "without an explanation: {missing:?}; of no error: {unknown:?}");
    let ran = place.run(&["explain", "chain/arrow"]);
    insta::assert_snapshot!(ran.code(0).stdout, @r#"
    chain/arrow

    An arrow has nothing on one of its sides: the chain or a group begins or ends with `->`, or there
    are two arrows in a row.

        forkhestra "coder -> -> reviewer"

    Name the missing agent, check or group, or remove the arrow.
    "#);
    assert!(place.run(&["explain", "plan/unmeasured"]).code(0).stdout.contains("Agents (docs/agents.md) shows"));
    assert!(place.run(&["explain", "chain/arow"]).code(2).stderr.contains("did you mean `chain/arrow`?"));
}

#[test]
fn completions_know_the_verbs_the_options_and_the_names_of_the_project() {
    let place = judged();
    let found = |words: &[&str]| {
        let index = words.len().to_string();
        let mut line = vec!["__complete", &index, "forkhestra"];
        line.extend(words);
        let ran = place.run(&line);
        ran.code(0).stdout.lines().map(|line| line.split('\t').next().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert!(found(&["res"]).contains(&"resume".to_string()), "{:?}", found(&["res"]));
    assert!(found(&["--chain", ""]).contains(&"loop".to_string()));
    assert!(found(&["run", "--chain", "lo"]).contains(&"loop".to_string()));
    assert!(found(&["rev"]).contains(&"reviewer".to_string()));
    assert!(found(&["eval", "run", "--js"]).contains(&"--json".to_string()));
    assert!(found(&["show", "l"]).contains(&"loop".to_string()));
    assert_eq!(found(&["c", "--limit", "co"]), ["cost="]);
    assert_eq!(found(&["resume", "--limit", "ti"]), ["time="]);
    assert_eq!(found(&["explain", "chain/arr"]), ["chain/arrow"]);
    assert_eq!(found(&["--chain", "loop", "WH"]), ["WHAT="]);
    for shell in ["bash", "zsh", "fish", "powershell"] {
        assert!(place.run(&["completions", shell]).code(0).stdout.contains("__complete"), "{shell}");
    }
    // In the same way as bash.
    let script = "source <(forkhestra completions bash); COMP_LINE='forkhestra --chain lo'; COMP_POINT=21; _forkhestra; echo \"${COMPREPLY[@]}\"";
    let program = assert_cmd::cargo::cargo_bin!("forkhestra");
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let output = std::process::Command::new("bash")
        .args(["-c", script])
        .env("PATH", &path)
        .current_dir(place.path("project"))
        .output();
    assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), "loop\n");
    // What is typed is not a pattern of file names.
    let script = "source <(forkhestra completions bash); cd /; COMP_LINE='forkhestra -p * --chain lo'; COMP_POINT=26; _forkhestra; echo \"${COMPREPLY[@]}\"";
    let mut bash = std::process::Command::new("bash");
    let output = bash.args(["-c", script]).env("PATH", &path).current_dir(place.path("project")).output();
    assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), "\n", "there is no config in /");
    assert_eq!(found(&["--chain=lo"]), ["--chain=loop"]);
    place.run(&["c", "-p", "x", "-q"]).code(0);
    assert!(
        found(&["runs", "show", ""]).contains(&"1".to_string()) && found(&["man", "ev"]).contains(&"eval".to_string())
    );
}

#[test]
fn the_manual_has_a_page_for_the_program_and_for_each_verb() {
    let place = Place::new();
    assert!(place.run(&["man"]).code(0).stdout.contains(".TH forkhestra 1"));
    assert!(place.run(&["man", "eval"]).code(0).stdout.contains("improve"));
    assert!(place.run(&["man", "evil"]).code(2).stderr.contains("there is no command `evil`"));
    assert!(place.run(&["man", "task", "add"]).code(0).stdout.contains(".TH forkhestra-task-add 1"));
    // Every page that a page names is there.
    let pages = place.path("tmp/man1");
    place.run(&["man", "--out", pages.to_str().unwrap()]).code(0);
    let read = |name: &str| fs::read_to_string(pages.join(name)).unwrap();
    for line in read("forkhestra.1").lines().chain(read("forkhestra-task.1").lines()) {
        if let Some(name) = line.strip_suffix("(1)") {
            assert!(pages.join(format!("{}.1", name.replace('\\', ""))).exists(), "{name}");
        }
    }
    assert!(place.run(&["man", "--out", "/dev/null/x"]).code(2).stderr.contains("cannot write the manual pages"));
}

#[test]
fn completions_and_pages_are_installed_where_shells_and_man_look_for_them() {
    let mut place = Place::new();
    let home = place.path("home");
    place.set("SHELL", "/bin/zsh");
    let ran = place.run(&["completions", "--install"]);
    insta::assert_snapshot!(ran.code(0).stdout, @r"
    wrote ~/.local/share/zsh/site-functions/_forkhestra
      add to ~/.zshrc, before compinit: fpath=(~/.local/share/zsh/site-functions $fpath)
    ");
    for (shell, file) in [
        ("bash", ".local/share/bash-completion/completions/forkhestra"),
        ("fish", ".config/fish/completions/forkhestra.fish"),
        ("zsh", ".local/share/zsh/site-functions/_forkhestra"),
    ] {
        place.run(&["completions", shell, "--install"]).code(0);
        let printed = place.run(&["completions", shell]).code(0).stdout.clone();
        assert_eq!(fs::read_to_string(home.join(file)).unwrap(), printed, "{shell}");
    }
    let ran = place.run(&["man", "--install"]);
    assert!(ran.code(0).stdout.ends_with("pages to ~/.local/share/man/man1; `man forkhestra` shows the first\n"));
    assert!(home.join(".local/share/man/man1/forkhestra-task-add.1").exists());
    refused(&place, &["completions", "powershell", "--install"], "PowerShell has no directory for completions");
    place.set("SHELL", "/bin/tcsh");
    refused(&place, &["completions", "--install"], "it is unknown which shell you use: $SHELL is /bin/tcsh");
    fs::write(place.path("tmp/file"), "").unwrap();
    place.set("XDG_DATA_HOME", place.path("tmp/file").to_str().unwrap());
    refused(&place, &["completions", "bash", "--install"], "cannot write");
    refused(&place, &["man", "--install"], "cannot write the manual pages");
    place.set("HOME", "");
    place.set("XDG_DATA_HOME", "");
    refused(&place, &["man", "--install"], "it is unknown where your files are: $HOME is not set");
}

fn refused(place: &Place, words: &[&str], why: &str) {
    let ran = place.run(words);
    assert!(ran.code(2).stderr.contains(why), "{}", ran.stderr);
}
