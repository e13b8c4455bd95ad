//! Planned texts: what is already known, and the names of what only the run will know.

use std::fmt::Write;

/// A segment of a planned text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Segment {
    /// Text that is known, byte for byte.
    Text(String),
    /// A value that is known only during the run.
    Late(Late),
}

/// A value that is known only during the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Late {
    /// The feedback on the previous round of the group, as an addition to the prompt; empty in round 1.
    Feedback,
    /// The run's number.
    Run,
    /// The step's current iteration.
    Iteration,
    /// The round of the innermost group; 1 outside groups.
    Round,
    /// The step's number.
    Step,
    /// The highest number of iterations of the step; 1 if it is not a loop.
    MaxIterations,
    /// The path of the file in which the prompt is delivered.
    PromptFile,
    /// The whole rendered prompt.
    Prompt,
    /// The path of the attempt's directory.
    Folder,
    /// The path of a file in which the agent may leave its result.
    Result,
    /// What is left of the run's cost limit, in US dollars.
    Budget,
    /// The attempt's random token, by which its processes are recognized.
    Token,
    /// The path of a file with the JSON Schema of the final message.
    SchemaFile,
    /// The session that the attempt continues.
    Session,
    /// The path of our own program, as a JSON string.
    OwnProgram,
    /// The value of the secret variable with this number, which no plan holds.
    Secret(usize),
}

impl Late {
    /// Returns the name that is shown in double braces.
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
            Self::SchemaFile => "schema_file",
            Self::Session => "session",
            Self::OwnProgram => "own_program",
            Self::Secret(_) => "secret",
        }
    }
}

/// Returns a text that is wholly known.
#[must_use]
pub fn text(value: impl Into<String>) -> Vec<Segment> {
    vec![Segment::Text(value.into())]
}

/// Renders a text with its late names filled in. Dry runs and runs both use this path.
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

/// Renders a text with its late names as placeholders.
#[must_use]
pub fn show(segments: &[Segment]) -> String {
    render(segments, &|late| {
        let mut placeholder = String::new();
        let _ = write!(placeholder, "{{{{{}}}}}", late.name());
        placeholder
    })
}
