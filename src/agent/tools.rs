//! The tools that an attempt's MCP server offers to its agent, and how a backend is told about them.

use super::placeholders::repeated;
use crate::chain::{Backend, Role, ToolServer};
use crate::source::names;

/// The name of the server, which is part of the names of its tools.
pub const SERVER: &str = "forkhestra";

/// A tool with which an agent records something that the host reads when its attempt has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptTool {
    /// A judge accepts the work.
    Approve,
    /// A judge sends the work back.
    Reject,
    /// A worker hands in its work.
    Submit,
    /// A worker answers a finding.
    Answer,
    /// A planner proposes a task.
    ProposeTask,
    /// A person has to decide.
    Dispute,
    /// There is nothing to do.
    Skip,
}

names!(AttemptTool {
    Approve = "approve",
    Reject = "reject",
    Submit = "submit",
    Answer = "answer",
    ProposeTask = "propose_task",
    Dispute = "dispute",
    Skip = "skip",
});

/// Returns the tools of an agent with this role. `proposes` says that it plans tasks instead of working on them.
#[must_use]
pub fn tools_of(role: Role, proposes: bool) -> &'static [AttemptTool] {
    use AttemptTool::{Answer, Approve, Dispute, ProposeTask, Reject, Skip, Submit};
    match (role, proposes) {
        (Role::Judge, _) => &[Approve, Reject, Dispute, Skip],
        (Role::Worker, true) => &[ProposeTask, Dispute],
        (Role::Worker, false) => &[Submit, Answer, Dispute, Skip],
    }
}

/// The placeholder for the path of our own program as a JSON string. It is filled in when an attempt starts, since it
/// differs from machine to machine.
pub const PROGRAM: &str = "{program}";

/// How a backend is started so that its agent has tools. The words may contain [`PROGRAM`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolWords {
    /// The arguments.
    pub arguments: Vec<String>,
    /// Environment variables, which replace none that the user has set.
    pub env: Vec<(String, String)>,
    /// The names under which the model sees the tools.
    pub names: Vec<String>,
}

/// Returns how a backend is given these tools; `None` if it takes no server for a single call.
#[must_use]
pub fn tool_words(backend: &Backend, tools: &[AttemptTool]) -> Option<ToolWords> {
    let server = backend.mcp.as_ref().filter(|server| **server != ToolServer::default())?;
    let names: Vec<String> = tools.iter().map(|tool| server.tool.replace("{}", tool.name())).collect();
    let filled = |word: &String| word.replace("{tools}", &names.join(","));
    let words = |word: &String| repeated(word, "{each-tool}", &names).unwrap_or_else(|| vec![filled(word)]);
    Some(ToolWords {
        arguments: server.arguments.iter().flat_map(words).collect(),
        env: server.env.iter().map(|(name, value)| (name.clone(), filled(value))).collect(),
        names,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_names_our_program_and_the_tools_in_its_own_way() {
        let server = ToolServer {
            arguments: vec!["--mcp={\"c\":{program}}".into(), "--allow={tools}".into(), "--one={each-tool}".into()],
            env: [("M".to_string(), "[{program}]".to_string())].into(),
            tool: "mcp__{}".into(),
        };
        let backend = Backend { mcp: Some(server), ..Backend::default() };
        let words = tool_words(&backend, tools_of(Role::Worker, true)).unwrap();
        assert_eq!(
            words.arguments,
            [
                "--mcp={\"c\":{program}}",
                "--allow=mcp__propose_task,mcp__dispute",
                "--one=mcp__propose_task",
                "--one=mcp__dispute"
            ]
        );
        assert_eq!(words.env[0].1, "[{program}]");
    }

    #[test]
    fn an_empty_server_offers_no_tools() {
        let backend = Backend { mcp: Some(ToolServer::default()), ..Backend::default() };
        assert_eq!(tool_words(&backend, tools_of(Role::Judge, false)), None);
        assert_eq!(tool_words(&Backend::default(), tools_of(Role::Judge, false)), None);
    }

    #[test]
    fn a_worker_cannot_approve() {
        for proposes in [false, true] {
            assert!(!tools_of(Role::Worker, proposes).contains(&AttemptTool::Approve));
        }
    }
}
