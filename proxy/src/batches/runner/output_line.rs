//! The line of a row in the output or the error file, as OpenAI's clients read it. `asked` is ours: how often the row was asked,
//! where that is more than once, because whoever was asked may have been paid each time.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Serialize)]
struct OutputLine<'l> {
    id: String,
    custom_id: &'l str,
    response: Option<RowResponse<'l>>,
    error: Option<RowError<'l>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<i16>,
}

#[derive(Serialize)]
struct RowResponse<'l> {
    status_code: u16,
    request_id: &'l str,
    body: Body<'l>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Body<'l> {
    Json(&'l RawValue),
    Text(Cow<'l, str>),
}

#[derive(Serialize)]
struct RowError<'l> {
    code: &'l str,
    message: &'l str,
}

/// Of a row that got an answer, good or bad.
pub fn answered(custom_id: &str, request_id: &str, status: u16, body: &[u8], asked: i16) -> Bytes {
    let parsed: Option<&RawValue> = serde_json::from_slice(body).ok();
    // A line is one line. Texts in JSON hold no break that is not written as an escape, so each is a blank.
    let one_line = parsed
        .filter(|json| json.get().contains(['\n', '\r']))
        .and_then(|json| RawValue::from_string(json.get().replace(['\n', '\r'], " ")).ok());
    let json = one_line.as_deref().or(parsed);
    let error = (!(200..300).contains(&status)).then(|| error_of(json, status));
    let line = OutputLine {
        id: format!("batch_req_{request_id}"),
        custom_id,
        response: Some(RowResponse {
            status_code: status,
            request_id,
            body: json.map_or_else(|| Body::Text(String::from_utf8_lossy(body)), Body::Json),
        }),
        error: error.as_ref().map(|(code, message)| RowError { code, message }),
        asked: (asked > 1).then_some(asked),
    };
    written(&line)
}

/// What a body says is wrong: a code, and a sentence.
pub fn error_of_body(body: &[u8], status: u16) -> (String, String) {
    error_of(serde_json::from_slice(body).ok(), status)
}

/// Of a row without one. `id` tells it from others.
pub fn unanswered(custom_id: &str, id: &str, code: &str, message: &str, asked: i16) -> Bytes {
    let line = OutputLine {
        id: format!("batch_req_{id}"),
        custom_id,
        response: None,
        error: Some(RowError { code, message }),
        asked: (asked > 1).then_some(asked),
    };
    written(&line)
}

fn written(line: &OutputLine<'_>) -> Bytes {
    // Texts and JSON that was read as such can always be written.
    Bytes::from(serde_json::to_vec(line).unwrap_or_default())
}

/// What the body says is wrong, in the usual places.
fn error_of(json: Option<&RawValue>, status: u16) -> (String, String) {
    /// In characters: the whole stands in the body.
    const MAX_MESSAGE: usize = 1000;
    let value: serde_json::Value = json.and_then(|json| serde_json::from_str(json.get()).ok()).unwrap_or_default();
    let error = &value["error"];
    let text =
        |value: &serde_json::Value| value.as_str().map(|text| text.chars().take(MAX_MESSAGE).collect::<String>());
    let code = text(&error["code"]).or_else(|| text(&error["type"])).unwrap_or_else(|| format!("http_{status}"));
    let message = text(&error["message"]).or_else(|| text(error)).or_else(|| text(&value["message"]));
    (code, message.unwrap_or_else(|| format!("the answer has the status {status}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(line: &Bytes) -> Value {
        assert!(!line.contains(&b'\n'));
        serde_json::from_slice(line).unwrap()
    }

    #[test]
    fn an_answer_stands_in_its_line_as_it_came() {
        let line = answered("a", "r", 200, br#"{"z":1.0,"a":1.50}"#, 1);
        assert!(line.windows(18).any(|bytes| bytes == br#"{"z":1.0,"a":1.50}"#));
        let line = answered("a", "r", 200, b"{\n \"z\": \"x\\ny\"\n}", 3);
        let expected = json!({ "id": "batch_req_r", "custom_id": "a", "asked": 3, "error": null,
            "response": { "status_code": 200, "request_id": "r", "body": { "z": "x\ny" } } });
        assert_eq!(read(&line), expected);
        assert_eq!(read(&answered("a", "r", 200, b"no json", 1))["response"]["body"], "no json");
    }

    #[test]
    fn a_failure_tells_what_its_body_says() {
        for (status, body, code, message) in [
            (400, &br#"{"error":{"code":"bad","message":"why"}}"#[..], "bad", "why"),
            (400, br#"{"error":{"type":"kind","message":"why","code":null}}"#, "kind", "why"),
            (500, br#"{"error":"words"}"#, "http_500", "words"),
            (502, b"<html>", "http_502", "the answer has the status 502"),
        ] {
            let line = read(&answered("a", "r", status, body, 1));
            assert_eq!(line["error"], json!({ "code": code, "message": message }), "{line}");
            assert_eq!(line["response"]["status_code"], status);
        }
        let line = read(&unanswered("a", "b-1", "batch_expired", "its time was over", 2));
        assert_eq!(
            (&line["response"], &line["error"]["code"], &line["asked"]),
            (&Value::Null, &json!("batch_expired"), &json!(2))
        );
    }
}
