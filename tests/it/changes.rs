//! `diff` and `runs restore`: what each attempt changed.

use super::support::{Place, git};
use serde_json::Value;
use std::fs;

/// A coder that writes in two attempts, with a check between them that changes nothing.
fn two_rounds() -> Place {
    let place = Place::new();
    place.write("old.txt", "one\ntwo\n").write(".gitignore", "ignored\n");
    git(&place, &["init", "-q"]);
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "begin"]);
    place.write("mine.txt", "not committed\n");
    place.agent(
        "c",
        "sh printf 'one\\nthree\\n' > old.txt; echo x > ignored\nnext\nsh printf 'new\\n' > new.txt; rm mine.txt; touch good",
    );
    place.config(r#"{"checks": {"t": "test -f good"}, "chains": {}}"#);
    place
}

#[test]
fn diff_shows_what_a_run_an_attempt_and_a_range_of_attempts_changed() {
    let place = two_rounds();
    let before = git(&place, &["status", "--porcelain"]);
    let ran = place.run(&["(c -> t):3"]);
    let line = "4 files changed (+2 -2): good, mine.txt, new.txt, …; to see it: forkhestra diff 1";
    assert!(ran.code(0).stderr.contains(line), "{}", ran.stderr);
    let diff = |words: &[&str]| {
        let words: Vec<&str> = std::iter::once("diff").chain(words.iter().copied()).collect();
        place.run(&words).code(0).stdout.clone()
    };
    insta::assert_snapshot!(diff(&["--stat"]), @r"
    A good      +0 -0
    D mine.txt  +0 -1
    A new.txt   +1 -0
    M old.txt   +1 -1
    4 files changed (+2 -2)
    ");
    insta::assert_snapshot!(diff(&["1.1.1"]), @r"
    diff --git a/old.txt b/old.txt
    index 814f4a4..4c7442b 100644
    --- a/old.txt
    +++ b/old.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +three
    ");
    let shown = place.run(&["runs", "show"]);
    assert!(
        shown.stdout.contains("changes     4 files changed (+2 -2): good, mine.txt, new.txt, …"),
        "{}",
        shown.stdout
    );
    assert_eq!(diff(&["1.1.2", "--stat"]), diff(&["1.1.1..1.2", "--stat"]));
    assert_eq!(diff(&["1..1.1"]), diff(&["1.1.1"]));
    assert_eq!(diff(&["1.2.1"]), "", "the check changed nothing");
    let json: Value = serde_json::from_str(&diff(&["1.1", "--json"])).unwrap();
    let files: Vec<String> =
        json["files"].as_array().unwrap().iter().map(|file| format!("{} {}", file["status"], file["path"])).collect();
    assert_eq!(files, [r#""A" "good""#, r#""D" "mine.txt""#, r#""A" "new.txt""#]);
    // The patch takes the work back, and what was not committed comes back as well.
    place.write("back.patch", diff(&["1"]));
    git(&place, &["apply", "-R", "back.patch"]);
    fs::remove_file(place.work("back.patch")).unwrap();
    assert_eq!(git(&place, &["status", "--porcelain"]), before);
}

#[test]
fn diff_for_a_program_has_the_bytes_of_the_files_whatever_their_encoding() {
    let place = Place::new();
    git(&place, &["init", "-q"]);
    git(&place, &["commit", "-qm", "begin", "--allow-empty"]);
    place.agent("a", "sh printf 'caf\\351\\n\\000\\001\\n' > latin.txt");
    place.run(&["a"]).code(0);
    let content = fs::read(place.work("latin.txt")).unwrap();
    assert_eq!(content, b"caf\xe9\n\x00\x01\n");
    let patch = place.command(&["diff"]).output().unwrap().stdout;
    fs::write(place.work("patch"), patch).unwrap();
    fs::remove_file(place.work("latin.txt")).unwrap();
    git(&place, &["apply", "patch"]);
    assert_eq!(fs::read(place.work("latin.txt")).unwrap(), content);
}

#[test]
fn restore_writes_the_files_of_an_attempt_beside_the_users_own() {
    let place = two_rounds();
    place.run(&["(c -> t):3"]).code(0);
    let restored = |words: &[&str], to: &str| {
        let to = place.path(to);
        let ran = place.run(&[&["runs", "restore"], words, &["--to", &to.display().to_string()]].concat());
        assert_eq!(place.real(&ran.code(0).stdout), format!("{}\n", to.display()));
        let mut names: Vec<String> =
            fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(restored(&["1.1.1"], "first"), ".gitignore forge mine.txt old.txt");
    assert_eq!(fs::read_to_string(place.path("first/old.txt")).unwrap(), "one\nthree\n");
    assert_eq!(restored(&["1"], "last"), ".gitignore forge good new.txt old.txt");
    assert_eq!(restored(&["1", "--before"], "begin"), ".gitignore forge mine.txt old.txt");
    assert_eq!(fs::read_to_string(place.path("begin/old.txt")).unwrap(), "one\ntwo\n");
    let to = place.path("first").display().to_string();
    let refused = place.run(&["runs", "restore", "1", "--to", &to]);
    assert!(refused.code(2).words().contains("the directory is not empty"), "{}", refused.stderr);
}

#[test]
fn diff_of_an_attempt_without_a_snapshot_says_why() {
    let place = Place::new();
    place.agent("a", "sh date > x");
    place.run(&["a"]).code(0);
    let outside = place.run(&["diff"]);
    insta::assert_snapshot!(outside.code(2).stderr, @r"
    changes/no-snapshot

      × there is no snapshot of the files for run 1: this is not a git repository;
      │ git takes the snapshots
      help: `git diff` shows what is not committed
    ");
    assert!(place.run(&["diff", "1.4"]).code(2).words().contains("run 1 has no step 4"));
    assert!(place.run(&["runs", "restore", "1.1", "--to", "x"]).code(2).words().contains("no snapshot"));
}

#[test]
fn what_a_person_changes_before_a_resume_is_no_change_of_an_attempt() {
    let place = two_rounds();
    place.agent("d", "sh echo 1 > d1\nexit 1\nnext\nsh echo 2 > d2");
    place.run(&["d"]).code(1);
    place.write("person.txt", "by hand\n");
    place.run(&["resume"]).code(0);
    let stat = |what: &str| place.run(&["diff", what, "--stat"]).code(0).stdout.clone();
    assert!(stat("1.1.1").starts_with("A d1"), "{}", stat("1.1.1"));
    assert!(stat("1.1.2").starts_with("A d2") && !stat("1.1.2").contains("person.txt"), "{}", stat("1.1.2"));
    assert!(stat("1").contains("person.txt"));
}

/// Returns the sizes of the objects in the store, in bytes.
fn stored(place: &Place) -> Vec<u64> {
    let objects = place.work(".forkhestra/snapshots/objects");
    let folders = fs::read_dir(objects).unwrap().flatten().filter(|entry| entry.file_name() != "info");
    folders
        .flat_map(|entry| fs::read_dir(entry.path()).unwrap().flatten())
        .map(|it| it.metadata().unwrap().len())
        .collect()
}

#[test]
fn prune_removes_the_snapshots_of_the_runs_that_it_removes_and_no_others() {
    let place = two_rounds();
    place.run(&["-q", "(c -> t):3"]).code(0);
    place.agent("d", "sh printf 'the word is hunter2' > secret.txt\nnext\nsh rm secret.txt");
    place.run(&["-q", "d"]).code(0);
    place.run(&["-q", "d"]).code(0);
    let kept = place.run(&["diff", "1"]).code(0).stdout.clone();
    let before = stored(&place).len();
    place.sql("UPDATE runs SET ended = '2020-01-01T00:00:00Z' WHERE id = 3");
    let lock = fs::File::open(place.work(".forkhestra/lock")).unwrap();
    lock.lock().unwrap();
    let pruned = place.run(&["runs", "prune", "--older-than", "30d", "--yes"]);
    assert!(pruned.code(0).words().contains("a run is in progress here; prune again when it has ended"));
    assert_eq!(stored(&place).len(), before);
    lock.unlock().unwrap();
    place.run(&["runs", "prune", "--older-than", "30d", "--yes"]).code(0);
    assert!(stored(&place).len() < before, "the same command once more, without a run to delete");
    place.sql("UPDATE runs SET ended = '2020-01-01T00:00:00Z' WHERE id > 1");
    let pruned = place.run(&["runs", "prune", "--older-than", "30d", "--yes"]);
    assert_eq!(pruned.code(0).words(), "");
    assert!(stored(&place).len() < before, "{before}");
    assert_eq!(place.run(&["diff", "1"]).code(0).stdout, kept);
    place.write("ignored", "the word is hunter2");
    let word = git(&place, &["hash-object", "ignored"]);
    assert!(!place.work(".forkhestra/snapshots/objects").join(&word[..2]).join(word[2..].trim()).exists());
    // Without any run nothing is left, and the next run takes snapshots again.
    place.sql("UPDATE runs SET ended = '2020-01-01T00:00:00Z'");
    place.run(&["runs", "prune", "--older-than", "30d", "--yes"]).code(0);
    assert_eq!(stored(&place), Vec::<u64>::new());
    place.agent("e", "sh echo more >> old.txt");
    place.run(&["-q", "e"]).code(0);
    assert!(place.run(&["diff"]).code(0).stdout.contains("+more"));
}

#[test]
fn the_history_of_a_project_that_was_moved_still_shows_what_changed() {
    let place = two_rounds();
    place.run(&["-q", "(c -> t):3"]).code(0);
    let moved = place.path("moved");
    fs::rename(place.work(""), &moved).unwrap();
    fs::create_dir(place.work("")).unwrap();
    let shown = place.run(&["-C", moved.to_str().unwrap(), "runs", "show"]);
    assert!(shown.code(0).stdout.contains("4 files changed (+2 -2)"), "{}", shown.stdout);
}

/// The repository that the store borrows from can lose objects, too.
#[test]
fn prune_removes_snapshots_although_one_that_is_kept_is_damaged() {
    let place = two_rounds();
    place.agent("d", "sh printf gone > a.txt\nnext\nsh printf lost > b.txt");
    place.run(&["-q", "d"]).code(0);
    place.run(&["-q", "d"]).code(0);
    place.write("ignored", "lost");
    let word = git(&place, &["hash-object", "ignored"]);
    fs::remove_file(place.work(".forkhestra/snapshots/objects").join(&word[..2]).join(word[2..].trim())).unwrap();
    place.sql("UPDATE runs SET ended = '2020-01-01T00:00:00Z' WHERE id = 1");
    let before = stored(&place).len();
    let pruned = place.run(&["runs", "prune", "--older-than", "30d", "--yes"]);
    let words = "! 1 snapshot of other runs could not be read any more, and can no longer be compared or restored";
    assert!(pruned.code(0).words().contains(words), "{}", pruned.words());
    assert!(stored(&place).len() < before);
    // What is gone is not reported again.
    let pruned = place.run(&["runs", "prune", "--older-than", "30d", "--yes"]);
    assert_eq!(pruned.code(0).words(), "");
}

/// git keeps what it fetches as a pack if it is more than a hundred objects.
#[test]
fn prune_removes_the_snapshots_of_a_large_project_too() {
    let place = two_rounds();
    for number in 0..150 {
        place.write(&format!("many/{number}.txt"), format!("{number}\n").as_str());
    }
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "many"]);
    place.run(&["-q", "(c -> t):3"]).code(0);
    assert!(!stored(&place).is_empty());
    place.sql("UPDATE runs SET ended = '2020-01-01T00:00:00Z'");
    place.run(&["runs", "prune", "--older-than", "30d", "--yes"]).code(0);
    assert_eq!(stored(&place), Vec::<u64>::new());
}
