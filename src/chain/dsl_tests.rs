//! Tests of the chain language, with examples and with random input.

use super::*;
use crate::chain::show;
use proptest::prelude::*;
use std::path::Path;

fn parsed(text: &str) -> Result<Chain, Vec<Diagnostic>> {
    parse(&Source::new("command line", text, Path::new("/")))
}

/// Returns the errors as `message @ marked text`, one per line.
fn faults(text: &str) -> String {
    let faults = parsed(text).err().unwrap_or_default();
    let line = |fault: &Diagnostic| {
        let at = fault.places.first().map_or("", |(place, _)| &text[place.span.clone()]);
        format!("{} @ {at:?}", fault.message)
    };
    faults.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_the_grammar_allows_is_parsed_and_shown_in_its_plain_form() {
    for (text, shown) in [
        ("a", "a"),
        ("coder:3->reviewer:1", "coder:3 -> reviewer:1"),
        ("  a\n->\n b :\t3 ", "a -> b:3"),
        ("tasks:manager:3 -> fk:builder", "tasks:manager:3 -> fk:builder"),
        ("(coder -> build -> (x:2):3 ):15 -> y", "(coder -> build -> (x:2):3):15 -> y"),
        ("(a)", "(a)"),
        ("a-b -> a.b -> a_b -> 9", "a-b -> a.b -> a_b -> 9"),
        ("a--> b", "a- -> b"),
        ("a:1000000", "a:1000000"),
        ("a:1.5", "a:1.5"),
    ] {
        assert_eq!(parsed(text).map(|chain| show(&chain.items)), Ok(shown.to_string()), "{text}");
    }
}

#[test]
fn every_fault_is_reported_at_its_place() {
    insta::assert_snapshot!(faults("-> a:0 -> (b c:x:) -> ) d:3:4 ->"), @r#"
    there is nothing before this `->` @ "->"
    `0` is not a valid count @ "0"
    `->` is missing before `c` @ "c"
    a count is missing after `:` @ ":"
    there is nothing after this `->` @ "->"
    this `)` has no matching `(` @ ")"
    `->` is missing before `d` @ "d"
    a step can have only one count @ "3"
    there is nothing after this `->` @ "->"
    "#);
}

#[test]
fn the_originals_dsl_errors_are_errors() {
    let table: String = [
        "",
        "   ",
        "a->",
        "a->->b",
        "->a",
        "a:0",
        "a:-1",
        "a:+3",
        "a:03",
        "a:99999999999999999999",
        "a:1000001",
        "a:",
        ":3",
        "a:3:4",
        "./x",
        "/bin/x",
        "a b",
        "a>b",
        "a - > b",
        "a→b",
        "_a",
        "é",
        "a, b",
        "(a",
        "a)",
        "()",
        "(a):",
        "(a):0",
        "tasks : manager",
        "a ( b )",
        "--dry-run",
    ]
    .map(|text| format!("{text:?}: {}\n", faults(text).replace('\n', " | ")))
    .concat();
    insta::assert_snapshot!(table);
}

#[test]
fn a_hundred_thousand_parentheses_are_one_error() {
    assert!(faults(&"(".repeat(100_000)).starts_with("groups are nested more than 64 levels deep"));
    let deepest = format!("{}a{}", "(".repeat(64), ")".repeat(64));
    assert_eq!(parsed(&deepest).map(|chain| show(&chain.items)), Ok(deepest));
}

fn name() -> impl Strategy<Value = String> {
    // The last part never consists of digits alone, which would be a count.
    proptest::collection::vec("[a-zA-Z][a-zA-Z0-9_.]{0,5}(-[a-z]{1,3})?", 1..3).prop_map(|parts| parts.join(":"))
}

fn text_of_chain() -> impl Strategy<Value = String> {
    let count = prop_oneof![Just(String::new()), (1..=MOST_ITERATIONS).prop_map(|count| format!(":{count}"))];
    let step = (name(), count.clone()).prop_map(|(name, count)| name + &count);
    step.prop_recursive(6, 24, 4, move |inner| {
        (proptest::collection::vec(inner, 1..4), count.clone(), any::<bool>()).prop_map(|(items, count, flat)| {
            let items = items.join(" -> ");
            if flat { items } else { format!("({items}){count}") }
        })
    })
}

/// Removes places, which differ between two texts of the same chain.
fn without_places(items: Vec<Item>) -> Vec<Item> {
    let nowhere = Place::new(&Source::new("", "", Path::new("/")), 0..0);
    items
        .into_iter()
        .map(|item| match item {
            Item::Step(mut step) => {
                step.name.at = nowhere.clone();
                Item::Step(step)
            }
            Item::Group(group) => {
                Item::Group(Group { items: without_places(group.items), at: nowhere.clone(), ..group })
            }
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_chain_that_is_shown_parses_to_itself(text in text_of_chain()) {
        let chain = parsed(&text).map_err(|faults| TestCaseError::fail(format!("{text}: {faults:?}")))?;
        let again = parsed(&show(&chain.items)).map_err(|faults| TestCaseError::fail(format!("{text}: {faults:?}")))?;
        prop_assert_eq!(without_places(chain.items), without_places(again.items));
    }

    #[test]
    fn any_text_is_parsed_or_refused_with_places_inside_it(text in "[a-z0-9:()\\-> \\n\\PC]{0,40}") {
        for fault in parsed(&text).err().unwrap_or_default() {
            for (place, _) in fault.places {
                prop_assert!(text.get(place.span.clone()).is_some(), "{:?}", place.span);
            }
        }
    }
}
