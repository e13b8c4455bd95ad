//! The output side of one attempt: its streams, its scanner or reader, its logs, and what is shown of it.

use super::stream::{Got, StreamLog};
use crate::agent::{ErrorClass, ForeignOutput, Format, Reader, Report, Usage};
use crate::chain::OutputRules;
use crate::engine::{Exit, Finished, FinishedAgent, Leftover, Observer, Pace, Stream, Tokens, UsageLimit};
use crate::journal::{AttemptFolder, JournalError};
use crate::marker::{Scanner, Sighting, marker_lines};
use crate::runner::choices::AttemptTrace;
use crate::runner::lanes::lane::LONGEST_ANSWER;
use crate::world::World;
use jiff::Timestamp;
use tokio::net::unix::pipe::Receiver;

/// The longest near miss that is kept, in bytes.
const NEAR_MISS: usize = 400;

/// How much of the end of an output goes into its fingerprint, in bytes.
const LAST_WORDS: u64 = 64 << 10;

/// What was shown last of decoded text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    Line,
    PartOfALine,
}

/// The output side of one attempt.
pub(in crate::runner) struct AttemptOutput {
    pace: Pace,
    scanner: Option<Scanner>,
    reader: Option<Reader>,
    /// Whether the output has a reader, or had one until it was finished.
    structured: bool,
    /// Filters decoded text before it is shown.
    words: ForeignOutput,
    /// What was shown last of the decoded text.
    shown: Shown,
    marker: String,
    /// Numbers of marker lines: those that an echo of the prompt would show, all that were seen, and those that count.
    discount: usize,
    lines: usize,
    seen: usize,
    near_miss: Option<String>,
    pub(in crate::runner) stdout: StreamLog,
    pub(in crate::runner) stderr: StreamLog,
    /// Whether a final message was searched for the marker.
    final_noted: bool,
    /// The token usage that the program has reported so far, and what was last passed on of it.
    tokens: Option<Tokens>,
    told: Option<Tokens>,
    report: Report,
    usage_limit: Option<UsageLimit>,
}

impl AttemptOutput {
    /// Opens the logs. `format` is none for a check, whose output is never scanned.
    pub(in crate::runner) fn open(
        folder: &AttemptFolder,
        (format, rules): (Option<Format>, Option<&OutputRules>),
        marker: &str,
        discount: usize,
        pace: Pace,
    ) -> Result<Self, JournalError> {
        let reader = format.and_then(|format| Reader::new(format, rules));
        Ok(Self {
            // A terminal is shown decoded text, which is not in the log, so it could not catch up from there.
            pace: if reader.is_some() && pace == Pace::CatchUp { Pace::InStep } else { pace },
            scanner: (format == Some(Format::Plain)).then(|| Scanner::new(marker)),
            structured: reader.is_some(),
            words: ForeignOutput::default(),
            shown: Shown::Nothing,
            reader,
            marker: marker.to_string(),
            discount,
            lines: 0,
            seen: 0,
            near_miss: None,
            stdout: StreamLog::new(Stream::Out, folder.transcript("stdout.log")?),
            stderr: StreamLog::new(Stream::Err, folder.transcript("stderr.log")?),
            final_noted: false,
            tokens: None,
            told: None,
            report: Report::default(),
            usage_limit: None,
        })
    }

    /// Whether another piece may be read now.
    pub(in crate::runner) fn may_read(&self, observer: &dyn Observer) -> bool {
        self.pace != Pace::InStep || observer.is_ready()
    }

    /// Stops waiting for a blocked screen, because the run is to end. What the screen misses is in the logs.
    pub(in crate::runner) fn stop_pacing(&mut self) {
        if self.pace == Pace::InStep {
            self.pace = Pace::CatchUp;
        }
    }

    /// Reads one piece of stdout. It goes to the log first, then to the scanner or reader, then to the observer.
    pub(in crate::runner) fn read_stdout(
        &mut self,
        pipe: &Receiver,
        observer: &mut dyn Observer,
    ) -> Result<Got, JournalError> {
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
        // The final message is none again if the program has continued after it.
        if message.is_some() || self.final_noted {
            self.final_noted = message.is_some();
            self.note_final(message.as_deref().unwrap_or_default());
        }
        self.show_text(&text, observer);
        Ok(got)
    }

    /// Shows decoded text. It is not in the log, so a screen that lags behind cannot catch up and misses it.
    fn show_text(&mut self, text: &str, observer: &mut dyn Observer) {
        // Always filtered, wherever it goes: a terminal escape in JSON was harmless until we decoded it.
        let text = String::from_utf8_lossy(&self.words.pass(text.as_bytes())).into_owned();
        if !text.is_empty() {
            self.shown = if text.ends_with('\n') { Shown::Line } else { Shown::PartOfALine };
        }
        if self.pace == Pace::InStep || self.pace == Pace::CatchUp && observer.is_ready() {
            observer.output(Stream::Out, text.into_bytes());
        }
    }

    /// Reads one piece of stderr.
    pub(in crate::runner) fn read_stderr(
        &mut self,
        pipe: &Receiver,
        observer: &mut dyn Observer,
    ) -> Result<Got, JournalError> {
        let (got, piece) = self.stderr.read(pipe, observer)?;
        self.stderr.show(piece, self.pace, observer);
        Ok(got)
    }

    /// Shows what the screen has missed, as far as it accepts it now.
    pub(in crate::runner) fn catch_up(&mut self, observer: &mut dyn Observer) {
        self.stdout.catch_up(observer);
        self.stderr.catch_up(observer);
    }

    /// Whether the screen has not yet shown all of the logs.
    pub(in crate::runner) fn lags(&self) -> bool {
        self.stdout.lags() || self.stderr.lags()
    }

    /// Whether both streams have ended.
    pub(in crate::runner) fn is_over(&self) -> bool {
        !self.stdout.open && !self.stderr.open
    }

    /// Returns what the agent has used so far, if that has changed since the last call.
    pub(in crate::runner) fn used(&mut self) -> Option<Tokens> {
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

    /// Returns the final message; for a plain program, the end of its output.
    pub(in crate::runner) fn message(&self) -> String {
        match &self.report.final_message {
            Some(message) => message.clone(),
            None if self.structured => String::new(),
            None => String::from_utf8_lossy(&self.stdout.last_lines(LONGEST_ANSWER)).into_owned(),
        }
    }

    /// Returns the final message; for a plain program, all of its output up to [`LONGEST_ANSWER`].
    pub(in crate::runner) fn answer(&self) -> String {
        match &self.report.final_message {
            None if !self.structured => String::from_utf8_lossy(&self.stdout.tail(LONGEST_ANSWER)).into_owned(),
            _ => self.message(),
        }
    }

    /// Returns how the program ended. One that finished and failed only because of its cost counts as successful.
    pub(in crate::runner) fn exit(&self, exit: Exit) -> Exit {
        if self.report.over_budget { Exit::Code(0) } else { exit }
    }

    /// What the output shows of the attempt's work.
    pub(in crate::runner) fn trace(&self) -> AttemptTrace {
        AttemptTrace { last_request: self.report.last_request, spoke: self.shown != Shown::Nothing }
    }

    /// Whether the program has printed its last message, unless it continues after it.
    pub(in crate::runner) fn has_said_all(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.final_message().is_some())
    }

    /// Whether the program has reported which message is its last.
    pub(in crate::runner) fn has_final(&self) -> bool {
        self.report.final_message.is_some()
    }

    /// Whether the output may begin with an echo of the prompt.
    pub(in crate::runner) fn echoes(&self) -> bool {
        !self.structured
    }

    /// Returns the final message, or the end of the output followed by the output's length.
    pub(in crate::runner) fn last_words(&self) -> Vec<u8> {
        match &self.report.final_message {
            Some(message) => message.clone().into_bytes(),
            None => [self.stdout.tail(LAST_WORDS), self.stdout.bytes().to_le_bytes().into()].concat(),
        }
    }

    /// Whether the program reports only that it waits for its service, which is not a sign of life.
    pub(in crate::runner) fn waits(&self) -> bool {
        self.reader.as_ref().is_some_and(Reader::waits)
    }

    /// Whether a marker that counts has been seen.
    pub(in crate::runner) fn marker_seen(&self) -> bool {
        self.seen > 0 && self.lines > self.discount
    }

    /// Called when the streams have ended: handles the last line and what a structured output reported.
    pub(in crate::runner) fn finish(
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
        // The program may have been stopped in the middle of a line.
        if !text.ends_with('\n') && (self.shown == Shown::PartOfALine || !text.is_empty()) {
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
                ..UsageLimit::default()
            }
        });
        self.report = report;
        if self.report.waits {
            // The program was stopped while it waited, or exited without reporting anything else.
            let words = || (ErrorClass::Network, "it was still waiting for its service when it ended".into());
            self.report.error.get_or_insert_with(words);
        }
        Ok(())
    }

    /// Returns what is known of the attempt.
    pub(in crate::runner) fn finished(
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
            fingerprint,
            error,
            agent: FinishedAgent {
                near_miss: self.near_miss,
                tokens: self.tokens,
                session: self.report.session,
                denials: self.report.denials,
                error_class,
                usage_limit: self.usage_limit,
                ..FinishedAgent::default()
            },
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
