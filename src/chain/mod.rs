//! What runs: the chain language, the config files and their layers, and the chain that both become. Pure.

mod backend;
mod batch;
mod dsl;
mod duration;
mod errors;
mod ir;
mod isolation;
mod json5;
mod keys;
mod layers;
mod limits;
mod lower;
mod name;
mod output_rules;
mod read;
mod reader;
mod schema;
mod show;
mod validate;

pub use backend::{Accounting, Backend, Continuation, Delivery, Format, Level, Permissions, ToolServer, UsageReport};
pub use batch::{EngineSettings, Landing, WorkspaceNeeds, WorkspaceSettings};
pub use dsl::parse;
pub use duration::{DurationError, parse_duration, show_duration};
pub use errors::bad_duration;
pub use ir::{
    Agent, Chain, Check, Command, Form, Group, HookKind, Item, Limit, Limits, MOST_ITERATIONS, PromptSource, Role, Run,
    SessionUse, Step, StepTarget,
};
pub use isolation::{Isolation, Sandbox};
pub use keys::cli::{CLI_KEYS, CliKey, CliValue, CliValueKind, CliValues};
pub use layers::{AGENT_FILES, INSTRUCTION_FILES, SKILL_DIRS, add_discovered_agents};
pub use layers::{Backends, Config, Entry, LayerKind, LayerSource, PROJECT_FILES, load};
pub use limits::{limit_name, limit_names, parse_limit};
pub use lower::{GroupSpan, Op, Program, lower};
pub use name::{check_name, looks_like_a_count};
pub use output_rules::{AMOUNTS, OutputRule, OutputRules, UsageRule};
pub use schema::schema;
pub use show::show;

/// The user's JSON5 files: tables of their keys, and their values with their places.
pub mod json {
    pub use super::json5::{Member, Node, Value, parse_part, parse_within};
    pub use super::keys::LIMITS;
    pub use super::keys::shape::{Key, Object, Shape, key};
    pub use super::read::{limits, run, thousandths};
    pub use super::reader::Reader;
    pub use super::schema::schema_of;
    pub use super::validate::check;
}
