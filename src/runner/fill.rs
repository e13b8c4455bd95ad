//! A template's prompt for one attempt: what it names is gathered, cut to size, and filled in.

use crate::context::{Repository, TreeChanges, gather};
use crate::engine::At;
use crate::plan::{Around, TaskFacts};
use crate::proc::ask_git;
use crate::prompt::{Rendered, TemplateError, Value, fit};
use indexmap::IndexMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// What is known of an attempt beside its plan.
pub struct Moment<'a> {
    /// The run's number.
    pub run: i64,
    /// Where it is.
    pub at: &'a At,
    /// The user's prompt.
    pub task: &'a str,
    /// What ended the last round; empty in the first one.
    pub feedback: &'a str,
    /// What a judge said when it rejected the work last; empty if none did.
    pub reviewer_notes: &'a str,
    /// Whether it was a judge that ended the last round.
    pub rejected: bool,
    /// The task, if the run works on one.
    pub work: Option<&'a TaskFacts>,
    /// Every finding so far, and what became of it; empty for none.
    pub issues: &'a str,
    /// What the last handoff of a judge wants next.
    pub next_tasks: &'a str,
    /// How often the work was rejected.
    pub rejections: u32,
    /// The first errors that `diagnose` has found; empty for none.
    pub diagnostics: &'a str,
    /// What was changed since the work began.
    pub changed: Option<&'a TreeChanges>,
    /// The attempt's folder.
    pub folder: &'a Path,
    /// Where its agent may leave files of another protocol.
    pub artifacts: &'a Path,
}

/// The prompt, and the whole diff where it had to be cut.
///
/// # Errors
/// When the template cannot be rendered.
pub fn fill(around: &Around, root: &Path, moment: &Moment<'_>) -> Result<(Rendered, Option<String>), TemplateError> {
    let wanted = around.template.variables();
    let fact = |name: &str| around.facts.get(name).map_or("", String::as_str);
    let title =
        if moment.task.is_empty() { fact("task_title") } else { moment.task.lines().next().unwrap_or_default() };
    let mut gathered: IndexMap<String, Value> = gather(&wanted, root, fact("source_file"), title, moment.changed)
        .into_iter()
        .map(|(name, text)| (name, Value::new(text)))
        .collect();
    // What is known before the run is not gathered.
    gathered.retain(|name, _| name != "agents_md_content" || !around.knows(name));
    let diff = gathered.get("git_diff_output").map(|diff| diff.text.clone());
    for (name, text) in [("feedback", moment.feedback), ("reviewer_notes", moment.reviewer_notes)] {
        if wanted.contains(name) {
            gathered.insert(name.into(), Value::new(text));
        }
    }
    if wanted.contains("issues") {
        gathered.insert("issues".into(), Value::new(moment.issues));
    }
    if wanted.contains("diagnostics") {
        gathered.insert("diagnostics".into(), Value::new(moment.diagnostics));
    }
    let patch = moment.folder.join("diff.patch").display().to_string();
    let whole = |name: &str| match name {
        "git_diff_output" => patch.clone(),
        "agents_md_content" => "AGENTS.md".into(),
        "source_file_content" | "spec" => fact("source_file").to_string(),
        "git_status_output" | "modified_files_list" => "`git status`".into(),
        _ => "the logs of the attempt that it is about".into(),
    };
    let fixed = around.render("", &|_| Some(Value::new("1")))?.text().chars().count();
    fit(&mut gathered, fixed, &whole)?;
    let values = |name: &str| {
        if let Some(value) = gathered.get(name) {
            return Some(value.clone());
        }
        let text = match name {
            "task_id" if !around.knows(name) => format!("run-{}", moment.run),
            "run" => moment.run.to_string(),
            "next_tasks" => moment.next_tasks.to_string(),
            "round" => moment.at.round.to_string(),
            "next_rejection" => moment.rejections.saturating_add(1).to_string(),
            "iteration" => moment.at.iteration.to_string(),
            "rejection_count" => moment.rejections.to_string(),
            "rejected" => if moment.rejected { "true" } else { "" }.into(),
            "previous_status" => match moment.work {
                Some(task) if moment.at.round == 1 => task.status.clone(),
                _ => if moment.feedback.is_empty() { "pending" } else { "review" }.into(),
            },
            "artifacts_root" => moment.artifacts.display().to_string(),
            // What later parts of the flow bring is empty until then; facts are asked before.
            _ if around.knows(name) => return None,
            _ => String::new(),
        };
        Some(Value::new(text))
    };
    let rendered = around.render(moment.task, &values)?;
    let is_cut = gathered.get("git_diff_output").is_some_and(|diff| diff.note.is_some());
    Ok((rendered, diff.filter(|_| is_cut)))
}

/// The longest that all questions to git of one prompt may take together: meanwhile no signal is heard.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// git, read and never written: no pager, hooks, filters of others, or locks that it could take away from somebody; and nothing of
/// the project's settings that would change what is read.
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

/// Asks git questions for so long as there is patience. Which repository is asked, and where its working tree is, is said by us.
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
        let answer = if left.is_zero() { None } else { ask_git(&all, root, common.as_deref(), left) }?;
        (answer.code == Some(0)).then_some(answer.stdout)
    }
}
