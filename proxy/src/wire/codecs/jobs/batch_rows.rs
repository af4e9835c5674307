//! The rows of a batch's file: OpenAI's on the client's side, a provider's own on the other. Rows are translated with the
//! codecs of conversations, one by one.

use crate::wire::codecs::chat::ChatCodec;
use crate::wire::codecs::options::{AnswerOptions, RequestOptions};
use crate::wire::codecs::{Codec, CodecError};
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// Of one file of a client.
const MAX_ROWS: usize = 50_000;
/// Of one that a provider wrote.
pub const MAX_LINES: usize = 200_000;
/// One row is read whole, and takes many times its length.
pub const MAX_LINE_BYTES: usize = 4 << 20;

/// A client's row: what it is called by, and its body.
pub struct BatchRow {
    pub custom_id: String,
    pub body: Map<String, Value>,
}

/// Every line of a file. What is wrong with one is told with its number.
pub fn each_row(file: &[u8]) -> impl Iterator<Item = Result<BatchRow, CodecError>> {
    let lines = file.split(|byte| *byte == b'\n').enumerate();
    let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    lines.enumerate().map(|(row, (number, line))| {
        if row >= MAX_ROWS {
            return Err(CodecError::TooMany { field: "file".into(), most: MAX_ROWS });
        }
        let wrong = |problem: &str| CodecError::field("file", format!("is wrong in line {}: {problem}", number + 1));
        if line.len() > MAX_LINE_BYTES {
            return Err(wrong(&format!("it is longer than {MAX_LINE_BYTES} bytes")));
        }
        let row: Map<String, Value> = serde_json::from_slice(line).map_err(|error| wrong(&error.to_string()))?;
        from_json(row).ok_or_else(|| wrong("a row has a `custom_id` and a `body`"))
    })
}

pub fn from_json(mut row: Map<String, Value>) -> Option<BatchRow> {
    let custom_id = row.get("custom_id").and_then(Value::as_str)?.to_owned();
    match row.remove("body") {
        Some(Value::Object(body)) => Some(BatchRow { custom_id, body }),
        _ => None,
    }
}

/// The body of a chat in a provider's words.
pub fn translated(
    body: &Map<String, Value>,
    codec: &dyn Codec,
    options: &RequestOptions<'_>,
) -> Result<Map<String, Value>, CodecError> {
    let text = serde_json::to_vec(body).map_err(|error| CodecError::Malformed(error.to_string()))?;
    let request = ChatCodec.read_request(&text)?;
    let mut out = Vec::with_capacity(text.len());
    codec.write_request(&request, options, &mut out)?;
    serde_json::from_slice(&out).map_err(|error| CodecError::Malformed(error.to_string()))
}

/// A provider's answer to one row as a chat.
pub fn answered(custom_id: &str, reply: &Value, codec: &dyn Codec, provider: &str, now: u64) -> Value {
    let options = AnswerOptions {
        is_strict: true,
        id: custom_id.into(),
        created: now,
        model: String::new().into(),
        provider: provider.to_owned().into(),
        include_usage: true,
        request: None,
    };
    let mut out = Vec::new();
    let body = codec.read_answer(reply.to_string().as_bytes()).ok().and_then(|answer| {
        ChatCodec.write_answer(&answer, &options, &mut out);
        serde_json::from_slice::<Value>(&out).ok()
    });
    match body {
        Some(body) => json!({ "id": row_id(custom_id), "custom_id": custom_id,
            "response": { "status_code": 200, "request_id": body["id"], "body": body }, "error": null }),
        None => failed(custom_id, "invalid_upstream_response", "the provider's answer is in no known form"),
    }
}

pub fn failed(custom_id: &str, code: &str, message: &str) -> Value {
    json!({ "id": row_id(custom_id), "custom_id": custom_id, "response": null,
        "error": { "code": code, "message": message } })
}

fn row_id(custom_id: &str) -> String {
    ["batch_req_", custom_id].concat()
}

/// Every line of a provider's file that is an object, rewritten. What is left out is told.
pub fn rewritten(file: &[u8], mut row: impl FnMut(usize, &Value) -> Value) -> Bytes {
    let mut out = Vec::with_capacity(file.len());
    for (number, line) in file.split(|byte| *byte == b'\n').enumerate() {
        let line = match number < MAX_LINES {
            true if line.len() > MAX_LINE_BYTES => left_out(number, "the line is too long"),
            true => match serde_json::from_slice::<Value>(line) {
                Ok(reply @ Value::Object(_)) => row(number, &reply),
                _ => continue,
            },
            false => left_out(number, "the file has too many lines, and ends here"),
        };
        out.extend_from_slice(line.to_string().as_bytes());
        out.push(b'\n');
        if number >= MAX_LINES {
            break;
        }
    }
    Bytes::from(out)
}

/// In place of a row that is not read.
fn left_out(number: usize, why: &str) -> Value {
    failed(&format!("line-{}", number + 1), "row_left_out", &format!("{why}; read the file itself"))
}
