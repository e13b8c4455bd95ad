//! Standard input: data that is piped in, and what a person types.

use super::World;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::io::{self, IsTerminal, Read};

impl World {
    /// Reads all of standard input.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_stdin(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads one line of standard input; empty at its end.
    #[must_use]
    pub fn read_line(&self) -> String {
        let mut line = String::new();
        let _ = io::stdin().read_line(&mut line);
        line
    }

    /// Reads one line of standard input without showing it on the terminal (termios(3), `ECHO`); empty at its end.
    #[must_use]
    pub fn read_secret(&self) -> String {
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
    pub fn stdin_is_terminal(&self) -> bool {
        io::stdin().is_terminal()
    }

    /// Whether standard output is a terminal.
    #[must_use]
    pub fn stdout_is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Whether standard input is a pipe with unread data in it (pipe(7), FIONREAD of `ioctl_tty(2)`).
    #[must_use]
    pub fn stdin_has_unread_data(&self) -> bool {
        let stdin = io::stdin();
        let is_pipe = rustix::fs::fstat(&stdin)
            .is_ok_and(|found| rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::Fifo);
        is_pipe && rustix::io::ioctl_fionread(&stdin).is_ok_and(|bytes| bytes > 0)
    }
}
