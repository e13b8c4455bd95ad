//! Color and symbols, or plain text. `--color`, `NO_COLOR`, `CLICOLOR_FORCE`, `FORCE_COLOR`, `CLICOLOR=0` and
//! `TERM=dumb` decide, and whether the stream is a terminal (<https://no-color.org>, <https://bixense.com/clicolors>,
//! <https://force-color.org>).

use crate::source::{COLOR, Env};
use std::fmt::Write;
use std::io::IsTerminal;

/// How text is decorated on one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    /// Whether color escapes are written.
    pub color: bool,
    /// Whether symbols outside of ASCII are written.
    pub unicode: bool,
    /// The width at which diagnostics are wrapped, in columns.
    pub width: usize,
    /// Whether the stream is a terminal.
    pub terminal: bool,
}

impl Paint {
    /// Returns the decoration for standard error, which gets our own messages.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the owner of the terminal")]
    pub fn for_stderr(env: &dyn Env) -> Self {
        Self::of(env, std::io::stderr().is_terminal())
    }

    /// Returns the decoration for standard output.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the owner of the terminal")]
    pub fn for_stdout(env: &dyn Env) -> Self {
        Self::of(env, std::io::stdout().is_terminal())
    }

    fn of(env: &dyn Env, terminal: bool) -> Self {
        let set = |name: &str| env.var(name).is_some_and(|value| !value.is_empty());
        let dumb = env.var("TERM").is_some_and(|term| term == "dumb");
        let is_on = |name: &str| env.var(name).is_some_and(|value| !value.is_empty() && value != "0");
        let forced = is_on("CLICOLOR_FORCE") || is_on("FORCE_COLOR");
        let off = env.var("CLICOLOR").is_some_and(|value| value == "0");
        let chosen = env.var(COLOR);
        let locale =
            ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| env.var(name).filter(|value| !value.is_empty()));
        // Without any locale, this is a container or a cron job, whose log is read as UTF-8.
        let unicode = locale.is_none_or(|locale| {
            let locale = locale.to_string_lossy().to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        let columns = if terminal { columns() } else { 80 };
        Self {
            color: match chosen.as_deref().and_then(std::ffi::OsStr::to_str) {
                Some("always") => true,
                Some("never") => false,
                _ => !set("NO_COLOR") && (forced || (terminal && !dumb && !off)),
            },
            unicode,
            width: columns.clamp(40, 120),
            terminal,
        }
    }

    /// Returns the same decoration for a replay of past events: nothing is animated, and nobody is typing.
    #[must_use]
    pub fn still(self) -> Self {
        Self { terminal: false, ..self }
    }

    /// Returns no decoration, with 80 columns.
    #[must_use]
    pub fn plain() -> Self {
        Self { color: false, unicode: true, width: 80, terminal: false }
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.color && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// Emphasizes a text.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// De-emphasizes a text.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// Marks a text as a success.
    #[must_use]
    pub fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    /// Marks a text as a failure.
    #[must_use]
    pub fn bad(self, text: &str) -> String {
        self.with("31", text)
    }

    /// Marks a text as a warning.
    #[must_use]
    pub fn warn(self, text: &str) -> String {
        self.with("33", text)
    }

    /// Returns a symbol, or its ASCII replacement.
    #[must_use]
    pub fn sign(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.unicode { unicode } else { ascii }
    }
}

/// Returns the current width of the terminal, in columns; 80 if it is unknown.
#[must_use]
pub(super) fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr());
    size.map(|size| usize::from(size.ws_col)).ok().filter(|columns| *columns > 0).unwrap_or(80)
}

/// Escapes control characters and changes of the reading direction: foreign text must not control the reader's
/// terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().fold(String::new(), |mut shown, next| {
        match next {
            '\n' | '\t' => shown.push(next),
            _ if next.is_control() || matches!(next, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                // Writing to a String cannot fail.
                let _ = write!(shown, "{}", next.escape_default());
            }
            _ => shown.push(next),
        }
        shown
    })
}
