//! Bedrock's wire: Converse, its frames, and `invoke` for embeddings.

use serde_json::{Value, json};

use crate::{mock, send, send_json};

const WHOLE: &str = "/model/us.anthropic.claude-sonnet-4%3A0/converse";
const STREAM: &str = "/model/us.anthropic.claude-sonnet-4%3A0/converse-stream";

fn asking(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": [{ "text": text }] }] })
}

fn with_fault(fault: Value) -> Value {
    asking(&json!({ "mock": fault }).to_string())
}

/// Kind and payload of each frame. Lengths and checksums are checked by hand, not by the code that wrote them.
fn frames(mut bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap());
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (total, headers) = (number(bytes) as usize, number(&bytes[4..]) as usize);
        let (frame, rest) = bytes.split_at(total);
        assert_eq!(number(&frame[8..]), crc32(&frame[..8]), "the checksum of the lengths");
        assert_eq!(number(&frame[total - 4..]), crc32(&frame[..total - 4]), "the checksum of the frame");
        let mut header = &frame[12..12 + headers];
        let mut kind = String::new();
        while !header.is_empty() {
            let (name, after) = header[1..].split_at(usize::from(header[0]));
            assert_eq!(after[0], 7, "headers are strings");
            let length = usize::from(u16::from_be_bytes([after[1], after[2]]));
            let (value, after) = after[3..].split_at(length);
            if name == b":event-type" || name == b":exception-type" {
                kind = String::from_utf8(value.to_vec()).unwrap();
            }
            header = after;
        }
        found.push((kind, frame[12 + headers..total - 4].to_vec()));
        bytes = rest;
    }
    found
}

/// CRC32, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

fn json_of(payload: &[u8]) -> Value {
    serde_json::from_slice(payload).unwrap()
}

#[tokio::test]
async fn the_frames_of_a_stream_say_what_the_whole_answer_says() {
    let mock = mock();
    let mut body = asking("12345678");
    body["system"] = json!([{ "text": "1234" }]);
    let whole = send_json(&mock, WHOLE, &body).await;
    assert_eq!((&whole["stopReason"], &whole["usage"]["inputTokens"]), (&json!("end_turn"), &json!(3)));
    let response = send(&mock, STREAM, &body).await;
    assert_eq!(response.headers()["content-type"], "application/vnd.amazon.eventstream");
    let frames = frames(&response.bytes().await.unwrap());
    let kinds: Vec<&str> = frames.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds[..2], ["messageStart", "contentBlockDelta"]);
    assert_eq!(kinds[kinds.len() - 3..], ["contentBlockStop", "messageStop", "metadata"]);
    let text: String = frames
        .iter()
        .filter_map(|(_, payload)| json_of(payload)["delta"]["text"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(text, whole["output"]["message"]["content"][0]["text"]);
    assert_eq!(json_of(&frames.last().unwrap().1)["usage"], whole["usage"]);
}

#[tokio::test]
async fn tools_are_used_one_or_several() {
    let mock = mock();
    let tool = |name: &str| json!({ "toolSpec": { "name": name, "inputSchema": { "json": { "type": "object" } } } });
    let tools = json!([tool("weather"), tool("time")]);
    let mut body = asking("x");
    body["toolConfig"] = json!({ "tools": tools, "toolChoice": { "tool": { "name": "time" } } });
    let whole = send_json(&mock, WHOLE, &body).await;
    let used = &whole["output"]["message"]["content"][0]["toolUse"];
    assert_eq!((&whole["stopReason"], &used["name"]), (&json!("tool_use"), &json!("time")));
    let mut body = with_fault(json!({ "tool_calls": 2 }));
    body["toolConfig"] = json!({ "tools": tools });
    let frames = frames(&send(&mock, STREAM, &body).await.bytes().await.unwrap());
    let mut inputs = [String::new(), String::new()];
    for (_, payload) in &frames {
        let event = json_of(payload);
        if let Some(piece) = event["delta"]["toolUse"]["input"].as_str() {
            inputs[event["contentBlockIndex"].as_u64().unwrap() as usize] += piece;
        }
    }
    assert_eq!(inputs.map(|input| json_of(input.as_bytes())), [json!({ "city": "Paris" }), json!({ "city": "Paris" })]);
}

#[tokio::test]
async fn what_is_not_of_the_wire_is_refused_in_awss_words() {
    let mock = mock();
    let mut unknown = asking("x");
    unknown["max_tokens"] = json!(5);
    let two = json!({ "messages": [{ "role": "user", "content": [{ "text": "a", "image": {} }] }] });
    for (path, body, status, named) in [
        (WHOLE, json!({ "contents": [] }), 400, "messages"),
        (WHOLE, unknown, 400, "max_tokens"),
        (WHOLE, two, 400, "messages[0].content[0]"),
        (WHOLE, json!({ "messages": [{ "role": "user", "content": "x" }] }), 400, "messages[0].content"),
        (WHOLE, json!({ "messages": [{ "role": "assistant", "content": [{ "text": "x" }] }] }), 400, "user"),
        ("/model/arn:aws:bedrock:x:1:inference-profile/y/converse", asking("x"), 404, "segment"),
    ] {
        let response = send(&mock, path, &body).await;
        assert_eq!(response.status(), status, "{body}");
        assert!(response.headers()["x-amzn-errortype"].to_str().unwrap().contains("Exception"));
        let error = response.json::<Value>().await.unwrap();
        assert!(error["message"].as_str().unwrap().contains(named), "{error}");
    }
}

#[tokio::test]
async fn faults_are_scripted_as_everywhere() {
    let mock = mock();
    let limited = send(&mock, "/model/fault%2Fstatus%3D429/converse", &asking("x")).await;
    assert_eq!(limited.status(), 429);
    assert!(limited.headers()["x-amzn-errortype"].to_str().unwrap().starts_with("ThrottlingException"));
    let body = with_fault(json!({ "error_after_chunks": 2, "chunks": 5 }));
    let found = frames(&send(&mock, STREAM, &body).await.bytes().await.unwrap());
    assert_eq!((found.len(), found[3].0.as_str()), (4, "internalServerException"));
    let body = with_fault(json!({ "bad_json": true, "chunk_bytes": 7 }));
    let found = frames(&send(&mock, STREAM, &body).await.bytes().await.unwrap());
    assert_eq!(found.iter().filter(|(_, payload)| serde_json::from_slice::<Value>(payload).is_err()).count(), 1);
}

#[tokio::test]
async fn embeddings_of_titan_and_cohere_and_signatures_alone() {
    let mock = mock();
    let titan = json!({ "inputText": "12345", "dimensions": 3 });
    let embedded = send_json(&mock, "/model/amazon.titan-embed-text-v2%3A0/invoke", &titan).await;
    assert_eq!((embedded["embedding"].as_array().unwrap().len(), &embedded["inputTextTokenCount"]), (3, &json!(2)));
    let cohere = json!({ "texts": ["12345", "1"], "input_type": "search_query" });
    let response = send(&mock, "/model/cohere.embed-v4%3A0/invoke", &cohere).await;
    assert_eq!(response.headers()["x-amzn-bedrock-input-token-count"], "3");
    assert_eq!(response.json::<Value>().await.unwrap()["embeddings"].as_array().unwrap().len(), 2);
    let signed =
        "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=00";
    for (authorization, path, status) in [
        (signed, WHOLE, 200),
        ("AWS4-HMAC-SHA256 Credential=AKID", WHOLE, 401),
        (signed, "/v1beta/models/g:generateContent", 401),
    ] {
        let request = reqwest::Client::new().post(mock.origin() + path).header("authorization", authorization);
        assert_eq!(request.json(&asking("x")).send().await.unwrap().status(), status, "{authorization} {path}");
    }
}
