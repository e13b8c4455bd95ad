//! Tests of templates and skills, with examples and with random input.

use super::*;
use crate::plan::tests::world;
use crate::source::Diagnostic;
use proptest::prelude::*;
use std::path::Path;

fn places() -> TemplateDirs {
    TemplateDirs {
        templates: "/root/t".into(),
        shared: "/root/shared".into(),
        discovered: vec!["/root/.claude/skills".into()],
        root: "/root".into(),
    }
}

fn loaded(files: &[(&'static str, &str)], name: &str) -> Result<Template, Vec<Diagnostic>> {
    load(name, true, &places(), true, &world(files)).map(Option::unwrap)
}

fn messages<T>(result: Result<T, Vec<Diagnostic>>) -> Vec<String> {
    result.err().unwrap_or_default().into_iter().map(|fault| fault.message).collect()
}

const VALUES: [(&str, &str); 9] = [
    ("task_id", "T-1"),
    ("task_title", "Title with {task_id} and $& and {{task_id}}"),
    ("task_prompt", "do {{skill:a}} and {{task_id}}"),
    ("rejection_count", "2"),
    ("rejected", "true"),
    ("reviewer_notes", "first\nsecond"),
    ("feedback", ""),
    ("source_file_content", "see {agents_md_content}"),
    ("git_diff_output", " ```\n-a\n+b\n"),
];

#[expect(clippy::unnecessary_wraps, reason = "must have the type of `Values`")]
fn value(name: &str) -> Option<Value> {
    let known = VALUES.iter().find(|(known, _)| *known == name);
    Some(Value::new(known.map_or("", |(_, value)| *value)))
}

/// Renders a template with this text, and the skills `a`, `b` (which uses `a`), `outer` (which uses `inner`) and `id`.
fn rendered(text: &str) -> String {
    let files = [
        ("/root/t/x/prompt.md", text),
        ("/root/t/x/skills/a.md", "A text\n"),
        ("/root/t/x/skills/b.md", "B and {{skill:a}}"),
        ("/root/shared/outer.md", "Outer {{skill:inner}}"),
        ("/root/t/x/skills/inner.md", "Inner text"),
        ("/root/t/x/skills/id.md", "for {{task_id}}"),
    ];
    render_template(&loaded(&files, "x").unwrap_or_else(|faults| panic!("{faults:?}")), &value).unwrap().text()
}

#[test]
fn templates_render_as_the_founding_documents_say() {
    for (number, text, expected) in [
        ("T1-06", "Task: {{task_id}}", "Task: T-1"),
        ("T1-06", "{{task_id}}{{rejection_count}}", "T-12"),
        ("T1-07", "# Header\n{{skill:a}}\n", "# Header\nA text\n"),
        ("T1-08", "{{skill:outer}}", "Outer Inner text"),
        ("T1-09", "{{skill:id}}", "for T-1"),
        ("T1-13", "{{skill:a}} {{skill:b}}", "A text B and A text"),
        ("T1-14", "{{task_prompt}}", "do {{skill:a}} and {{task_id}}"),
        (
            "T0-02",
            "{{#if rejected}}\n#{{rejection_count}} of 15\n> {{reviewer_notes}}\n{{/if}}\nend",
            "#2 of 15\n> first\n> second\nend",
        ),
        ("T0-01", "a\n{{#if feedback}}\n## Rejected\n{{/if}}\nb", "a\nb"),
        ("T0-03", "rejection #{{rejection_count + 1}}", "rejection #3"),
        ("T0-03", "{{rejection_count - 2}}", "0"),
        ("T0-06", "{{source_file_content}}", "see {agents_md_content}"),
        ("T0-07", "{{task_title}}", "Title with {task_id} and $& and {{task_id}}"),
        ("T0-08", "```diff\n{{git_diff_output}}```\nend", "````diff\n ```\n-a\n+b\n````\nend"),
        ("C8", "> ```diff\n> {{git_diff_output}}\n> ```\nend", "> ````diff\n>  ```\n> -a\n> +b\n> \n> ````\nend"),
        ("C8", "> {{git_diff_output}}\nend", ">  ```\n> -a\n> +b\n> \nend"),
        ("C8", "~~~~\n{{git_diff_output}}~~~~", "~~~~\n ```\n-a\n+b\n~~~~"),
        ("C3", "\\{{task_id}} {not} {{ }} {{A b}} }}", "{{task_id}} {not} {{ }} {{A b}} }}"),
        ("C3", "{{#if feedback}}yes{{else}}no{{/if}}{{#if rejected}}!{{else}}?{{/if}}", "no!"),
        ("C7", "> > {{reviewer_notes}}", "> > first\n> > second"),
        ("C7", "say > {{reviewer_notes}}", "say > first\nsecond"),
        ("C15", "\u{feff}a\r\nb", "a\nb"),
        ("C7", "{{#if rejected}}{{#if feedback}}x{{/if}}y{{/if}}", "y"),
        ("", "---\ndescription: x\n---\ntext", "text"),
        ("", "", ""),
    ] {
        assert_eq!(rendered(text), expected, "{number}: {text}");
    }
}

#[test]
fn the_braces_dialect_renders_as_the_founding_documents_write_it() {
    for (number, text, expected) in [
        (
            "T0-02",
            "{if_rejected}\nrejection #{rejection_count} of 15\n> {reviewer_notes}\n{end_if}\nend",
            "rejection #2 of 15\n> first\n> second\nend",
        ),
        ("T0-03", "This will be rejection #{rejection_count + 1}.", "This will be rejection #3."),
        ("T0-07", "{task_title}", "Title with {task_id} and $& and {{task_id}}"),
        ("T0-08", "```diff\n{git_diff_output}\n```\n", "````diff\n ```\n-a\n+b\n\n````\n"),
        (
            "C3",
            "{\"pass\": true, \"issues\": [{\"a\": 1}], \"x\": {}}",
            "{\"pass\": true, \"issues\": [{\"a\": 1}], \"x\": {}}",
        ),
        ("C3", "{{\"literal\": {{task_id}}}}", "{\"literal\": {task_id}}"),
        ("C3", "{unknown_name} { task_id } {Task}", "{unknown_name} { task_id } {Task}"),
    ] {
        assert_eq!(rendered(&format!("---\nsyntax: braces\n---\n{text}")), expected, "{number}: {text}");
    }
}

#[test]
fn what_cannot_be_loaded_is_said_with_its_place() {
    let prompt = |text| {
        [
            ("/root/t/x/prompt.md", text),
            ("/root/t/x/skills/a.md", "{{skill:b}}"),
            ("/root/t/x/skills/b.md", "{{skill:a}}"),
        ]
    };
    for (number, text, expected) in [
        ("T1-10", "{{skill:missing}}", "undefined skill: missing"),
        ("T1-11", "{{missing_var}}", "undefined variable: missing_var"),
        ("T1-12", "{{skill:a}}", "skill cycle: a -> b -> a"),
        ("C13", "{{skill:../x}}", "`../x` is not a valid skill name"),
        ("C6", "{{#if rejected}}", "this block is never closed"),
        ("C6", "{{task_prompt", "this tag is never closed"),
        ("C6", "{{task_prompt}", "this tag is never closed"),
        ("C6", "{{task_prompt\n}}", "this tag is never closed"),
        ("C6", "{{ task_id and {{task_id}}", "this tag is never closed"),
        ("C6", "{{skill:a", "this tag is never closed"),
        ("C6", "{{skill foo}}", "this is not a valid tag"),
        ("C6", "{{rejection_count * 2}}", "this is not a valid tag"),
        ("C6", "{{#if}}", "this is not a valid tag"),
        ("C6", "{{/if}}", "no block is open here"),
        ("C6", "{{#if rejected}}{{else}}{{else}}{{/if}}", "no block is open here"),
        ("", "---\ntitle: x\n---\n", "front matter has no key `title`"),
        ("", "---\nsyntax: jinja\n---\n", "there is no dialect `jinja`"),
        ("", "---\nsyntax: braces\n", "the front matter is never closed"),
    ] {
        assert_eq!(messages(loaded(&prompt(text), "x")), [expected], "{number}: {text}");
    }
    let fault = loaded(&prompt("ok\n a {{skill foo}} b"), "x").unwrap_err().swap_remove(0);
    assert_eq!(fault.places[0].0.to_string(), "t/x/prompt.md:2:4");
    let fault = loaded(&prompt("ok\n{{task_idd}}"), "x").unwrap_err().swap_remove(0);
    assert_eq!(fault.places[0].0.to_string(), "t/x/prompt.md:2:1");
    assert_eq!(fault.help.as_deref(), Some("did you mean `task_id`?"));
    // A template that is mandatory, one with an invalid name, and one that is optional.
    assert_eq!(messages(loaded(&[], "carbon")), ["the template `carbon` was not found: /root/t/carbon/prompt.md"]);
    assert!(messages(loaded(&[], "../x"))[0].contains("invalid role"));
    assert!(load("nobody", false, &places(), true, &world(&[])).unwrap().is_none());
}

#[test]
fn a_template_needs_no_skills_folder_and_other_files_in_it_are_not_skills() {
    assert_eq!(loaded(&[("/root/t/helium/prompt.md", "x")], "helium").unwrap().skills().count(), 0);
    let files =
        [("/root/t/x/prompt.md", "{{skill:a}}"), ("/root/t/x/skills/a.txt", "no"), ("/root/t/x/skills/sub/a.md", "no")];
    assert_eq!(messages(loaded(&files, "x")), ["undefined skill: a"]);
}

#[test]
fn lenient_loading_leaves_what_it_does_not_know() {
    let files = [("/root/t/x/prompt.md", "{{missing_var}} {{task_id}}")];
    let template = load("x", true, &places(), false, &world(&files)).unwrap().unwrap();
    let known = |name: &str| if name == "task_id" { value(name) } else { None };
    assert_eq!(render_template(&template, &known).unwrap().text(), "{{missing_var}} T-1");
}

#[test]
fn every_built_in_template_loads_and_names_only_what_exists() {
    for name in ["coder", "coder-resume", "reviewer", "planner"] {
        let template = loaded(&[], name).unwrap();
        let text = render_template(&template, &value).unwrap().text();
        assert!(text.contains("do {{skill:a}} and {{task_id}}"), "{name}");
        assert!(!text.contains("{{#if") && !text.contains("{{/if"), "{name}: {text}");
        // A marker or a verdict alone on a line would count as one.
        assert_eq!(crate::marker::count_lines(text.as_bytes(), crate::marker::DEFAULT), 0);
    }
    for (file, text) in built_in_files() {
        assert!(text.starts_with("---\ndescription: "), "{file}");
    }
    let ours = built_in_files();
    for name in ["carbon", "helium"] {
        let (_, text) = ours.iter().find(|(file, _)| file == &format!("{name}/prompt.md")).unwrap();
        let path: &'static str = if name == "carbon" { "/root/t/carbon/prompt.md" } else { "/root/t/helium/prompt.md" };
        render_template(&loaded(&[(path, text)], name).unwrap(), &value).unwrap();
    }
}

#[test]
fn skills_that_multiply_are_bounded_and_deep_ones_refused() {
    // Each skill includes the next one twice.
    let doubling: Vec<(String, String)> = (0..24)
        .map(|n| (format!("/root/t/x/skills/s{n}.md"), format!("{{{{skill:s{0}}}}}{{{{skill:s{0}}}}}", n + 1)))
        .collect();
    let deep: Vec<(String, String)> =
        (0..40).map(|n| (format!("/root/t/x/skills/s{n}.md"), format!("{{{{skill:s{}}}}}", n + 1))).collect();
    let with = |skills: Vec<(String, String)>, last: &str| {
        let mut files: Vec<(&'static str, String)> =
            skills.into_iter().map(|(path, text)| (&*path.leak(), text)).collect();
        files.extend([("/root/t/x/prompt.md", "{{skill:s0}}".to_string()), (last.to_string().leak(), "x".to_string())]);
        let files: Vec<(&'static str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        loaded(&files, "x")
    };
    assert_eq!(
        render_template(&with(doubling, "/root/t/x/skills/s24.md").unwrap(), &value),
        Err(TemplateError::TooLarge)
    );
    assert_eq!(messages(with(deep, "/root/t/x/skills/s40.md")), ["skills are nested more than 32 levels deep"]);
}

#[test]
fn what_is_too_long_is_cut_at_a_line_and_says_where_the_rest_is() {
    let long = "x".repeat(10_001);
    assert_eq!((cut(&long, 10_000).text.len(), cut(&long, 10_000).is_cut), (10_000, true));
    assert!(!cut(&long[1..], 10_000).is_cut);
    assert_eq!(cut("ab\ncd\nef", 7).text, "ab\ncd\n");
    assert_eq!(cut("🚀🚀🚀", 2).text, "🚀🚀");
    let mut gathered: indexmap::IndexMap<String, Value> = [
        ("spec", 10_000),
        ("agents_md_content", 5_001),
        ("git_diff_output", 20_001),
        ("relevant_files_summary", 10_001),
    ]
    .map(|(name, length)| (name.to_string(), Value::new("y".repeat(length))))
    .into();
    fit(&mut gathered, 1_000, &|name| format!("<{name}>")).unwrap();
    assert_eq!(gathered["spec"].note, None);
    assert_eq!(
        gathered["agents_md_content"].note.as_deref(),
        Some("[Content truncated. Full file at: <agents_md_content>]")
    );
    // If all together are too long, the summary is cut first.
    fit(&mut gathered, 10_000, &|name| name.to_string()).unwrap();
    let length = |name: &str| gathered[name].text.chars().count();
    assert_eq!((length("relevant_files_summary"), length("agents_md_content"), length("spec")), (5_000, 5_000, 10_000));
    assert_eq!(fit(&mut gathered, 60_000, &|_| String::new()), Err(TemplateError::ContextTooLarge(60_000)));
}

#[test]
fn the_note_of_a_cut_value_stands_outside_its_fence() {
    let cut = |name: &str| Some(Value { text: format!("{name} ```"), note: Some("[cut]".into()) });
    let files = [("/root/t/x/prompt.md", "```diff\n{{git_diff_output}}\n```\nand {{spec}} end\n")];
    let text = render_template(&loaded(&files, "x").unwrap(), &cut).unwrap().text();
    assert_eq!(text, "````diff\ngit_diff_output ```\n````\n\n[cut]\nand spec ```\n[cut]\n end\n");
}

/// A closing fence in a quotation closes no block outside of it (the `CommonMark` specification, section 4.5).
#[test]
fn a_fence_that_a_quotation_seems_to_close_is_closed_behind_its_value() {
    let template = "{{task_prompt}}\n\n~~~text\n{{spec}}\n~~~\n";
    let values = |name: &str| Some(Value::new(if name == "spec" { "x" } else { "\n```\n>    ```\n" }));
    let text = render_template(&loaded(&[("/root/t/x/prompt.md", template)], "x").unwrap(), &values).unwrap().text();
    assert_eq!(blocks(&text), [">    ```\n", "x\n"], "{text}");
}

/// Returns the content of each fenced block in a text, by the rules of `CommonMark`.
fn blocks(text: &str) -> Vec<String> {
    let (mut blocks, mut open): (Vec<String>, Option<(char, usize)>) = (Vec::new(), None);
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start_matches(' ');
        let sign = trimmed.chars().next().filter(|sign| matches!(sign, '`' | '~'));
        let length = sign.map_or(0, |sign| trimmed.len() - trimmed.trim_start_matches(sign).len());
        let indented = line.len() - trimmed.len() > 3;
        match (open, sign) {
            (None, Some(sign)) if !indented && length >= 3 && (sign == '~' || !trimmed[length..].contains('`')) => {
                open = Some((sign, length));
                blocks.push(String::new());
            }
            (Some((by, least)), Some(sign))
                if !indented && sign == by && length >= least && trimmed[length..].trim().is_empty() =>
            {
                open = None;
            }
            (Some(_), _) => blocks.last_mut().unwrap().push_str(line),
            _ => {}
        }
    }
    blocks
}

fn wild() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("```".to_string()),
        Just("\n```\n".to_string()),
        Just("~~~~\n".to_string()),
        Just("{{task_id}}".to_string()),
        Just("{{skill:a}}".to_string()),
        Just("${HOME}".to_string()),
        Just("\r\n".to_string()),
        Just("\u{202e}rtl".to_string()),
        Just("🚀".to_string()),
        Just("\n".to_string()),
        Just("    ```\n".to_string()),
        Just("{task_id}".to_string()),
        "\\PC{0,8}",
    ];
    proptest::collection::vec(word, 0..12).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_value_stands_verbatim_and_in_its_own_block(prose in wild(), first in wild(), second in wild()) {
        let template = "# T\n{{task_prompt}}\n\n```diff\n{{git_diff_output}}\n```\n\ntext\n\n~~~text\n{{spec}}\n~~~\nend\n";
        let values = |name: &str| Some(Value::new(match name {
            "task_prompt" => prose.clone(),
            "git_diff_output" => first.clone(),
            _ => second.clone(),
        }));
        let text = render_template(&loaded(&[("/root/t/x/prompt.md", template)], "x").unwrap(), &values).unwrap().text();
        prop_assert!(text.contains(&prose) && text.contains(&first) && text.contains(&second));
        let blocks = blocks(&text);
        prop_assert!(blocks.len() >= 2, "{text}");
        prop_assert_eq!(&blocks[blocks.len() - 2], &format!("{first}\n"), "{}", text);
        prop_assert_eq!(&blocks[blocks.len() - 1], &format!("{second}\n"), "{}", text);
        prop_assert!(text.ends_with("end\n"));
    }

    #[test]
    fn any_text_is_parsed_or_refused_without_a_panic(text in "([{}\\\\#/ ]|skill:|if |else|task_id|vars\\.X|---\n|syntax: braces\n|\\PC){0,30}") {
        if let Ok(template) = loaded(&[("/root/t/x/prompt.md", &text)], "x") {
            let _ = (render_template(&template, &value), render_template(&template, &|_| None), template.variables());
        }
        let _ = Path::new(&text);
    }
}
