//! `wrap` and `sandbox`: what isolates an agent from the machine. The tests with the real bubblewrap need it and user
//! namespaces. CI runs them: `cargo nextest run --run-ignored only sandbox::`.

use super::support::{Place, send};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

/// Writes a config whose agents are shell commands.
fn config(place: &Place, keys: &str, agents: &[(&str, &str)]) {
    let agents: Vec<String> = agents
        .iter()
        .map(|(name, line)| format!("{}: {{ \"command\": [\"sh\", \"-c\", {}] }}", quoted(name), quoted(line)))
        .collect();
    place.config(&format!("{{ {keys} \"agents\": {{ {} }}, \"chains\": {{}} }}", agents.join(", ")));
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn own_config(place: &Place, text: &str) {
    fs::create_dir_all(place.path("home/.config/forkhestra")).unwrap();
    fs::write(place.path("home/.config/forkhestra/chains.json"), text).unwrap();
}

/// Makes a place with a `bwrap` that is found but never run.
fn with_a_bubblewrap() -> Place {
    let place = Place::new();
    let program = place.path("bin/bwrap");
    fs::write(&program, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    place
}

#[test]
fn wrap_stands_before_the_command_of_agents_and_checks() {
    let place = Place::new();
    place.config(
        r#"{ "wrap": ["env", "BY=config"],
             "agents": { "w": { "command": ["sh", "-c", "echo by $BY"] },
                         "free": { "command": ["sh", "-c", "echo by $BY"], "wrap": [] },
                         "own": { "command": ["sh", "-c", "echo by $BY"], "wrap": ["env", "BY=agent"] } },
             "checks": { "c": "echo by $BY" }, "chains": {} }"#,
    );
    assert_eq!(place.run(&["w -> c -> free -> own"]).code(0).stdout, "by config\nby config\nby\nby agent\n");
}

#[test]
fn a_project_adds_to_the_wrap_of_the_users_own_config() {
    let place = Place::new();
    own_config(&place, r#"{ "wrap": ["env", "OUTER=1"], "chains": {} }"#);
    config(&place, r#""wrap": ["env", "INNER=2"],"#, &[("w", "echo $OUTER $INNER")]);
    assert_eq!(place.run(&["w"]).code(0).stdout, "1 2\n");
    config(&place, r#""wrap": [],"#, &[("w", "echo $OUTER $INNER")]);
    assert_eq!(place.run(&["w"]).code(0).stdout, "1\n");
}

#[test]
fn a_dry_run_shows_wrap_and_sandbox() {
    let place = with_a_bubblewrap();
    place.config(
        r#"{ "sandbox": "project", "writable": ["~/.cache"],
             "agents": { "w": { "command": ["nice"], "wrap": ["nice", "-n", "7"] }, "o": { "command": ["nice"], "sandbox": "offline" } },
             "chains": {} }"#,
    );
    let ran = place.run(&["w -> o", "--dry-run"]);
    let rows: Vec<&str> =
        ran.code(0).stdout.lines().filter(|line| line.contains("wrap") || line.contains("sandbox")).collect();
    insta::assert_snapshot!(rows.join("\n"), @r"
    wrap         /usr/bin/nice -n 7 $PLACE/bin/bwrap … (all of it with -v)
    sandbox      project (bubblewrap): can write to the project, a private /tmp, $PLACE/home/.cache; the network is open
    wrap         $PLACE/bin/bwrap … (all of it with -v)
    sandbox      offline (bubblewrap): can write to the project, a private /tmp, $PLACE/home/.cache; no network
    ");
    let plan: serde_json::Value =
        serde_json::from_str(&place.run(&["w", "--dry-run", "--json"]).code(0).stdout).unwrap();
    let isolation = &plan["steps"][0]["isolation"];
    assert_eq!((&isolation["sandbox"], &isolation["program"]), (&"project".into(), &"/usr/bin/nice".into()));
    let words: Vec<&str> = isolation["args"].as_array().unwrap().iter().filter_map(|word| word.as_str()).collect();
    // With a checkout in /tmp there is one more, for our own program.
    let binds = words
        .join(" ")
        .replace(" --", "\n--")
        .lines()
        .filter(|line| line.contains("$PLACE/"))
        .collect::<Vec<_>>()
        .join("\n");
    insta::assert_snapshot!(binds, @r"
    -n 7 $PLACE/bin/bwrap
    --bind $PLACE/project $PLACE/project
    --ro-bind-try $PLACE/project/forge $PLACE/project/forge
    --ro-bind-try $PLACE/project/.forkhestra $PLACE/project/.forkhestra
    --bind-try $PLACE/home/.cache $PLACE/home/.cache
    --chdir $PLACE/project
    ");
}

#[test]
fn a_sandbox_without_bubblewrap_is_refused_before_anything_is_started() {
    let mut place = Place::new();
    config(&place, r#""sandbox": "project","#, &[("w", "true")]);
    let bin = place.path("bin");
    std::os::unix::fs::symlink("/bin/sh", bin.join("sh")).unwrap();
    place.set("PATH", bin.to_str().unwrap());
    let ran = place.run(&["w"]);
    assert!(ran.code(2).words().contains("the sandbox `project` needs bubblewrap"), "{}", ran.stderr);
    assert!(!place.work(".forkhestra").exists());
}

#[test]
fn a_sandbox_that_the_machine_refuses_is_no_failed_agent() {
    let place = with_a_bubblewrap();
    config(&place, r#""sandbox": "project","#, &[("w", "true")]);
    let ran = place.run(&["w"]);
    assert!(ran.code(2).words().contains("this machine cannot start the sandbox"), "{}", ran.stderr);
    assert!(!place.work(".forkhestra").exists());
}

#[test]
fn a_project_neither_lifts_nor_opens_a_sandbox_of_the_users_own_config() {
    let place = with_a_bubblewrap();
    own_config(
        &place,
        r#"{ "sandbox": "offline", "agents": { "mine": { "command": "true", "sandbox": "none" } }, "chains": {} }"#,
    );
    let hook = r#""hooks": { "onFinish": "true" },"#;
    let wrap = r#""wrap": ["sh", "-c", "evil"],"#;
    for keys in [r#""sandbox": "none","#, r#""sandbox": "project","#, r#""writable": ["~"],"#, hook, wrap] {
        config(&place, keys, &[("w", "true")]);
        let ran = place.run(&["w", "--dry-run"]);
        assert!(ran.code(2).words().contains("your own config requires"), "{keys}: {}", ran.stderr);
    }
    config(&place, "", &[("w", "true")]);
    assert!(place.run(&["w", "--dry-run"]).code(0).stdout.contains("offline (bubblewrap)"));
    // The user's own entry may do so, unless the project decides what it runs.
    assert!(!place.run(&["mine", "--dry-run"]).code(0).stdout.contains("bubblewrap"));
    config(&place, "", &[("mine", "evil")]);
    assert!(place.run(&["mine", "--dry-run"]).code(2).words().contains("your own config requires"));
    // Nor may the project use a chain of its own to pass arguments to that entry.
    place.config(r#"{ "chains": { "c": [{ "agent": "mine", "args": ["evil"] }] } }"#);
    assert!(place.run(&["c", "--dry-run"]).code(2).words().contains("your own config requires"));
    // By hand, it would run outside of the sandbox.
    place.config(r#"{ "checks": { "test": "true" }, "chains": {} }"#);
    for verb in [&["verify", "test"][..], &["diagnose"], &["doctor", "--try"]] {
        let ran = place.run(verb);
        assert!(ran.code(2).words().contains("this would run outside of it"), "{}", ran.stderr);
    }
}

#[test]
#[ignore = "needs bubblewrap and user namespaces"]
fn nothing_outside_the_project_is_written_from_a_sandbox() {
    let place = Place::new();
    let git = |words: &str| format!("git -c user.name=a -c user.email=a@b {words}");
    let outside = place.path("home/outside");
    fs::write(&outside, "as it was").unwrap();
    let (socket, listens) = (place.path("tmp/socket"), place.path("tmp"));
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let lines = [
        // What the sandbox allows.
        "echo new > made && echo made".to_string(),
        "echo t > $TMPDIR/t && echo temporary".into(),
        format!("{} commit -q --allow-empty -m x && echo committed", git("")),
        "touch $(dirname $FORKHESTRA_RESULT)/own && echo own folder".into(),
        "grep -q 'NoNewPrivs:.1' /proc/self/status && grep -q 'CapEff:.0*$' /proc/self/status && echo no privileges".into(),
        "test $(ls -d /proc/[0-9]* | wc -l) -lt 10 && echo alone".into(),
        // What the sandbox denies.
        format!("echo evil > {}", outside.display()),
        format!("ln -s {} link; echo evil > link", outside.display()),
        format!("mv {} moved; rm -f {}", outside.display(), outside.display()),
        format!("mount -o remount,rw / && echo remounted; unshare -Urm sh -c 'mount -o remount,bind,rw {} && echo remounted'", place.path("home").display()),
        format!("ls {} && echo sees sockets", listens.display()),
        "echo evil >> .git/config && echo git; mkdir -p .git/hooks && touch .git/hooks/pre-commit && echo hook; mv .git .git2 && echo moved".into(),
        "echo evil > forge/chains.json && echo config; mv forge forge2 && echo moved".into(),
        "touch .forkhestra/state.db && echo journal; rm -rf .forkhestra/* && echo removed; rm -f .forkhestra/lock && echo lock".into(),
        "kill -9 $PPID; kill -STOP $PPID; kill -9 -1".into(),
        "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern && echo kernel; cat /dev/null > /proc/sysrq-trigger && echo kernel".into(),
        "ls /dev/sd* /dev/vd* /dev/nvme* /dev/kmsg 2>/dev/null && echo devices".into(),
        "(setsid nohup sleep 1000 &) ; (sleep 1000 &); echo over".into(),
    ];
    config(&place, r#""sandbox": "project","#, &[("w", &lines.join("\n"))]);
    let git_config = || fs::read_to_string(place.work(".git/config")).unwrap();
    assert!(std::process::Command::new("git").args(["init", "-q"]).arg(place.work("")).status().unwrap().success());
    let before = (git_config(), fs::read_to_string(place.work("forge/chains.json")).unwrap());
    let ran = place.run(&["w"]);
    assert_eq!(
        ran.code(0).stdout,
        "made\ntemporary\ncommitted\nown folder\nno privileges\nalone\nover\n",
        "{}",
        ran.stderr
    );
    assert_eq!(fs::read_to_string(&outside).unwrap(), "as it was");
    assert_eq!(before, (git_config(), fs::read_to_string(place.work("forge/chains.json")).unwrap()));
    assert_eq!(place.events(1).last().unwrap()["event"]["type"], "runFinished");
}

#[test]
#[ignore = "needs bubblewrap and user namespaces"]
fn an_agent_in_a_sandbox_hears_a_signal_and_has_its_grace() {
    let mut place = Place::new();
    place.set("FORKHESTRA_TEST_GRACE_MS", "20000");
    let line = "trap 'echo heard; exit 7' TERM INT; touch up; while :; do sleep 0.05; done";
    for (name, code) in [("TERM", 143), ("INT", 130)] {
        config(&place, r#""sandbox": "project","#, &[("w", line)]);
        let running = place.start(&["w"]);
        place.wait_for(&place.work("up"));
        assert_eq!(running.end_by(name).code(code).stdout, "heard\n");
        fs::remove_file(place.work("up")).unwrap();
    }
}

/// Outside of a sandbox, what an agent has started would survive.
#[test]
#[ignore = "needs bubblewrap and user namespaces"]
fn killing_host_and_lifeline_together_ends_everything_in_a_sandbox() {
    let place = Place::new();
    config(
        &place,
        r#""sandbox": "project","#,
        &[("w", "(setsid sleep 1000 &); (trap '' TERM HUP; sleep 1000) & touch up; sleep 1000")],
    );
    let running = place.start(&["w"]);
    place.wait_for(&place.work("up"));
    let host = running.child.id().to_string();
    let lifelines = fs::read_to_string(format!("/proc/{host}/task/{host}/children")).unwrap();
    send("KILL", &format!("{host} {lifelines}"));
    assert_eq!(running.end().code, None);
    place.assert_nothing_is_left();
}

#[test]
#[ignore = "needs bubblewrap and user namespaces"]
fn a_judge_in_a_sandbox_decides_by_its_verb() {
    let place = Place::new();
    let program = assert_cmd::cargo::cargo_bin!("forkhestra");
    place.config(&format!(
        r#"{{ "sandbox": "project", "agents": {{ "w": {{ "command": ["true"] }}, "j": {{ "role": "judge", "command": ["{}", "approve"] }} }}, "chains": {{}} }}"#,
        program.display()
    ));
    let ran = place.run(&["(w -> j):2"]);
    assert!(ran.code(0).words().contains("approves"), "{}", ran.stderr);
}

#[test]
#[ignore = "needs bubblewrap and user namespaces"]
fn a_check_runs_in_the_sandbox_of_the_config_too() {
    let place = Place::new();
    place.config(r#"{ "sandbox": "project", "checks": { "c": "touch $HOME/evil; echo over" }, "chains": {} }"#);
    assert_eq!(place.run(&["c"]).code(0).stdout, "over\n");
    assert!(!place.path("home/evil").exists());
}

#[test]
#[ignore = "needs bubblewrap and user namespaces"]
fn only_the_sandbox_offline_is_without_a_network() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!(
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/{}' 2>/dev/null && echo connected; echo over",
        listener.local_addr().unwrap().port()
    );
    for (sandbox, said) in [("project", "connected\nover\n"), ("offline", "over\n")] {
        config(&place, &format!(r#""sandbox": "{sandbox}","#), &[("w", &line)]);
        assert_eq!(place.run(&["w"]).code(0).stdout, said);
    }
}

#[test]
#[ignore = "needs bubblewrap and user namespaces"]
fn writable_opens_a_path_and_a_linked_working_tree_can_be_committed() {
    let place = Place::new();
    let git = |folder: &str, words: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.current_dir(place.path(folder)).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
        assert!(command.status().unwrap().success());
    };
    fs::create_dir(place.path("main")).unwrap();
    git("main", &["init", "-q"]);
    git("main", &["commit", "-q", "--allow-empty", "-m", "x"]);
    fs::remove_dir(place.work("")).unwrap();
    git("main", &["worktree", "add", "-q", "../project"]);
    fs::create_dir(place.path("home/cache")).unwrap();
    let line = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m y && touch ~/cache/x && echo over";
    config(&place, r#""sandbox": "project", "writable": ["~/cache"],"#, &[("w", line)]);
    assert_eq!(place.run(&["w"]).code(0).stdout, "over\n");
}

#[test]
fn an_exception_of_ones_own_is_not_the_projects_to_fill_in() {
    let place = with_a_bubblewrap();
    let own = r#"{ "sandbox": "project", "writable": ["${CACHE:-~/.cache}"], "backends": { "claude": { "sandbox": "none" } },
                   "agents": { "strict": { "command": "true", "sandbox": "offline" } }, "chains": {} }"#;
    own_config(&place, own);
    place.write("evil.sh", "#!/bin/sh\n");
    fs::set_permissions(place.work("evil.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    place.config(r#"{ "backends": { "claude": { "program": "./evil.sh" } }, "chains": {} }"#);
    let ran = place.run(&["claude", "-p", "x", "--dry-run"]);
    assert!(ran.code(2).words().contains("your own config requires"), "{}", ran.stderr);
    // A stricter sandbox of an entry stays, and the project cannot make anything writable.
    place.config(
        r#"{ "agents": { "strict": { "sandbox": "project", "writable": ["/etc"] } },
             "chains": { "c": { "vars": { "CACHE": "/etc" }, "steps": "strict" } } }"#,
    );
    let shown = place.run(&["c", "--dry-run"]);
    let row = shown.code(0).stdout.lines().find(|line| line.contains("sandbox")).unwrap().to_string();
    assert!(row.contains("offline") && row.contains(".cache") && !row.contains("/etc"), "{row}");
}

#[test]
fn what_stands_before_a_program_is_not_reached_through_its_environment() {
    let place = with_a_bubblewrap();
    place.config(
        r#"{ "sandbox": "project", "agents": { "w": { "command": "true", "env": { "LD_PRELOAD": "./evil.so" } } }, "chains": {} }"#,
    );
    let ran = place.run(&["w", "--dry-run"]);
    assert!(ran.code(2).words().contains("`LD_PRELOAD` would be read by bubblewrap itself"), "{}", ran.stderr);
    place.config(
        r#"{ "backends": { "e": { "program": "{self}" } }, "agents": { "w": { "backend": "e" } }, "chains": {} }"#,
    );
    let ran = place.run(&["w", "-p", "x", "--dry-run"]);
    assert!(ran.code(2).words().contains("is only for the built-in backends"), "{}", ran.stderr);
}

#[test]
fn a_link_in_the_place_of_forge_is_refused_in_a_sandbox() {
    let place = with_a_bubblewrap();
    place.write(
        "real/chains.json",
        r#"{ "sandbox": "project", "agents": { "w": { "command": "true" } }, "chains": {} }"#,
    );
    std::os::unix::fs::symlink("real", place.work("forge")).unwrap();
    let ran = place.run(&["w", "--dry-run"]);
    assert!(
        ran.code(2).words().contains("is a symbolic link, which a program in the sandbox could replace"),
        "{}",
        ran.stderr
    );
}

/// The project's directory may be first on PATH, and an agent may have put programs there.
#[test]
#[ignore = "needs bubblewrap and user namespaces"]
fn no_program_of_ours_is_taken_from_a_folder_of_the_project() {
    let mut place = Place::new();
    let (evil, bin) = (place.path("home/evil"), place.work("venv/bin"));
    for name in ["bwrap", "git", "systemd-inhibit"] {
        place.write(&format!("venv/bin/{name}"), format!("#!/bin/sh\ntouch {}\n", evil.display()));
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    place.set("PATH", &format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
    config(&place, r#""sandbox": "project","#, &[("w", "echo over")]);
    assert_eq!(place.run(&["w"]).code(0).stdout, "over\n");
    let _ = place.run(&["verify"]);
    let _ = place.run(&["doctor"]);
    assert!(!evil.exists());
}

#[test]
#[ignore = "needs bubblewrap and user namespaces"]
fn a_folder_that_the_shell_holds_open_is_no_way_out() {
    let place = Place::new();
    config(&place, r#""sandbox": "project","#, &[("w", "touch /proc/self/fd/9/evil; echo over")]);
    let program = assert_cmd::cargo::cargo_bin!("forkhestra").display().to_string();
    let like = place.command(&[]);
    let home = place.path("home");
    let script = format!("exec 9<{}; exec {program} w", home.display());
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", &script]).current_dir(place.work("")).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "over\n");
    assert!(!home.join("evil").exists());
}

/// Hooks may be in the working tree (husky), where an agent in a sandbox can write.
#[test]
#[ignore = "needs bubblewrap and user namespaces"]
fn the_commit_of_a_task_runs_no_hook_after_a_sandbox() {
    let place = Place::new();
    let git = |words: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.current_dir(place.work("")).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
        assert!(command.status().unwrap().success());
    };
    let evil = place.path("tmp/evil");
    let line = format!(
        "printf '#!/bin/sh\\ntouch {}\\n' > .husky/pre-commit; chmod +x .husky/pre-commit; echo new > work",
        evil.display()
    );
    place.config(&format!(
        r#"{{ "sandbox": "project", "commit": "task", "agents": {{ "w": {{ "command": ["sh", "-c", {}] }} }}, "chains": {{ "task": "w" }} }}"#,
        quoted(&line)
    ));
    place.write(".husky/pre-commit", "#!/bin/sh\n");
    git(&["init", "-q"]);
    git(&["config", "core.hooksPath", ".husky"]);
    git(&["config", "user.name", "a"]);
    git(&["config", "user.email", "a@b"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "x"]);
    let _ = place.run(&["task", "add", "T"]).code(0);
    let ran = place.run(&["task", "run"]);
    assert!(ran.code(0).words().contains("committed"), "{}", ran.stderr);
    assert!(!evil.exists());
}

/// It could name any directory, which the next run would open.
#[test]
#[ignore = "needs bubblewrap and user namespaces"]
fn a_git_file_that_an_agent_has_written_opens_nothing() {
    let place = Place::new();
    let outside = place.path("home/evil");
    config(
        &place,
        r#""sandbox": "project","#,
        &[("w", &format!("echo 'gitdir: /' > .git; touch {}; echo over", outside.display()))],
    );
    for _ in 0..2 {
        assert_eq!(place.run(&["w"]).code(0).stdout, "over\n");
        assert!(!outside.exists());
    }
}

#[test]
#[ignore = "needs bubblewrap and user namespaces"]
fn git_reads_no_other_config_and_runs_nothing_that_an_agent_has_left() {
    let place = Place::new();
    let git = |words: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.current_dir(place.work("")).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
        assert!(command.status().unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    let evil = place.path("tmp/evil");
    let line = format!(
        "mkdir -p .git/x; cp -r .git/objects .git/refs .git/config .git/x; printf '#!/bin/sh\ntouch {0}\n' > run.sh; chmod +x run.sh; \
         printf '[core]\n\tfsmonitor = %s/run.sh\n[log]\n\tshowSignature = true\n[gpg]\n\tprogram = %s/run.sh\n' $PWD $PWD >> .git/x/config; echo x > .git/commondir; date +%N > work",
        evil.display()
    );
    place.config(&format!(
        r#"{{ "sandbox": "project", "agents": {{ "w": {{ "command": ["sh", "-c", {}] }}, "j": {{ "role": "judge", "command": ["echo", "VERDICT: approve"] }} }}, "chains": {{}} }}"#,
        quoted(&line)
    ));
    let ran = place.run(&["(w -> j):2"]);
    assert!(!evil.exists(), "{}", ran.stderr);
    assert!(ran.words().contains(".git/commondir"), "{}", ran.stderr);
}
