//! What a server says: one message, or a batch of them, read strictly. Whether it is an answer, a request or a notification
//! decides who judges it; what could be taken for two of these is none.

use super::members::{ENVELOPE, Members};
use super::outcome::Outcome;
use super::strict::{NotStrict, check_strict};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Messages of one batch.
const MAX_BATCH: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    Answer,
    /// Something that the server wants of the client: sampling, elicitation, roots.
    Request,
    Notification,
}

/// Why a message of a server's is withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    #[error(transparent)]
    NotStrict(#[from] NotStrict),
    #[error("it is no message of JSON-RPC")]
    NoMessage,
    #[error("a batch of it has more than {MAX_BATCH} messages")]
    TooMany,
}

pub struct ServerMessage<'a> {
    pub kind: MessageKind,
    /// As it was written.
    pub text: &'a str,
    id: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

/// The messages of a body or of an event.
pub struct ServerMessages<'a> {
    pub messages: Vec<ServerMessage<'a>>,
    pub is_batch: bool,
}

/// Whether these bytes read the same to every reader; it costs their length, so that long ones are asked elsewhere.
pub fn check_message(data: &[u8]) -> Result<(), BadMessage> {
    Ok(check_strict(data)?)
}

/// Of bytes that passed `check_message`.
pub fn read_messages(data: &[u8]) -> Result<ServerMessages<'_>, BadMessage> {
    let whole: &RawValue = serde_json::from_slice(data).map_err(|_| BadMessage::NoMessage)?;
    if !whole.get().starts_with('[') {
        return Ok(ServerMessages { messages: vec![ServerMessage::read(whole)?], is_batch: false });
    }
    let parts: Vec<&RawValue> = serde_json::from_str(whole.get()).map_err(|_| BadMessage::NoMessage)?;
    if parts.len() > MAX_BATCH {
        return Err(BadMessage::TooMany);
    }
    let messages = parts.into_iter().map(ServerMessage::read).collect::<Result<_, _>>()?;
    Ok(ServerMessages { messages, is_batch: true })
}

#[derive(Deserialize)]
struct ToolResult {
    #[serde(rename = "isError", default)]
    is_error: bool,
}

impl<'a> ServerMessage<'a> {
    fn read(raw: &'a RawValue) -> Result<Self, BadMessage> {
        let members = Members::read(raw, &ENVELOPE).ok_or(BadMessage::NoMessage)?;
        let [id, method, result, error] = ["id", "method", "result", "error"].map(|name| members.get(name));
        let kind = match (method.is_some(), result.is_some() || error.is_some()) {
            (true, false) if id.is_some() => MessageKind::Request,
            (true, false) => MessageKind::Notification,
            (false, true) if result.is_none() || error.is_none() => MessageKind::Answer,
            _ => return Err(BadMessage::NoMessage),
        };
        Ok(Self { kind, text: raw.get(), id, result, error })
    }

    /// What it is to the request of this id, which is JSON, as the client wrote it; a server may write it otherwise.
    pub fn outcome(&self, id: &str) -> Outcome {
        let is_it = self.id.is_some_and(|found| found.get() == id || is_same(found.get(), id));
        if !is_it || self.kind != MessageKind::Answer {
            return Outcome::NotYet;
        }
        if let Some(error) = self.error {
            let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
            return Outcome::Refused(error["code"].as_i64().unwrap_or_default());
        }
        let result = self.result.and_then(|result| serde_json::from_str::<ToolResult>(result.get()).ok());
        match result {
            Some(ToolResult { is_error: true }) => Outcome::ToolFailed,
            _ => Outcome::Done,
        }
    }
}

fn is_same(one: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    match (read(one), read(other)) {
        (Some(Value::Number(one)), Some(Value::Number(other))) => one.as_f64() == other.as_f64(),
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::strict::loose_values;
    use super::*;

    fn outcome_of(id: &str, message: &str) -> Option<Outcome> {
        check_message(message.as_bytes()).ok()?;
        let read = read_messages(message.as_bytes()).ok()?;
        let each = read.messages.iter().map(|one| one.outcome(id));
        Some(each.into_iter().find(|outcome| *outcome != Outcome::NotYet).unwrap_or(Outcome::NotYet))
    }

    #[test]
    fn only_the_answer_to_the_request_counts() {
        for (id, message, outcome) in [
            ("1", r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#, Some(Outcome::Done)),
            ("1", r#"{"id":1.0,"result":{}}"#, Some(Outcome::Done)),
            ("\"a\"", r#"{"id":"\u0061","result":{}}"#, Some(Outcome::Done)),
            ("1", r#"{"id":"1","result":{}}"#, Some(Outcome::NotYet)),
            ("1", r#"{"id":1,"method":"sampling/createMessage"}"#, Some(Outcome::NotYet)),
            ("1", r#"{"method":"notifications/progress"}"#, Some(Outcome::NotYet)),
            ("1", r#"{"id":1,"result":{"isError":true}}"#, Some(Outcome::ToolFailed)),
            ("1", r#"{"id":1,"result":7}"#, Some(Outcome::Done)),
            ("1", r#"{"id":1,"error":{"code":-32601,"message":"no"}}"#, Some(Outcome::Refused(-32601))),
            ("2", r#" [{"id":1,"result":{}},{"id":2,"error":{"code":1}}]"#, Some(Outcome::Refused(1))),
            ("1", "rubbish", None),
            ("1", "7", None),
            ("1", r#"{"id":1}"#, None),
            ("1", r#"{"id":1,"Result":{}}"#, None),
            ("1", r#"{"id":1,"result":{},"ID":2}"#, None),
            ("1", r#"{"id":1,"result":{},"error":{}}"#, None),
            ("1", r#"{"id":1,"result":{},"method":"ping"}"#, None),
            ("5", r#"{"id":99,"id":5,"result":{}}"#, None),
        ] {
            assert_eq!(outcome_of(id, message), outcome, "{id} {message}");
        }
    }

    #[test]
    fn what_cannot_be_read_strictly_is_no_message() {
        for value in loose_values() {
            for message in [
                format!(r#"{{"id":1,"result":{{"content":[{{"type":"text","text":"a"}}],"x":{value}}}}}"#),
                format!(r#"{{"id":1,"error":{{"code":1,"message":"m","data":{value}}}}}"#),
                format!(r#"{{"id":{value},"result":{{}}}}"#),
                format!(r#"{{"id":1,"method":"elicitation/create","params":{value}}}"#),
                format!(r#"{{"method":"notifications/message","params":{value}}}"#),
                format!(r#"[{{"id":1,"result":{{}}}},{{"id":2,"result":{value}}}]"#),
            ] {
                assert_eq!(outcome_of("1", &message), None, "{message}");
            }
        }
    }
}
