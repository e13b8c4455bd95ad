//! The prompt of an agent: where its text comes from, which prompts an agent cannot receive, and warnings about text
//! that looks like a variable but would reach the agent as written.

use super::context::{Context, Faults, LONGEST_ARGUMENT, named_path, path_of};
use super::secrets::no_secret;
use super::{PlannedPrompt, PlannedStep, errors};
use crate::chain::Delivery;
use crate::marker::count_lines;
use crate::prompt::{ChosenPrompt, Level, Segment, Vars, expand_config, expand_prose, read_prompt_file, show, text};
use crate::source::{Diagnostic, Env, Place};

/// Space for the feedback that is appended in a group: two streams, up to four bytes per character, and their frame.
const FEEDBACK_ROOM: usize = 2 * crate::prompt::FEEDBACK_CHARACTERS * 4 + 4_096;
/// The origin of a typed prompt. Its author can see what it contains.
const TYPED: &str = "--prompt";

/// Returns the prompt's text; `None` if it is empty, which means no prompt.
pub(super) fn prompt_text(
    context: &Context<'_>,
    picked: ChosenPrompt<'_>,
    level: Level,
    faults: &mut Faults,
) -> Option<PlannedPrompt> {
    let command_line = level == Level::CommandLine;
    let (value, stayed, origin) = match picked {
        ChosenPrompt::Silent => return None,
        ChosenPrompt::Inline(said) if command_line => {
            let (value, stayed) = expand_prose(&said.value, &context.vars);
            (value, stayed, said.at.source.name.clone())
        }
        ChosenPrompt::Inline(said) => {
            let value = faults.many(expand_config(said, &context.vars, context.env))?;
            (value, Vec::new(), said.at.to_string())
        }
        ChosenPrompt::File(name) => {
            let path = if command_line {
                path_of(&name.value, &name.at.source.base, context.env)
            } else {
                named_path(context, name, faults)?
            };
            let prose = faults.one(read_prompt_file(context.files, &path, &name.at))?;
            let (value, stayed) = expand_prose(&prose, &context.vars);
            (value, stayed, path.display().to_string())
        }
    };
    if value.is_empty() {
        return None;
    }
    Some(PlannedPrompt { segments: text(value), around: None, deliver: Delivery::Arg, origin, stayed })
}

/// Puts the instructions at the head of the prompt, for a backend that has no other place for them.
pub(super) fn prefaced(prompt: Option<PlannedPrompt>, preface: &str) -> PlannedPrompt {
    let Some(mut prompt) = prompt else {
        let (segments, origin) = (text(preface), "the agent's instructions".into());
        return PlannedPrompt { segments, around: None, deliver: Delivery::Stdin, origin, stayed: Vec::new() };
    };
    let head = format!("# Your instructions\n\n{preface}\n\n# Your task\n\n");
    if let Some(around) = &mut prompt.around {
        around.head = head;
        return prompt;
    }
    match prompt.segments.first_mut() {
        Some(Segment::Text(known)) => known.insert_str(0, &head),
        _ => prompt.segments.splice(0..0, text(head)).for_each(drop),
    }
    prompt
}

/// What decides which prompts an agent can receive.
pub(super) struct PromptRules<'a> {
    /// Where the agent is defined.
    pub(super) at: &'a Place,
    /// The line that ends a loop.
    pub(super) marker: &'a str,
    /// Whether feedback may be appended, because the agent is in a group.
    pub(super) grouped: bool,
    /// Whether its backend executes a command at the start of a prompt, such as `/clear`.
    pub(super) slash_commands: bool,
}

impl PromptRules<'_> {
    /// Reports a prompt that the agent cannot receive, or not in this way, and one whose echo would end the loop.
    pub(super) fn check(&self, prompt: &PlannedPrompt, faults: &mut Faults) {
        let shown = prompt.show();
        let known = match prompt.segments.first() {
            _ if prompt.around.is_some() => Some(&shown),
            Some(Segment::Text(known)) => Some(known),
            _ => None,
        };
        if let Some(known) = known {
            self.check_known(known, prompt, faults);
        }
        if self.slash_commands && is_slash_command(&shown) {
            faults.0.push(errors::slash_command(&prompt.origin));
        }
    }

    /// Checks the part of a prompt that is known before the run.
    fn check_known(&self, known: &str, prompt: &PlannedPrompt, faults: &mut Faults) {
        if count_lines(known.as_bytes(), self.marker) > 0 {
            faults.0.push(errors::marker_in_prompt(&prompt.origin, self.marker));
        }
        if prompt.deliver == Delivery::Arg {
            let room = LONGEST_ARGUMENT - if self.grouped { FEEDBACK_ROOM } else { 0 };
            if known.len() > room {
                faults.0.push(errors::prompt_too_long(self.at, &prompt.origin, known.len(), room));
            }
            if known.contains('\0') && no_secret(self.at, "a prompt", known).is_none() {
                faults.0.push(errors::nul_in_prompt(self.at, &prompt.origin));
            }
        }
    }
}

/// Returns whether a text starts with a slash command of a backend, such as `/clear`, and not with a path.
fn is_slash_command(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    word.strip_prefix('/').is_some_and(|name| {
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|next| next.is_ascii_alphanumeric() || matches!(next, '-' | '_' | ':'))
    })
}

/// Returns warnings about text in prompts and templates that looks like a variable but would reach an agent as written.
pub(super) fn unsubstituted(steps: &[PlannedStep], vars: &Vars, env: &dyn Env) -> Vec<Diagnostic> {
    let mut warnings: Vec<Diagnostic> = Vec::new();
    let mut warn = |warning: Diagnostic| {
        // A prompt shared by several steps is reported once.
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    };
    for prompt in steps.iter().filter_map(|step| step.prompt.as_ref()) {
        unsubstituted_in(prompt, vars, env).for_each(&mut warn);
        if let Some(around) = &prompt.around {
            let unread = around.template.unread_tags();
            if !unread.is_empty() {
                warn(errors::tag_of_the_other_dialect(around.template.origin(), &unread));
            }
        }
    }
    warnings
}

/// Returns the warnings about the text of one prompt.
pub(super) fn unsubstituted_in(prompt: &PlannedPrompt, vars: &Vars, env: &dyn Env) -> impl Iterator<Item = Diagnostic> {
    let is_checked = prompt.origin != TYPED;
    // `${HOME}` and the like are meant for a shell.
    let is_left = |name: &&str| is_checked && is_ours(name, vars) && env.var(name).is_none();
    let stayed: Vec<&str> = prompt.stayed.iter().map(String::as_str).filter(is_left).collect();
    let stays = (!stayed.is_empty()).then(|| errors::variable_stays(&prompt.origin, &stayed));
    let tags = if is_checked { tags(prompt, vars) } else { Vec::new() };
    let tag = (!tags.is_empty()).then(|| errors::tag_in_a_prompt(&prompt.origin, &tags));
    stays.into_iter().chain(tag)
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
