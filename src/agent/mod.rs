//! What runs a step: the lookup of names, backends as data, and the parsing of their output. Pure.

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
mod placeholders;
mod reader;
mod tools;

pub use allowed::{Allowed, allowed};
pub use catalog::{Named, OWN_PROGRAM, backend, default_backend};
pub use contract::{ContractKind, EVALUATION_SCHEMA, contract};
pub use error_class::ErrorClass;
pub use find::{check_startable, find_all_on_path, find_command, find_on_path};
pub use foreign::ForeignOutput;
pub use limit_end::LimitEnd;
pub use lookup::{BUILT_IN_CHECKS, Found, lookup};
pub use output::{Format, Report, Usage, UsageLimit};
pub use placeholders::{fill, fill_list, level_words};
pub use reader::Reader;
pub use tools::{AttemptTool, PROGRAM, SERVER, ToolWords, tool_words, tools_of};
