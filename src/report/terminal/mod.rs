//! What is seen on a terminal while a run is under way.

pub(super) mod console;
pub(super) mod foreign;
pub(super) mod live;
pub(super) mod screen;
