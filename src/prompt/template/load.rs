//! Loads a template and its skills. All their errors are reported at once, before anything starts.

use super::errors;
use super::front::front;
use super::parse::{Syntax, TemplateNode, parse};
use super::variables::{is_variable, names};
use crate::source::{Diagnostic, Files, Kind, MarkdownHead, Place, Source, nearest};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The deepest nesting of skills.
const DEEPEST: usize = 32;
/// The built-in templates. Below them are the skills that they share.
const BUILT_IN: [(&str, &str); 6] = [
    ("coder", include_str!("../../../prompts/coder.md")),
    ("coder-resume", include_str!("../../../prompts/coder-resume.md")),
    ("reviewer", include_str!("../../../prompts/reviewer.md")),
    ("planner", include_str!("../../../prompts/planner.md")),
    ("carbon", include_str!("../../../prompts/carbon.md")),
    ("helium", include_str!("../../../prompts/helium.md")),
];
const BUILT_IN_SKILLS: [(&str, &str); 4] = [
    ("checklist", include_str!("../../../prompts/skills/checklist.md")),
    ("conventions", include_str!("../../../prompts/skills/conventions.md")),
    ("review-rules", include_str!("../../../prompts/skills/review-rules.md")),
    ("handoff-format", include_str!("../../../prompts/skills/handoff-format.md")),
];
/// Templates that a user writes for the repository. The built-in ones are only starting points.
const MANDATORY: [&str; 2] = ["carbon", "helium"];

/// Returns the built-in templates and skills as files for editing: the path in the templates' directory, and the text.
#[must_use]
pub fn built_in_files() -> Vec<(String, &'static str)> {
    let templates = BUILT_IN.iter().map(|(name, text)| (format!("{name}/prompt.md"), *text));
    let skills = BUILT_IN_SKILLS.iter().map(|(name, text)| (format!("../skills/{name}.md"), *text));
    templates.chain(skills).collect()
}

/// A template with all skills that it uses, directly or through others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// The name by which the template was requested.
    pub name: String,
    pub(super) main: Arc<TemplatePart>,
    pub(super) skills: BTreeMap<String, Arc<TemplatePart>>,
}

/// A parsed file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TemplatePart {
    pub(super) source: Arc<Source>,
    pub(super) nodes: Vec<TemplateNode>,
}

impl Template {
    /// Returns where the template was read.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.main.source.name
    }

    /// Returns where the template and its skills were read: paths from the root. For built-in ones it is a description,
    /// not a path.
    pub fn origins(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.main).chain(self.skills.values()).map(|part| part.source.name.as_str())
    }

    /// Returns the names of all skills that the template uses.
    pub fn skills(&self) -> impl Iterator<Item = &str> {
        self.skills.keys().map(String::as_str)
    }

    /// Returns every variable that the template or one of its skills names.
    #[must_use]
    pub fn variables(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for part in std::iter::once(&self.main).chain(self.skills.values()) {
            collect(&part.nodes, &mut |node| match node {
                TemplateNode::Variable { name, .. } | TemplateNode::If { name, .. } => drop(found.insert(name.clone())),
                _ => {}
            });
        }
        found
    }

    /// Returns the tags of the other dialect, such as `{task_id}`, that are plain text in the template or its skills.
    /// Only names of two words or more count, as one word in braces may be code.
    #[must_use]
    pub fn unread_tags(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for part in std::iter::once(&self.main).chain(self.skills.values()) {
            collect(&part.nodes, &mut |node| {
                let TemplateNode::Text(text, _) = node else { return };
                for (brace, _) in
                    text.match_indices('{').filter(|(brace, _)| !text[..*brace].ends_with(['{', '$', '\\']))
                {
                    let Some((name, _)) = text[brace + 1..].split_once('}') else { continue };
                    if name.contains('_') && is_variable(name) && !found.iter().any(|known| known == name) {
                        found.push(name.to_string());
                    }
                }
            });
        }
        found
    }

    /// Returns every variable whose value the template or one of its skills shows. Testing a variable with `if` does
    /// not show it.
    #[must_use]
    pub fn shown(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for part in std::iter::once(&self.main).chain(self.skills.values()) {
            collect(&part.nodes, &mut |node| {
                if let TemplateNode::Variable { name, .. } = node {
                    found.insert(name.clone());
                }
            });
        }
        found
    }
}

/// The directories of templates and skills.
#[derive(Debug, Clone)]
pub struct TemplateDirs {
    /// The directory of the templates, with a subdirectory for each agent.
    pub templates: PathBuf,
    /// The directory of the skills that all agents share.
    pub shared: PathBuf,
    /// The directories of skills of other tools, each skill in a directory of its own.
    pub discovered: Vec<PathBuf>,
    /// The directory that displayed paths are relative to.
    pub root: PathBuf,
}

/// Loads a template by name: a subdirectory of the templates, or the path of a `.md` file. If there is no such file, a
/// template that was `asked` for may be a built-in one; otherwise the result is `None`.
///
/// # Errors
/// Every error of the template and its skills.
pub fn load(
    name: &str,
    asked: bool,
    places: &TemplateDirs,
    strict: bool,
    files: &dyn Files,
) -> Result<Option<Template>, Vec<Diagnostic>> {
    let by_path = Path::new(name).extension().is_some_and(|extension| extension == "md");
    if !by_path && !is_role(name) {
        return if asked { Err(vec![errors::invalid_role(name)]) } else { Ok(None) };
    }
    let folder = places.templates.join(name);
    let path = if by_path { places.root.join(name) } else { folder.join("prompt.md") };
    let own = if by_path { path.parent().unwrap_or(&places.root).to_path_buf() } else { folder };
    let loader = Loader { places, own, strict, files };
    if by_path && !loader.is_inside(&path) {
        return Err(vec![errors::outside_the_project(&path)]);
    }
    let source = match loader.read(&path, loader.own.as_path()) {
        Ok(Some(source)) => source,
        Err(fault) => return Err(vec![fault]),
        Ok(None) if !asked => return Ok(None),
        Ok(None) => {
            let ours = BUILT_IN.iter().find(|(known, _)| *known == name && !MANDATORY.contains(known));
            let Some((_, text)) = ours else { return Err(vec![errors::not_found(&path, name)]) };
            Source::new(format!("built-in template {name}"), *text, &places.root)
        }
    };
    loader.template(name, source).map(Some)
}

/// Parses a template without skills, in this dialect unless its front matter sets another one.
///
/// # Errors
/// Every error of the template. A reference to a skill is one.
pub fn template_of(name: &str, source: Arc<Source>, syntax: Syntax) -> Result<Template, Vec<Diagnostic>> {
    let mut faults = Vec::new();
    let Some(main) = part(source, syntax, false, &mut faults) else { return Err(faults) };
    collect(&main.nodes, &mut |node| {
        if let TemplateNode::Skill { name, span } = node {
            faults.push(errors::undefined_skill(&Place::new(&main.source, span.clone()), name, None));
        }
    });
    if !faults.is_empty() {
        return Err(faults);
    }
    Ok(Template { name: name.to_string(), main, skills: BTreeMap::new() })
}

struct Loader<'a> {
    places: &'a TemplateDirs,
    own: PathBuf,
    strict: bool,
    files: &'a dyn Files,
}

impl Loader<'_> {
    /// Whether the directory of a template is in the project, or in the directory of the templates. One that does not
    /// exist is reported when the template is read.
    fn is_inside(&self, path: &Path) -> bool {
        let own = path.parent().unwrap_or(path);
        let Ok(real) = self.files.canonical(own) else { return true };
        [&self.places.root, &self.places.templates]
            .into_iter()
            .any(|folder| self.files.canonical(folder).is_ok_and(|folder| real.starts_with(folder)))
    }

    /// Reads a file of `folder` and normalizes its text; `None` if there is no such file.
    fn read(&self, path: &Path, folder: &Path) -> Result<Option<Arc<Source>>, Diagnostic> {
        match self.files.kind(path) {
            // A dangling link is a mistake and does not count as absent.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return if self.files.is_link(path) {
                    Err(errors::unreadable(path, "it is a dangling symbolic link"))
                } else {
                    Ok(None)
                };
            }
            Ok(Kind::Folder) => return Err(errors::unreadable(path, "it is a directory")),
            Ok(Kind::Other) => return Err(errors::unreadable(path, "it is not a file")),
            _ => {}
        }
        let real =
            |path: &Path| self.files.canonical(path).map_err(|error| errors::unreadable(path, &error.to_string()));
        if !real(path)?.starts_with(real(folder)?) {
            return Err(errors::outside(path));
        }
        let bytes = self.files.read(path).map_err(|error| errors::unreadable(path, &error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| errors::unreadable(path, "it is not UTF-8"))?;
        let text = match text.strip_prefix('\u{feff}') {
            Some(text) => text.to_string(),
            None => text,
        };
        let text = if text.contains('\r') { text.replace("\r\n", "\n") } else { text };
        let name = path.strip_prefix(&self.places.root).unwrap_or(path).display().to_string();
        Ok(Some(Source::new(name, text, &self.places.root)))
    }

    fn template(&self, name: &str, source: Arc<Source>) -> Result<Template, Vec<Diagnostic>> {
        let mut faults = Vec::new();
        let main = part(source, Syntax::Mustache, self.strict, &mut faults);
        let Some(main) = main else { return Err(faults) };
        let mut template = Template { name: name.to_string(), main: Arc::clone(&main), skills: BTreeMap::new() };
        let mut path = Vec::new();
        self.follow(&main, &mut template, &mut path, &mut BTreeMap::new(), &mut faults);
        if faults.is_empty() { Ok(template) } else { Err(faults) }
    }

    /// Loads every skill that a part uses, depth first. `path` is the way to this part; `done` holds the depths of
    /// skills that are already loaded. Returns the depth below this part.
    fn follow(
        &self,
        part: &TemplatePart,
        template: &mut Template,
        path: &mut Vec<String>,
        done: &mut BTreeMap<String, usize>,
        faults: &mut Vec<Diagnostic>,
    ) -> usize {
        let mut deepest = 0;
        let mut named: Vec<(String, Place)> = Vec::new();
        collect(&part.nodes, &mut |node| {
            if let TemplateNode::Skill { name, span } = node {
                named.push((name.clone(), Place::new(&part.source, span.clone())));
            }
        });
        for (name, place) in named {
            if path.contains(&name) {
                let from = path.iter().position(|known| *known == name).unwrap_or(0);
                let circle: Vec<String> = path[from..].iter().cloned().chain([name]).collect();
                faults.push(errors::cycle(&place, &circle));
                continue;
            }
            let depth = match done.get(&name) {
                Some(depth) => *depth,
                None if path.len() >= DEEPEST => DEEPEST,
                None => {
                    let Some(skill) = self.skill(&name, &place, template, faults) else { continue };
                    path.push(name.clone());
                    let depth = 1 + self.follow(&skill, template, path, done, faults);
                    path.pop();
                    done.insert(name, depth);
                    depth
                }
            };
            if path.len() + depth > DEEPEST {
                faults.push(errors::too_deep(&place, DEEPEST));
                return deepest;
            }
            deepest = deepest.max(depth);
        }
        deepest
    }

    /// Finds a skill: the agent's own, else the shared one, else the built-in one.
    fn skill(
        &self,
        name: &str,
        at: &Place,
        template: &mut Template,
        faults: &mut Vec<Diagnostic>,
    ) -> Option<Arc<TemplatePart>> {
        if let Some(known) = template.skills.get(name) {
            return Some(Arc::clone(known));
        }
        if !is_skill(name) {
            faults.push(errors::bad_skill_name(at, name));
            return None;
        }
        let mut found = None;
        for folder in [self.own.join("skills"), self.places.shared.clone()] {
            match self.read(&folder.join(format!("{name}.md")), &folder) {
                Ok(Some(source)) => {
                    found = Some(source);
                    break;
                }
                Ok(None) => {}
                Err(fault) => {
                    faults.push(fault);
                    return None;
                }
            }
        }
        let ours = || BUILT_IN_SKILLS.iter().find(|(known, _)| *known == name);
        let found = found.or_else(|| {
            ours().map(|(_, text)| Source::new(format!("built-in skill {name}"), *text, &self.places.root))
        });
        let found = found.or_else(|| self.discovered(name));
        let Some(source) = found else {
            let known = BUILT_IN_SKILLS.iter().map(|(known, _)| *known);
            faults.push(errors::undefined_skill(at, name, nearest(name, known)));
            return None;
        };
        // One final newline belongs to the file, not to the text.
        let source = match source.text.strip_suffix('\n') {
            Some(text) => Source::new(source.name.clone(), text, &source.base),
            None => source,
        };
        let part = part(source, Syntax::Mustache, self.strict, faults)?;
        template.skills.insert(name.to_string(), Arc::clone(&part));
        Some(part)
    }

    /// Finds a skill of another tool. The agent is told what it is about and where it is, and reads it when needed.
    fn discovered(&self, name: &str) -> Option<Arc<Source>> {
        let file = |dir: &PathBuf| self.read(&dir.join(name).join("SKILL.md"), dir).ok().flatten();
        let source = self.places.discovered.iter().find_map(file)?;
        let head = MarkdownHead::of(&source.text).unwrap_or_default();
        let about = head.get("description").unwrap_or_default().replace("{{", "{ {");
        let text = format!("Skill {name}: {about}\nRead `{}` before you do anything that it is about.", source.name);
        Some(Source::new(source.name.clone(), text, &source.base))
    }
}

/// Parses a file, in this dialect unless its front matter sets another one.
fn part(source: Arc<Source>, syntax: Syntax, strict: bool, faults: &mut Vec<Diagnostic>) -> Option<Arc<TemplatePart>> {
    let front = front(&source).map_err(|more| faults.extend(more)).ok()?;
    let syntax = front.syntax.unwrap_or(syntax);
    let (nodes, more) = parse(&source, &source.text[front.end..], front.end, syntax, &is_variable);
    faults.extend(more);
    if strict {
        collect(&nodes, &mut |node| {
            if let TemplateNode::Variable { name, span, .. } | TemplateNode::If { name, span, .. } = node
                && !is_variable(name)
            {
                let place = Place::new(&source, span.clone());
                faults.push(errors::undefined_variable(&place, name, nearest(name, names())));
            }
        });
    }
    Some(Arc::new(TemplatePart { source, nodes }))
}

fn collect(nodes: &[TemplateNode], see: &mut dyn FnMut(&TemplateNode)) {
    for node in nodes {
        see(node);
        if let TemplateNode::If { then, otherwise, .. } = node {
            collect(then, see);
            collect(otherwise, see);
        }
    }
}

/// Returns whether a name is `[A-Za-z0-9][A-Za-z0-9._-]{0,63}` without `..`.
fn is_skill(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
        && !name.contains("..")
}

/// Returns whether a name is valid for an agent, with `:` between its parts.
fn is_role(name: &str) -> bool {
    name.split(':').all(is_skill)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lead_out_of_its_folder() {
        for good in ["task-1", "a", "A0._-", "tasks:manager"] {
            assert!(is_role(good), "{good}");
        }
        for bad in ["", "a/b", "a\\b", "../x", "/abs", "C:\\x", "a b", &"x".repeat(65), "a..b", ".a"] {
            assert!(!is_role(bad) && !is_skill(bad), "{bad}");
        }
    }
}
