//! The command line: what is refused before anything runs, and with which messages.

use super::support::Place;

fn place() -> Place {
    let place = Place::new();
    place.agent("a", "print from a").agent("b", "print from b");
    place.config(r#"{"chains": {"full": {"steps": [{"agent": "a"}]}, "vars": {"prompt": "${FEATURE}", "steps": [{"agent": "a"}]}}}"#);
    place
}

/// All of these are refused, and nothing runs.
#[test]
fn wrong_command_lines_are_refused_with_what_to_do() {
    let place = place();
    let lines: [&[&str]; 38] = [
        &["a", "--dryrun"],
        &["-n", "a"],
        &["--promt", "hello", "a"],
        &["a", "-p"],
        &["a", "-p", "--dry-run"],
        &["a", "-p", "x", "-p", "y"],
        &["a", "-p", "x", "--prompt-file", "f"],
        &["a", "--chain", "full"],
        &["--chain", "ful"],
        &["--chain", ""],
        &["a -"],
        &["a", "->", "b"],
        &["a", "b"],
        &["FEATURE=x"],
        &["--chain", "vars", "FEATURE=x", "FEATURE=y"],
        &["a", "--json", "--output", "json"],
        &["a", "--colour"],
        &["a", "--permissions", "all"],
        &["task", "shwo"],
        &["task", "add"],
        &["show"],
        &["runs", "show", "x"],
        &["runs", "events", "99999999999999999999"],
        &["resume", "--more", "0"],
        &["eval", "run", "s.json", "-j", "0"],
        &["eval", "improve", "s.json", "--max-tokens", "1"],
        &["eval", "improve", "s.json", "--holdout", "2"],
        &["-C", "runs", "dispute", "resolve", "1", "nobody"],
        &["dispute", "resolve"],
        &["dispute", "--reason", "x", "list"],
        &["runs", "prune"],
        &["resume", "--notes", "x"],
        &["list", "x"],
        &["runs", "log", "--raw", "--stderr"],
        &["list", "--json=yes"],
        &["task", "-q"],
        &["verify", "bild"],
        &["a", "--backend", "gpt"],
    ];
    let mut all = String::new();
    for line in lines {
        let ran = place.run(line);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{line:?}");
        all.extend(["$ forkhestra ", &line.join(" "), "\n", &ran.stderr, "\n"]);
    }
    assert_eq!(place.calls("a"), 0);
    assert!(!place.work(".forkhestra").exists());
    insta::assert_snapshot!(all);
}

/// A prompt that begins with `-` is still a prompt.
#[test]
fn a_prompt_that_begins_with_a_dash_reaches_the_agent() {
    let place = place();
    place.run(&["a", "-p", "-x --help"]).code(0);
    place.run(&["a", "--prompt=--dry-run please"]).code(0);
    place.run(&["a", "--prompt", "- a list"]).code(0);
    assert!(place.call("a", 1).contains("arg -x --help\n") && place.call("a", 2).contains("arg --dry-run please\n"));
    assert!(place.call("a", 3).contains("arg - a list\n"));
}

#[test]
fn a_verb_wins_over_an_agent_of_its_name_and_run_reaches_the_agent() {
    let place = place();
    place.agent("list", "print I am an agent");
    assert!(place.run(&["list"]).code(0).stdout.contains("Chains"));
    assert_eq!(place.run(&["run", "list"]).code(0).stdout, "I am an agent\n");
}

#[test]
fn variables_stand_before_or_after_the_chain() {
    let place = place();
    place.run(&["FEATURE=auth", "--chain", "vars"]).code(0);
    place.run(&["--chain", "vars", "FEATURE=a=b c"]).code(0);
    assert!(place.call("a", 1).contains("arg auth\n") && place.call("a", 2).contains("arg a=b c\n"));
    let ran = place.run(&["--chain", "vars", "FEATURE=x", "FEATUER=y"]);
    assert!(ran.code(0).words().contains("the variable `FEATUER` is not used"), "{}", ran.stderr);
}

#[test]
fn what_is_missing_is_named_in_words_that_can_be_typed() {
    let place = Place::new();
    for (typed, expected) in [
        (
            &["work", "--hub", "x", "--all"][..],
            "`--next` is missing help: forkhestra work --hub <DIR|URL> --next --all",
        ),
        (&["work"], "the work is not named help: name it: --hub URL --next, --hub URL --unit NAME, or --bundle FILE"),
        (&["tell"], "`MESSAGE` is missing help: forkhestra tell [RUN] <MESSAGE>"),
        (&["reject"], "verdict/outside"),
        (&["run", "verify", "1A=2"], "`1A` is not a valid name of a variable help: it must not start with a digit"),
        (&["--jobs", "3", "verify"], "`task run` and `eval run` have --jobs"),
        (&["verify -> coder:x", "-p", "x"], "`x` is not a count; a count is a whole number: `coder:3`"),
        (&["run", "verify", "--limit", "foo=1"], "there is no limit `foo`"),
        (&["run", "verify", "--limit", "tokens=x"], "for example --limit tokens=1000000"),
        (&["run", "verify", "--limit", "wait=0"], "must be more than zero"),
        (&["task", "run", "-j", "2", "--limit-each", "attempts=x"], "for example --limit-each attempts=50"),
        (&["eval", "run", "."], "cannot read the suite .: it is a directory"),
    ] {
        let words = place.run(typed).code(2).words();
        assert!(words.contains(expected), "{typed:?}: {words}");
    }
}

#[test]
fn help_and_version_go_to_standard_output() {
    let place = place();
    let help = place.run(&["--help"]);
    insta::assert_snapshot!(help.code(0).stdout);
    assert_eq!(place.run(&[]).code(0).stdout, help.stdout, "nothing at all is a question");
    assert_eq!(place.run(&["--version"]).code(0).stdout, format!("forkhestra {}\n", env!("CARGO_PKG_VERSION")));
    insta::assert_snapshot!(place.run(&["run", "--help"]).code(0).stdout);
}

#[test]
fn a_reader_of_help_that_goes_away_is_no_fault() {
    let place = place();
    let ran = place.command(&["list"]).stdout(closed_pipe()).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Returns a pipe that nobody reads.
pub(crate) fn closed_pipe() -> std::process::Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// The help of a command and of all commands below it.
fn pages(place: &Place, words: &[&str], found: &mut Vec<(String, String)>) {
    let help = place.run(&[words, &["--help"]].concat()).code(0).stdout.clone();
    let below = help.split("\nCommands:\n").nth(1).unwrap_or_default().split("\n\n").next().unwrap_or_default();
    let names = below.lines().filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    for name in names.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help") {
        pages(place, &[words, &[name]].concat(), found);
    }
    found.push((words.join(" "), help));
}

#[test]
fn help_fits_into_80_columns_and_no_example_is_broken() {
    let mut place = Place::new();
    place.set("COLUMNS", "80");
    let mut found = Vec::new();
    pages(&place, &[], &mut found);
    assert!(found.len() > 40, "{}", found.len());
    for (words, help) in found {
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{words}: {line}");
        }
        let examples = help.split("\nExamples:\n").nth(1).unwrap_or_default();
        for line in examples.lines().take_while(|line| !line.is_empty()) {
            assert!(line.starts_with("  forkhestra "), "{words}: {line}");
        }
    }
}
