//! The names that a template may use. Gathered only when it names them.

/// Every variable with what it stands for: the 16 of seed 000, the 6 of seed 001, those of seed 003, and ours.
pub const VARIABLES: [(&str, &str); 45] = [
    ("task_prompt", "the prompt, as the five levels gave it"),
    ("task_id", "the task, else the run: `run-12`"),
    ("task_title", "the task's title, else the chain's name"),
    ("task_status", "the task's status before this run; empty without a task"),
    ("previous_status", "the task's status before this attempt"),
    ("rejection_count", "how often the work was rejected, earlier runs of its task included"),
    ("next_rejection", "one more than that"),
    ("rejected", "true where a judge ended the last round"),
    ("role", "the agent's name"),
    ("project_path", "the root, absolute"),
    ("repo_root", "the same"),
    ("worktree_path", "the folder that is worked in: the root"),
    ("artifacts_root", "the attempt's folder in .forkhestra"),
    ("source_file", "the path of the specification: the chain variable SPEC"),
    ("spec_path", "the same"),
    ("source_file_content", "the specification"),
    ("spec", "the same"),
    ("agents_md_content", "AGENTS.md"),
    ("relevant_files_summary", "files that the task seems to be about"),
    ("reviewer_notes", "what a judge said when it rejected the work last"),
    ("feedback", "what ended the last round: a verdict, or the errors of a check"),
    ("issues", "every finding so far and what became of it, and the last verdict in full"),
    ("next_tasks", "what a judge wants next"),
    ("diagnostics", "the first real errors of the project"),
    ("git_status_output", "git status --short"),
    ("git_diff_output", "everything since the commit that the run began at"),
    ("modified_files_list", "the files of that"),
    ("reviewer_model", "the agent's model"),
    ("build_command", "the check `build`, else what the files of the project say"),
    ("test_command", "the check `test`, likewise"),
    ("round", "the round of the group, from 1"),
    ("iteration", "the iteration of the loop, from 1"),
    ("max_iterations", "of how many"),
    ("run", "the run's number"),
    ("chain", "the chain's name, or its text"),
    ("marker", "the marker"),
    // Of evaluations.
    ("prompt", "the prompt that is measured"),
    ("task_type", "the kind of task"),
    ("text", "the input"),
    ("format_requirements", "what the output has to look like"),
    ("output", "what was put out"),
    ("expected_output", "what was expected"),
    ("suggestions", "what would mend it"),
    ("original_tokens", "how many tokens the prompt has"),
    ("max_allowed_tokens", "how many a rewriting may have"),
];

/// Whether a variable of this name exists; every `vars.NAME` does.
pub(super) fn is_variable(name: &str) -> bool {
    name.starts_with("vars.") || VARIABLES.iter().any(|(known, _)| *known == name)
}

/// Every name, for suggestions.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    VARIABLES.iter().map(|(name, _)| *name)
}
