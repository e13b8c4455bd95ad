//! The reader of a format.

use super::claude::ClaudeReader;
use super::output::{Format, Report, Usage};

/// Reads one attempt's stdout of a structured format; fed with bytes in any cut.
#[derive(Debug)]
pub struct Reader(ClaudeReader);

impl Reader {
    /// A reader for this format; none for plain text, which is passed on as it is.
    #[must_use]
    pub fn new(format: Format) -> Option<Self> {
        match format {
            Format::Plain => None,
            Format::ClaudeStream => Some(Self(ClaudeReader::default())),
        }
    }

    /// Takes the next bytes; `show` gets the text for the person.
    pub fn feed(&mut self, bytes: &[u8], show: &mut dyn FnMut(&str)) {
        self.0.feed(bytes, show);
    }

    /// What was used so far, as far as it was said.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.0.usage()
    }

    /// The final message, once it was said.
    #[must_use]
    pub fn final_message(&self) -> Option<&str> {
        self.0.final_message()
    }

    /// The stream is over.
    #[must_use]
    pub fn finish(self, show: &mut dyn FnMut(&str)) -> Report {
        self.0.finish(show)
    }
}
