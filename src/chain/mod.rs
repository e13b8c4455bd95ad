//! WHAT runs: the language, the config files, their layers, and the chain that both become. Pure.

mod backend;
mod check;
mod dsl;
mod duration;
mod errors;
mod ir;
mod isolation;
mod keys;
mod layers;
mod limits;
mod lower;
mod name;
mod raw;
mod read;
mod schema;
mod show;
mod tree;

pub use backend::{Accounting, Backend, Delivery, Format, Level, Permissions, UsageReport};
pub use dsl::parse;
pub use duration::{DurationFault, parse_duration, show_duration};
pub use errors::bad_duration;
pub use ir::{
    Agent, Chain, Check, Command, Form, Group, HookKind, Item, Limit, Limits, MOST_ITERATIONS, Role, Run, Said, Step,
    Wants,
};
pub use isolation::{Isolation, Sandbox};
pub use keys::cli::{CLI_KEYS, CliKey, CliValue, CliValueKind, CliValues};
pub use layers::{Config, Entry, LayerKind, LayerSource, PROJECT_FILES, load};
pub use limits::{limit_names, parse_limit};
pub use lower::{GroupSpan, Op, Program, lower};
pub use name::{check_name, looks_like_a_count};
pub use schema::schema;
pub use show::show;

/// Files of the user's in JSON5: tables of their keys, and what they say, with places.
pub mod json {
    pub use super::check::check;
    pub use super::keys::LIMITS;
    pub use super::keys::shape::{Key, Object, Shape, key};
    pub use super::read::{Reader, limits, thousandths};
    pub use super::schema::schema_of;
    pub use super::tree::{Member, Node, Value, parse_within};
}
