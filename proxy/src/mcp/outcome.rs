//! What became of a call, as its answer says: looked at for the log alone.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// What a message of a server's is to the request of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A notification, a request of the server's, or an answer to something else.
    NotYet,
    Done,
    /// The tool itself says that it failed.
    ToolFailed,
    /// An error of the protocol.
    Refused(i64),
}

impl Outcome {
    /// As a log tells it: HTTP says 200 to all of these.
    pub fn status(self) -> u16 {
        match self {
            Self::NotYet | Self::Done => 200,
            Self::ToolFailed => 422,
            Self::Refused(-32002) => 404,
            Self::Refused(-32700..=-32600) => 400,
            Self::Refused(_) => 502,
        }
    }

    pub fn is_failure(self) -> bool {
        !matches!(self, Self::NotYet | Self::Done)
    }
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolResult {
    #[serde(rename = "isError", default)]
    is_error: bool,
}

/// `id` is JSON, as the client wrote it; a server may write it otherwise.
pub fn outcome_of(id: &str, message: &[u8]) -> Outcome {
    if message.trim_ascii_start().starts_with(b"[") {
        let batch: Vec<&RawValue> = serde_json::from_slice(message).unwrap_or_default();
        let each = batch.iter().map(|one| single(id, one.get().as_bytes()));
        return each.into_iter().find(|outcome| *outcome != Outcome::NotYet).unwrap_or(Outcome::NotYet);
    }
    single(id, message)
}

fn single(id: &str, message: &[u8]) -> Outcome {
    let Ok(answer) = serde_json::from_slice::<Answer<'_>>(message) else { return Outcome::NotYet };
    let is_it = answer.id.is_some_and(|found| found.get() == id || is_same(found.get(), id));
    if !is_it || answer.method.is_some() {
        return Outcome::NotYet;
    }
    if let Some(error) = answer.error {
        let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
        return Outcome::Refused(error["code"].as_i64().unwrap_or_default());
    }
    let result = answer.result.and_then(|result| serde_json::from_str::<ToolResult>(result.get()).ok());
    match result {
        Some(ToolResult { is_error: true }) => Outcome::ToolFailed,
        _ => Outcome::Done,
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
    use super::*;

    #[test]
    fn only_the_answer_to_the_request_counts() {
        for (id, message, outcome) in [
            ("1", r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#, Outcome::Done),
            ("1", r#"{"id":1.0,"result":{}}"#, Outcome::Done),
            ("\"a\"", r#"{"id":"\u0061","result":{}}"#, Outcome::Done),
            ("1", r#"{"id":"1","result":{}}"#, Outcome::NotYet),
            ("1", r#"{"id":1,"method":"sampling/createMessage"}"#, Outcome::NotYet),
            ("1", r#"{"method":"notifications/progress"}"#, Outcome::NotYet),
            ("1", r#"{"id":1,"result":{"isError":true}}"#, Outcome::ToolFailed),
            ("1", r#"{"id":1,"result":7}"#, Outcome::Done),
            ("1", r#"{"id":1,"error":{"code":-32601,"message":"no"}}"#, Outcome::Refused(-32601)),
            ("2", r#" [{"id":1,"result":{}},{"id":2,"error":{"code":1}}]"#, Outcome::Refused(1)),
            ("1", "rubbish", Outcome::NotYet),
        ] {
            assert_eq!(outcome_of(id, message.as_bytes()), outcome, "{id} {message}");
        }
    }
}
