//! JSON and JSON5 as one tree with places, so that all errors other than syntax errors can be reported at once.

mod parse;
mod places;
mod read;
mod tree;
mod unread;

pub(in crate::chain) use parse::parse;
pub use parse::{parse_part, parse_within};
pub use tree::{Member, Node, Value};
pub(in crate::chain) use unread::{UnreadMember, parse_without};
