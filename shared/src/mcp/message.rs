//! JSON-RPC messages: those that are sent, and the answers that they get.

use super::{Capability, Kind, REVISION};
use serde_json::{Value, json};

/// What an answer says: the result, or a code and a message of which nothing is repeated to callers.
#[derive(Debug, PartialEq)]
pub enum Answer {
    Result(Value),
    Refused { code: i64 },
}

pub fn initialize(id: u64) -> Value {
    let client = json!({ "name": "portcullis", "version": env!("CARGO_PKG_VERSION") });
    let params = json!({ "protocolVersion": REVISION, "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params })
}

pub fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
}

/// Asks for a page of a list.
pub fn list(id: u64, kind: Kind, cursor: Option<&str>) -> Value {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
    json!({ "jsonrpc": "2.0", "id": id, "method": kind.method(), "params": params })
}

/// The answer to the request of this id, if the message is it. A batch may hold it among others.
pub fn answer_to(id: u64, message: &Value) -> Option<Answer> {
    if let Value::Array(batch) = message {
        return batch.iter().find_map(|one| if one.is_array() { None } else { answer_to(id, one) });
    }
    if message["id"].as_u64() != Some(id) || message.get("method").is_some() {
        return None;
    }
    match (message.get("result"), message.get("error")) {
        (Some(result), _) => Some(Answer::Result(result.clone())),
        (None, Some(error)) => Some(Answer::Refused { code: error["code"].as_i64().unwrap_or_default() }),
        (None, None) => None,
    }
}

/// What a server said of itself when it was greeted; texts are cut to what may be stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerInfo {
    pub name: Option<String>,
    pub version: Option<String>,
    pub title: Option<String>,
    pub website_url: Option<String>,
    pub icons: Option<Value>,
    pub instructions: Option<String>,
    /// The same whole, as what is pinned; none where they are too long for it.
    pub pinned_instructions: Option<Capability>,
    pub protocol_version: Option<String>,
    /// Its `capabilities`, as it said them.
    pub flags: Value,
}

impl ServerInfo {
    pub fn from_result(result: &Value) -> Self {
        let info = &result["serverInfo"];
        Self {
            name: short(&info["name"], 255),
            version: short(&info["version"], 255),
            title: short(&info["title"], 255),
            website_url: short(&info["websiteUrl"], 2048),
            icons: info.get("icons").filter(|icons| icons.is_array() && icons.to_string().len() <= 16 << 10).cloned(),
            instructions: short(&result["instructions"], 8192),
            pinned_instructions: result["instructions"]
                .as_str()
                .filter(|text| !text.is_empty())
                .and_then(|text| Capability::from_entry(Kind::Instructions, Capability::instructions_entry(text)).ok()),
            protocol_version: short(&result["protocolVersion"], 64),
            flags: match &result["capabilities"] {
                flags @ Value::Object(_) if flags.to_string().len() <= 16 << 10 => flags.clone(),
                _ => json!({}),
            },
        }
    }

    /// Whether it says that it has lists of this kind.
    pub fn has(&self, kind: Kind) -> bool {
        self.flags.get(kind.flag()).is_some_and(Value::is_object)
    }
}

/// NUL cannot be stored as text.
fn short(value: &Value, most: usize) -> Option<String> {
    value.as_str().map(|text| text.chars().filter(|c| *c != '\0').take(most).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_to_the_request_is_taken() {
        for (message, expected) in [
            (json!({ "id": 1, "result": {} }), Some(Answer::Result(json!({})))),
            (json!({ "id": 2, "result": {} }), None),
            (json!({ "id": 1, "method": "ping" }), None),
            (json!({ "id": 1, "error": { "code": -32601, "message": "no" } }), Some(Answer::Refused { code: -32601 })),
            (json!([{ "id": 2, "result": 1 }, { "id": 1, "result": 2 }]), Some(Answer::Result(json!(2)))),
            (json!([[{ "id": 1, "result": 2 }]]), None),
            (json!({ "id": 1 }), None),
            (json!("rubbish"), None),
        ] {
            assert_eq!(answer_to(1, &message), expected, "{message}");
        }
    }

    #[test]
    fn what_a_server_says_of_itself_is_bounded() {
        let result = json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "instructions": "x".repeat(10_000),
            "serverInfo": { "name": "every\u{0}thing", "version": 7 },
        });
        let info = ServerInfo::from_result(&result);
        assert_eq!((info.name.as_deref(), info.version), (Some("everything"), None));
        assert_eq!(info.instructions.map(|text| text.len()), Some(8192));
        assert!(ServerInfo::from_result(&result).has(Kind::Tool));
        assert!(!ServerInfo::from_result(&json!(7)).has(Kind::Prompt));
    }
}
