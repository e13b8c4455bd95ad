//! WHO runs: names and where they are found, agent CLIs as data, and the reading of their output. Pure.

mod catalog;
mod claude;
mod contract;
mod errors;
mod find;
mod lookup;
mod output;
mod reader;

pub use catalog::{BACKENDS, Backend, Flag, backend, default_backend, format_of};
pub use contract::contract;
pub use find::{check_startable, find_all_on_path, find_command};
pub use lookup::{BUILT_IN_CHECKS, Found, lookup};
pub use output::{Format, Report, Usage, UsageLimit};
pub use reader::Reader;
