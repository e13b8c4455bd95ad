//! Renders a template for one attempt: the values that it names are gathered, shortened, and filled in.

use crate::context::{Instructions, Repository, Subject, TreeChanges, gather};
use crate::engine::At;
use crate::plan::{TaskFacts, WrappingTemplate};
use crate::proc::capture_git;
use crate::prompt::{Rendered, TemplateError, Value, fit};
use indexmap::IndexMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// What is known of an attempt in addition to its plan.
pub struct AttemptContext<'a> {
    /// The run's number.
    pub run: i64,
    /// The attempt's place in the run.
    pub at: &'a At,
    /// The user's prompt.
    pub task: &'a str,
    /// Why the previous round ended; empty in the first one.
    pub feedback: &'a str,
    /// A judge's notes from the last rejection; empty if there was none.
    pub reviewer_notes: &'a str,
    /// Whether a judge ended the previous round.
    pub rejected: bool,
    /// The task, if the run is working on one.
    pub work: Option<&'a TaskFacts>,
    /// Every finding so far, with its status; empty for none.
    pub issues: &'a str,
    /// The next tasks from a judge's last handoff, one per line.
    pub next_tasks: &'a str,
    /// How often the work was rejected.
    pub rejections: u32,
    /// The first errors that `diagnose` found; empty for none.
    pub diagnostics: &'a str,
    /// What has changed since the work began.
    pub changed: Option<&'a TreeChanges>,
    /// The attempt's directory.
    pub folder: &'a Path,
    /// The directory in which the agent may leave files of another protocol.
    pub artifacts: &'a Path,
}

/// Renders the prompt. Also returns the whole diff if it had to be shortened.
///
/// # Errors
/// When the template cannot be rendered.
pub fn fill(
    around: &WrappingTemplate,
    root: &Path,
    facts: &AttemptContext<'_>,
) -> Result<(Rendered, Option<String>), TemplateError> {
    let wanted = around.template.variables();
    let fact = |name: &str| around.facts.get(name).map_or("", String::as_str);
    let title = if facts.task.is_empty() { fact("task_title") } else { facts.task.lines().next().unwrap_or_default() };
    let subject = Subject { spec: fact("source_file"), title, changes: facts.changed };
    let instructions = Instructions { reads: around.reads.clone(), discovers: around.discovers, judges: around.judges };
    let mut gathered: IndexMap<String, Value> = gather(&wanted, root, subject, &instructions)
        .into_iter()
        .map(|(name, text)| (name, Value::new(text)))
        .collect();
    let diff = gathered.get("git_diff_output").map(|diff| diff.text.clone());
    for (name, text) in [("feedback", facts.feedback), ("reviewer_notes", facts.reviewer_notes)] {
        if wanted.contains(name) {
            gathered.insert(name.into(), Value::new(text));
        }
    }
    if wanted.contains("issues") {
        gathered.insert("issues".into(), Value::new(facts.issues));
    }
    if wanted.contains("diagnostics") {
        gathered.insert("diagnostics".into(), Value::new(facts.diagnostics));
    }
    let patch = facts.folder.join("diff.patch").display().to_string();
    let whole = |name: &str| match name {
        "git_diff_output" => patch.clone(),
        "agents_md_content" => "AGENTS.md".into(),
        "source_file_content" | "spec" => fact("source_file").to_string(),
        "git_status_output" | "modified_files_list" => "`git status`".into(),
        _ => "the logs of the attempt that it describes".into(),
    };
    let fixed = around.render("", &|_| Some(Value::new("1")))?.text().chars().count();
    fit(&mut gathered, fixed, &whole)?;
    let values = |name: &str| {
        if let Some(value) = gathered.get(name) {
            return Some(value.clone());
        }
        let text = match name {
            "task_id" if !around.knows(name) => format!("run-{}", facts.run),
            "run" => facts.run.to_string(),
            "next_tasks" => facts.next_tasks.to_string(),
            "round" => facts.at.round.to_string(),
            "next_rejection" => facts.rejections.saturating_add(1).to_string(),
            "iteration" => facts.at.iteration.to_string(),
            "rejection_count" => facts.rejections.to_string(),
            "rejected" => if facts.rejected { "true" } else { "" }.into(),
            "previous_status" => match facts.work {
                Some(task) if facts.at.round == 1 => task.status.clone(),
                _ => if facts.feedback.is_empty() { "pending" } else { "review" }.into(),
            },
            "artifacts_root" => facts.artifacts.display().to_string(),
            // A value that a later part of the flow provides is empty until then. Known facts take precedence.
            _ if around.knows(name) => return None,
            _ => String::new(),
        };
        Some(Value::new(text))
    };
    let rendered = around.render(facts.task, &values)?;
    let is_cut = gathered.get("git_diff_output").is_some_and(|diff| diff.note.is_some());
    Ok((rendered, diff.filter(|_| is_cut)))
}

/// The longest that all git commands for one prompt may take together: no signals are handled meanwhile.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// How long the first snapshot may take; it reads every file once.
pub(super) const FIRST_PATIENCE: Duration = Duration::from_mins(2);

/// Options with which git only reads: no pager, no hooks, no external filters, and no locks that another process may
/// need. Project settings that would change what is read are switched off.
const QUIET: [&str; 27] = [
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "core.excludesFile=/dev/null",
    "-c",
    "core.autocrlf=false",
    "-c",
    "core.safecrlf=false",
    "-c",
    "advice.addEmbeddedRepo=false",
    "-c",
    "log.showSignature=false",
    "-c",
    "gpg.program=false",
    "-c",
    "gpg.ssh.program=false",
    "-c",
    "gpg.x509.program=false",
    "--no-replace-objects",
];

/// Returns a function that runs git commands until `patience` has passed since this call. We set the repository and its
/// working tree explicitly.
pub(super) fn asking(root: &Path, patience: Duration) -> impl Fn(&[&str]) -> Option<String> + '_ {
    #[expect(clippy::disallowed_methods, reason = "a wait, not an event")]
    let until = Instant::now() + patience;
    move |words: &[&str]| {
        let mut all: Vec<String> = QUIET.iter().map(|word| (*word).to_string()).collect();
        let mut common = None;
        if !words.contains(&"--git-dir") {
            let repository = Repository::of(root)?;
            common = Some(repository.common.clone());
            let (folder, top) = (repository.git_dir.display().to_string(), repository.top.display().to_string());
            all.extend(["--git-dir".into(), folder, "--work-tree".into(), top]);
        }
        all.extend(words.iter().map(|word| (*word).to_string()));
        #[expect(clippy::disallowed_methods, reason = "a wait, not an event")]
        let left = until.saturating_duration_since(Instant::now());
        let answer = if left.is_zero() { None } else { capture_git(&all, root, common.as_deref(), left) }?;
        (answer.code == Some(0)).then_some(answer.stdout)
    }
}
