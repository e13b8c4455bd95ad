//! The Model Context Protocol as a server of tools: one JSON-RPC 2.0 message per line (modelcontextprotocol.io, the
//! revisions 2024-11-05 to 2026-07-28). Pure.
//!
//! Up to 2025-11-25 a client begins with `initialize`. From 2026-07-28 on there is no session: each request names its
//! revision in `_meta`, and `server/discover` says what the server can do.

use serde_json::{Value, json};

/// The revisions that begin with `initialize`, the newest first.
const WITH_A_SESSION: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The revision without a session.
const STATELESS: &str = "2026-07-28";
/// The key of a request's revision in `_meta`.
const REVISION: &str = "io.modelcontextprotocol/protocolVersion";
/// How long a client may keep a list of tools, in milliseconds. It never changes.
const LASTS_MS: u64 = 3_600_000;

/// Error codes of JSON-RPC 2.0, and one of MCP.
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const UNSUPPORTED_REVISION: i64 = -32022;

/// A tool as a client sees it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tool {
    /// Its name.
    pub(super) name: &'static str,
    /// What it does, for the model.
    pub(super) description: String,
    /// The JSON Schema of its arguments.
    pub(super) schema: Value,
    /// Whether it changes nothing.
    pub(super) reads_only: bool,
}

/// The answer of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolAnswer {
    /// The text for the model.
    pub(super) text: String,
    /// Whether the call failed. The model sees why, and may call again.
    pub(super) failed: bool,
}

/// The tools of a server.
pub(super) trait ToolBox {
    /// What the tools are for, for the model.
    fn instructions(&self) -> &'static str;
    /// The tools.
    fn tools(&self) -> Vec<Tool>;
    /// Calls one of the tools.
    fn call(&mut self, name: &str, arguments: &Value) -> ToolAnswer;
}

/// Answers a line; `None` for a notification and for an answer to a request, which this server never sends.
pub(super) fn reply(line: &str, tools: &mut dyn ToolBox) -> Option<String> {
    let answered = match serde_json::from_str::<Value>(line) {
        Err(error) => error_of(&Value::Null, PARSE_ERROR, &format!("not valid JSON: {error}"), None),
        Ok(message) if !message.is_object() => {
            error_of(&Value::Null, INVALID_REQUEST, "a message is one object; batches are not supported", None)
        }
        Ok(message) => {
            let method = message["method"].as_str();
            let id = message.get("id").filter(|id| id.is_string() || id.is_number());
            match (method, id) {
                (Some(method), Some(id)) => answer_of(id, method, &message["params"], tools),
                (None, Some(id)) if message.get("result").is_none() && message.get("error").is_none() => {
                    error_of(id, INVALID_REQUEST, "a request needs a `method`", None)
                }
                _ => return None,
            }
        }
    };
    Some(answered.to_string() + "\n")
}

/// The answer to a message that is longer than this many bytes.
pub(super) fn too_long(most: u64) -> String {
    let message = format!("a message has at most {most} bytes");
    error_of(&Value::Null, INVALID_REQUEST, &message, None).to_string() + "\n"
}

fn answer_of(id: &Value, method: &str, params: &Value, tools: &mut dyn ToolBox) -> Value {
    let revision = params["_meta"][REVISION].as_str();
    if let Some(asked) = revision.filter(|asked| *asked != STATELESS) {
        let data = json!({ "supported": [STATELESS], "requested": asked });
        return error_of(id, UNSUPPORTED_REVISION, "unsupported protocol version", Some(data));
    }
    let result = match method {
        "initialize" => initialize(params, tools),
        "server/discover" => lasting(json!({
            "supportedVersions": [STATELESS],
            "capabilities": { "tools": {} },
            "serverInfo": server(),
            "instructions": tools.instructions(),
        })),
        "ping" => json!({}),
        "tools/list" => {
            let list: Vec<Value> = tools.tools().iter().map(listed).collect();
            let list = json!({ "tools": list });
            if revision.is_some() { lasting(list) } else { list }
        }
        "tools/call" => {
            let name = params["name"].as_str().unwrap_or_default();
            if !tools.tools().iter().any(|tool| tool.name == name) {
                return error_of(id, INVALID_PARAMS, &format!("unknown tool: {name}"), None);
            }
            let ToolAnswer { text, failed } = tools.call(name, &params["arguments"]);
            json!({ "content": [{ "type": "text", "text": text }], "isError": failed })
        }
        _ => return error_of(id, METHOD_NOT_FOUND, &format!("unknown method: {method}"), None),
    };
    let result = if revision.is_some() { complete(result) } else { result };
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// The answer to `initialize`: the client's revision if it is known, else the newest one.
fn initialize(params: &Value, tools: &dyn ToolBox) -> Value {
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let revision = WITH_A_SESSION.into_iter().find(|known| *known == asked).unwrap_or(WITH_A_SESSION[0]);
    json!({
        "protocolVersion": revision,
        "capabilities": { "tools": {} },
        "serverInfo": server(),
        "instructions": tools.instructions(),
    })
}

fn server() -> Value {
    json!({ "name": "forkhestra", "version": env!("CARGO_PKG_VERSION") })
}

fn listed(tool: &Tool) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.schema,
        "annotations": { "readOnlyHint": tool.reads_only, "openWorldHint": false },
    })
}

/// Marks a result of the stateless revision as whole.
fn complete(mut result: Value) -> Value {
    result["resultType"] = "complete".into();
    result
}

/// Adds how long a result may be kept, as the stateless revision requires it of lists.
fn lasting(mut result: Value) -> Value {
    result["ttlMs"] = LASTS_MS.into();
    result["cacheScope"] = "private".into();
    result
}

fn error_of(id: &Value, code: i64, message: &str, data: Option<Value>) -> Value {
    let mut error = json!({ "code": code, "message": message });
    if let Some(data) = data {
        error["data"] = data;
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repeats what it is told, and fails if that is nothing.
    struct Echo;

    impl ToolBox for Echo {
        fn instructions(&self) -> &'static str {
            "It repeats."
        }

        fn tools(&self) -> Vec<Tool> {
            vec![Tool {
                name: "echo",
                description: "Repeats.".into(),
                schema: json!({ "type": "object" }),
                reads_only: true,
            }]
        }

        fn call(&mut self, _: &str, arguments: &Value) -> ToolAnswer {
            let text = arguments["text"].as_str().unwrap_or_default().to_string();
            ToolAnswer { failed: text.is_empty(), text }
        }
    }

    fn asked(message: &Value) -> Value {
        serde_json::from_str(&reply(&message.to_string(), &mut Echo).unwrap()).unwrap()
    }

    fn stateless(method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({ REVISION: STATELESS, "io.modelcontextprotocol/clientCapabilities": {} });
        asked(&json!({ "jsonrpc": "2.0", "id": "a", "method": method, "params": params }))
    }

    #[test]
    fn initialize_answers_with_the_clients_revision_or_the_newest_with_a_session() {
        let answered = |revision: &str| {
            let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "c" } });
            asked(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }))["result"]
                ["protocolVersion"]
                .clone()
        };
        assert_eq!(answered("2025-06-18"), "2025-06-18");
        assert_eq!(answered("2024-11-05"), "2024-11-05");
        assert_eq!(answered("2027-01-01"), "2025-11-25");
        assert_eq!(answered(STATELESS), "2025-11-25", "that revision has no initialize");
    }

    #[test]
    fn results_have_the_marks_of_the_revision_that_the_request_names() {
        let list = stateless("tools/list", json!({}));
        assert_eq!(
            (&list["result"]["resultType"], &list["result"]["cacheScope"]),
            (&json!("complete"), &json!("private"))
        );
        assert_eq!(list["result"]["tools"][0]["name"], "echo");
        let list = asked(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
        assert_eq!(list["result"].as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"]);
        let found = stateless("server/discover", json!({}));
        assert_eq!(found["result"]["supportedVersions"], json!([STATELESS]));
        assert_eq!(found["result"]["capabilities"], json!({ "tools": {} }));
    }

    #[test]
    fn a_failed_call_is_a_result_that_the_model_can_read() {
        let called = |text: &str| stateless("tools/call", json!({ "name": "echo", "arguments": { "text": text } }));
        assert_eq!(called("hi")["result"]["content"][0]["text"], "hi");
        assert_eq!(called("hi")["result"]["isError"], false);
        assert_eq!(called("")["result"]["isError"], true);
    }

    #[test]
    fn each_wrong_message_gets_the_error_that_the_specification_names() {
        let code = |line: &str| {
            let answer: Value = serde_json::from_str(&reply(line, &mut Echo).unwrap()).unwrap();
            answer["error"]["code"].as_i64().unwrap()
        };
        assert_eq!(code("{"), PARSE_ERROR);
        assert_eq!(code("[]"), INVALID_REQUEST);
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1}"#), INVALID_REQUEST);
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#), METHOD_NOT_FOUND);
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}"#), INVALID_PARAMS);
        let params = json!({ "_meta": { REVISION: "2027-01-01" } });
        let newer = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
        assert_eq!(asked(&newer)["error"]["data"], json!({ "supported": [STATELESS], "requested": "2027-01-01" }));
        assert_eq!(asked(&newer)["error"]["code"], UNSUPPORTED_REVISION);
    }

    #[test]
    fn notifications_and_stray_answers_get_no_answer() {
        for line in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":4,"result":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        ] {
            assert_eq!(reply(line, &mut Echo), None, "{line}");
        }
    }

    /// What five CLIs sent to a server of this name, as it was recorded.
    #[test]
    fn the_recorded_requests_of_real_clients_are_answered() {
        struct Rejecting(u32);

        impl ToolBox for Rejecting {
            fn instructions(&self) -> &'static str {
                ""
            }

            fn tools(&self) -> Vec<Tool> {
                vec![Tool { name: "reject", description: String::new(), schema: json!({}), reads_only: false }]
            }

            fn call(&mut self, name: &str, arguments: &Value) -> ToolAnswer {
                assert_eq!((name, &arguments["findings"][0]["file"]), ("reject", &json!("a.py")));
                self.0 += 1;
                ToolAnswer { text: String::new(), failed: false }
            }
        }

        let recorded = [
            include_str!("../../../tests/mcp_requests/claude.jsonl"),
            include_str!("../../../tests/mcp_requests/codex.jsonl"),
            include_str!("../../../tests/mcp_requests/copilot.jsonl"),
            include_str!("../../../tests/mcp_requests/opencode.jsonl"),
            include_str!("../../../tests/mcp_requests/qwen.jsonl"),
        ];
        for requests in recorded {
            let mut tools = Rejecting(0);
            for line in requests.lines() {
                let Some(answer) = reply(line, &mut tools) else { continue };
                let answer: Value = serde_json::from_str(&answer).unwrap();
                let asked: Value = serde_json::from_str(line).unwrap();
                // Some ask for what the server has not announced.
                let optional = ["prompts/list", "resources/list"].contains(&asked["method"].as_str().unwrap());
                assert_eq!(answer["error"]["code"] == METHOD_NOT_FOUND, optional, "{line}");
                assert_eq!(answer["id"], asked["id"]);
            }
            assert_eq!(tools.0, 1, "{requests}");
        }
    }
}
