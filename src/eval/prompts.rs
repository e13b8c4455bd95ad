//! The prompts of an evaluation: to answer, to judge, to rewrite, to compare.

use super::errors;
use super::suite::Case;
use crate::prompt::{Syntax, Template, TemplateError, Value, render_template, template_of};
use crate::source::{Diagnostic, Files, Place, Source};
use std::path::Path;

const EXECUTE: EvalPromptKind = EvalPromptKind {
    file: "prompt.execute.md",
    ours: include_str!("../../prompts/prompt.execute.md"),
    variables: &["prompt", "task_type", "text", "format_requirements"],
    needed: &["prompt", "text"],
};
const EVALUATE: EvalPromptKind = EvalPromptKind {
    file: "prompt.evaluation.md",
    ours: include_str!("../../prompts/prompt.evaluation.md"),
    variables: &["task_type", "output", "expected_output", "format_requirements"],
    needed: &["output"],
};
const IMPROVE: EvalPromptKind = EvalPromptKind {
    file: "prompt.improve.md",
    ours: include_str!("../../prompts/prompt.improve.md"),
    variables: &[
        "prompt",
        "task_type",
        "format_requirements",
        "issues",
        "suggestions",
        "original_tokens",
        "max_allowed_tokens",
    ],
    needed: &["prompt", "issues", "suggestions"],
};

const COMPARE: EvalPromptKind = EvalPromptKind {
    file: "prompt.compare.md",
    ours: include_str!("../../prompts/prompt.compare.md"),
    variables: &["task_type", "text", "first_output", "second_output", "expected_output", "format_requirements"],
    needed: &["first_output", "second_output"],
};

/// One of the prompts.
struct EvalPromptKind {
    file: &'static str,
    ours: &'static str,
    variables: &'static [&'static str],
    needed: &'static [&'static str],
}

/// The prompts, ready to be filled in.
#[derive(Debug)]
pub struct Prompts {
    pub(super) execute: Template,
    pub(super) evaluate: Template,
    pub(super) improve: Template,
    pub(super) compare: Template,
}

impl Prompts {
    /// Reads the prompts from a directory; a missing one is replaced by the built-in one.
    ///
    /// # Errors
    /// All errors of the prompts that exist; a directory without any of them.
    pub fn read(folder: Option<&Path>, files: &dyn Files) -> Result<Self, Vec<Diagnostic>> {
        let mut faults = Vec::new();
        let found = |kind: &EvalPromptKind| folder.is_some_and(|folder| files.kind(&folder.join(kind.file)).is_ok());
        if let Some(folder) = folder.filter(|_| ![EXECUTE, EVALUATE, IMPROVE, COMPARE].iter().any(found)) {
            return Err(vec![errors::no_prompts(&folder.display().to_string())]);
        }
        let [execute, evaluate, improve, compare] = [EXECUTE, EVALUATE, IMPROVE, COMPARE]
            .map(|kind| kind.read(folder.filter(|_| found(&kind)), files).map_err(|more| faults.extend(more)).ok());
        match (execute, evaluate, improve, compare) {
            (Some(execute), Some(evaluate), Some(improve), Some(compare)) if faults.is_empty() => {
                Ok(Self { execute, evaluate, improve, compare })
            }
            _ => Err(faults),
        }
    }
}

impl EvalPromptKind {
    fn read(&self, folder: Option<&Path>, files: &dyn Files) -> Result<Template, Vec<Diagnostic>> {
        let source = match folder {
            None => Source::new(format!("built-in {}", self.file), self.ours, Path::new("")),
            Some(folder) => {
                let path = folder.join(self.file);
                let text = files.read(&path).map_err(|error| error.to_string());
                let text = text.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8".into()));
                let text = text.map_err(|why| vec![errors::prompt_unreadable(&path.display().to_string(), &why)])?;
                Source::new(path.display().to_string(), text.replace("\r\n", "\n"), folder)
            }
        };
        let whole = Place::whole(&source);
        let template = template_of(self.file, source, Syntax::Braces)?;
        let named = template.variables();
        let foreign = named.iter().filter(|name| !self.variables.contains(&name.as_str()));
        let mut faults: Vec<Diagnostic> =
            foreign.map(|name| errors::foreign_variable(&whole, name, self.file, self.variables)).collect();
        let missing = self.needed.iter().filter(|name| !named.contains(**name));
        faults.extend(missing.map(|name| errors::missing_variable(&whole, name, self.file)));
        if faults.is_empty() { Ok(template) } else { Err(faults) }
    }
}

/// Fills in a template; a variable without a value becomes `None`.
///
/// # Errors
/// When the template asks for a sum over a value that is not a number, or its text grows beyond the limit.
pub(super) fn filled(template: &Template, values: &[(&str, &str)]) -> Result<String, TemplateError> {
    let value = |name: &str| {
        let found = values.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        Some(Value::new(found.filter(|text| !text.trim().is_empty()).unwrap_or("None")))
    };
    Ok(render_template(template, &value)?.text())
}

/// Inserts the case's text and variables where the prompt asks for them: `{text}`, `{NAME}`. Only what `original` asks
/// for is inserted, and in one pass: values are never expanded.
pub(super) fn with_values(prompt: &str, case: &Case, original: &str) -> String {
    let value = |name: &str| match name {
        "text" if !case.vars.contains_key("text") => Some(&*case.text),
        name => case.vars.get(name).map(String::as_str),
    };
    let (mut filled, mut rest) = (String::new(), prompt);
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        filled.push_str(before);
        let placeholder = from.find('}').map(|close| &from[..=close]);
        let known = placeholder.filter(|placeholder| original.contains(placeholder));
        if let Some((known, value)) = known.and_then(|known| Some((known, value(&known[1..known.len() - 1])?))) {
            filled.push_str(value);
            rest = &from[known.len()..];
        } else {
            filled.push('{');
            rest = &from[1..];
        }
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;

    fn read(files: &[(&str, &str)]) -> Result<Prompts, Vec<Diagnostic>> {
        let folder = tempfile::tempdir().unwrap();
        let world = World::look().unwrap();
        for (name, text) in files {
            world.disk().create(&folder.path().join(name), text).unwrap();
        }
        Prompts::read(Some(folder.path()), &world)
    }

    fn ours() -> Prompts {
        Prompts::read(None, &World::look().unwrap()).unwrap()
    }

    #[test]
    fn our_prompts_use_exactly_their_variables() {
        let prompts = ours();
        for (template, kind) in [
            (&prompts.execute, EXECUTE),
            (&prompts.evaluate, EVALUATE),
            (&prompts.improve, IMPROVE),
            (&prompts.compare, COMPARE),
        ] {
            let named: Vec<String> = template.variables().into_iter().collect();
            let mut expected: Vec<String> = kind.variables.iter().map(ToString::to_string).collect();
            expected.sort();
            assert_eq!(named, expected, "{}", kind.file);
        }
    }

    #[test]
    fn a_folder_of_prompts_replaces_ours_one_by_one_and_strange_names_in_them_are_refused() {
        let prompts = read(&[("prompt.execute.md", "{prompt}: {\"json\": \"{text}\"} {unknown}")]).unwrap();
        let text = filled(&prompts.execute, &[("prompt", "Do {text}"), ("text", "{prompt} {x}")]).unwrap();
        assert_eq!(text, "Do {text}: {\"json\": \"{prompt} {x}\"} {unknown}");
        let faults =
            read(&[("prompt.evaluation.md", "{output} {prompt}"), ("prompt.improve.md", "{prompt}")]).unwrap_err();
        let messages: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "prompt.evaluation.md has no variable `prompt`",
                "prompt.improve.md does not use {issues}",
                "prompt.improve.md does not use {suggestions}",
            ]
        );
        assert!(read(&[]).unwrap_err()[0].message.contains("there is no prompt in"));
    }

    #[test]
    fn what_is_not_said_is_none_and_a_text_is_expanded_only_where_it_was_declared() {
        let prompts = ours();
        let text = filled(&prompts.execute, &[("prompt", "P"), ("text", "T"), ("task_type", "x")]).unwrap();
        assert!(text.contains("None"), "{text}");
        let case = Case {
            id: "a".into(),
            text: "{text}{tone}!".into(),
            vars: std::sync::Arc::new([("tone".to_string(), "{text}".to_string())].into()),
            tags: std::sync::Arc::default(),
            tree: None,
            output: None,
            label: None,
            expected: None,
            repeat: None,
            criteria: std::sync::Arc::default(),
        };
        let filled = |prompt| with_values(prompt, &case, "{text} {tone}");
        assert_eq!(filled("Read {text} and {text}."), "Read {text}{tone}! and {text}{tone}!.");
        assert_eq!(filled("{a {tone} {b} {tone"), "{a {text} {b} {tone");
        assert_eq!(with_values("Read {text} {tone}.", &case, "Read."), "Read {text} {tone}.");
    }
}
