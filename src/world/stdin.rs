//! Standard input: data that is piped in, and what a person types.

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::io::{self, BufRead, IsTerminal, Read};

/// Standard input.
#[derive(Debug, Clone, Copy)]
pub struct Stdin(());

impl Stdin {
    pub(super) fn new() -> Self {
        Self(())
    }

    /// Reads all of standard input.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_all(self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads one line of standard input; empty at its end.
    #[must_use]
    pub fn read_line(self) -> String {
        let mut line = String::new();
        let _ = io::stdin().read_line(&mut line);
        line
    }

    /// Reads one line of a protocol from standard input; `None` at its end.
    ///
    /// # Errors
    /// When it cannot be read; `InvalidData` for a line of more than `longest` bytes, which is read to its end.
    pub fn read_message(self, longest: u64) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        io::stdin().lock().take(longest).read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") && line.len() as u64 >= longest {
            io::stdin().lock().skip_until(b'\n')?;
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok((!line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned()))
    }

    /// Reads one line of standard input without showing it on the terminal (termios(3), `ECHO`); empty at its end.
    #[must_use]
    pub fn read_secret(self) -> String {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin);
        if let Ok(mut silent) = before.clone() {
            silent.local_modes.remove(LocalModes::ECHO);
            silent.local_modes.insert(LocalModes::ECHONL);
            let _ = tcsetattr(&stdin, OptionalActions::Now, &silent);
        }
        let line = self.read_line();
        if let Ok(before) = before {
            let _ = tcsetattr(&stdin, OptionalActions::Now, &before);
        }
        line.trim_end_matches(['\n', '\r']).to_string()
    }

    /// Whether standard input is a terminal.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        io::stdin().is_terminal()
    }

    /// Whether standard input is a pipe with unread data in it (pipe(7), FIONREAD of `ioctl_tty(2)`).
    #[must_use]
    pub fn has_unread_data(self) -> bool {
        let stdin = io::stdin();
        let is_pipe = rustix::fs::fstat(&stdin)
            .is_ok_and(|found| rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::Fifo);
        is_pipe && rustix::io::ioctl_fionread(&stdin).is_ok_and(|bytes| bytes > 0)
    }
}
