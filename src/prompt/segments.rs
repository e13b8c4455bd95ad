//! A planned text: what is known now, and the names of what only a run can know.

use std::fmt::Write;

/// A piece of a planned text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Known, byte for byte.
    Text(String),
    /// Known only in the run.
    Late(Late),
}

/// What only a run can know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// What ended the last round of the group, as an addition to the prompt; empty in round 1.
    Feedback,
    /// The run's number.
    Run,
    /// The step's running iteration.
    Iteration,
    /// The innermost group's round; 1 outside groups.
    Round,
    /// The step's number.
    Step,
    /// The most iterations of the step; 1 for one that is no loop.
    MaxIterations,
    /// The path of the prompt as delivered.
    PromptFile,
    /// The whole prompt, rendered.
    Prompt,
    /// The folder of the attempt.
    Folder,
    /// The path of the file that may hold the agent's result.
    Result,
    /// The US dollars that are left of the run's limit on cost.
    Budget,
    /// The attempt's own random word, by which its processes are known.
    Token,
    /// The value of the secret variable of this number, which no plan holds.
    Secret(usize),
}

impl Late {
    /// Its name in double braces.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Feedback => "feedback",
            Self::Run => "run",
            Self::Iteration => "iteration",
            Self::Round => "round",
            Self::Step => "step",
            Self::MaxIterations => "max_iterations",
            Self::PromptFile => "prompt_file",
            Self::Prompt => "prompt",
            Self::Folder => "attempt_folder",
            Self::Result => "result",
            Self::Budget => "budget",
            Self::Token => "token",
            Self::Secret(_) => "secret",
        }
    }
}

/// One known text.
#[must_use]
pub fn text(value: impl Into<String>) -> Vec<Segment> {
    vec![Segment::Text(value.into())]
}

/// The text with its late names filled in. The one render path of dry run and run.
#[must_use]
pub fn render(segments: &[Segment], value: &dyn Fn(Late) -> String) -> String {
    let mut rendered = String::new();
    for segment in segments {
        match segment {
            Segment::Text(text) => rendered.push_str(text),
            Segment::Late(late) => rendered.push_str(&value(*late)),
        }
    }
    rendered
}

/// The text with its late names as placeholders.
#[must_use]
pub fn show(segments: &[Segment]) -> String {
    render(segments, &|late| {
        let mut placeholder = String::new();
        let _ = write!(placeholder, "{{{{{}}}}}", late.name());
        placeholder
    })
}
