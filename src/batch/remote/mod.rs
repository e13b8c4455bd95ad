//! Lanes whose workers are on other machines. An engine brings them there; what they do is read from the hub.

mod engine;
mod follow;

pub use engine::RemoteEngine;
pub(super) use follow::{RemoteUnit, follow};
