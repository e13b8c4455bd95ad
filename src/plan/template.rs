//! The template around a prompt: loaded and checked when the plan is built, rendered for each iteration.

use super::backend::backend_of;
use super::context;
use super::context::{Context, Faults};
use crate::chain::{Agent, Config, Delivery, Role, Run, SKILL_DIRS, Step};
use crate::checks::detect;
use crate::prompt::{Late, Segment, Template, TemplateDirs, TemplateError, Value, load, render, render_template, show};
use crate::source::Env;
use indexmap::IndexMap;
use std::path::Path;
use std::sync::Arc;

/// A template around a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappingTemplate {
    /// The loaded template.
    pub template: Arc<Template>,
    /// Text before the template: the instructions, for a backend that has no other place for them.
    pub head: String,
    /// The values of variables that are known when the plan is built.
    pub facts: IndexMap<String, String>,
    /// The project's commands, detected from its files. They may change during the run.
    pub commands: IndexMap<String, String>,
    /// The files and directories of the project that the backend reads by itself.
    pub reads: Vec<String>,
    /// Whether skills and instructions of other tools are used.
    pub discovers: bool,
    /// Whether the agent judges.
    pub judges: bool,
}

impl WrappingTemplate {
    /// Renders the whole prompt. `task` is the user's prompt, `values` gives the other variables. A variable without a
    /// value stays as written.
    ///
    /// # Errors
    /// The same as [`render_template`].
    pub fn render(
        &self,
        task: &str,
        values: &dyn Fn(&str) -> Option<Value>,
    ) -> Result<crate::prompt::Rendered, TemplateError> {
        let value = |name: &str| match name {
            "task_prompt" => Some(Value::new(task)),
            _ => values(name).or_else(|| self.facts.get(name).or_else(|| self.commands.get(name)).map(Value::new)),
        };
        let mut rendered = render_template(&self.template, &value)?;
        if !self.head.is_empty() {
            rendered.pieces.insert(0, crate::prompt::Piece::of("instructions", &self.head));
        }
        // A template that does not mention the task comes before it.
        if !self.template.shown().contains("task_prompt") && !task.is_empty() {
            let newline = if rendered.text().ends_with('\n') { "\n" } else { "\n\n" };
            rendered.pieces.push(crate::prompt::Piece::of("task_prompt", &format!("{newline}{task}")));
        }
        Ok(rendered)
    }

    /// Returns whether the value of a variable is known before the run.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.facts.contains_key(name) || self.commands.contains_key(name)
    }

    /// Returns a copy without the values that may change during the run, so that the same plan keeps its digest.
    #[must_use]
    pub fn lasting(&self) -> Self {
        Self { commands: IndexMap::new(), ..self.clone() }
    }

    /// Returns whether the template has a place for feedback on the previous round; for a judge, for the findings so
    /// far.
    #[must_use]
    pub fn names_feedback(&self, role: Role) -> bool {
        let names = self.template.shown();
        let places: &[&str] =
            if role == Role::Judge { &["feedback", "reviewer_notes", "issues"] } else { &["feedback"] };
        places.iter().any(|name| names.contains(*name))
    }
}

/// A prompt, as it will be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPrompt {
    /// The user's prompt.
    pub segments: Vec<Segment>,
    /// The template around the user's prompt, if any.
    pub around: Option<Box<WrappingTemplate>>,
    /// How the program receives the prompt.
    pub deliver: Delivery,
    /// Where the prompt was written: an option, a place in a config, or a file.
    pub origin: String,
    /// The names in `${NAME}` that are not variables and were left in the prompt.
    pub stayed: Vec<String>,
}

impl PlannedPrompt {
    /// Returns the prompt as far as it is known, with the names of late variables in their places.
    #[must_use]
    pub fn show(&self) -> String {
        let task = show(&self.segments);
        match &self.around {
            None => task,
            Some(around) => match around.render(&task, &|_| None) {
                Ok(rendered) => rendered.text(),
                Err(error) => format!("[{error}]"),
            },
        }
    }

    /// Returns the size of the known part, in bytes.
    #[must_use]
    pub fn known_bytes(&self) -> usize {
        match &self.around {
            Some(_) => self.show().len(),
            None => {
                self.segments.iter().map(|segment| if let Segment::Text(text) = segment { text.len() } else { 0 }).sum()
            }
        }
    }

    /// Returns the user's prompt with late names filled in.
    #[must_use]
    pub fn task(&self, value: &dyn Fn(Late) -> String) -> String {
        render(&self.segments, value)
    }

    /// Returns the names of the variables that are known only during the run.
    #[must_use]
    pub fn late(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let task = self.segments.iter().filter_map(|segment| match segment {
            Segment::Late(late) => Some(late.name().to_string()),
            Segment::Text(_) => None,
        });
        names.extend(task);
        if let Some(around) = &self.around {
            let known = |name: &String| name == "task_prompt" || around.knows(name);
            names.extend(around.template.variables().into_iter().filter(|name| !known(name)));
        }
        names
    }
}

/// Returns the directories of templates and skills: from `templates` in the config, else `forge/agents` and
/// `forge/skills`.
#[must_use]
pub fn places(config: &Config, root: &Path, env: &dyn Env) -> TemplateDirs {
    let root = root.to_path_buf();
    let dirs: &[&str] = if config.discovers() { &SKILL_DIRS } else { &[] };
    let discovered = dirs.iter().map(|dir| root.join(dir)).collect();
    let (templates, shared) = match &config.templates {
        Some(folder) => {
            let templates = context::path_of(&folder.value, &folder.at.source.base, env);
            (templates.clone(), templates.join("skills"))
        }
        None => (root.join("forge/agents"), root.join("forge/skills")),
    };
    TemplateDirs { templates, shared, discovered, root }
}

/// Returns the template of a step's agent; `None` if it has none.
pub(super) fn around(
    context: &Context<'_>,
    step: &Step,
    agent: &Agent,
    faults: &mut Faults,
) -> Option<WrappingTemplate> {
    let (name, asked) = match &agent.template {
        Some(name) => (name.value.as_str(), true),
        None => (step.name.value.as_str(), false),
    };
    let places = places(context.request.config, context.request.root, context.env);
    // After an interrupted worker, the next one is shown what it left.
    let cut_off = context.request.task.is_some_and(|task| task.cut_off);
    let name = if name == "coder" && cut_off { "coder-resume" } else { name };
    let template = faults.many(load(name, asked, &places, true, context.files))??;
    for name in template.variables().iter().filter_map(|name| name.strip_prefix("vars.")) {
        context.vars.note_mentioned(&format!("${{{name}}}"));
    }
    let facts = facts(context, step, agent);
    let named = backend_of(context, agent, &step.name.at).ok().flatten();
    let reads = named.and_then(|named| named.backend.reads.clone()).unwrap_or_default();
    let wanted = template.variables();
    let missing =
        ["build_command", "test_command"].iter().any(|name| wanted.contains(*name) && !facts.contains_key(*name));
    let commands = if missing { commands(context) } else { IndexMap::new() };
    let discovers = context.request.config.discovers();
    let judges = agent.role == Some(Role::Judge);
    Some(WrappingTemplate {
        template: Arc::new(template),
        head: String::new(),
        facts,
        commands,
        reads,
        discovers,
        judges,
    })
}

/// Returns the commands that build and test the project, detected from its files.
fn commands(context: &Context<'_>) -> IndexMap<String, String> {
    let detected = detect(context.request.root, context.files);
    let found = [("build_command", detected.build), ("test_command", detected.test)];
    found.into_iter().filter_map(|(name, line)| Some((name.to_string(), line?))).collect()
}

/// Returns the variables of a step that are known before the run.
pub(super) fn facts(context: &Context<'_>, step: &Step, agent: &Agent) -> IndexMap<String, String> {
    let config = context.request.config;
    let root = context.request.root.display().to_string();
    let command = |name: &str| {
        let check = config.checks.get(name)?.value.as_ref()?;
        Some(match &check.run {
            Run::Shell(line) => line.value.clone(),
            Run::Words(words) => words.iter().map(|word| word.value.as_str()).collect::<Vec<_>>().join(" "),
        })
    };
    let model = agent.model().unwrap_or(step.name.value.as_str());
    let mut variables = context.vars.all();
    let spec = variables.get("SPEC").cloned().unwrap_or_default();
    if !spec.is_empty() {
        context.vars.note_mentioned("SPEC");
    }
    let title = context.chain_name();
    let iterations = match step.limit {
        crate::chain::Limit::Once => 1,
        crate::chain::Limit::UpTo(count) => count.get(),
    };
    let known = [
        ("role", step.name.value.clone()),
        ("task_title", title.to_string()),
        ("project_path", root.clone()),
        ("repo_root", root.clone()),
        ("worktree_path", root),
        ("source_file", spec.clone()),
        ("spec_path", spec),
        ("reviewer_model", model.to_string()),
        ("max_iterations", iterations.to_string()),
        ("chain", title.to_string()),
        ("marker", context.marker.clone()),
    ];
    let mut facts: IndexMap<String, String> = known.map(|(name, value)| (name.to_string(), value)).into();
    if let Some(task) = context.request.task {
        let of_task = [
            ("task_id", &task.id),
            ("task_title", &task.title),
            ("source_file", &task.spec),
            ("spec_path", &task.spec),
            ("task_status", &task.status),
        ];
        facts.extend(of_task.map(|(name, value)| (name.to_string(), value.clone())));
    }
    let configured = [("build_command", command("build")), ("test_command", command("test"))];
    facts.extend(configured.into_iter().filter_map(|(name, line)| Some((name.to_string(), line?))));
    facts.extend(variables.drain(..).map(|(name, value)| (format!("vars.{name}"), value)));
    facts
}

/// Reports chain variables that a template uses but that were neither given nor declared.
pub(super) fn missing_variables(around: &WrappingTemplate, at: &crate::source::Place, faults: &mut Faults) {
    for name in around.template.variables() {
        if name.starts_with("vars.") && !around.facts.contains_key(&name) {
            let known = around.facts.keys().filter_map(|known| known.strip_prefix("vars."));
            let name = name.trim_start_matches("vars.");
            faults.0.push(super::errors::template_variable(
                at,
                around.template.origin(),
                name,
                crate::source::nearest(name, known),
            ));
        }
    }
}
