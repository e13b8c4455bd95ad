//! Every fault of templates and skills.

use crate::source::{Diagnostic, Place};
use std::path::Path;

pub(super) fn not_closed(at: &Place) -> Diagnostic {
    Diagnostic::error("template/not-closed", "this block is never closed")
        .at(at, "opened here")
        .help("close it: {{/if}}, in the braces dialect {end_if}")
}

pub(super) fn not_open(at: &Place) -> Diagnostic {
    Diagnostic::error("template/not-open", "no block is open here")
        .at(at, "has nothing to belong to")
        .help("remove it, or open a block before it: {{#if name}}, in the braces dialect {if_name}")
}

pub(super) fn undefined_variable(at: &Place, name: &str, near: Option<&str>) -> Diagnostic {
    Diagnostic::error("template/undefined-variable", format!("undefined variable: {name}"))
        .at(at, "nothing has this name")
        .help(near.map_or_else(
            || "docs/templates.md lists all of them; \\{{ writes the signs themselves".into(),
            |near| format!("did you mean `{near}`?"),
        ))
}

pub(super) fn undefined_skill(at: &Place, name: &str, near: Option<&str>) -> Diagnostic {
    Diagnostic::error("template/undefined-skill", format!("undefined skill: {name}"))
        .at(at, "no file of this name")
        .help(near.map_or_else(
            || format!("write skills/{name}.md beside the template, or into the shared skills"),
            |near| format!("did you mean `{near}`?"),
        ))
}

pub(super) fn bad_skill_name(at: &Place, name: &str) -> Diagnostic {
    Diagnostic::error("template/skill-name", format!("`{name}` cannot name a skill"))
        .at(at, "not a name")
        .help("a skill's name has letters, digits, `.`, `_` and `-`, at most 64, and no `..`")
}

pub(super) fn cycle(at: &Place, path: &[String]) -> Diagnostic {
    Diagnostic::error("template/skill-cycle", format!("skill cycle: {}", path.join(" -> ")))
        .at(at, "closes the cycle")
        .help("take one of these references out")
}

pub(super) fn too_deep(at: &Place, most: usize) -> Diagnostic {
    Diagnostic::error("template/skill-depth", format!("skills are nested deeper than {most}"))
        .at(at, "one too many")
        .help("put what they say into fewer files")
}

pub(super) fn nested_too_deep(at: &Place, most: usize) -> Diagnostic {
    Diagnostic::error("template/too-deep", format!("blocks are nested more than {most} deep"))
        .at(at, "the first that is too deep")
        .help("put the inner ones into a skill, or leave them out")
}

pub(super) fn not_found(path: &Path, name: &str) -> Diagnostic {
    Diagnostic::error("template/not-found", format!("the template of `{name}` is not found: {}", path.display()))
        .help("it is mandatory for this agent: write it, or let `forkhestra init --templates` write one to begin with")
}

pub(super) fn unreadable(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("template/unreadable", format!("cannot read {}: {why}", path.display()))
        .help("mend its permissions or its encoding; templates are UTF-8")
}

pub(super) fn outside(path: &Path) -> Diagnostic {
    Diagnostic::error("template/outside", format!("{} leads out of its folder", path.display()))
        .help("a template or skill is a file in its own folder, also behind symbolic links")
}

pub(super) fn invalid_role(name: &str) -> Diagnostic {
    Diagnostic::error("template/invalid-role", format!("invalid role: `{name}` cannot name a template"))
        .help("name a folder of the templates: letters, digits, `.`, `_`, `-` and `:`")
}

pub(super) fn unknown_front_key(at: &Place, key: &str, near: Option<&str>) -> Diagnostic {
    Diagnostic::error("template/front-matter", format!("front matter has no key `{key}`")).at(at, "unknown key").help(
        near.map_or_else(
            || "known are `description` and, in a template, `syntax`".into(),
            |near| format!("did you mean `{near}`?"),
        ),
    )
}

pub(super) fn unknown_syntax(at: &Place, value: &str) -> Diagnostic {
    Diagnostic::error("template/syntax", format!("no dialect is called `{value}`"))
        .at(at, "unknown dialect")
        .help("`mustache` ({{name}}, the default) or `braces` ({name})")
}

pub(super) fn unclosed_front(at: &Place) -> Diagnostic {
    Diagnostic::error("template/front-matter", "the front matter is never closed")
        .at(at, "opened here")
        .help("end it with a line of three dashes")
}
