//! Plans over in-memory files: where prompts come from, and what is refused before anything runs.

use super::*;
use crate::chain::{LayerSource, PromptSource, load, parse};
use crate::prompt::Level;
use crate::source::{Env, Files, Kind as FileKind, Place, Source, Text};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// In-memory files and environment variables. A path that ends in `*` is executable; empty directories do not exist.
pub(crate) struct Fake(pub(crate) BTreeMap<&'static str, Vec<u8>>, pub(crate) BTreeMap<&'static str, &'static str>);

impl Files for Fake {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let name = path.to_str().unwrap_or_default();
        self.0.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        let below = self.0.keys().filter_map(|path| Path::new(path).strip_prefix(folder).ok()?.iter().next()?.to_str());
        below.map(str::to_string).collect()
    }

    fn head(&self, _: &Path, _: usize) -> io::Result<Vec<u8>> {
        Ok(b"\x7fELF\x02\x01\x01\0".to_vec())
    }

    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        let name = path.to_str().unwrap_or_default();
        let executable = self.0.contains_key(format!("{name}*").as_str());
        if executable || self.0.contains_key(name) {
            return Ok(FileKind::File { executable, bytes: 0 });
        }
        let folder = self.0.keys().any(|known| known.starts_with(&format!("{}/", name.trim_end_matches('/'))));
        if folder { Ok(FileKind::Folder) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

impl Env for Fake {
    fn var(&self, name: &str) -> Option<OsString> {
        self.1.get(name).map(OsString::from)
    }

    fn is_root(&self) -> bool {
        self.1.contains_key("AS_ROOT")
    }
}

pub(crate) fn world(files: &[(&'static str, &str)]) -> Fake {
    let programs =
        ["/bin/sh*", "/bin/coder*", "/bin/reviewer*", "/bin/x*", "/root/keep"].map(|path| (path, Vec::new()));
    let files = files.iter().map(|(path, content)| (*path, content.as_bytes().to_vec()));
    Fake(programs.into_iter().chain(files).collect(), [("PATH", "/bin"), ("HOME", "/home/ann")].into())
}

fn text(value: &str, name: &str) -> Text {
    Text { value: value.into(), at: Place::whole(&Source::new(name, value, Path::new("/shell"))) }
}

/// Plans `chain` (a name in the config, or a chain's text) with a config and a command line.
pub(crate) fn planned(
    world: &Fake,
    config: &str,
    chain: &str,
    prompt: &PromptSource,
    vars: &[(&str, &str)],
) -> Result<Plan, Vec<Diagnostic>> {
    let source = Source::new("forge/chains.json", config, Path::new("/root"));
    let clis = Source::new("built-in", include_str!("../../forge/backends.json"), Path::new("/root"));
    let clis = LayerSource { kind: LayerKind::BuiltIn, source: clis };
    let config = load(&[clis, LayerSource { kind: LayerKind::Project, source }]);
    let typed = parse(&Source::new("command line", chain, Path::new("/shell")));
    let chain = match config.chains.get(chain) {
        Some(entry) => entry.value.clone(),
        None => typed?,
    };
    let given = vars.iter().map(|(name, value)| {
        (
            (*name).to_string(),
            ((*value).to_string(), Source::new("command line", format!("{name}={value}"), Path::new("/"))),
        )
    });
    let given: IndexMap<String, (String, Arc<Source>)> = given.collect();
    let request = Request {
        chain: &chain,
        config: &config,
        root: Path::new("/root"),
        prompt,
        given: &given,
        settings: &RunSettings::default(),
        part: None,
        task: None,
        own_program: Path::new("/bin/forkhestra"),
    };
    build(&request, world, world)
}

fn said(prompt: &str) -> PromptSource {
    PromptSource { inline: Some(text(prompt, "--prompt")), file: None }
}

fn shown(plan: &Plan, index: usize) -> (Level, Option<String>) {
    let step = &plan.steps[index];
    (step.level, step.prompt.as_ref().map(super::PlannedPrompt::show))
}

fn messages(result: Result<Plan, Vec<Diagnostic>>) -> Vec<String> {
    result.err().unwrap_or_default().into_iter().map(|fault| fault.message).collect()
}

const LEVELS: &str = r#"{
  "agents": { "coder": { "defaultPrompt": "agent" }, "x": { "defaultPromptFile": "agent.md" } },
  "chains": {
    "all": { "prompt": "chain", "steps": [
      { "agent": "coder", "prompt": "step" }, { "agent": "coder" }, { "agent": "coder", "promptFile": "step.md" },
      { "agent": "coder", "prompt": "both", "promptFile": "missing.md" }, { "agent": "coder", "prompt": "" } ] },
    "defaults": { "steps": [ { "agent": "coder" }, { "agent": "x" }, { "agent": "reviewer" } ] }
  }
}"#;

#[test]
fn the_first_of_five_levels_that_says_anything_wins() {
    let world = world(&[("/root/step.md", "from the step's file\n"), ("/root/agent.md", "from the agent's file")]);
    let plan = planned(&world, LEVELS, "all", &PromptSource::default(), &[]).unwrap();
    assert_eq!(shown(&plan, 0), (Level::Step, Some("step".into())));
    assert_eq!(shown(&plan, 1), (Level::Chain, Some("chain".into())));
    assert_eq!(shown(&plan, 2), (Level::Step, Some("from the step's file\n".into())));
    assert_eq!(shown(&plan, 3), (Level::Step, Some("both".into())));
    assert_eq!(shown(&plan, 4), (Level::Step, None), "an empty prompt is no prompt and masks the chain's");
    let plan = planned(&world, LEVELS, "defaults", &PromptSource::default(), &[]).unwrap();
    assert_eq!(shown(&plan, 0), (Level::Agent, Some("agent".into())));
    assert_eq!(shown(&plan, 1), (Level::Agent, Some("from the agent's file".into())));
    assert_eq!(shown(&plan, 2), (Level::None, None));
    let plan = planned(&world, LEVELS, "all", &said("cli"), &[]).unwrap();
    assert!((0..5).all(|index| shown(&plan, index) == (Level::CommandLine, Some("cli".into()))));
    let plan = planned(&world, LEVELS, "all", &said(""), &[]).unwrap();
    assert!((0..5).all(|index| shown(&plan, index) == (Level::CommandLine, None)));
}

#[test]
fn variables_reach_prompts_files_args_commands_and_environments() {
    let config = r#"{
      "agents": { "a": { "command": "x --for '${WHO}'", "args": ["--n=${N:-3}"], "env": {"HOME2": "${env:HOME}/x"} } },
      "chains": { "c": { "vars": {"N": "7"}, "prompt": "do ${WHAT}", "steps": [
        { "agent": "a", "args": ["${WHAT}"] }, { "agent": "a", "promptFile": "${WHAT}.md" } ] } }
    }"#;
    let world = world(&[("/root/it.md", "${WHO} likes ${HOME} and $${WHO}")]);
    let plan = planned(&world, config, "c", &PromptSource::default(), &[("WHO", "a b"), ("WHAT", "it")]).unwrap();
    let argv = |index: usize| plan.steps[index].argv.iter().map(|arg| crate::prompt::show(arg)).collect::<Vec<_>>();
    assert_eq!(argv(0), ["--for", "a b", "--n=7", "it", "do it"]);
    assert_eq!(argv(1), ["--for", "a b", "--n=7", "a b likes ${HOME} and ${WHO}"]);
    assert_eq!(plan.steps[1].prompt.as_ref().unwrap().stayed, ["HOME"]);
    assert!(plan.steps[0].env.set.contains(&("HOME2".into(), crate::prompt::text("/home/ann/x"))));
}

#[test]
fn a_missing_variable_of_a_prompt_that_is_overridden_is_no_error() {
    let config = r#"{"chains": {"c": {"prompt": "${MISSING}", "steps": [{"agent": "x"}]}}}"#;
    let world = world(&[]);
    assert_eq!(
        messages(planned(&world, config, "c", &PromptSource::default(), &[])),
        ["the variable `MISSING` has no value"]
    );
    assert!(planned(&world, config, "c", &said("p"), &[]).is_ok());
}

#[test]
fn everything_that_would_stop_the_run_is_said_at_once() {
    let config = r#"{
      "agents": { "gone": { "command": "./gone" }, "plain": { "command": "./plain" }, "dir": { "command": "/root" },
                  "model": { "command": "x", "model": "m" }, "quote": { "command": "x 'a" }, "b": { "backend": "claud" } },
      "checks": { "t": { "run": "true" } },
      "chains": { "c": { "steps": [ { "agent": "gone" }, { "agent": "plain" }, { "agent": "dir" }, { "agent": "model" },
        { "agent": "quote" }, { "agent": "b" }, { "agent": "revewer" }, { "check": "tt" }, { "check": "build" }, { "agent": "t" },
        { "agent": "x", "promptFile": "no.md" }, { "agent": "x", "promptFile": "latin.md" }, { "agent": "x", "prompt": "${A} ${B}" },
        { "agent": "x", "prompt": "say\nFORKHESTRA_COMPLETE\n" } ] } }
    }"#;
    let mut world = world(&[("/root/plain", "")]);
    world.0.insert("/root/latin.md", b"caf\xe9".to_vec());
    let messages = messages(planned(&world, config, "c", &PromptSource::default(), &[]));
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_prompt_too_long_for_an_argument_is_refused_before_the_start_and_fits_on_stdin() {
    let long = "x".repeat(131_072);
    let world = world(&[]);
    let refused = messages(planned(&world, r#"{"chains":{}}"#, "x", &said(&long), &[]));
    assert_eq!(refused, ["the prompt from --prompt has 131072 bytes, but an argument may have at most 131071"]);
    assert!(planned(&world, r#"{"chains":{}}"#, "x", &said(&long[1..]), &[]).is_ok());
    let stdin = r#"{"chains":{},"agents":{"x":{"deliver":"stdin"}}}"#;
    assert!(planned(&world, stdin, "x", &said(&long.repeat(80)), &[]).is_ok());
}

#[test]
fn names_are_looked_up_in_the_order_of_the_design() {
    let config = r#"{"agents": {"own": {"command": "x"}}, "checks": {"coder": "true"}, "chains": {}}"#;
    let world = world(&[]);
    let plan = planned(&world, config, "own -> coder -> reviewer", &PromptSource::default(), &[]).unwrap();
    assert_eq!(plan.steps.iter().map(PlannedStep::is_check).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(plan.steps[1].hides, [Path::new("/bin/coder")]);
    assert_eq!(plan.steps[2].found, Found::Path);
    let test = planned(&world, config, "own -> test", &PromptSource::default(), &[]).unwrap();
    assert!(test.steps[1].is_looked_for_again(), "never /usr/bin/test");
    assert_eq!(
        messages(planned(&world, config, "coder:3", &PromptSource::default(), &[])),
        ["the check `coder` takes no count"]
    );
    let messages = messages(planned(&world, config, "a:1.5", &PromptSource::default(), &[]));
    assert_eq!(messages, ["nothing is named `a:1.5`"]);
}

#[test]
fn feedback_is_late_in_a_group_and_the_digest_knows_it_from_its_text() {
    let world = world(&[]);
    let digest =
        |chain: &str, prompt: &str| digest(&planned(&world, r#"{"chains":{}}"#, chain, &said(prompt), &[]).unwrap());
    let plan = planned(&world, r#"{"chains":{}}"#, "(x):2", &said("p"), &[]).unwrap();
    assert_eq!(shown(&plan, 0).1.as_deref(), Some("p{{feedback}}"));
    assert_eq!(digest("x", "p"), digest("x", "p"));
    assert_ne!(digest("x", "p"), digest("x", "q"));
    assert_ne!(digest("(x):2", "p"), digest("(x):2", "p{{feedback}}"));
    assert_ne!(digest("x", "p"), digest("x:1", "p"));
}

#[test]
fn claude_gets_its_headless_command_the_contract_and_the_prompt_on_stdin() {
    let config = r#"{"agents": {"coder": {"systemPrompt": "sys.md", "model": "sonnet", "maxTurns": 9, "allowedTools": ["Read", "Bash"]}}, "chains": {}}"#;
    let mut world = world(&[("/bin/claude*", ""), ("/root/sys.md", "You are the coder.\n")]);
    world.1.insert("CLAUDECODE", "1");
    let plan = planned(&world, config, "coder:3", &said("-p --help"), &[]).unwrap();
    let step = &plan.steps[0];
    let argv: Vec<String> = step.argv.iter().map(|arg| crate::prompt::show(arg)).collect();
    assert_eq!(argv[..4], ["-p", "--output-format", "stream-json", "--verbose"]);
    assert!(argv[4].starts_with("--disallowedTools=EnterWorktree,"), "{}", argv[4]);
    assert_eq!(argv[5..7], ["--permission-mode", "acceptEdits"]);
    assert!(argv[7].starts_with("--allowedTools=Bash(git status:*),Bash(git diff:*),"), "{}", argv[7]);
    assert!(argv[9].ends_with("\n\nYou are the coder.\n") && argv[9].contains("FORKHESTRA_COMPLETE"));
    assert_eq!(argv[10..], ["--model", "sonnet", "--max-turns", "9", "--allowedTools=Read,Bash"]);
    assert_eq!(step.env.shown_settings()["CLAUDE_CODE_MAX_RETRIES"], "4");
    assert_eq!(step.prompt.as_ref().map(|prompt| prompt.deliver), Some(crate::chain::Delivery::Stdin));
    assert_eq!(step.env.unset, ["CLAUDECODE"]);
    assert_eq!(step.program, Path::new("/bin/claude"));
}

/// A judge changes nothing if its backend can enforce that. It may give its verdict and run the configured checks.
#[test]
fn a_judge_runs_at_read_with_its_verbs_and_the_configured_checks() {
    let programs = [
        "/bin/claude*",
        "/bin/codex*",
        "/bin/gemini*",
        "/bin/opencode*",
        "/bin/qwen*",
        "/bin/copilot*",
        "/bin/pi*",
        "/bin/mine*",
    ];
    let world = world(&programs.map(|program| (program, "")));
    let told = |backend: &str, more: &str| {
        let config = format!(
            r#"{{"backends": {{"mine": {{"program": "mine", "permissions": {{"edit": {{"arguments": ["--yes"]}}}}}}}},
                "agents": {{"reviewer": {{"backend": "{backend}", "role": "judge", "template": "reviewer"{more}}}}}, "checks": {{"test": {{"run": "sh ci/check.sh"}}}}, "chains": {{}}}}"#
        );
        let plan = planned(&world, &config, "reviewer", &said("p"), &[]).unwrap();
        let step = &plan.steps[0];
        assert_eq!(step.role(), Some(Role::Judge), "{backend}");
        assert!(step.prompt.as_ref().unwrap().around.is_some(), "{backend} shows it the diff");
        let argv: Vec<String> = step.argv.iter().map(|arg| crate::prompt::show(arg)).collect();
        let settings: Vec<String> =
            step.env.shown_settings().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        let warnings: Vec<String> = plan.warnings.iter().map(|warning| warning.message.clone()).collect();
        ((argv.join(" ") + " " + &settings.join(" ")), step.permissions().unwrap(), warnings.join("; "))
    };
    for (backend, verb, check, denied) in [
        ("claude", "Bash(forkhestra reject:*)", "Bash(sh ci/check.sh:*)", "--disallowedTools=Edit,Write"),
        (
            "gemini",
            "run_shell_command(forkhestra reject)",
            "run_shell_command(sh ci/check.sh)",
            "--approval-mode default",
        ),
        ("opencode", "\"forkhestra reject *\":\"allow\"", "\"sh ci/check.sh *\":\"allow\"", "\"edit\":\"deny\""),
        (
            "qwen",
            "run_shell_command(forkhestra reject)",
            "run_shell_command(sh ci/check.sh)",
            "--exclude-tools=edit,write_file",
        ),
        ("copilot", "--allow-tool=shell(forkhestra:*)", "--allow-tool=shell(sh ci/check.sh:*)", "--deny-tool=write"),
        ("codex", "--sandbox read-only", "exec", "--json"),
        ("pi", "--tools read,grep,find,ls", "--print", "json"),
    ] {
        let (words, level, warnings) = told(backend, "");
        for expected in [verb, check, denied] {
            assert!(words.contains(expected), "{backend}: {expected} in {words}");
        }
        assert_eq!((level, warnings.as_str()), (crate::chain::Permissions::Read, ""), "{backend}");
    }
    let (_, level, warnings) = told("mine", "");
    assert_eq!(level, crate::chain::Permissions::Edit);
    assert!(
        warnings.contains("the judge `reviewer` could edit files: the backend `mine` has no level `read`"),
        "{warnings}"
    );
    let (_, level, warnings) = told("claude", r#", "permissions": "edit""#);
    assert_eq!((level, warnings.as_str()), (crate::chain::Permissions::Edit, ""), "who says so is obeyed");
    let (words, ..) = told("opencode", "");
    let rules = words.split("OPENCODE_PERMISSION=").nth(1).and_then(|rest| rest.split(" OPENCODE").next()).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(rules.trim()).is_ok(), "{rules}");
}

/// claude refuses `full` to root unless it is told that it runs in a sandbox. No other program is told so.
#[test]
fn permissions_full_names_a_sandbox_to_claude_where_we_are_root_and_nowhere_else() {
    let env = |root: bool| {
        let mut world = world(&[("/bin/claude*", "")]);
        world.1.extend(root.then_some(("AS_ROOT", "")));
        let config = r#"{"agents": {"a": {"backend": "claude", "permissions": "full"}}, "chains": {}}"#;
        let plan = planned(&world, config, "a", &said("p"), &[]).unwrap();
        plan.steps[0].env.set.iter().any(|(name, _)| name == "IS_SANDBOX")
    };
    assert_eq!((env(true), env(false)), (true, false));
}

/// Permissions that a backend cannot express are refused before anything starts.
#[test]
fn permissions_are_expressed_by_each_backend_or_refused() {
    let world = world(&[("/bin/pi*", ""), ("/bin/codex*", ""), ("/bin/claude*", ""), ("/root/Cargo.toml", "")]);
    let argv = |backend: &str, permissions: &str| {
        let config = format!(
            r#"{{"agents": {{"a": {{"backend": "{backend}", "permissions": "{permissions}"}}}}, "chains": {{}}}}"#
        );
        let plan = planned(&world, &config, "a", &said("p"), &[]);
        plan.map(|plan| plan.steps[0].argv.iter().map(|arg| crate::prompt::show(arg)).collect::<Vec<_>>().join(" "))
    };
    assert!(argv("codex", "read").unwrap().contains("--sandbox read-only"));
    assert!(argv("codex", "edit").unwrap().contains("--sandbox workspace-write"));
    assert!(argv("codex-cli", "full").unwrap().contains("--dangerously-bypass-approvals-and-sandbox"));
    assert!(
        argv("claude", "edit").unwrap().contains("Bash(git commit:*)")
            && argv("claude", "edit").unwrap().contains("Bash(cargo test:*)")
    );
    assert!(!argv("claude", "read").unwrap().contains("git commit"));
    assert!(argv("pi", "read").unwrap().contains("--tools read,grep,find,ls"));
    assert_eq!(messages_of(argv("pi", "edit")), ["the backend `pi` does not support the permissions `edit`"]);
}

fn messages_of<T>(result: Result<T, Vec<Diagnostic>>) -> Vec<String> {
    result.err().unwrap_or_default().into_iter().map(|fault| fault.message).collect()
}

/// Without a flag for instructions, they are put at the head of the prompt, or replace a missing prompt.
#[test]
fn instructions_without_a_flag_stand_at_the_head_of_the_prompt() {
    let world = world(&[("/bin/gemini*", "")]);
    let config = r#"{"agents": {"a": {"backend": "gemini", "systemPromptText": "You are A."}}, "chains": {}}"#;
    let prompt = |prompt: &PromptSource| shown(&planned(&world, config, "a", prompt, &[]).unwrap(), 0).1.unwrap();
    let with = prompt(&said("Do it."));
    assert!(with.starts_with("# Your instructions\n\nYou run unattended"), "{with}");
    assert!(with.ends_with("You are A.\n\n# Your task\n\nDo it."), "{with}");
    assert!(prompt(&PromptSource::default()).ends_with("You are A."));
    let marked = r#"{"agents": {"a": {"backend": "gemini", "systemPromptText": "Say\nFORKHESTRA_COMPLETE\nat the end"}}, "chains": {}}"#;
    let faults = messages(planned(&world, marked, "a:2", &said("x"), &[]));
    assert!(faults[0].contains("has the marker alone on a line"), "{faults:?}");
}

/// Users add backends and change known ones with the same keys.
#[test]
fn a_backend_of_the_config_is_added_or_refines_a_known_one() {
    let world = world(&[("/bin/mine*", ""), ("/bin/claude2*", "")]);
    let config = r#"{
      "backends": {
        "mine": { "program": "mine", "arguments": ["--headless"], "model": ["-m", "{}"], "last": ["--file"], "deliver": "file",
          "permissions": { "edit": { "arguments": ["--yes"], "env": { "MINE_MODE": "edit" } } } },
        "claude": { "program": "claude2", "env": { "CLAUDE_CODE_MAX_RETRIES": "0" } }
      },
      "agents": { "a": { "backend": "mine", "model": "m1" }, "b": { "backend": "claude-cli" }, "c": { "backend": "mine", "maxTurns": 3 } },
      "chains": {}
    }"#;
    let plan = planned(&world, config, "a -> b", &said("p"), &[]).unwrap();
    let argv = |index: usize| plan.steps[index].argv.iter().map(|arg| crate::prompt::show(arg)).collect::<Vec<_>>();
    assert!(argv(0).starts_with(&["--headless", "--yes", "-m", "m1", "--file"].map(str::to_string)), "{:?}", argv(0));
    let value = |index: usize, name: &str| {
        let found = plan.steps[index].env.set.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| crate::prompt::show(value))
    };
    assert_eq!(value(0, "MINE_MODE").as_deref(), Some("edit"));
    assert!(plan.steps[0].env.shown_settings().is_empty(), "a user's own values may be secret");
    assert_eq!(plan.steps[1].program, Path::new("/bin/claude2"));
    assert_eq!(value(1, "CLAUDE_CODE_MAX_RETRIES").as_deref(), Some("0"));
    assert_eq!(
        messages(planned(&world, config, "c", &said("p"), &[])),
        ["the backend `mine` does not support `maxTurns`"]
    );
}

/// A built-in setting yields to the user's own, wherever that is set.
#[test]
fn settings_of_a_backend_give_way_to_the_users_own() {
    let mut world = world(&[("/bin/claude*", "")]);
    world.1.insert("CLAUDE_CODE_MAX_RETRIES", "9");
    let config = r#"{"agents": {"a": {"backend": "claude", "env": {"DISABLE_AUTOUPDATER": "0"}}}, "chains": {}}"#;
    let plan = planned(&world, config, "a", &said("p"), &[]).unwrap();
    let settings = plan.steps[0].env.shown_settings();
    assert!(!settings.contains_key("CLAUDE_CODE_MAX_RETRIES") && !settings.contains_key("DISABLE_AUTOUPDATER"));
    assert!(settings.contains_key("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"));
}
