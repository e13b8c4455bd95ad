//! The line with which an agent ends its loop: the rule for one line, and the scanner for a stream of bytes.

mod fence;
mod line;
mod scan;

pub use fence::{FenceLine, Fences};
pub use line::{DEFAULT, count_lines, is_marker_line};
pub use scan::{Scanner, Sighting, marker_lines};
