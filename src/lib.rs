//! forkhestra runs chains of coding agents that work unattended.
//!
//! Data flows one way: arguments and files → chain → plan → machine → events → what people see and what is kept.

pub mod agent;
pub mod chain;
pub mod marker;
pub mod plan;
pub mod prompt;
pub mod source;
