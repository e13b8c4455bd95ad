//! forkhestra runs chains of coding agents that work unattended.
//!
//! Data flows one way: arguments and files → chain → plan → machine → events → what people see and what is stored. A
//! module may use only modules to its left (docs/design.md; tests/it/layering.rs):
//!
//! [`source`] ◄ [`marker`] ◄ [`chain`] ◄ [`prompt`], [`agent`], [`checks`], [`verdict`] ◄ [`plan`] ◄ [`engine`] ◄
//! [`task`] ◄ [`mod@unit`] ◄ [`journal`], [`report`], [`proc`], [`context`] ◄ [`hub`], [`runner`] ◄ [`eval`],
//! [`batch`] ◄ [`cli`] ◄ `main`.
//! [`world`] and [`exit`] are at the edge.

pub mod agent;
pub mod batch;
pub mod chain;
pub mod checks;
pub mod cli;
pub mod context;
pub mod engine;
pub mod eval;
pub mod exit;
pub mod hub;
pub mod journal;
pub mod marker;
pub mod plan;
pub mod proc;
pub mod prompt;
pub mod report;
pub mod runner;
pub mod source;
pub mod task;
pub mod unit;
pub mod verdict;
pub mod world;
