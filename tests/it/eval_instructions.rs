//! Evaluations whose agents' instructions change while they run.

use crate::evaluations::suite;
use crate::support::Place;

/// Two cases. The executor prints its instructions, and the evaluator passes a case if its own are strict.
fn place(executor: &str) -> Place {
    let place = Place::new();
    place.config(
        r#"{ "backends": {
               "works": { "program": "sh", "arguments": ["works.sh"], "permissions": { "edit": {} } },
               "judges": { "program": "sh", "arguments": ["judges.sh"], "permissions": { "read": {} } } },
             "agents": {
               "shouter": { "backend": "works", "systemPrompt": "works.md" },
               "critic": { "backend": "judges", "systemPrompt": "judges.md" } },
             "chains": {} }"#,
    );
    place.write("works.md", "Be brief. Keep {{NAME}}.").write("works.sh", executor);
    place.write("judges.md", "Be strict. Keep {{NAME}}.").write(
        "judges.sh",
        r#"grep -q 'Be strict' && pass=true score=1 || pass=false score=0
           echo "{\"pass\": $pass, \"score\": $score, \"issues\": [], \"suggestions\": []}""#,
    );
    let case =
        |id| format!(r#"{{ "id": "{id}", "text": "{id}", "criteria": [{{ "type": "keywords", "all": ["brief"] }}] }}"#);
    place.write("suite.json", suite(r#""evaluator": "critic","#, &format!("[{}, {}]", case("a"), case("b"))));
    place
}

#[test]
fn every_case_is_asked_with_the_instructions_as_they_were_when_the_evaluation_began() {
    let place = place("grep '^Be\\|^[ab]$'; echo Be verbose. > works.md; echo Be lenient. > judges.md");
    let ran = place.run(&["eval", "run", "suite.json"]);
    assert!(ran.code(0).stdout.contains("all 2 cases passed (4 attempts)"), "{}", ran.all());
}

#[test]
fn a_resume_reports_instructions_that_have_changed_since_the_evaluation_began() {
    let place = place("grep '^Be'");
    place.run(&["eval", "run", "suite.json", "--limit", "attempts=1"]).code(4);
    place.write("judges.md", "Be lenient.");
    let resume = ["resume", "1", "--limit", "attempts=9"];
    let ran = place.run(&resume);
    assert!(ran.code(2).words().contains("its agents have changed since the evaluation began"), "{}", ran.stderr);
    let ran = place.run(&[&resume[..], &["--accept-changes"]].concat());
    assert!(ran.code(1).stdout.contains("0 of 2 cases passed"), "{}", ran.all());
    place.write("judges.md", "Be strict.");
    assert!(place.run(&["eval", "run", "suite.json"]).code(0).stdout.contains("all 2 cases passed"));
}
