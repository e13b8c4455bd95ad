//! What an agent leaves running is stopped, and so is everything when forkhestra is killed.

use super::support::{Place, Running, is_dead, send};
use forkhestra::proc::{Launch, LifelineHandle};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// A daemon that has left the session and keeps the output open.
#[test]
fn a_daemon_that_holds_the_output_neither_delays_the_step_nor_survives_it() {
    let place = Place::new();
    let daemon = place.path("tmp/daemon");
    place.agent("a", &format!("daemon {}\nprint done", daemon.display())).agent("b", "print next");
    let ran = place.run(&["a -> b"]);
    assert_eq!(ran.code(0).stdout, "done\nnext\n");
    assert!(ran.words().contains("left running by the agent, and then stopped: "), "{}", ran.stderr);
    let finished = &place.events(1)[3]["event"];
    let pid: i64 = std::fs::read_to_string(daemon).unwrap().parse().unwrap();
    assert_eq!((&finished["type"], &finished["finished"]["heldOpen"]), (&"attemptFinished".into(), &true.into()));
    assert_eq!(finished["finished"]["leftovers"][0]["pid"], pid);
}

/// forkhestra and its lifeline handle signals and ignore SIGPIPE; an agent must inherit nothing of that.
#[test]
#[cfg(target_os = "linux")]
fn an_agent_starts_with_no_signal_blocked_and_with_its_own_pipe_signal() {
    let place = Place::new();
    let command = r#"["grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status"]"#;
    place.config(&format!(r#"{{"agents": {{"a": {{"command": {command}}}}}, "chains": {{}}}}"#));
    let ran = place.run(&["a"]);
    let mask = |name: &str| {
        let line = ran.stdout.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    };
    let pipe = 1 << (signal_hook::consts::SIGPIPE - 1);
    assert_eq!((mask("SigBlk:"), mask("SigIgn:") & pipe), (0, 0));
}

#[test]
fn a_child_that_lives_on_in_the_agents_group_is_ended_and_named() {
    let place = Place::new();
    let child = place.path("tmp/child");
    place.agent("a", &format!("quiet-child {}\nwait-for {}\nprint done", child.display(), child.display()));
    let ran = place.run(&["a"]);
    assert!(ran.code(0).words().contains("left running by the agent, and then stopped: "), "{}", ran.stderr);
}

/// The lifeline kills the process tree when its host is killed.
#[test]
fn killing_the_runner_at_any_instant_ends_the_whole_tree() {
    for delay in 0..15 {
        let place = Place::new();
        let (child, daemon, up) = (place.path("tmp/child"), place.path("tmp/daemon"), place.path("tmp/up"));
        place.agent(
            "a",
            &format!(
                "ignore TERM\nignore HUP\nchild {}\ndaemon {}\nhang {}",
                child.display(),
                daemon.display(),
                up.display()
            ),
        );
        let running = place.start(&["a"]);
        if delay % 3 == 0 {
            place.wait_for(&up);
        } else {
            std::thread::sleep(std::time::Duration::from_millis(delay * 2));
        }
        running.signal("KILL");
        assert_eq!(running.end().code, None);
    }
}

/// To start the agent, the lifeline would open its input, which nobody writes.
#[test]
fn a_lifeline_whose_host_has_ended_before_it_began_starts_no_agent() {
    let place = Place::new();
    let (lifeline, go, input) = (place.path("tmp/lifeline"), place.path("tmp/go"), place.path("tmp/input"));
    let program = env!("CARGO_BIN_EXE_forkhestra");
    let waits = format!("#!/bin/sh\nwhile [ ! -e {} ]; do sleep 0.01; done\nexec {program} \"$@\"\n", go.display());
    fs::write(&lifeline, waits).unwrap();
    fs::set_permissions(&lifeline, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(Command::new("mkfifo").arg(&input).status().unwrap().success());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let mut handle = LifelineHandle::start(&lifeline, None).unwrap();
    let (program, folder, stdin) = (Path::new("/bin/true"), Path::new("/"), Some(&*input));
    handle.launch(&Launch { program, arguments: Vec::new(), environment: Vec::new(), folder, stdin }).unwrap();
    let pid = handle.pid().to_string();
    drop(handle);
    fs::write(&go, "").unwrap();
    place.until(|| is_dead(&pid));
}

/// The lifeline itself is killed: the attempt fails, and its processes are found by their token.
#[test]
fn killing_the_lifeline_fails_the_attempt_and_leaves_nothing() {
    let place = Place::new();
    let (daemon, up) = (place.path("tmp/daemon"), place.path("tmp/up"));
    place.agent("a", &format!("print begun\ndaemon {}\nhang {}", daemon.display(), up.display()));
    let running = place.start(&["a"]);
    place.wait_for(&up);
    let lifeline = place.processes().into_iter().find(|line| line.contains("__lifeline")).unwrap();
    let pid = lifeline.split(['/', ' ']).nth(2).unwrap().to_string();
    send("KILL", &pid);
    let ran = running.end();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "begun\n"), "{}", ran.stderr);
    assert!(ran.words().contains("killed by signal 9"), "{}", ran.stderr);
}

/// Neither a background process that briefly outlives its agent nor one that floods the output blocks the step.
#[test]
fn a_daemon_that_floods_the_output_does_not_hold_the_step() {
    let place = Place::new();
    place.agent("a", "sh setsid sh -c 'while :; do echo flood; done' & sleep 0.1\nprint done");
    let ran = place.command(&["-q", "a"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(0));
    place.assert_nothing_is_left();
}

/// An agent that does not reap its children leaves no zombies, and a zombie does not count as left running.
#[test]
fn a_zombie_counts_as_dead_and_none_is_left() {
    let place = Place::new();
    place.agent("a", "sh true & exec sleep 0.2");
    let ran = place.run(&["a -> a"]);
    assert!(!ran.code(0).stderr.contains("left running"), "{}", ran.stderr);
}

#[test]
fn the_hidden_verb_explains_itself_by_failing() {
    let place = Place::new();
    place.run(&["__lifeline"]).code(1);
}

/// The agent kills its own lifeline, and one of its children has hidden its environment.
#[test]
fn an_agent_that_kills_its_lifeline_fails_and_leaves_nothing() {
    for _ in 0..10 {
        let place = Place::new();
        let pid = place.path("tmp/pid");
        place.agent(
            "a",
            &format!(
                "sh env -i /bin/sh -c 'echo $$ > {0}; exec sleep 1000' & while [ ! -s {0} ]; do sleep 0.01; done; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat)",
                pid.display()
            ),
        );
        let ran = place.run(&["a"]);
        assert!(ran.code(1).stderr.contains("✗ a: stopped at step 1"), "{}", ran.stderr);
        let events = place.events(1);
        assert_eq!(events.last().unwrap()["event"]["type"], "runFinished");
        let pid = fs::read_to_string(pid).unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "lives on: {stat}");
    }
}

/// The lifeline is stopped or traced: `--timeout`, Ctrl-C and the agent's own exit still take effect.
#[test]
fn a_stopped_lifeline_is_replaced_when_it_does_not_answer() {
    let agent = |words: &str| {
        let place = Place::new();
        let config = serde_json::json!({ "agents": { "a": { "command": ["sh", "-c", words] } }, "chains": {} });
        place.config(&config.to_string());
        place
    };
    let place = agent("kill -STOP $PPID; sleep 1000");
    let ran = place.run(&["a", "--timeout", "200ms"]);
    assert!(ran.code(1).words().contains("its lifeline did not answer"), "{}", ran.stderr);
    let place = agent("kill -STOP $PPID; echo up; exit 0");
    assert!(place.run(&["a"]).code(1).words().contains("its lifeline did not answer"));
    let place = agent("kill -STOP $PPID; touch up; sleep 1000");
    let running = place.start(&["a"]);
    place.wait_for(&place.work("up"));
    running.signal("INT");
    assert_eq!(running.end().code, Some(130));
}

fn lifeline_of(place: &Place) -> String {
    let lifeline = place.processes().into_iter().find(|line| line.contains("__lifeline")).unwrap();
    lifeline.split(['/', ' ']).nth(2).unwrap().to_string()
}

/// As the kernel does when memory is low, or `pkill -9 forkhestra`.
#[test]
fn a_run_begins_only_when_what_a_run_left_that_was_killed_with_its_lifeline_is_dead() {
    for stopped in [false, true] {
        let place = Place::new();
        let (daemon, up) = (place.path("tmp/daemon"), place.path("tmp/up"));
        place.agent("a", &format!("daemon {}\nhang {}", daemon.display(), up.display()));
        place.agent(
            "b",
            &format!(
                "sh grep -qs '^State:.[RSDT]' /proc/$(cat {})/status && echo it lives\nprint done",
                daemon.display()
            ),
        );
        let running = place.start(&["a"]);
        place.wait_for(&up);
        let (lifeline, host) = (lifeline_of(&place), running.child.id().to_string());
        if stopped {
            // The stopped lifeline does not react to the death of its host, and holds the lock.
            send("STOP", &lifeline);
            send("KILL", &host);
        } else {
            // Neither has time to notice the death of the other.
            send("STOP", &format!("{lifeline} {host}"));
            send("KILL", &format!("{lifeline} {host}"));
        }
        place.until(|| is_dead(&host));
        let ran = place.run(&["b"]);
        assert_eq!(ran.code(0).stdout, "done\n", "{}", ran.stderr);
        assert!(
            ran.stderr.contains("run 1 was killed and had left these processes running, now stopped: "),
            "{}",
            ran.stderr
        );
        assert_eq!(running.end().code, None);
    }
}

/// Its children may live until the next run, but the agent itself does nothing more.
#[test]
fn an_agent_dies_with_its_lifeline_although_nobody_is_left_to_end_it() {
    let place = Place::new();
    let up = place.path("tmp/up");
    place.config(
        r#"{"agents": {"a": {"command": ["sh", "-c", "touch $UP; while :; do sleep 0.01; done"]}}, "chains": {}}"#,
    );
    let mut command = place.command(&["a"]);
    let running = Running::of(command.env("UP", &up).spawn().unwrap(), &place);
    place.wait_for(&up);
    send("KILL", &format!("{} {}", lifeline_of(&place), running.child.id()));
    // Also asserts that no process is left.
    assert_eq!(running.end().code, None);
}

/// As in a container that shares the directory: we do not see its processes, and do not wait for it unless asked to.
#[test]
fn a_lock_whose_process_we_do_not_see_is_refused_and_not_waited_for() {
    let place = Place::new();
    place.agent("b", "").write(".forkhestra/lock", "a, process 4194303, since then");
    let theirs = fs::File::open(place.work(".forkhestra/lock")).unwrap();
    theirs.lock().unwrap();
    let ran = place.run(&["b"]);
    assert!(ran.code(2).words().contains("another run is working in"), "{}", ran.stderr);
    assert_eq!(place.calls("b"), 0);
}

/// The lifeline is stopped while it starts, and its host dies. At that point it is a copy of the host, and holds its
/// lock.
#[test]
fn a_copy_of_a_dead_host_that_holds_its_lock_is_ended_by_the_next_run() {
    let place = Place::new();
    place.agent("b", "print done").write(".forkhestra/lock", "a, process 4194303, since then");
    let lock = fs::File::open(place.work(".forkhestra/lock")).unwrap();
    lock.lock().unwrap();
    let mut command = place.command(&["--help"]);
    // It blocks on its output, because the pipe is full.
    let (reader, mut writer) = std::io::pipe().unwrap();
    let room = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
    writer.write_all(&vec![b'.'; room]).unwrap();
    let copy = Running::of(command.stdin(lock).stdout(writer).spawn().unwrap(), &place);
    // It held the lock and the pipe as well.
    drop(command);
    assert_eq!(place.run(&["b"]).code(0).stdout, "done\n");
    drop(reader);
    assert_eq!(copy.end().code, None);
}

/// As `sudo` does in an agent. Only root can make a program setuid, and the lifeline tries for ten seconds, so only
/// `.ci/run` runs this test.
#[test]
#[ignore = "needs root"]
fn a_process_that_became_another_users_is_named_as_still_running() {
    let place = Place::new();
    let (program, root) = (place.path("bin/forkhestra"), place.path("bin/root"));
    fs::copy(assert_cmd::cargo::cargo_bin!("forkhestra"), &program).unwrap();
    place.config(
        r#"{"agents": {"a": {"command": ["sh", "-c", "$ROOT --as-root $UP & while [ ! -e $UP ]; do sleep 0.01; done"]}}, "chains": {}}"#,
    );
    let owned = Command::new("chown").args(["-R", "12345:12345"]).arg(place.path("")).status().unwrap();
    assert!(owned.success());
    fs::copy(env!("CARGO_BIN_EXE_fake-agent"), &root).unwrap();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o4755)).unwrap();
    let ours = place.command(&["a"]);
    let mut command = Command::new(program);
    command.args(ours.get_args()).env_clear().current_dir(place.path("project")).uid(12_345).gid(12_345);
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = command.env("UP", place.path("tmp/up")).env("ROOT", &root).output().unwrap();
    let words = String::from_utf8(ran.stderr).unwrap();
    let (_, left) = words.split_once("could not be stopped: root (pid ").expect(&words);
    let pid: String = left.chars().take_while(char::is_ascii_digit).collect();
    assert!(fs::exists(format!("/proc/{pid}")).unwrap(), "{words}");
    assert_eq!(ran.status.code(), Some(0), "{words}");
    send("KILL", &pid);
    place.assert_nothing_is_left();
}

#[test]
fn all_agents_of_a_run_have_one_lifeline() {
    let place = Place::new();
    place.agent("a", "sh cut -d' ' -f4 /proc/$PPID/stat >> lifelines\nprint again");
    place.run(&["a:3"]).code(1);
    let lifelines = fs::read_to_string(place.work("lifelines")).unwrap();
    let lifelines: Vec<&str> = lifelines.lines().collect();
    assert_eq!(lifelines.len(), 3);
    assert!(lifelines.iter().all(|pid| *pid == lifelines[0]), "{lifelines:?}");
}

#[test]
fn a_lifeline_that_is_killed_or_stopped_between_two_attempts_is_replaced() {
    for signal in ["KILL", "STOP"] {
        let place = Place::new();
        let down = r#"{"type":"result","result":"API Error: 500 overheated","is_error":true,"api_error_status":500}"#;
        let done = r#"{"type":"result","result":"FORKHESTRA_COMPLETE"}"#;
        place.agent("claude", &format!("print {down}\nexit 1\nnext\nprint {done}"));
        place.config(r#"{"agents": {"a": {"backend": "claude", "defaultPrompt": "p"}}, "chains": {}}"#);
        let running = place.start(&["a:1"]);
        place.wait_for_event(1, "waitStarted");
        send(signal, &lifeline_of(&place));
        let ran = running.end();
        assert_eq!(ran.code(0).words().matches("lifeline").count(), 0, "{}", ran.stderr);
        assert_eq!(place.calls("claude"), 2);
    }
}
