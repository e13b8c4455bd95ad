//! WHO runs: names and where they are found, agent CLIs as data, and the reading of their output. Pure.

mod allowed;
mod catalog;
mod contract;
mod dialects;
mod error_class;
mod errors;
mod faults;
mod find;
mod foreign;
mod limit_end;
mod lookup;
mod output;
mod reader;
mod words;

pub use allowed::{Allowed, allowed};
pub use catalog::{Named, OWN_PROGRAM, backend, default_backend};
pub use contract::{Asked, contract};
pub use error_class::ErrorClass;
pub use find::{check_startable, find_all_on_path, find_command};
pub use foreign::ForeignWords;
pub use limit_end::LimitEnd;
pub use lookup::{BUILT_IN_CHECKS, Found, lookup};
pub use output::{Format, Report, Usage, UsageLimit};
pub use reader::Reader;
pub use words::{fill, fill_list, level_words};
