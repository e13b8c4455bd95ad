//! Colour and signs, or none: `--color`, `NO_COLOR`, `CLICOLOR_FORCE`, `FORCE_COLOR`, `CLICOLOR=0`, `TERM=dumb`, and whether the stream is a
//! terminal (<https://no-color.org>, <https://bixense.com/clicolors>, <https://force-color.org>).

use crate::source::{COLOR, Env};
use std::fmt::Write;
use std::io::IsTerminal;

/// How words are decorated on one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    /// Whether escapes are written.
    pub color: bool,
    /// Whether signs beyond ASCII are written.
    pub unicode: bool,
    /// The width to wrap diagnostics at, in columns.
    pub width: usize,
    /// Whether the stream is a terminal.
    pub terminal: bool,
}

impl Paint {
    /// For standard error, where our own words go.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the owner of the terminal")]
    pub fn for_stderr(env: &dyn Env) -> Self {
        Self::of(env, std::io::stderr().is_terminal())
    }

    /// For standard output.
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
        // No locale at all is a container or a cron job, whose log is read as UTF-8.
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

    /// The same for what is told again: nothing moves, and nobody is typing.
    #[must_use]
    pub fn still(self) -> Self {
        Self { terminal: false, ..self }
    }

    /// No decoration, 80 columns.
    #[must_use]
    pub fn plain() -> Self {
        Self { color: false, unicode: true, width: 80, terminal: false }
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.color && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// What stands out.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// What stands back.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// What went well.
    #[must_use]
    pub fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    /// What went wrong.
    #[must_use]
    pub fn bad(self, text: &str) -> String {
        self.with("31", text)
    }

    /// What wants a look.
    #[must_use]
    pub fn warn(self, text: &str) -> String {
        self.with("33", text)
    }

    /// A sign, or its ASCII stand-in.
    #[must_use]
    pub fn sign(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.unicode { unicode } else { ascii }
    }
}

/// How wide the terminal is now, in columns; 80 where nobody says.
#[must_use]
pub(super) fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr());
    size.map(|size| usize::from(size.ws_col)).ok().filter(|columns| *columns > 0).unwrap_or(80)
}

/// Control characters as people write them: foreign text may not drive the terminal of the one who reads it.
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
