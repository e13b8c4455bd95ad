//! The machine that we run on.

use super::World;

impl World {
    /// Its name (uname(2), `nodename`), as far as it can be part of a line of text.
    #[must_use]
    pub fn machine(&self) -> String {
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        name.chars().filter(|next| next.is_ascii_graphic() && !matches!(next, '/' | '@')).take(64).collect()
    }
}
