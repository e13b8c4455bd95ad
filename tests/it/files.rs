//! A checkout or an agent that tries to make forkhestra write outside of `.forkhestra/`.

use super::support::Place;
use std::fs;
use std::os::unix::fs::symlink;

/// Returns a place whose `.forkhestra/NAME` is a link to the outside, and the target of the link.
fn linked(name: &str, agent: &str) -> (Place, std::path::PathBuf) {
    let place = Place::new();
    let outside = place.path("tmp/outside");
    fs::write(&outside, "theirs").unwrap();
    place.write(".forkhestra/runs.txt", "").agent("a", agent);
    symlink(&outside, place.work(".forkhestra").join(name)).unwrap();
    (place, outside)
}

#[test]
fn small_files_of_ours_replace_a_link_and_nothing_is_written_through_it() {
    for (name, agent) in [(".gitignore", "print x"), ("tampered.json", "sh echo >> forge/chains.json")] {
        let (place, outside) = linked(name, agent);
        place.config(r#"{"checks": {"t": {"run": "true"}}, "chains": {}}"#);
        let ran = place.run(&["a -> t"]);
        assert_eq!(fs::read(outside).unwrap(), b"theirs", "{name}: {}", ran.stderr);
        let ours = fs::symlink_metadata(place.work(".forkhestra").join(name)).unwrap();
        assert!(ours.is_file(), "{name}: {}", ran.stderr);
    }
}

#[test]
fn a_database_a_lock_or_transcripts_that_lead_elsewhere_are_refused() {
    for name in ["state.db", "lock", "runs"] {
        let (place, outside) = linked(name, "print x");
        let ran = place.command(&["a"]).output().unwrap();
        assert_ne!(ran.status.code(), Some(0), "{name}");
        let words = place.plain(&ran.stderr);
        assert!(words.contains(&format!(".forkhestra/{name} is a link")), "{words}");
        assert_eq!((fs::read(outside).unwrap(), place.calls("a")), (b"theirs".to_vec(), 0), "{name}");
    }
    let place = Place::new();
    place.agent("a", "print x").write("elsewhere/x", "");
    symlink("elsewhere", place.work(".forkhestra")).unwrap();
    assert!(place.run(&["a"]).code(2).words().contains(".forkhestra is a link"));
    assert_eq!(fs::read_dir(place.work("elsewhere")).unwrap().count(), 1);
}

#[test]
fn transcripts_that_an_agent_swaps_for_a_link_end_the_run() {
    let place = Place::new();
    place
        .write("elsewhere/x", "")
        .agent("a", "sh mv .forkhestra/runs .forkhestra/r; ln -s ../elsewhere .forkhestra/runs")
        .agent("b", "");
    let ran = place.run(&["a -> b"]);
    assert!(ran.code(1).words().contains(".forkhestra/runs is a link"), "{}", ran.stderr);
    assert_eq!((fs::read_dir(place.work("elsewhere")).unwrap().count(), place.calls("b")), (1, 0));
}

/// `git clean -fdx` does this, and so do agents.
#[test]
fn a_journal_or_a_lock_that_an_agent_removes_ends_the_run_and_is_named() {
    for name in ["", "/state.db", "/lock"] {
        let place = Place::new();
        place.agent("a", &format!("sh rm -rf .forkhestra{name}")).agent("b", "");
        let ran = place.run(&["a -> b"]);
        let named = if name.is_empty() { "/state.db" } else { name };
        let words = format!(".forkhestra{named} was removed during the run");
        assert!(ran.code(1).words().contains(&words), "{}", ran.stderr);
        assert_eq!(place.calls("b"), 0);
    }
}

/// A full disk can leave an empty file.
#[test]
fn an_empty_gitignore_of_ours_is_made_whole_before_anything_is_written() {
    let place = Place::new();
    place.write(".forkhestra/.gitignore", "").agent("a", "print x");
    place.run(&["a"]).code(0);
    assert_eq!(place.read(".forkhestra/.gitignore"), "*\n");
    place.write(".forkhestra/.gitignore", "state.db*\n");
    place.run(&["a"]).code(0);
    assert_eq!(place.read(".forkhestra/.gitignore"), "state.db*\n", "a person's own words stay");
}

/// Whatever replaces the transcripts, forkhestra neither waits for it nor reads it endlessly.
#[test]
fn an_agent_that_replaces_its_transcripts_by_pipes_or_devices_holds_nobody_up() {
    for (file, with) in
        [("prompt.md", "mkfifo"), ("final.md", "mkfifo"), ("stdout.log", "mkfifo"), ("prompt.md", "ln -s /dev/zero")]
    {
        let place = Place::new();
        place.agent("a", &format!("sh cd $(dirname $FORKHESTRA_RESULT); rm -f {file}; {with} {file}\nexit 1"));
        place.run(&["a:2", "-p", "x", "-q"]).code(1);
        place.run(&["runs", "show", "1"]).code(0);
        place.command(&["runs", "log", "1", "1"]).output().unwrap();
    }
}

#[test]
fn a_folder_whose_path_is_not_utf8_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let folder = place.path("tmp").join(std::ffi::OsStr::from_bytes(b"r\xff"));
    fs::create_dir_all(folder.join("forge")).unwrap();
    fs::write(folder.join("forge/chains.json"), r#"{ "agents": { "a": { "command": "true" } }, "chains": {} }"#)
        .unwrap();
    let output = place.command(&["a"]).current_dir(&folder).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(place.plain(&output.stderr).contains("the path of this directory is not UTF-8"));
    assert!(!folder.join(".forkhestra").exists());
}
