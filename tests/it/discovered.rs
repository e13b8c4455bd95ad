//! What other tools keep in a project: `.claude/agents`, skills, CLAUDE.md, and task lists of spec-kit.

use crate::support::Place;
use serde_json::json;

/// A repository as many are: made for Claude Code, with a part that has instructions of its own.
fn repository() -> Place {
    let place = Place::new();
    place
        .write(
            ".claude/agents/code-reviewer.md",
            "---\nname: code-reviewer\ndescription: Reviews code. Use it after: any change.\ntools: Read, Grep, Bash\n\
             model: sonnet\ncolor: red\n---\n\nYou are a senior code reviewer.\n",
        )
        .write(".claude/agents/coder.md", "---\nname: coder\ndescription: x\n---\nNot used\n")
        .write(".claude/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Fills in PDF forms\n---\nLong text\n")
        .write("CLAUDE.md", "Use tabs.\n")
        .write("web/AGENTS.md", "Use spaces in web.\n")
        .write("web/page.ts", "")
        .write("specs/001-login/spec.md", "Change `web/page.ts`.\n")
        .write(
            "specs/001-login/tasks.md",
            "# Tasks: Login\n\n## Phase 1: Setup\n\n- [x] T001 Create the project\n- [ ] T002 Add the page\n\n\
             ## Phase 2: Tests\n\n- [ ] T003 [P] [US1] Test it in web/page.test.ts\n- [ ] T004 [P] [US1] Test the login\n",
        );
    for cli in ["claude", "codex"] {
        place.agent(cli, "print {}");
    }
    place
}

#[test]
fn an_agent_of_claude_code_runs_with_its_model_and_no_more_tools_than_it_names() {
    let place = repository();
    let listed = place.run(&["list", "--json"]);
    let agents = listed.code(0).json()["agents"].clone();
    let found = agents.as_array().unwrap().iter().find(|agent| agent["name"] == "code-reviewer").unwrap().clone();
    assert_eq!(found["layer"], "discovered");
    let _ = place.run(&["code-reviewer", "-p", "Review it."]);
    let call = place.call("claude", 1);
    for words in ["arg --tools=Read,Grep,Bash\n", "arg --model\narg sonnet\n", "You are a senior code reviewer."] {
        assert!(call.contains(words), "{call}");
    }
    assert!(!call.contains("color: red"), "{call}");
}

#[test]
fn a_name_that_is_taken_is_told_and_stays_what_it_is() {
    let place = repository();
    let ran = place.run(&["validate"]);
    assert!(ran.code(0).words().contains("the agent `coder` is not used: the name is taken"), "{}", ran.stderr);
    let shown = place.run(&["coder", "--dry-run", "-p", "x"]);
    assert!(!shown.code(0).stdout.contains("Not used"), "{}", shown.stdout);
}

#[test]
fn render_explain_names_the_origin_of_every_part() {
    let place = repository();
    place.run(&["task", "import", "specs/001-login/tasks.md"]).code(0);
    place.config(r#"{ "agents": { "coder": { "backend": "codex" } }, "chains": {} }"#);
    let ran = place.run(&["render", "coder", "--task", "001-T002", "--explain"]);
    let shown = &ran.code(0).stdout;
    assert!(shown.contains("variable agents_md_content"), "{shown}");
    assert!(shown.contains("variable skills"), "{shown}");
    assert!(shown.contains("system prompt: built-in instructions"), "{shown}");
    let text = place.run(&["render", "coder", "--task", "001-T002"]);
    let text = &text.code(0).stdout;
    assert!(text.contains("From `CLAUDE.md`:\n\nUse tabs."), "{text}");
    assert!(text.contains("From `web/AGENTS.md`, for the files below that directory:\n\nUse spaces in web."), "{text}");
    assert!(text.contains("- pdf: Fills in PDF forms (`.claude/skills/pdf/SKILL.md`)"), "{text}");
    let own = place.run(&["render", "code-reviewer", "-p", "Look.", "--explain"]);
    assert!(own.code(0).stdout.contains("system prompt: .claude/agents/code-reviewer.md:1:1"), "{}", own.stdout);
}

#[test]
fn discover_false_leaves_all_of_it_alone() {
    let place = repository();
    place.config(r#"{ "discover": false, "agents": { "coder": { "backend": "codex" } }, "chains": {} }"#);
    let text = place.run(&["render", "coder", "-p", "Work."]);
    let text = &text.code(0).stdout;
    assert!(!text.contains("Use tabs.") && !text.contains("PDF"), "{text}");
    assert!(place.run(&["code-reviewer", "-p", "x"]).code(2).words().contains("code-reviewer"));
}

#[test]
fn a_template_names_a_skill_of_another_tool_and_a_config_its_agent_as_system_prompt() {
    let place = repository();
    place.write("forge/agents/j/prompt.md", "{{skill:pdf}}\n\n{{task_prompt}}\n").config(
        r#"{ "agents": { "j": { "backend": "claude", "role": "judge", "systemPrompt": ".claude/agents/code-reviewer.md" } },
             "chains": {} }"#,
    );
    let shown = place.run(&["render", "j", "-p", "Judge.", "--json"]);
    let shown = shown.code(0).json();
    let expected =
        "Skill pdf: Fills in PDF forms\nRead `.claude/skills/pdf/SKILL.md` before you do anything that it is about.";
    assert!(shown["text"].as_str().unwrap().starts_with(expected), "{shown}");
    assert_eq!(shown["system"][1]["text"].as_str().unwrap().trim(), "You are a senior code reviewer.");
}

#[test]
fn tasks_of_spec_kit_are_imported_in_their_order_with_their_specification() {
    let place = repository();
    assert_eq!(
        place.run(&["task", "import", "specs/001-login/tasks.md"]).code(0).stdout,
        "3 tasks added: 001-T002, 001-T003, 001-T004\n"
    );
    let tasks = place.run(&["task", "list", "--json"]);
    let tasks = tasks.code(0).json();
    assert_eq!(tasks[0]["spec"], "specs/001-login/spec.md");
    assert_eq!((&tasks[2]["after"], &tasks[2]["title"]), (&json!(["001-T002"]), &json!("Test the login")));
    let again = place.run(&["task", "import", "specs/001-login/tasks.md"]);
    assert!(again.code(2).words().contains("001-T002"), "{}", again.stderr);
    place.write("notes.md", "- [ ] buy milk\n");
    assert!(place.run(&["task", "import", "notes.md"]).code(2).words().contains("notes.md has no open task"));
}
