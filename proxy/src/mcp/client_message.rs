//! What a client sends: one message, or a batch of them where the revision has batches. Each is read once, for its method
//! and for the name in its parameters, and goes on as the bytes that it is.
//!
//! Some servers read names of fields in any case and take the last of two: what we judge would then not be what they do. So
//! a field that is written twice at any depth, or nearly like one that is judged, makes a message no message; nor is one
//! that only some readers can read at all.

use super::json_rpc::{Fault, INVALID_REQUEST, PARSE_ERROR};
use super::members::{ENVELOPE, Members};
use super::strict::{NotStrict, check_strict};
use bytes::Bytes;
use serde_json::value::RawValue;
use shared::mcp::Kind;
use std::collections::HashSet;

/// Messages of one batch.
const MAX_MESSAGES: usize = 64;
const MAX_ID: usize = 256;
const MAX_NAME: usize = 2048;
const PARAMS: [&str; 4] = ["name", "uri", "ref", "arguments"];
const REFERENCE: [&str; 3] = ["type", "name", "uri"];

#[derive(Debug)]
pub struct Incoming {
    pub messages: Vec<ClientMessage>,
    pub is_batch: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ClientMessage {
    /// As JSON; none for notifications, and for answers to the server's own requests.
    pub id: Option<String>,
    /// Empty for answers.
    pub method: String,
    pub asked: Asked,
    pub bytes: Bytes,
}

/// What a message wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Initialize,
    List(Kind),
    /// Looks at nothing and changes nothing.
    Ping,
    /// `tools/call`, by the tool's name.
    Tool(String),
    /// `prompts/get`.
    Prompt(String),
    /// `resources/read`.
    Resource(String),
    /// Something else about a thing that may be switched off: completion, subscription.
    About(Kind, String),
    /// A stream of notifications, for as long as the client listens.
    Listen,
    /// Another request or notification; the server knows it.
    Other,
    /// An answer to a request of the server's.
    Answer,
    /// Its parameters cannot be read; why.
    Invalid(String),
}

impl Asked {
    /// The method and the name, of what is logged and limited.
    pub fn call(&self) -> Option<&str> {
        match self {
            Self::Tool(name) | Self::Prompt(name) | Self::Resource(name) => Some(name),
            _ => None,
        }
    }

    /// The same about something else.
    #[must_use]
    pub fn with_name(&self, name: &str) -> Self {
        let name = name.to_owned();
        match self {
            Self::Tool(_) => Self::Tool(name),
            Self::Prompt(_) => Self::Prompt(name),
            Self::Resource(_) => Self::Resource(name),
            Self::About(kind, _) => Self::About(*kind, name),
            other => other.clone(),
        }
    }

    /// Whether asking twice does nothing twice.
    pub fn is_idempotent(&self) -> bool {
        matches!(self, Self::List(_) | Self::Ping)
    }
}

/// `may_batch`: whether the revision that the client speaks may have batches.
pub fn parse(body: &Bytes, may_batch: bool) -> Result<Incoming, Fault> {
    check_strict(body).map_err(|why| match why {
        NotStrict::Twice => invalid(&why.to_string()),
        NotStrict::Unreadable => Fault::new(PARSE_ERROR, why.to_string()),
    })?;
    let whole: &RawValue = serde_json::from_slice(body).map_err(|_| Fault::new(PARSE_ERROR, "the body is no JSON"))?;
    if !whole.get().starts_with('[') {
        return Ok(Incoming { messages: vec![message(whole, body)?], is_batch: false });
    }
    if !may_batch {
        return Err(invalid("this revision of the protocol has no batches"));
    }
    let parts: Vec<&RawValue> = serde_json::from_str(whole.get()).map_err(|_| invalid("the batch cannot be read"))?;
    if parts.is_empty() || parts.len() > MAX_MESSAGES {
        return Err(invalid(&format!("a batch has 1 to {MAX_MESSAGES} messages")));
    }
    let messages = parts.into_iter().map(|part| message(part, body)).collect::<Result<Vec<_>, _>>()?;
    let mut ids = HashSet::new();
    if !messages.iter().filter_map(|message| message.id.as_ref()).all(|id| ids.insert(id)) {
        return Err(invalid("two requests of the batch have the same id"));
    }
    if messages.iter().any(|message| message.asked == Asked::Initialize) {
        return Err(invalid("initialize is no part of a batch"));
    }
    Ok(Incoming { messages, is_batch: true })
}

fn message(raw: &RawValue, body: &Bytes) -> Result<ClientMessage, Fault> {
    let members = Members::read(raw, &ENVELOPE).ok_or_else(|| invalid("the message is no object of JSON-RPC"))?;
    if members.text("jsonrpc").as_deref() != Some("2.0") {
        return Err(invalid("the message does not say jsonrpc 2.0"));
    }
    let id = members.get("id").map(|id| checked_id(id.get())).transpose()?;
    let bytes = body.slice_ref(raw.get().as_bytes());
    let Some(method) = members.get("method") else {
        if id.is_none() || members.get("result").is_some() == members.get("error").is_some() {
            return Err(invalid("the message is neither a request nor an answer"));
        }
        return Ok(ClientMessage { id: None, method: String::new(), asked: Asked::Answer, bytes });
    };
    let method: String = serde_json::from_str(method.get()).map_err(|_| invalid("the method is no text"))?;
    let asked = asked(&method, members.get("params")).unwrap_or_else(Asked::Invalid);
    Ok(ClientMessage { id, method, asked, bytes })
}

fn checked_id(id: &str) -> Result<String, Fault> {
    let is_valid = id.len() <= MAX_ID && (id.starts_with(['"', '-']) || id.starts_with(|c: char| c.is_ascii_digit()));
    is_valid.then(|| id.to_owned()).ok_or_else(|| invalid("the id is neither a short text nor a number"))
}

fn asked(method: &str, params: Option<&RawValue>) -> Result<Asked, String> {
    if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.method() == method) {
        return Ok(Asked::List(kind));
    }
    let read = |names: &[&str]| {
        let members = params.and_then(|params| Members::read(params, names));
        members.ok_or_else(|| format!("the parameters of {method} cannot be read"))
    };
    let named = |field: &str| name_in(&read(&PARAMS)?, field, method);
    // What names nothing has nothing that could be judged; the server may not even have the method.
    let about = |kind: Kind, field: &str| match params {
        None => Ok(Asked::Other),
        Some(_) => match read(&PARAMS)? {
            members if members.get(field).is_none() => Ok(Asked::Other),
            members => name_in(&members, field, method).map(|name| Asked::About(kind, name)),
        },
    };
    match method {
        "initialize" => Ok(Asked::Initialize),
        "ping" => Ok(Asked::Ping),
        "subscriptions/listen" => Ok(Asked::Listen),
        "tools/call" => named("name").map(Asked::Tool),
        "prompts/get" => named("name").map(Asked::Prompt),
        "resources/read" => named("uri").map(Asked::Resource),
        "resources/subscribe" | "resources/unsubscribe" => about(Kind::Resource, "uri"),
        "completion/complete" => {
            let reference = read(&PARAMS)?;
            let reference = reference.get("ref").and_then(|reference| Members::read(reference, &REFERENCE));
            let Some(reference) = reference else {
                return Err("completion/complete does not say what is to be completed".to_owned());
            };
            match reference.text("type").as_deref() {
                Some("ref/prompt") => name_in(&reference, "name", method).map(|name| Asked::About(Kind::Prompt, name)),
                Some("ref/resource") => {
                    name_in(&reference, "uri", method).map(|uri| Asked::About(Kind::ResourceTemplate, uri))
                }
                _ => Ok(Asked::Other),
            }
        }
        _ => Ok(Asked::Other),
    }
}

fn invalid(why: &str) -> Fault {
    Fault::new(INVALID_REQUEST, why)
}

fn name_in(members: &Members<'_>, field: &str, method: &str) -> Result<String, String> {
    let name = members.text(field).filter(|name| (1..=MAX_NAME).contains(&name.len()));
    name.ok_or_else(|| format!("{method} needs the parameter {field}"))
}

#[cfg(test)]
mod tests {
    use super::super::strict::loose_values;
    use super::*;
    use serde_json::{Value, json};

    fn one(body: &Value) -> Result<Asked, i64> {
        read(&body.to_string())
    }

    fn read(body: &str) -> Result<Asked, i64> {
        let body = Bytes::copy_from_slice(body.as_bytes());
        match parse(&body, true).map(|mut incoming| incoming.messages.remove(0).asked) {
            Ok(Asked::Invalid(_)) => Err(-32602),
            other => other.map_err(|fault| fault.code),
        }
    }

    #[test]
    fn a_message_is_known_by_its_method_and_the_name_in_it() {
        let request =
            |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        for (body, expected) in [
            (request("tools/call", json!({ "name": "echo", "arguments": {} })), Asked::Tool("echo".into())),
            (request("prompts/get", json!({ "name": "p" })), Asked::Prompt("p".into())),
            (request("resources/read", json!({ "uri": "a://b" })), Asked::Resource("a://b".into())),
            (request("resources/templates/list", json!({})), Asked::List(Kind::ResourceTemplate)),
            (request("resources/subscribe", json!({ "uri": "a" })), Asked::About(Kind::Resource, "a".into())),
            (
                request("completion/complete", json!({ "ref": { "type": "ref/prompt", "name": "p" } })),
                Asked::About(Kind::Prompt, "p".into()),
            ),
            (request("made/up", json!([1])), Asked::Other),
            (request("resources/subscribe", json!({ "_meta": {} })), Asked::Other),
            (json!({ "jsonrpc": "2.0", "id": 1, "result": {} }), Asked::Answer),
            (json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }), Asked::Other),
        ] {
            assert_eq!(one(&body), Ok(expected), "{body}");
        }
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for (body, code) in [
            ("{", -32700),
            ("7", -32600),
            ("[]", -32600),
            (r#"{"id":1,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}"#, -32600),
            ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"param\u{17f}\":{}}", -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","NAME":"b"}}"#, -32602),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#, -32602),
            (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, -32602),
            (r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"URI":"a"}}"#, -32602),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"initialize"}]"#, -32600),
        ] {
            assert_eq!(read(body), Err(code), "{body}");
        }
    }

    /// In every place of every kind of message, whether or not anything is judged there.
    #[test]
    fn what_cannot_be_read_strictly_is_no_message() {
        for value in loose_values() {
            for body in [
                format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","arguments":{value}}}}}"#
                ),
                format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","_meta":{{"x":{value}}}}}}}"#
                ),
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"made/up","params":{value}}}"#),
                format!(r#"{{"jsonrpc":"2.0","id":{value},"method":"ping"}}"#),
                format!(r#"{{"jsonrpc":"2.0","id":1,"result":{value}}}"#),
                format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":1,"message":"","data":{value}}}}}"#),
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{value}}}"#),
                format!(r#"[{{"jsonrpc":"2.0","method":"notifications/x","params":{value}}}]"#),
            ] {
                assert!(matches!(read(&body), Err(-32700 | -32600)), "{body}");
            }
        }
    }

    #[test]
    fn a_batch_is_its_messages_as_they_are_written() {
        let body = Bytes::from_static(
            br#" [ {"jsonrpc":"2.0","id":1,"method":"ping"} , {"jsonrpc":"2.0","method":"notifications/x"} ]"#,
        );
        let incoming = parse(&body, true).unwrap();
        assert!(incoming.is_batch);
        assert_eq!(&incoming.messages[1].bytes[..], br#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
        assert_eq!(incoming.messages[0].id.as_deref(), Some("1"));
        assert_eq!(parse(&body, false).unwrap_err().code, INVALID_REQUEST);
    }
}
