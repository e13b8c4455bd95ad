//! The errors of templates and skills.

use crate::source::{Diagnostic, Place};
use std::path::Path;

pub(super) fn not_closed(at: &Place) -> Diagnostic {
    Diagnostic::error("template/not-closed", "this block is never closed")
        .at(at, "opened here")
        .help("close it with {{/if}}, or {end_if} in the braces dialect")
}

pub(super) fn bad_tag(at: &Place, is_closed: bool) -> Diagnostic {
    let (message, label) = if is_closed {
        ("this is not a valid tag", "cannot be read")
    } else {
        ("this tag is never closed", "opened here")
    };
    Diagnostic::error("template/tag", message)
        .at(at, label)
        .help("write {{name}}, {{name + 1}}, {{skill:name}} or {{#if name}}…{{/if}}, each on one line; for literal braces, write \\{{")
}

pub(super) fn not_open(at: &Place) -> Diagnostic {
    Diagnostic::error("template/not-open", "no block is open here")
        .at(at, "belongs to no block")
        .help("remove it, or open a block before it with {{#if name}}, or {if_name} in the braces dialect")
}

pub(super) fn undefined_variable(at: &Place, name: &str, near: Option<&str>) -> Diagnostic {
    Diagnostic::error("template/undefined-variable", format!("undefined variable: {name}"))
        .at(at, "there is no such variable")
        .help(near.map_or_else(
            || {
                "`forkhestra explain template/undefined-variable` lists all variables; for literal braces, write \\{{"
                    .into()
            },
            |near| format!("did you mean `{near}`?"),
        ))
}

pub(super) fn undefined_skill(at: &Place, name: &str, near: Option<&str>) -> Diagnostic {
    Diagnostic::error("template/undefined-skill", format!("undefined skill: {name}"))
        .at(at, "there is no such file")
        .help(near.map_or_else(
            || format!("create skills/{name}.md next to the template, or {name}.md in the shared skills"),
            |near| format!("did you mean `{near}`?"),
        ))
}

pub(super) fn bad_skill_name(at: &Place, name: &str) -> Diagnostic {
    Diagnostic::error("template/skill-name", format!("`{name}` is not a valid skill name"))
        .at(at, "not a valid name")
        .help("a skill's name has at most 64 letters, digits, `.`, `_` and `-`, and no `..`")
}

pub(super) fn cycle(at: &Place, path: &[String]) -> Diagnostic {
    Diagnostic::error("template/skill-cycle", format!("skill cycle: {}", path.join(" -> ")))
        .at(at, "closes the cycle")
        .help("remove one of these references")
}

pub(super) fn too_deep(at: &Place, most: usize) -> Diagnostic {
    Diagnostic::error("template/skill-depth", format!("skills are nested more than {most} levels deep"))
        .at(at, "one level too many")
        .help("merge them into fewer files")
}

pub(super) fn nested_too_deep(at: &Place, most: usize) -> Diagnostic {
    Diagnostic::error("template/too-deep", format!("blocks are nested more than {most} levels deep"))
        .at(at, "the first that is too deep")
        .help("move the inner blocks to a skill, or remove them")
}

pub(super) fn not_found(path: &Path, name: &str) -> Diagnostic {
    Diagnostic::error("template/not-found", format!("the template `{name}` was not found: {}", path.display()))
        .help("this agent needs its template: write it. `forkhestra init --templates` writes the built-in templates to start from")
}

pub(super) fn unreadable(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("template/unreadable", format!("cannot read {}: {why}", path.display()))
        .help("fix its permissions or its encoding; templates are UTF-8")
}

pub(super) fn outside(path: &Path) -> Diagnostic {
    Diagnostic::error("template/outside", format!("{} leads outside its directory", path.display()))
        .help("a template or skill must be in its own directory, even if it is a symbolic link")
}

pub(super) fn outside_the_project(path: &Path) -> Diagnostic {
    Diagnostic::error("template/outside", format!("the template {} is outside the project", path.display()))
        .help("copy it into the project; or keep it in the directory that `templates` names")
}

pub(super) fn invalid_role(name: &str) -> Diagnostic {
    Diagnostic::error("template/invalid-role", format!("invalid role: `{name}` is not a valid template name"))
        .help("name a directory of the templates; its name has letters, digits, `.`, `_`, `-` and `:`")
}

pub(super) fn unknown_front_key(at: &Place, key: &str, near: Option<&str>) -> Diagnostic {
    Diagnostic::error("template/front-matter", format!("front matter has no key `{key}`")).at(at, "unknown key").help(
        near.map_or_else(
            || "the keys are `description` and, in a template, `syntax`".into(),
            |near| format!("did you mean `{near}`?"),
        ),
    )
}

pub(super) fn unknown_syntax(at: &Place, value: &str) -> Diagnostic {
    Diagnostic::error("template/syntax", format!("there is no dialect `{value}`"))
        .at(at, "unknown dialect")
        .help("use `mustache` ({{name}}, the default) or `braces` ({name})")
}

pub(super) fn unclosed_front(at: &Place) -> Diagnostic {
    Diagnostic::error("template/front-matter", "the front matter is never closed")
        .at(at, "opened here")
        .help("end it with a line of three dashes")
}
