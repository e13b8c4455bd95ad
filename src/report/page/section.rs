//! A section of the page.

use maud::{Markup, html};

/// Returns a section of the page, labelled by its heading. With several runs on a page it is no landmark, because each
/// run has the same sections; the run is one.
pub(super) fn section(prefix: &str, name: &str, title: &str, content: &Markup) -> Markup {
    let id = format!("{prefix}{name}");
    html! {
        @if prefix.is_empty() {
            section aria-labelledby=(id) { h2 id=(id) { (title) } (content) }
        } @else {
            div { h3 id=(id) { (title) } (content) }
        }
    }
}
