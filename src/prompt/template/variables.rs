//! The variables of templates. A value is gathered only if a template names its variable.

/// Every variable with its meaning.
pub const VARIABLES: [(&str, &str); 48] = [
    ("task_prompt", "the user's prompt, from the first of its five levels that has one"),
    ("task_id", "the task's name, or else the run: `run-12`"),
    ("task_title", "the task's title, or else the chain's name"),
    ("task_status", "the task's status before this run; empty without a task"),
    ("previous_status", "the task's status before this attempt"),
    ("rejection_count", "how often the work was rejected, including earlier runs of its task"),
    ("next_rejection", "`rejection_count` plus one"),
    ("rejected", "true if a judge has rejected the work"),
    ("role", "the agent's name"),
    ("project_path", "the absolute path of the root"),
    ("repo_root", "the same as `project_path`"),
    ("worktree_path", "the working directory, which is the root"),
    ("artifacts_root", "the attempt's directory in .forkhestra"),
    ("source_file", "the path of the specification: the chain variable SPEC"),
    ("spec_path", "the same as `source_file`"),
    ("source_file_content", "the text of the specification"),
    ("spec", "the same as `source_file_content`"),
    (
        "agents_md_content",
        "the text of AGENTS.md, or else of CLAUDE.md or GEMINI.md, and of the AGENTS.md nearest to the files concerned",
    ),
    ("skills", "the skills that other tools keep in the project: name, description and file of each"),
    ("relevant_files_summary", "files that seem relevant to the task"),
    ("reviewer_notes", "the notes of the last rejection by a judge"),
    ("feedback", "what ended the previous round: a verdict, or the errors of a check"),
    ("issues", "every finding so far with its state, and the last verdict in full"),
    ("next_tasks", "the tasks that a judge proposes next"),
    ("diagnostics", "the first real errors of the project"),
    ("git_status_output", "the output of `git status --short`"),
    ("git_diff_output", "all changes since the work began, as a patch"),
    ("modified_files_list", "the files changed since the work began"),
    ("reviewer_model", "the agent's model"),
    ("build_command", "the command of the check `build`, else the one detected from the project's files"),
    ("test_command", "the command of the check `test`, else the one detected from the project's files"),
    ("round", "the round of the group, from 1"),
    ("iteration", "the iteration of the loop, from 1"),
    ("max_iterations", "the highest number of iterations of the loop"),
    ("run", "the run's number"),
    ("chain", "the chain's name, or else its text"),
    ("marker", "the marker"),
    // For evaluations.
    ("prompt", "the prompt that is evaluated"),
    ("task_type", "the kind of task"),
    ("text", "the input of the case"),
    ("format_requirements", "the required format of the output"),
    ("output", "the actual output"),
    ("expected_output", "the expected output"),
    ("first_output", "one of two outputs that are compared"),
    ("second_output", "the other one"),
    ("suggestions", "suggested fixes"),
    ("original_tokens", "how many tokens the prompt has"),
    ("max_allowed_tokens", "how many tokens a rewrite may have"),
];

/// Returns whether there is a variable with this name; every `vars.NAME` counts.
pub(super) fn is_variable(name: &str) -> bool {
    name.starts_with("vars.") || VARIABLES.iter().any(|(known, _)| *known == name)
}

/// Returns the names of all variables, for suggestions.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    VARIABLES.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::VARIABLES;

    #[test]
    fn the_page_about_undefined_variables_lists_all_of_them() {
        let pages = include_str!("../../../docs/errors.md");
        let page = pages.split("### `").find(|page| page.starts_with("template/undefined-variable`")).unwrap();
        for (name, _) in VARIABLES {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}
