//! One attempt on the stage: its streams, its scanner or reader, its logs, and what is shown of it.

use super::tape::{Got, Tape};
use crate::agent::{ErrorClass, ForeignWords, Format, Reader, Report, Usage};
use crate::engine::{Exit, Finished, Leftover, Observer, Pace, Stream, Tokens, UsageLimit};
use crate::journal::{AttemptFolder, JournalError};
use crate::marker::{Scanner, Sighting, marker_lines};
use crate::world::World;
use jiff::Timestamp;
use tokio::net::unix::pipe::Receiver;

/// The longest near miss that is kept, in bytes.
const NEAR_MISS: usize = 400;

/// How much of the end of an output tells it from another's, in bytes.
const LAST_WORDS: u64 = 64 << 10;

/// The longest answer of an evaluation, in bytes.
pub const LONGEST_ANSWER: u64 = 1 << 20;

/// The output side of one attempt.
pub(super) struct Stage {
    pace: Pace,
    scanner: Option<Scanner>,
    reader: Option<Reader>,
    /// Whether there is a reader, or was one.
    structured: bool,
    /// What passes of decoded text.
    words: ForeignWords,
    /// Whether the decoded text that was shown last is the middle of a line.
    in_line: bool,
    marker: String,
    /// Marker lines that an echo of the prompt would show, all that were seen, and those of them that count.
    discount: usize,
    lines: usize,
    seen: usize,
    near_miss: Option<String>,
    pub(super) stdout: Tape,
    pub(super) stderr: Tape,
    /// Whether a final message was looked at.
    final_noted: bool,
    /// What has been reported of the tokens, and whether that was told.
    tokens: Option<Tokens>,
    told: Option<Tokens>,
    report: Report,
    usage_limit: Option<UsageLimit>,
}

impl Stage {
    /// Opens the logs. `format` is none for a check, whose output is never scanned.
    pub(super) fn open(
        folder: &AttemptFolder,
        format: Option<Format>,
        marker: &str,
        discount: usize,
        pace: Pace,
    ) -> Result<Self, JournalError> {
        let reader = format.and_then(Reader::new);
        Ok(Self {
            // A terminal sees decoded text, which is not what the log holds.
            pace: if reader.is_some() && pace == Pace::CatchUp { Pace::InStep } else { pace },
            scanner: (format == Some(Format::Plain)).then(|| Scanner::new(marker)),
            structured: reader.is_some(),
            words: ForeignWords::default(),
            in_line: false,
            reader,
            marker: marker.to_string(),
            discount,
            lines: 0,
            seen: 0,
            near_miss: None,
            stdout: Tape::new(Stream::Out, folder.transcript("stdout.log")?),
            stderr: Tape::new(Stream::Err, folder.transcript("stderr.log")?),
            final_noted: false,
            tokens: None,
            told: None,
            report: Report::default(),
            usage_limit: None,
        })
    }

    /// Whether another piece may be read now.
    pub(super) fn may_read(&self, observer: &dyn Observer) -> bool {
        self.pace != Pace::InStep || observer.is_ready()
    }

    /// The run is to end: a reader that is stuck is no longer waited for. What it misses is in the logs.
    pub(super) fn hurry(&mut self) {
        if self.pace == Pace::InStep {
            self.pace = Pace::CatchUp;
        }
    }

    /// Reads one piece of stdout: log first, then scanner or reader, then the observer.
    pub(super) fn read_stdout(&mut self, pipe: &Receiver, observer: &mut dyn Observer) -> Result<Got, JournalError> {
        let (got, piece) = self.stdout.read(pipe, observer)?;
        if let Some(scanner) = &mut self.scanner {
            let counts = (&mut self.lines, &mut self.seen);
            let near = &mut self.near_miss;
            scanner.feed(&piece, |sighting| note(sighting, (counts.0, counts.1), near));
        }
        let Some(reader) = &mut self.reader else {
            self.stdout.show(piece, self.pace, observer);
            return Ok(got);
        };
        let mut text = String::new();
        reader.feed(&piece, &mut |shown| text.push_str(shown));
        self.tokens = reader.usage().map(tokens);
        let message = reader.final_message().map(str::to_string);
        observer.give_back(piece);
        // None again, when the program has gone on after it.
        if message.is_some() || self.final_noted {
            self.final_noted = message.is_some();
            self.note_final(message.as_deref().unwrap_or_default());
        }
        self.show_text(&text, observer);
        Ok(got)
    }

    /// Decoded text is not in the log, so there is nothing to catch up from: a hurried screen misses it.
    fn show_text(&mut self, text: &str, observer: &mut dyn Observer) {
        // It is our rendering, wherever it goes: what steers a terminal was an escape in JSON, and harmless until we decoded it.
        let text = String::from_utf8_lossy(&self.words.pass(text.as_bytes())).into_owned();
        if !text.is_empty() {
            self.in_line = !text.ends_with('\n');
        }
        if self.pace == Pace::InStep || self.pace == Pace::CatchUp && observer.is_ready() {
            observer.output(Stream::Out, text.into_bytes());
        }
    }

    /// Reads one piece of stderr.
    pub(super) fn read_stderr(&mut self, pipe: &Receiver, observer: &mut dyn Observer) -> Result<Got, JournalError> {
        let (got, piece) = self.stderr.read(pipe, observer)?;
        self.stderr.show(piece, self.pace, observer);
        Ok(got)
    }

    /// Paces what the screen has missed, if it takes it now.
    pub(super) fn catch_up(&mut self, observer: &mut dyn Observer) {
        self.stdout.catch_up(observer);
        self.stderr.catch_up(observer);
    }

    /// Whether the screen has still to see something of the logs.
    pub(super) fn lags(&self) -> bool {
        self.stdout.lags() || self.stderr.lags()
    }

    /// Whether both streams are over.
    pub(super) fn is_over(&self) -> bool {
        !self.stdout.open && !self.stderr.open
    }

    /// What the agent has used so far, if that is news.
    pub(super) fn used(&mut self) -> Option<Tokens> {
        let news = self.tokens.filter(|_| self.tokens != self.told);
        self.told = self.tokens;
        news
    }

    /// Looks for the marker in the final message, which is never an echo.
    fn note_final(&mut self, message: &str) {
        let (seen, near) = marker_lines(message, &self.marker);
        (self.lines, self.seen, self.discount) = (seen, seen, 0);
        if let Some(near) = near {
            self.near_miss.get_or_insert_with(|| near.chars().take(NEAR_MISS).collect());
        }
    }

    /// The final message; for a plain program the end of its output.
    pub(super) fn message(&self) -> String {
        match &self.report.final_message {
            Some(message) => message.clone(),
            None if self.structured => String::new(),
            None => String::from_utf8_lossy(&self.stdout.last_lines(LONGEST_ANSWER)).into_owned(),
        }
    }

    /// The final message; for a plain program all that it printed, as far as an answer may go.
    pub(super) fn answer(&self) -> String {
        match &self.report.final_message {
            None if !self.structured => String::from_utf8_lossy(&self.stdout.tail(LONGEST_ANSWER)).into_owned(),
            _ => self.message(),
        }
    }

    /// How its program ended, but for one that has finished and failed only because of what that cost.
    pub(super) fn exit(&self, exit: Exit) -> Exit {
        if self.report.over_budget { Exit::Code(0) } else { exit }
    }

    /// Whether its program has said its last message, unless it goes on after it.
    pub(super) fn has_said_all(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.final_message().is_some())
    }

    /// Whether its program has said which message is its last.
    pub(super) fn has_final(&self) -> bool {
        self.report.final_message.is_some()
    }

    /// Whether its output may begin with an echo of its prompt.
    pub(super) fn echoes(&self) -> bool {
        !self.structured
    }

    /// What was said last: the final message, else the end of the output and its length.
    pub(super) fn last_words(&self) -> Vec<u8> {
        match &self.report.final_message {
            Some(message) => message.clone().into_bytes(),
            None => [self.stdout.tail(LAST_WORDS), self.stdout.bytes().to_le_bytes().into()].concat(),
        }
    }

    /// Whether all that the program says is that it waits for its service: no sign of life (V-20).
    pub(super) fn waits(&self) -> bool {
        self.reader.as_ref().is_some_and(Reader::waits)
    }

    /// Whether the marker counts by now.
    pub(super) fn marker_seen(&self) -> bool {
        self.seen > 0 && self.lines > self.discount
    }

    /// The streams are over: the last line, and what a structured output said.
    pub(super) fn finish(
        &mut self,
        folder: &AttemptFolder,
        observer: &mut dyn Observer,
        world: &World,
    ) -> Result<(), JournalError> {
        if let Some(mut scanner) = self.scanner.take() {
            let counts = (&mut self.lines, &mut self.seen);
            let near = &mut self.near_miss;
            scanner.finish(|sighting| note(sighting, (counts.0, counts.1), near));
        }
        let Some(reader) = self.reader.take() else { return Ok(()) };
        let mut text = String::new();
        let report = reader.finish(&mut |shown| text.push_str(shown));
        // It may have been ended in the middle of a line.
        if !text.ends_with('\n') && (self.in_line || !text.is_empty()) {
            text.push('\n');
        }
        self.show_text(&text, observer);
        if let Some(message) = &report.final_message {
            folder.write_final(message)?;
        }
        self.note_final(report.final_message.as_deref().unwrap_or_default());
        self.tokens = report.usage.map(tokens);
        self.usage_limit = report.usage_limit.as_ref().map(|limit| {
            let now = world.moment();
            let end = limit.end.as_ref().and_then(|end| end.moment(now, &world.time_zone()));
            let left = |end: Timestamp| end.as_millisecond().saturating_sub(now.as_millisecond());
            UsageLimit {
                resets_at: end.map(|end| format!("{end:.0}")),
                resets_in_ms: end.map(|end| u64::try_from(left(end)).unwrap_or(0)),
            }
        });
        self.report = report;
        if self.report.waits {
            // It was ended while it waited, or went away without another word.
            let words = || (ErrorClass::Network, "it waited for its service without end".into());
            self.report.error.get_or_insert_with(words);
        }
        Ok(())
    }

    /// What is known of the attempt.
    pub(super) fn finished(
        self,
        took_ms: u64,
        held_open: bool,
        leftovers: Vec<Leftover>,
        fingerprint: Option<String>,
    ) -> Finished {
        let (error_class, error) = self.report.error.unzip();
        Finished {
            took_ms,
            stdout_bytes: self.stdout.bytes(),
            stderr_bytes: self.stderr.bytes(),
            held_open,
            leftovers,
            near_miss: self.near_miss,
            tokens: self.tokens,
            session: self.report.session,
            denials: self.report.denials,
            error,
            error_class,
            usage_limit: self.usage_limit,
            fingerprint,
            ..Finished::default()
        }
    }
}

fn note(sighting: Sighting<'_>, (lines, seen): (&mut usize, &mut usize), near: &mut Option<String>) {
    match sighting {
        Sighting::Marker(_) => (*lines, *seen) = (*lines + 1, *seen + 1),
        Sighting::Alone(_) => *seen += 1,
        Sighting::Withdrawn(count) => *seen = seen.saturating_sub(count),
        Sighting::Fenced(line) | Sighting::NearMiss(line) => {
            *lines += usize::from(matches!(sighting, Sighting::Fenced(_)));
            near.get_or_insert_with(|| String::from_utf8_lossy(&line[..line.len().min(NEAR_MISS)]).into_owned());
        }
    }
}

fn tokens(usage: Usage) -> Tokens {
    Tokens {
        input: usage.input_tokens,
        output: usage.output_tokens,
        cache_read: usage.cache_read_tokens,
        cache_write: usage.cache_write_tokens,
        cost_usd: usage.cost_usd,
    }
}
