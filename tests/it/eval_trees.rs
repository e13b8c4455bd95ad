//! Cases that are trees of files: a chain works in a copy of each, and what it has changed is judged.

use crate::support::Place;
use std::fs;
use std::process::Command;

/// A coder that fixes the sum only if its own prompt says that it should be careful, and looks for hidden files.
const CODER: &str = r#"
    prompt=$(cat forge/agents/coder/prompt.md; cat)
    [ ! -e hidden.sh ] || echo "peeked" >> sum.sh
    case "$prompt" in *careful*"Fix the sum."*) echo 'echo $(($1 + $2))' > sum.sh ;; *) echo : >> sum.sh ;; esac
    echo '{"type":"result","result":"FORKHESTRA_COMPLETE","is_error":false,"total_cost_usd":0.25,"usage":{"input_tokens":10}}'
"#;

const CONFIG: &str = r#"{
  "agents": {
    "coder": { "command": ["sh", "forge/coder.sh"], "output": "claude-stream", "deliver": "stdin" },
    "critic": { "command": ["sh", "critic.sh"] }
  },
  "chains": { "fix": { "steps": "coder:3" } }
}"#;

/// A suite whose cases have these keys.
fn suite(keys: &str) -> String {
    let case = |id: &str| {
        format!(
            r#"{{ "id": "{id}", {keys}, "text": "Fix the sum. It is {id}.", "hidden": "hidden",
            "criteria": [{{ "type": "command", "run": "sh hidden.sh" }}, {{ "type": "run", "state": "complete" }}] }}"#
        )
    };
    format!(
        r#"{{ "taskType": "fixing", "promptFile": "../forge/agents/coder/prompt.md", "executor": "fix",
        "into": "forge/agents/coder/prompt.md", "cases": [{}, {}] }}"#,
        case("one"),
        case("two")
    )
}

fn place(prompt: &str) -> Place {
    let place = Place::new();
    place.config(CONFIG).write("forge/coder.sh", CODER).write("forge/agents/coder/prompt.md", prompt);
    place.write("evals/tree/sum.sh", "echo $(($1 - $2))\n").write("evals/tree/.gitignore", "*.log\n");
    place.write("evals/hidden/hidden.sh", r#"[ "$(sh sum.sh 2 3)" = 5 ] && ! grep -q peeked sum.sh"#);
    place.write("evals/suite.json", suite(r#""tree": "tree""#));
    place
}

/// What is left in the directory of temporary files.
fn left(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(place.path("tmp")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_chain_works_in_a_copy_of_each_tree_and_its_work_is_judged_by_files_that_it_never_saw() {
    let place = place("Be careful.\n");
    let ran = place.run(&["eval", "run", "evals/suite.json"]);
    assert!(ran.code(0).stdout.contains("all 2 cases passed (4 attempts"), "{}", ran.all());
    assert_eq!(place.read("evals/tree/sum.sh"), "echo $(($1 - $2))\n", "the tree itself is not changed");
    assert_eq!(left(&place), [""; 0]);
}

#[test]
fn a_worse_prompt_of_an_agent_loses_against_its_baseline() {
    let place = place("Be careful.\n");
    place.run(&["eval", "run", "evals/suite.json", "--repeat", "3"]).code(0);
    place.write("forge/agents/coder/prompt.md", "Be quick.\n");
    let ran = place.run(&["eval", "run", "evals/suite.json", "--repeat", "3", "--baseline", "1"]);
    assert!(ran.code(1).stdout.contains("compared with run 1 (2 cases): worse by 0.75"), "{}", ran.all());
    // Answers to the same prompt on the same trees are used again, and their work is judged again.
    place.write("forge/agents/coder/prompt.md", "Be careful.\n");
    let ran = place.run(&["eval", "run", "evals/suite.json", "--repeat", "3", "--json"]);
    assert_eq!(ran.code(0).json()["attempts"], 6, "{}", ran.all());
    place.write("evals/hidden/hidden.sh", "exit 1");
    let ran = place.run(&["eval", "run", "evals/suite.json"]);
    assert!(ran.code(1).stdout.contains("0 of 2 cases passed"), "{}", ran.all());
}

#[test]
fn improve_rewrites_the_prompt_of_an_agent() {
    let place = place("Be quick.\n");
    place.write("critic.sh", "cat > /dev/null; echo 'Be careful.'");
    let suite = suite(r#""tree": "tree""#).replace(r#""into""#, r#""improver": "critic", "repeat": 4, "into""#);
    place.write("evals/suite.json", suite);
    let ran = place.run(&["eval", "improve", "evals/suite.json", "--generations", "1", "--write"]);
    assert!(ran.code(0).stdout.contains("generation 1 is better"), "{}", ran.all());
    assert_eq!(place.read("forge/agents/coder/prompt.md").trim(), "Be careful.");
}

#[test]
fn a_case_can_be_a_commit_and_the_measured_prompt_that_of_the_chain() {
    let place = place("Be careful.\n");
    place.write("sum.sh", "echo nothing\n").write(".gitignore", ".forkhestra\n");
    for words in
        [&["init", "-q"][..], &["add", "sum.sh"], &["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "Sum"]]
    {
        assert!(Command::new("git").args(words).current_dir(place.work("")).status().unwrap().success());
    }
    let suite = suite(r#""commit": "HEAD""#).replace(r#""into": "forge/agents/coder/prompt.md","#, "");
    let suite = suite.replace(r#""promptFile": "../forge/agents/coder/prompt.md""#, r#""prompt": "Do it: {text}""#);
    place.write("evals/suite.json", suite);
    let ran = place.run(&["eval", "run", "evals/suite.json"]);
    assert!(ran.code(0).stdout.contains("all 2 cases passed"), "{}", ran.all());
}

#[test]
fn a_chain_that_fails_is_judged_by_what_it_has_left() {
    let place = place("Be careful.\n");
    place.write("forge/coder.sh", format!("{CODER}\nexit 1"));
    let ran = place.run(&["eval", "run", "evals/suite.json", "--json"]);
    let answer = ran.code(1).json();
    let result = &answer["generations"][0]["cases"][0];
    assert_eq!((result["pass"].as_bool(), result["score"].as_f64()), (Some(false), Some(0.5)), "{}", ran.all());
    assert_eq!(result["issues"][0], "the run ended as incomplete, and not as complete");
}

#[test]
fn the_cost_of_a_chain_counts_and_a_limit_on_it_holds() {
    let place = place("Be careful.\n");
    let ran = place.run(&["eval", "run", "evals/suite.json", "--limit", "cost=0.3", "--repeat", "3"]);
    assert!(ran.code(4).stdout.contains("$0.50"), "{}", ran.all());
}

#[test]
fn bad_trees_and_chains_are_refused_before_anything_runs() {
    let place = place("Be careful.\n");
    let good = suite(r#""tree": "tree""#);
    for (text, why) in [
        (good.replace(r#""tree": "tree""#, r#""tree": "none""#), "cannot read none: it does not exist"),
        (good.replace(r#""tree": "tree""#, r#""commit": "v9""#), "there is no commit v9"),
        (good.replacen(r#""tree": "tree", "#, "", 1), "`hidden` adds files to a tree, and this case has none"),
        (good.replace("\"fix\"", "\"fix it\""), "`->` is missing before `it`"),
        (good.replace("\"fix\"", "\"coder:3 -> nobody\""), "nobody"),
        (good.replace("\"into\": \"forge", "\"into\": \"../forge"), "`into` names a file in the tree of each case"),
    ] {
        place.write("evals/suite.json", text);
        let ran = place.run(&["eval", "run", "evals/suite.json"]);
        assert!(ran.code(2).words().contains(why), "{why}: {}", ran.stderr);
    }
    assert!(!place.work(".forkhestra").exists());
    assert_eq!(left(&place), [""; 0]);
}

/// Replaces the work of the coder by these commands, and judges it by others.
fn worked(commands: &str, judge: &str) -> Place {
    let place = place("Be careful.\n");
    let line =
        r#"echo '{"type":"result","result":"FORKHESTRA_COMPLETE","is_error":false,"total_cost_usd":0.25,"usage":{}}'"#;
    place.write("forge/coder.sh", format!("cat > /dev/null\n{commands}\n{line}"));
    place.write("evals/hidden/hidden.sh", judge);
    place
}

#[test]
fn work_that_is_large_or_not_text_or_a_repository_of_its_own_is_judged_as_it_is() {
    for (commands, judge) in [
        (r"printf 'caf\351\n' > new.txt", r#"[ "$(od -An -c new.txt | tr -d ' \n')" = 'caf351\n' ]"#),
        ("head -c 3000000 /dev/urandom | base64 > big.txt", r#"[ "$(wc -c < big.txt)" -gt 3000000 ]"#),
        ("mkdir sub; cd sub; git init -q; echo z > z; cd ..", "[ -e sub/z ]"),
        (
            "chmod +x sum.sh; ln -s sum.sh 'a link'; rm .gitignore",
            "[ -x sum.sh ] && [ -L 'a link' ] && [ ! -e .gitignore ]",
        ),
    ] {
        let place = worked(commands, judge);
        let ran = place.run(&["eval", "run", "evals/suite.json", "--case", "one"]);
        assert!(ran.code(0).stdout.contains("the case passed (2 attempts"), "{commands}: {}", ran.all());
        // A stored answer has the same work.
        let ran = place.run(&["eval", "run", "evals/suite.json", "--case", "one"]);
        assert!(ran.code(0).stdout.contains("the case passed (1 attempt"), "{commands}: {}", ran.all());
        assert_eq!(left(&place), [""; 0]);
    }
}

#[test]
fn a_chain_finds_neither_the_hidden_files_nor_the_store_that_has_them() {
    let peeks = "{ env | grep FORKHESTRA_TREES; find . -name hidden.sh; } > list; [ -s list ] && cp list seen; rm list";
    let place = worked(peeks, "[ ! -e seen ]");
    for words in
        [&["init", "-q"][..], &["add", "-A"], &["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "All"]]
    {
        assert!(Command::new("git").args(words).current_dir(place.work("")).status().unwrap().success());
    }
    for tree in [r#""tree": "tree""#, r#""commit": "HEAD""#] {
        place.write("evals/suite.json", suite(tree));
        let ran = place.run(&["eval", "run", "evals/suite.json"]);
        assert!(ran.code(0).stdout.contains("all 2 cases passed"), "{tree}: {}", ran.all());
    }
}

#[test]
fn a_repository_within_a_tree_is_refused_because_its_files_would_be_missing() {
    let place = place("Be careful.\n");
    place.write("evals/tree/vendor/lib.c", "int x;\n");
    for words in
        [&["init", "-q"][..], &["add", "-A"], &["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "x"]]
    {
        let vendor = place.work("evals/tree/vendor");
        assert!(Command::new("git").args(words).current_dir(vendor).status().unwrap().success());
    }
    let ran = place.run(&["eval", "run", "evals/suite.json"]);
    assert!(ran.code(2).words().contains("has a repository in it, vendor"), "{}", ran.stderr);
}

#[test]
fn an_interrupted_case_is_not_judged_and_a_resume_asks_it_again() {
    let place = place("Be careful.\n");
    // The first call costs something, and does not complete the chain. The second one waits.
    let [up, go, paid] = ["up", "go", "paid"].map(|name| place.work(name).display().to_string());
    let first = CODER.replace("FORKHESTRA_COMPLETE", "more");
    let waits =
        format!("if [ ! -e {paid} ]; then touch {paid}; {first} exit; fi; touch {up}; [ -e {go} ] || sleep 3600\n");
    place.write("forge/coder.sh", waits + CODER);
    let running = place.start(&["eval", "run", "evals/suite.json", "--case", "one"]);
    place.wait_for(&place.work("up"));
    let ran = running.end_by("TERM");
    assert!(ran.code(143).stdout.contains("interrupted by SIGTERM; 0 of 1 results are available"), "{}", ran.all());
    assert!(ran.stdout.contains("$0.25"), "what was spent until then counts: {}", ran.stdout);
    place.write("go", "");
    let ran = place.run(&["resume"]);
    assert!(ran.code(0).stdout.contains("the case passed"), "{}", ran.all());
    assert!(ran.stdout.contains("$0.50"), "{}", ran.stdout);
}

#[test]
fn an_interrupt_ends_the_chain_and_leaves_no_copy_of_a_tree() {
    let place = place("Be careful.\n");
    place.write("forge/coder.sh", format!("touch {}; sleep 3600", place.work("up").display()));
    let running = place.start(&["eval", "run", "evals/suite.json"]);
    place.wait_for(&place.work("up"));
    running.end_by("INT").code(130);
    assert_eq!(left(&place), [""; 0]);
}
