//! That what is stored of a call is what was sent and got, without anything secret.

use super::*;

fn text(stored: &str) -> StoredText<'_> {
    StoredText { bytes: stored.as_bytes(), length: stored.len() as u64, is_text: true }
}

fn body<'b>(request: StoredText<'b>, response: StoredText<'b>) -> StoredBodies<'b> {
    StoredBodies {
        asked_head: b"/v1/chat/completions?a=b\ncontent-type: text/plain\nx-gateway-provider: openai\nx-acme-one: 1\n",
        sent_head: b"api.test/v1/chat\ncontent-type: application/json\n",
        answered_head: b"content-type: application/json\nvary: a\nvary: b\n",
        request,
        sent: b"",
        asks_usage: false,
        is_debug: true,
        response,
    }
}

fn made(url: &'static str, body: &StoredBodies<'_>) -> Value {
    let record = Record { status: 200, method: "POST", url, option: Some("config"), ..Record::default() };
    let aliases = Aliases::new(&["x-acme-".into()]).unwrap();
    serde_json::from_slice(&object(&record, body, &aliases).unwrap()).unwrap()
}

#[test]
fn heads_are_parted_into_ours_and_theirs() {
    let object = made("/v1/chat/completions", &body(text("{}"), text("[1]")));
    assert_eq!(object["request"]["url"], "/v1/chat/completions?a=b");
    assert_eq!(object["request"]["headers"], json!({ "content-type": "text/plain" }));
    assert_eq!(object["request"]["gatewayHeaders"], json!({ "x-gateway-provider": "openai", "x-acme-one": "1" }));
    assert_eq!(object["response"]["headers"]["vary"], "a, b");
    assert_eq!(object["response"]["lastUsedOptionJsonPath"], "config");
    assert_eq!(object["transformedRequest"]["url"], "api.test/v1/chat");
    assert_eq!((&object["_id"], &object["log_format"]), (&json!(Uuid::nil()), &json!("v1")));
}

#[test]
fn a_body_stands_as_what_it_is() {
    let cut = StoredText { length: 100, ..text("{\"a\":\"é") };
    let binary = StoredText { bytes: b"", length: 7, is_text: false };
    for (sent, expected) in [
        (text(r#"{"b":1.0,"a":[]}"#), json!({"b": 1.0, "a": []})),
        (text("data: {}\n\n"), json!("data: {}\n\n")),
        (text(r#"{"broken"#), json!(r#"{"broken"#)),
        (cut, json!("{\"a\":\"é…[truncated: 8 of 100 bytes kept]")),
        (
            StoredText { bytes: &"é".as_bytes()[..1], length: 2, is_text: true },
            json!("…[truncated: 1 of 2 bytes kept]"),
        ),
        (binary, json!("[text/plain: 7 bytes not kept]")),
        (text(""), Value::Null),
    ] {
        let object = made("/v1/chat/completions", &body(sent, text("{}")));
        assert_eq!(object["request"]["body"], expected);
    }
}

#[test]
fn numbers_keep_the_digits_that_were_sent() {
    let record = Record::default();
    let written = object(
        &record,
        &body(text(r#"{"n":1.10,"big":123456789012345678901234567890}"#), text("{}")),
        &Aliases::default(),
    );
    let written = String::from_utf8(written.unwrap()).unwrap();
    assert!(written.contains(r#"{"n":1.10,"big":123456789012345678901234567890}"#), "{written}");
}

#[test]
fn vectors_are_left_out_whole_or_cut() {
    let numbers = serde_json::to_string(&vec![0.5; 300]).unwrap();
    let answer = format!(r#"{{"data":[{{"embedding":{numbers},"index":0}},{{"embedding":"AAAA","index":1}}]}}"#);
    let object = made("/v1/embeddings", &body(text(r#"{"input":[1,2,3]}"#), text(&answer)));
    assert_eq!(object["request"]["body"], json!({ "input": [1, 2, 3] }));
    let expected = json!([
        { "embedding": "[300 numbers not kept]", "index": 0 },
        { "embedding": "[4 characters not kept]", "index": 1 },
    ]);
    assert_eq!(object["response"]["body"]["data"], expected);
    let cut = StoredText { length: 5000, ..text(&answer[..600]) };
    let object = made("/v1/embeddings", &body(text("{}"), cut));
    assert_eq!(object["response"]["body"], "[application/json: 5000 bytes not kept]");
    let object = made("/v1/chat/completions", &body(text("{}"), text(&answer)));
    assert_eq!(object["response"]["body"]["data"][0]["embedding"].as_array().unwrap().len(), 300);
}

#[test]
fn what_the_target_was_asked_otherwise_is_told_apart() {
    let stream = r#"{"model":"m","stream":true}"#;
    let same = body(text(stream), text(""));
    assert_eq!(made("/v1/chat/completions", &same)["transformedRequest"].get("body"), None);
    let changed = StoredBodies { sent: br#"{"model":"other","stream":true}"#, ..body(text(stream), text("")) };
    assert_eq!(made("/x", &changed)["transformedRequest"]["body"]["model"], "other");
    let asking = StoredBodies { asks_usage: true, ..body(text(stream), text("")) };
    let sent = &made("/x", &asking)["transformedRequest"]["body"];
    assert_eq!(sent["stream_options"], json!({ "include_usage": true }));
    let refused = StoredBodies { sent_head: b"", ..body(text(stream), text("")) };
    assert_eq!(made("/x", &refused).get("transformedRequest"), None);
}

#[test]
fn without_debug_only_the_answer_is_in_it() {
    let failed = StoredBodies {
        is_debug: false,
        asked_head: b"/v1/x\n",
        sent_head: b"",
        ..body(text(""), text(r#"{"error":1}"#))
    };
    let object = made("/v1/x", &failed);
    assert_eq!(object["response"]["body"], json!({ "error": 1 }));
    assert_eq!(object["request"], json!({ "url": "/v1/x", "method": "POST" }));
}
