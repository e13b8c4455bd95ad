//! Prints a chain as the text that parses to it.

use super::ir::{Item, Limit};
use std::fmt::Write;

/// Returns the items in the chain language, on one line.
#[must_use]
pub fn show(items: &[Item]) -> String {
    let mut text = String::new();
    write_items(items, &mut text);
    text
}

fn write_items(items: &[Item], text: &mut String) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push_str(" -> ");
        }
        // Writing to a String cannot fail.
        match item {
            Item::Step(step) => {
                text.push_str(&step.name.value);
                if let Limit::UpTo(count) = step.limit {
                    let _ = write!(text, ":{count}");
                }
            }
            Item::Group(group) => {
                text.push('(');
                write_items(&group.items, text);
                text.push(')');
                if let Some(rounds) = group.rounds {
                    let _ = write!(text, ":{rounds}");
                }
            }
        }
    }
}
