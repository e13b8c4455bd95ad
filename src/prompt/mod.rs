//! What is SAID: the five levels, chain variables, and the segments of which planned texts are made. Pure.

mod errors;
mod feedback;
mod levels;
mod segments;
mod template;
mod vars;

pub use feedback::{
    FEEDBACK_CHARACTERS, FeedbackText, exhausted_feedback, failed_check_feedback, found_so_far, rejected_feedback,
};
pub use levels::{Level, Pick, pick, read_prompt_file};
pub use segments::{Late, Segment, render, show, text};
pub use template::{
    Origin, Piece, Places, Rendered, Syntax, Template, TemplateCut, TemplateError, VARIABLES, Value, Values,
    built_in_files, cut, fit, load, template_of,
};
pub use vars::{Vars, expand_config, expand_prose, unused};
