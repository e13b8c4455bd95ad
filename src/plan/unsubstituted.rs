//! Warnings, one per prompt, about text that looks like a variable but would reach an agent as written.

use super::{PlannedPrompt, PlannedStep, errors};
use crate::prompt::{Vars, show};
use crate::source::{Diagnostic, Env};

/// The origin of a typed prompt. Its author can see it, so it is not checked.
const TYPED: &str = "--prompt";

/// Returns a warning for each prompt and each template that contains such a name.
pub(super) fn unsubstituted(steps: &[PlannedStep], vars: &Vars, env: &dyn Env) -> Vec<Diagnostic> {
    let mut warnings: Vec<Diagnostic> = Vec::new();
    let mut warn = |warning: Diagnostic| {
        // A prompt shared by several steps is reported once.
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    };
    for prompt in steps.iter().filter_map(|step| step.prompt.as_ref()) {
        if prompt.origin != TYPED {
            // `${HOME}` and the like are meant for a shell.
            let is_left = |name: &&str| is_ours(name, vars) && env.var(name).is_none();
            let stayed: Vec<&str> = prompt.stayed.iter().map(String::as_str).filter(is_left).collect();
            if !stayed.is_empty() {
                warn(errors::variable_stays(&prompt.origin, &stayed));
            }
            let tags = tags(prompt, vars);
            if !tags.is_empty() {
                warn(errors::tag_in_a_prompt(&prompt.origin, &tags));
            }
        }
        if let Some(around) = &prompt.around {
            let unread = around.template.unread_tags();
            if !unread.is_empty() {
                warn(errors::tag_of_the_other_dialect(around.template.origin(), &unread));
            }
        }
    }
    warnings
}

/// Returns whether a name can only be meant as a variable: a known one, or one in capitals. Anything else may be code.
fn is_ours(name: &str, vars: &Vars) -> bool {
    let mut letters = name.bytes();
    vars.names().any(|known| known == name)
        || name.len() > 1 && letters.all(|next| next.is_ascii_uppercase() || next.is_ascii_digit() || next == b'_')
}

/// Returns each `{{NAME}}` in a prompt, where it is plain text: only templates have such tags.
fn tags(prompt: &PlannedPrompt, vars: &Vars) -> Vec<String> {
    let text = show(&prompt.segments);
    let mut found: Vec<String> = Vec::new();
    for after in text.split("{{").skip(1) {
        let Some((name, _)) = after.split_once("}}") else { continue };
        if is_ours(name, vars) && !found.iter().any(|known| known == name) {
            found.push(name.to_string());
        }
    }
    found
}
