//! Nothing escapes a limit on the relay lane: models are asked about however a path is spelled and wherever a body names
//! them, and usage is counted however an answer is compressed.

use crate::families::{application, integrate};
use crate::journal::calls::{rows, text, tokens};
use crate::limits::{patient, policy};
use crate::raw::{Wire, credentials_for, post};
use crate::upstream::RawUpstream;
use bytes::Bytes;
use harness::client::whole;
use harness::{Answer, Stack, chat};
use http::Method;
use serde_json::{Value, json};
use std::io::Write as _;

const ALLOWED: &str = "gpt-4o-mini";
const FORBIDDEN: &str = "gpt-4o";

/// A stack whose `@prod` has a model switched off.
async fn restricted() -> Stack {
    let stack = Stack::start().await;
    integrate(&stack, "prod", "openai").await;
    let off = json!({ "models": [{ "slug": FORBIDDEN, "enabled": false }] });
    let answer = stack.administrator().put("/integrations/prod/models", &off).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let client = application(&stack).with("x-gateway-provider", "@prod");
    let is_off = async || client.post("/chat/completions", &asking(FORBIDDEN)).await.status == 403;
    stack.until("the model is off", is_off).await;
    stack.mock.reset();
    stack
}

fn asking(model: &str) -> Value {
    let mut body = chat("Hello");
    body["model"] = json!(model);
    body
}

fn code(answer: &Answer) -> (u16, String) {
    let code = answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned();
    (answer.status.as_u16(), code)
}

#[tokio::test]
async fn a_forbidden_model_is_refused_however_its_path_is_spelled() {
    let stack = restricted().await;
    let client = application(&stack).with("x-gateway-provider", "@prod");
    for path in [
        "/chat/completions",
        "/chat/completions/",
        "/proxy/chat/completions",
        "//chat/completions",
        "/%63hat/completions",
        "/proxy/chat/complet%69ons//",
        "/threads/runs",
        "/v2/chat",
        "/assistants",
    ] {
        let refused = client.post(path, &asking(FORBIDDEN)).await;
        assert_eq!(code(&refused), (403, "model_not_allowed".into()), "{path}");
        assert_eq!(stack.mock.requests().len(), 0, "{path}: nothing was sent");
        let answer = client.post(path, &asking(ALLOWED)).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(stack.mock.requests().len(), 1, "{path}");
        stack.mock.reset();
    }
    for path in ["/Chat/Completions", "/chat%2Fcompletions", "/x%2F..%2Fchat/completions", "/chat;a/completions"] {
        assert_eq!(code(&client.post(path, &asking(FORBIDDEN)).await), (404, "not_found".into()), "{path}");
        assert_eq!(stack.mock.requests().len(), 0, "{path}: nothing was sent");
    }
    let native = format!("/v1beta/models/{FORBIDDEN}:generateContent");
    for path in [native.as_str(), &native.replace("models", "%6dodels")] {
        let refused = client.post(path, &json!({})).await;
        let reason = &refused.json()["error"]["details"][0]["reason"];
        assert_eq!((refused.status.as_u16(), reason), (403, &json!("model_not_allowed")), "{path}");
    }
    for path in [native.replace("models", "Models"), native.replace("models/", "models%2F")] {
        assert_eq!(client.post(&path, &json!({})).await.status, 404, "{path}");
    }
    let path = format!("/deployments/{FORBIDDEN}/x");
    assert_eq!(code(&client.post(&path, &json!({})).await), (403, "model_not_allowed".into()));
    assert_eq!(stack.mock.requests().len(), 0, "nothing was sent");
}

#[tokio::test]
async fn a_relayed_model_that_cannot_be_told_is_refused_where_it_decides_and_passes_where_not() {
    let stack = restricted().await;
    integrate(&stack, "open", "openai").await;
    stack.mock.reset();
    let pad = "x".repeat(300 << 10);
    let late = format!(r#"{{"pad":"{pad}","model":"{FORBIDDEN}"}}"#);
    let twice = format!(r#"{{"model":"{ALLOWED}","pad":"{pad}","model":"{FORBIDDEN}"}}"#);
    let early = format!(r#"{{"model":"{ALLOWED}","pad":"{pad}"}}"#);
    let utf16: Vec<u8> = asking(FORBIDDEN).to_string().encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked = [&b"\xef\xbb\xbf"[..], asking(FORBIDDEN).to_string().as_bytes()].concat();
    let json = "application/json";
    for (name, kind, encoding, body, expected) in [
        ("late", json, "", late.into_bytes(), 400),
        ("twice", json, "", twice.clone().into_bytes(), 400),
        ("a small one twice", json, "", twice.replace(&pad, "").into_bytes(), 400),
        ("in another case", json, "", format!(r#"{{"Model":"{FORBIDDEN}"}}"#).into_bytes(), 403),
        ("escaped", json, "", format!(r#"{{"mod\u0065l":"{FORBIDDEN}"}}"#).into_bytes(), 403),
        ("compressed", json, "gzip", gzip(asking(FORBIDDEN).to_string().as_bytes()), 400),
        ("in UTF-16", json, "", utf16, 400),
        ("behind a mark", json, "", marked, 400),
        ("as another type", "text/plain", "", asking(FORBIDDEN).to_string().into_bytes(), 403),
        ("no object", json, "", b"[1]".to_vec(), 200),
        ("no JSON", "audio/wav", "", b"RIFF\0\0".to_vec(), 200),
        ("early", json, "", early.into_bytes(), 200),
    ] {
        for is_chunked in [false, true] {
            let send = async |provider: &str| {
                let client = application(&stack).with("x-gateway-provider", provider);
                let mut request = client.request(Method::POST, "/threads/runs").header("content-type", kind);
                if !encoding.is_empty() {
                    request = request.header("content-encoding", encoding);
                }
                let pieces: Vec<_> =
                    body.chunks(1000).map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece))).collect();
                let request = match is_chunked {
                    true => request.body(reqwest::Body::wrap_stream(futures::stream::iter(pieces))),
                    false => request.body(body.clone()),
                };
                whole(request).await
            };
            let answer = send("@prod").await;
            assert_eq!(answer.status.as_u16(), expected, "{name}, chunked {is_chunked}: {}", answer.text());
            let arrived = stack.mock.requests();
            assert!(expected == 200 || arrived.is_empty(), "{name}, chunked {is_chunked}: {arrived:?}");
            if !name.contains("twice") {
                let answer = send("@open").await;
                assert_eq!(answer.status, 200, "{name}, chunked {is_chunked}: {}", answer.text());
                let arrived = stack.mock.requests().pop().unwrap();
                assert_eq!(arrived.body_bytes, body.len() as u64, "{name}, chunked {is_chunked}");
            }
            stack.mock.reset();
        }
    }
}

#[tokio::test]
async fn a_form_of_unknown_length_does_not_hide_its_model() {
    let stack = restricted().await;
    let client = application(&stack).with("x-gateway-provider", "@prod");
    let form = |model: &str| {
        format!(
            "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nabc\r\n--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n{model}\r\n--B--\r\n"
        )
    };
    for (model, expected) in [(FORBIDDEN, 403), (ALLOWED, 200)] {
        let pieces = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from(form(model)))]);
        let request = client.request(Method::POST, "/audio/transcriptions");
        let request = request.header("content-type", "multipart/form-data; boundary=B");
        let answer = whole(request.body(reqwest::Body::wrap_stream(pieces))).await;
        assert_eq!(answer.status.as_u16(), expected, "{model}: {}", answer.text());
    }
}

#[tokio::test]
async fn a_policy_about_a_model_holds_on_the_relay_lane() {
    let stack = patient().await;
    integrate(&stack, "first", "openai").await;
    let body = json!({
        "type": "requests", "unit": "rpd", "value": 1, "group_by": [{ "key": "model" }],
        "conditions": [{ "key": "model", "value": "gpt-4o-mini" }],
    });
    policy(&stack, "/policies/rate-limits", body).await;
    for client in [application(&stack).with("x-gateway-provider", "@first"), stack.client()] {
        let refused = async || client.post("/threads/runs", &asking(ALLOWED)).await.status == 429;
        stack.until("the policy is known", refused).await;
        assert_eq!(client.post("/threads/runs", &asking(FORBIDDEN)).await.status, 200);
    }
}

#[tokio::test]
async fn a_slug_in_a_relayed_body_names_the_provider_and_is_left_out_of_what_is_sent() {
    let stack = restricted().await;
    let client = application(&stack);
    let pad = "x".repeat(300 << 10);
    for body in [
        format!(r#"{{ "a": [{{"model":"@prod/x"}}], "model" : "@prod/{ALLOWED}", "z": 1.50 }}"#),
        format!(r#"{{"model":"@prod/{ALLOWED}","pad":"{pad}"}}"#),
    ] {
        let request = client.request(Method::POST, "/threads/runs").header("content-type", "application/json");
        let answer = whole(request.body(body.clone())).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("x-gateway-provider"), "openai");
        let arrived = stack.mock.requests().pop().unwrap();
        let expected = body.replace(&format!("@prod/{ALLOWED}"), ALLOWED);
        assert_eq!(arrived.body_bytes, expected.len() as u64);
        assert!(expected.as_bytes().starts_with(&arrived.body[..arrived.body.len().min(expected.len())]));
    }
    assert_eq!(client.post("/threads/runs", &asking(&format!("@prod/{FORBIDDEN}"))).await.status, 403);
    // Without a slug the workspace's catalogue says who has it, of what this key may use.
    assert_eq!(client.post("/threads/runs", &asking(ALLOWED)).await.status, 200);
    assert_eq!(code(&client.post("/threads/runs", &asking(FORBIDDEN)).await), (400, "missing_provider".into()));
}

#[tokio::test]
async fn the_usage_of_a_compressed_answer_is_counted_and_its_bytes_are_left_alone() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let usage = r#""usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}"#;
    let plain = format!(r#"{{"model":"{FORBIDDEN}","pad":"{}",{usage}}}"#, "é".repeat(9000));
    let stream = format!("data: {{\"model\":\"{FORBIDDEN}\",{usage}}}\n\ndata: [DONE]\n\n");
    let deflated = {
        let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        out.write_all(plain.as_bytes()).unwrap();
        out.finish().unwrap()
    };
    let answers = [
        ("application/json", "gzip", gzip(plain.as_bytes())),
        ("Application/JSON; charset=utf-8", "x-gzip", gzip(plain.as_bytes())),
        ("application/json", "deflate", deflated),
        ("application/vnd.api+json", "zstd", zstd::encode_all(plain.as_bytes(), 1).unwrap()),
        ("text/event-stream", "gzip", gzip(stream.as_bytes())),
        ("application/json", "", plain.clone().into_bytes()),
    ];
    for (kind, encoding, body) in &answers {
        let encoding = if encoding.is_empty() { String::new() } else { format!("Content-Encoding: {encoding}\r\n") };
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{encoding}Content-Length: {}\r\n\r\n", body.len());
        upstream.answer([head.as_bytes(), body].concat());
        let mut wire = Wire::open(stack.proxy_port).await;
        let headers = format!("{}Accept-Encoding: gzip\r\n", credentials_for(&stack, &upstream.url()));
        wire.send(post("/v1/threads/runs", &headers, &asking(FORBIDDEN).to_string())).await;
        let answer = wire.answer().await.unwrap();
        assert!(answer.status == 200 && answer.body == *body, "{kind} {encoding}");
        assert!(upstream.only().contains("\r\nAccept-Encoding: gzip\r\n"));
    }
    for (row, (kind, encoding, _)) in rows(&stack, answers.len()).await.iter().zip(&answers) {
        assert_eq!(tokens(row), (1000, 100), "{kind} {encoding}");
        assert_eq!(text(row, "ai_model"), Some(FORBIDDEN), "{kind} {encoding}");
        assert!(row.get::<_, rust_decimal::Decimal>("cost") > 0.into(), "{kind} {encoding}");
        assert!(!row.get::<_, bool>("usage_estimated"), "{kind} {encoding}");
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(text).unwrap();
    out.finish().unwrap()
}
