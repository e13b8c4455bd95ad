//! Prompts: their five levels, chain variables, templates, and the segments of planned texts. Pure.

mod errors;
mod feedback;
mod levels;
mod segments;
mod template;
mod vars;

pub use feedback::{
    FEEDBACK_CHARACTERS, FeedbackText, exhausted_feedback, failed_check_feedback, found_so_far, rejected_feedback,
    told_by_people,
};
pub use levels::{ChosenPrompt, Level, pick, read_prompt_file};
pub use segments::{Late, Segment, render, show, text};
pub use template::{
    Origin, Piece, Rendered, Syntax, Template, TemplateCut, TemplateDirs, TemplateError, VARIABLES, Value, Values,
    built_in_files, cut, fit, load, render_template, template_of,
};
pub use vars::{Vars, expand_config, expand_prose, unused};
