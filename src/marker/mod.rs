//! The line by which an agent ends its loop: the rule for one line, and the scanner over a stream of bytes.

mod line;
mod scan;

pub use line::{DEFAULT, count_lines, is_marker_line};
pub use scan::{Scanner, Sighting};
