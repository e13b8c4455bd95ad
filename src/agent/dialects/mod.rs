//! The structured output formats of the backends: what each line means.

mod claude;
mod codex;
mod copilot;
mod custom;
mod gemini;
mod opencode;
mod pi;
mod shared;

pub(super) use claude::Claude;
pub(super) use codex::Codex;
pub(super) use copilot::Copilot;
pub(super) use custom::Custom;
pub(super) use gemini::Gemini;
pub(super) use opencode::Opencode;
pub(super) use pi::Pi;
pub(super) use shared::Dialect;
