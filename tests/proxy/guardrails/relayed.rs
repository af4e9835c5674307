//! Guardrails of a workspace on what is relayed: bodies of every length and framing, and answers of every kind. Nothing reaches
//! the provider before its request was judged, and nothing the client before the answer was.

use super::lanes::{guard, guarded, until_held};
use crate::http2::Http2;
use crate::journal::calls::{rows, status, tokens};
use crate::raw::Wire;
use crate::upstream::{RawUpstream, stalling};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use harness::client::whole;
use harness::{Answer, Client, Stack};
use http::{Method, Request};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use std::io::Write as _;

const KIB: usize = 1 << 10;
/// Paths of no form that is known, and of one.
const PATHS: [&str; 2] = ["/elsewhere", "/deployments/gpt-4o/chat/completions"];

/// Speaks for the workspace to a provider at this address.
fn towards(stack: &Stack, url: &str) -> Client {
    let client = stack.anonymous().with_key(&stack.home.workspace_key);
    client.with("x-gateway-provider", "openai").with("authorization", "Bearer sk").with("x-gateway-custom-host", url)
}

/// JSON of about this length, with the word at its very end.
fn body_of(length: usize, word: &str) -> Bytes {
    json!({ "messages": [{ "role": "user", "content": "All work. ".repeat(length / 10) }], "user": word })
        .to_string()
        .into()
}

async fn send(stack: &Stack, upstream: &RawUpstream, path: &str, how: &str, body: Bytes) -> Answer {
    if let Some(framing) = how.strip_prefix("HTTP/2 ") {
        let request = Request::post(format!("http://localhost/v1{path}"))
            .header("x-gateway-api-key", &stack.home.workspace_key)
            .header("x-gateway-provider", "openai")
            .header("authorization", "Bearer sk")
            .header("x-gateway-custom-host", upstream.url())
            .header("content-type", "application/json");
        let request = match framing {
            "length" => request.header("content-length", body.len()),
            _ => request,
        };
        return Http2::open(stack.proxy_port).await.exchange(request.body(()).unwrap(), body).await.unwrap();
    }
    let client = towards(stack, &upstream.url());
    let request = client.request(Method::POST, path).header("content-type", "application/json");
    whole(match how {
        "HTTP/1 length" => request.body(body),
        _ => {
            let pieces: Vec<_> = body.chunks(60_001).map(Bytes::copy_from_slice).map(Ok::<_, std::io::Error>).collect();
            request.body(reqwest::Body::wrap_stream(futures::stream::iter(pieces)))
        }
    })
    .await
}

async fn until_nothing_is_held(stack: &Stack) {
    stack.until("nothing is held", async || stack.metric("gateway_request_body_bytes").await == Some(0.0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relayed_body_of_up_to_a_mebibyte_is_judged_to_its_end_before_a_provider_hears_of_it() {
    let (stack, client) = guarded(&["input_guardrails"]).await;
    until_held(&stack, &client).await;
    let upstream = RawUpstream::start().await;
    for how in ["HTTP/1 length", "HTTP/1 chunked", "HTTP/2 length", "HTTP/2 ended"] {
        for path in PATHS {
            for (length, is_judged) in [(KIB, true), (70 * KIB, true), (900 * KIB, true), (1200 * KIB, false)] {
                for (word, passes) in [("fine", true), ("forbidden", false)] {
                    let what = format!("{how} {path} {length} {word}");
                    let body = body_of(length, word);
                    let answer = send(&stack, &upstream, path, how, body.clone()).await;
                    let seen = upstream.take();
                    let expected = match (is_judged, passes) {
                        (false, _) => 403,
                        (true, false) => 446,
                        (true, true) => 200,
                    };
                    assert_eq!(answer.status, expected, "{what}: {}", answer.text());
                    match expected {
                        200 => {
                            assert_eq!(answer.text(), "{}", "{what}");
                            let [sent] = &seen[..] else { panic!("{what}: asked {} times", seen.len()) };
                            let text = String::from_utf8_lossy(sent).into_owned();
                            let arrived = unchunked(&text);
                            assert!(arrived.as_bytes() == body, "{what}: {} bytes arrived", arrived.len());
                        }
                        403 => {
                            assert_eq!(answer.json()["error"]["code"], "guardrail_unreadable", "{what}");
                            assert!(seen.is_empty(), "{what}: the provider was asked");
                        }
                        _ => assert!(seen.is_empty(), "{what}: the provider was asked"),
                    }
                }
            }
        }
    }
    until_nothing_is_held(&stack).await;
}

/// HTTP/2 needs no length for a body, so that a head does not tell whether one follows; some parties decode texts by the head.
#[tokio::test]
async fn nothing_follows_a_head_unjudged_whatever_the_head_says() {
    const JSON: &str = "application/json";
    let (stack, client) = guarded(&["input_guardrails", "output_guardrails"]).await;
    until_held(&stack, &client).await;
    let upstream = RawUpstream::start().await;
    let connection = Http2::open(stack.proxy_port).await;
    for (method, kind, body, expected) in [
        (Method::GET, JSON, "", 200),
        (Method::DELETE, JSON, "", 200),
        (Method::DELETE, JSON, r#"{"text":"fine"}"#, 200),
        (Method::GET, JSON, r#"{"text":"forbidden"}"#, 446),
        (Method::DELETE, JSON, r#"{"text":"forbidden"}"#, 446),
        (Method::GET, "text/plain", "forbidden", 403),
        (Method::DELETE, JSON, "{}{}", 403),
        (Method::POST, "application/json; charset=utf-8", r#"{"text":"fine"}"#, 200),
        // `forbidden`, to whoever decodes UTF-7.
        (Method::POST, "application/json; charset=utf-7", r#"{"text":"+AGYAbwByAGIAaQBkAGQAZQBu-"}"#, 403),
        (Method::POST, "application/json", "\u{feff}{\"text\":\"forbidden\"}", 403),
        (Method::POST, "application/x-ndjson", "{}\n{\"text\":\"forbidden\"}\n", 403),
    ] {
        let what = format!("{method} {kind} {body}");
        let request = Request::builder()
            .method(method)
            .uri("http://localhost/v1/elsewhere")
            .header("x-gateway-api-key", &stack.home.workspace_key)
            .header("x-gateway-provider", "openai")
            .header("authorization", "Bearer sk")
            .header("x-gateway-custom-host", upstream.url())
            .header("content-type", kind)
            .body(());
        let answer = connection.exchange(request.unwrap(), Bytes::from(body)).await.unwrap();
        assert_eq!(answer.status, expected, "{what}: {}", answer.text());
        assert_eq!(upstream.take().len(), usize::from(expected == 200), "{what}");
    }
    until_nothing_is_held(&stack).await;
}

#[tokio::test]
async fn what_is_held_of_bodies_and_answers_is_given_back_when_their_client_leaves() {
    let (stack, client) = guarded(&["input_guardrails", "output_guardrails"]).await;
    until_held(&stack, &client).await;
    let half = "x".repeat(400 * KIB);
    let said = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n{{\"text\":\"{half}"
    );
    let url = stalling(said.into_bytes()).await;
    let headers = format!(
        "Host: gateway.test\r\nx-gateway-api-key: {}\r\nx-gateway-provider: openai\r\nauthorization: Bearer sk\r\n\
         x-gateway-custom-host: {url}\r\ncontent-type: application/json\r\n",
        stack.home.workspace_key
    );
    let held = async || stack.metric("gateway_request_body_bytes").await.unwrap_or_default() as usize;
    for (what, length, body) in [("its body", 900_000, half.as_str()), ("its answer", 2, "{}")] {
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(format!("POST /v1/elsewhere HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n{body}")).await;
        stack.until(&format!("half of {what} is held"), async || held().await >= half.len()).await;
        drop(wire);
        until_nothing_is_held(&stack).await;
    }
    let request = Request::post("http://localhost/v1/elsewhere")
        .header("x-gateway-api-key", &stack.home.workspace_key)
        .header("x-gateway-provider", "openai")
        .header("authorization", "Bearer sk")
        .header("x-gateway-custom-host", &url)
        .header("content-type", "application/json");
    let connection = Http2::open(stack.proxy_port).await;
    let asking = tokio::spawn(async move { connection.exchange(request.body(()).unwrap(), Bytes::from("{}")).await });
    stack.until("half of an answer is held", async || held().await >= half.len()).await;
    asking.abort();
    until_nothing_is_held(&stack).await;
}

/// The body of a request, free of chunks.
fn unchunked(request: &str) -> String {
    let (head, mut rest) = request.split_once("\r\n\r\n").unwrap();
    if !head.to_ascii_lowercase().contains("transfer-encoding") {
        return rest.to_owned();
    }
    let mut body = String::new();
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        body += &after[..length];
        rest = &after[length + 2..];
    }
    body
}

#[tokio::test]
async fn a_body_that_is_too_long_passes_where_the_organisation_says_so_whatever_its_framing() {
    let (stack, client) = guarded(&["input_guardrails", "output_guardrails"]).await;
    until_held(&stack, &client).await;
    let allow = json!({ "settings": { "relay_with_guardrails": ["/v1/elsewhere"] } });
    assert_eq!(stack.administrator().put("/admin/organisation", &allow).await.status, 200);
    let upstream = RawUpstream::start().await;
    let long = body_of(1100 * KIB, "forbidden");
    let passes = async || send(&stack, &upstream, "/elsewhere", "HTTP/1 length", long.clone()).await.status == 200;
    stack.until("the path passes", passes).await;
    upstream.take();
    for how in ["HTTP/1 length", "HTTP/1 chunked", "HTTP/2 length", "HTTP/2 ended"] {
        for length in [1025 * KIB, 1100 * KIB, 3000 * KIB] {
            let body = body_of(length, "forbidden");
            let answer = send(&stack, &upstream, "/elsewhere", how, body.clone()).await;
            assert_eq!(answer.status, 200, "{how} {length}: {}", answer.text());
            let text = String::from_utf8_lossy(&upstream.take()[0]).into_owned();
            assert!(unchunked(&text).as_bytes() == body, "{how} {length}");
        }
        let judged = send(&stack, &upstream, "/elsewhere", how, body_of(900 * KIB, "forbidden")).await;
        assert_eq!(judged.status, 446, "{how}: what can be judged still is");
        assert!(upstream.take().is_empty(), "{how}");
    }
    until_nothing_is_held(&stack).await;
}

#[tokio::test]
async fn what_finds_no_room_is_refused_and_no_provider_is_asked() {
    let stack = Stack::builder().proxy("BODY_MEMORY_BYTES", (2 << 20).to_string()).start().await;
    let client = guard(&stack, &["input_guardrails", "output_guardrails"]).await;
    until_held(&stack, &client).await;
    let upstream = RawUpstream::start().await;
    let answer = send(&stack, &upstream, "/elsewhere", "HTTP/1 chunked", body_of(900 * KIB, "fine")).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (503, &json!("overloaded")));
    assert!(upstream.take().is_empty());
    assert_eq!(send(&stack, &upstream, "/elsewhere", "HTTP/1 chunked", body_of(KIB, "fine")).await.status, 200);
    let large = body_of(900 * KIB, "fine");
    for (headers, body) in [("", large.to_vec()), ("Content-Encoding: gzip\r\n", packed(&large))] {
        upstream.answer(written(&format!("Content-Type: application/json\r\n{headers}"), &body, None));
        let answer = towards(&stack, &upstream.url()).post("/elsewhere", &json!({})).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["error"]["code"]),
            (503, &json!("overloaded")),
            "an answer {headers}"
        );
    }
    until_nothing_is_held(&stack).await;
}

/// An answer of HTTP/1, in pieces of this many bytes if that is said.
fn written(headers: &str, body: &[u8], piece: Option<usize>) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 200 OK\r\n{headers}").into_bytes();
    match piece {
        None => bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes()),
        Some(_) => bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n"),
    }
    let Some(piece) = piece else { return [bytes, body.to_vec()].concat() };
    for chunk in body.chunks(piece) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

fn packed(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn events(events: &[Value]) -> Vec<u8> {
    let written: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    (written + "data: [DONE]\n\n").into_bytes()
}

/// What a provider answers, at which path, and what the client gets: the same bytes, a denial or a refusal.
type AnswerCase = (&'static str, &'static str, &'static str, Vec<u8>, u16);

fn answer_cases() -> Vec<AnswerCase> {
    const JSON: &str = "Content-Type: application/json\r\n";
    const EVENTS: &str = "Content-Type: text/event-stream\r\n";
    const PACKED: &str = "Content-Type: application/json\r\nContent-Encoding: gzip\r\n";
    const PACKED_EVENTS: &str = "Content-Type: text/event-stream\r\nContent-Encoding: gzip\r\n";
    let [other, chat] = PATHS;
    let text = |text: &str| json!({ "id": "x", "result": { "text": text } }).to_string().into_bytes();
    let choice =
        |text: &str| json!({ "choices": [{ "message": { "role": "assistant", "content": text } }] }).to_string();
    let delta = |text: &str| json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
    let part = |text: &str| json!({ "part": { "text": text } });
    let long = |word: &str| json!({ "text": ["y".repeat(17 << 20), word.to_owned()] }).to_string().into_bytes();
    vec![
        ("JSON", other, JSON, text("fine"), 200),
        ("JSON", other, JSON, text("zebra forbidden"), 446),
        ("JSON of its path", chat, JSON, choice("fine").into_bytes(), 200),
        ("JSON of its path", chat, JSON, choice("forbidden").into_bytes(), 446),
        ("JSON of another form than its path says", chat, JSON, text("forbidden"), 446),
        ("large JSON", other, JSON, text(&("fine ".repeat(100_000) + "word")), 200),
        ("large JSON", other, JSON, text(&("fine ".repeat(100_000) + "forbidden")), 446),
        ("events of its path", chat, EVENTS, events(&[delta("all "), delta("fine")]), 200),
        ("events of its path", chat, EVENTS, events(&[delta("zebra forb"), delta("idden")]), 446),
        ("events of no known form", other, EVENTS, events(&[part("all "), part("fine")]), 200),
        ("events of no known form", other, EVENTS, events(&[part("zebra forb"), part("idden")]), 446),
        ("events of another form than their path says", chat, EVENTS, events(&[part("forb"), part("idden")]), 446),
        ("packed JSON", other, PACKED, packed(&text("fine")), 200),
        ("packed JSON", other, PACKED, packed(&text("forbidden")), 446),
        ("packed events", chat, PACKED_EVENTS, packed(&events(&[delta("forb"), delta("idden")])), 446),
        ("JSON that is said to be packed", other, PACKED, text("fine"), 403),
        (
            "an unknown compression",
            other,
            "Content-Type: application/json\r\nContent-Encoding: own\r\n",
            text("a"),
            403,
        ),
        ("half of JSON", other, JSON, b"{\"a\":\"fine".to_vec(), 403),
        ("a field twice", other, JSON, b"{\"a\":\"forbidden\",\"a\":\"fine\"}".to_vec(), 403),
        ("an event that is no JSON", other, EVENTS, b"data: words\n\n".to_vec(), 403),
        ("lines of JSON", other, "Content-Type: application/x-ndjson\r\n", b"{}\n{}\n".to_vec(), 403),
        ("a sound", other, "Content-Type: audio/mpeg\r\n", vec![0, 1, 2, 255], 403),
        ("no type", other, "", text("fine"), 403),
        ("too long", other, JSON, long("fine"), 403),
        ("too long when unpacked", other, PACKED, packed(&long("fine")), 403),
        ("nothing", other, JSON, Vec::new(), 200),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_leaves_as_it_came_once_it_was_judged_or_not_at_all() {
    let (stack, _) = guarded(&["output_guardrails"]).await;
    let upstream = RawUpstream::start().await;
    let client = towards(&stack, &upstream.url());
    let held = async || {
        upstream.answer(written("Content-Type: application/json\r\n", b"{\"text\":\"forbidden\"}", None));
        client.post("/elsewhere", &json!({})).await.status == 446
    };
    stack.until("the guardrail holds", held).await;
    for (what, path, headers, body, expected) in answer_cases() {
        for piece in [None, Some(7)] {
            // Small pieces of a long answer take long and say nothing more.
            let piece = piece.map(|piece| if body.len() > 100_000 { 60_001 } else { piece });
            upstream.answer(written(headers, &body, piece));
            let answer = client.post(path, &json!({ "text": "fine" })).await;
            let text = answer.text();
            assert_eq!(answer.status, expected, "{what} in pieces of {piece:?}: {}", &text[..text.len().min(500)]);
            match expected {
                200 => assert!(answer.body == body, "{what} in pieces of {piece:?}: {} bytes", answer.body.len()),
                403 => assert_eq!(answer.json()["error"]["code"], "guardrail_unreadable", "{what}"),
                _ => {
                    let told = &answer.json()["hook_results"]["after_request_hooks"][0]["checks"][0]["id"];
                    assert_eq!(told, "default.contains", "{what}");
                    assert!(!text.contains("zebra"), "{what}: {text}");
                }
            }
        }
    }
    upstream.answer(b"HTTP/1.1 429 No\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nforbidden".to_vec());
    let failed = client.post("/elsewhere", &json!({})).await;
    assert_eq!(
        (failed.status.as_u16(), failed.text()),
        (429, "forbidden".into()),
        "errors are the provider's own words"
    );
    upstream.answer(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{\"a\":\"fine".to_vec(),
    );
    assert_eq!(client.post("/elsewhere", &json!({})).await.status, 502, "an answer that is cut");
    until_nothing_is_held(&stack).await;
}

#[tokio::test]
async fn answers_that_cannot_be_judged_pass_where_the_organisation_says_so_and_others_are_judged_there() {
    let (stack, _) = guarded(&["output_guardrails"]).await;
    let allow = json!({ "settings": { "relay_with_guardrails": ["/v1/elsewhere"] } });
    assert_eq!(stack.administrator().put("/admin/organisation", &allow).await.status, 200);
    let upstream = RawUpstream::start().await;
    let client = towards(&stack, &upstream.url());
    let ask = async |headers: &str, body: &[u8]| {
        upstream.answer(written(headers, body, Some(5)));
        client.post("/elsewhere", &json!({})).await
    };
    let (json, sound) = ("Content-Type: application/json\r\n", "Content-Type: audio/mpeg\r\n");
    let held = async || ask(json, b"{\"a\":\"forbidden\"}").await.status == 446 && ask(sound, b"x").await.status == 200;
    stack.until("the guardrail and the setting hold", held).await;
    for (headers, body, expected) in [
        (sound, &b"a forbidden sound"[..], 200),
        (json, b"forbidden", 200),
        ("Content-Type: text/event-stream\r\n", b"data: forbidden\n\n", 200),
        ("Content-Type: text/event-stream\r\n", b"data: {\"a\":\"forb\"}\n\ndata: {\"a\":\"idden\"}\n\n", 446),
        (json, b"[\"forbidden\"]", 446),
    ] {
        let answer = ask(headers, body).await;
        assert_eq!(answer.status, expected, "{headers}: {}", answer.text());
        assert!(expected != 200 || answer.body == body, "{headers}");
    }
}

#[tokio::test]
async fn what_a_guardrail_would_change_is_refused_and_what_only_reports_marks_the_answer() {
    let stack = Stack::start().await;
    let redact = json!([{ "id": "default.regexReplace", "parameters": { "rule": "secret", "redactText": "-" } }]);
    let report = json!([{ "id": "default.contains", "parameters": { "words": ["odd"], "operator": "none" } }]);
    let mut named = Vec::new();
    for (name, checks) in [("Redact", redact), ("Report", report)] {
        let workspace = &stack.home.workspace_id;
        let body = json!({ "name": name, "checks": checks, "actions": { "deny": false }, "workspace_id": workspace });
        named.push(stack.home.create("/guardrails", body).await["slug"].clone());
    }
    let path = format!("/admin/workspaces/{}", stack.home.workspace_id);
    let defaults = json!({ "defaults": { "input_guardrails": [named[0]], "output_guardrails": named } });
    assert_eq!(stack.administrator().put(&path, &defaults).await.status, 200);
    let upstream = RawUpstream::start().await;
    let client = towards(&stack, &upstream.url());
    let answer = async |kind: &str, body: &str| {
        upstream.answer(written(&format!("Content-Type: {kind}\r\n"), body.as_bytes(), None));
        client.post("/elsewhere", &json!({})).await
    };
    let ask = async |kind: &str, body: &str| answer(kind, body).await.status.as_u16();
    let marked = async || answer("application/json", r#"{"a":"odd"}"#).await.header("x-gateway-guardrails") == "failed";
    stack.until("the guardrails hold", marked).await;
    assert_eq!(ask("application/json", r#"{"a":"odd"}"#).await, 200, "the status is the provider's");
    for (kind, body, expected) in [
        ("application/json", r#"{"a":"a secret"}"#, 403),
        ("application/json", r#"{"a":"fine"}"#, 200),
        ("text/event-stream", "data: {\"a\":\"a sec\"}\n\ndata: {\"a\":\"ret\"}\n\n", 403),
        ("text/event-stream", "data: {\"a\":\"fine\"}\n\n", 200),
        ("audio/mpeg", "a sound", 403),
    ] {
        assert_eq!(ask(kind, body).await, expected, "{kind} {body}");
    }
    upstream.take();
    let refused = client.post("/elsewhere", &json!({ "deep": { "text": "a secret" } })).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["error"]["code"]), (403, &json!("guardrail_unreadable")));
    assert!(upstream.take().is_empty(), "the provider was asked");
}

#[tokio::test]
async fn what_only_reports_on_streams_lets_them_pass_and_denies_other_answers() {
    let stack = Stack::start().await;
    let checks = json!([{ "id": "default.contains", "parameters": { "words": ["forbidden"], "operator": "none" } }]);
    let actions = json!({ "deny": true, "stream": "report" });
    let body =
        json!({ "name": "Report", "checks": checks, "actions": actions, "workspace_id": stack.home.workspace_id });
    let saved = stack.home.create("/guardrails", body).await;
    let path = format!("/admin/workspaces/{}", stack.home.workspace_id);
    let defaults = json!({ "defaults": { "output_guardrails": [saved["slug"]] } });
    assert_eq!(stack.administrator().put(&path, &defaults).await.status, 200);
    let upstream = RawUpstream::start().await;
    let client = towards(&stack, &upstream.url());
    let ask = async |kind: &str, body: &[u8]| {
        upstream.answer(written(&format!("Content-Type: {kind}\r\n"), body, None));
        client.post("/elsewhere", &json!({})).await
    };
    let held = async || ask("application/json", br#"{"a":"forbidden"}"#).await.status == 446;
    stack.until("the guardrail holds", held).await;
    let before = upstream.take().len();
    let said = events(&[json!({ "a": "forb" }), json!({ "a": "idden" })]);
    let answer = ask("text/event-stream", &said).await;
    assert!(answer.status == 200 && answer.body == said, "{}: {}", answer.status, answer.text());
    let row = rows(&stack, before + 1).await.pop().unwrap();
    let told: Value = row.get("hook_results");
    assert_eq!(told["after_request_hooks"][0]["verdict"], false, "{told}");
}

#[tokio::test]
async fn a_relayed_answer_that_is_withheld_has_its_row_with_what_it_used_and_cost() {
    let (stack, _) = guarded(&["output_guardrails"]).await;
    let upstream = RawUpstream::start().await;
    let client = towards(&stack, &upstream.url());
    let chat = json!({ "model": "gpt-4o", "messages": [{ "role": "user", "content": "fine" }] });
    let answer = |text: &str| {
        let body = json!({ "id": "c", "object": "chat.completion", "model": "gpt-4o",
            "usage": { "prompt_tokens": 1000, "completion_tokens": 100 },
            "choices": [{ "index": 0, "message": { "role": "assistant", "content": text } }] });
        body.to_string().into_bytes()
    };
    let stream = |text: &str| {
        let usage = json!({ "choices": [], "usage": { "prompt_tokens": 1000, "completion_tokens": 100 } });
        events(&[json!({ "model": "gpt-4o", "choices": [{ "index": 0, "delta": { "content": text } }] }), usage])
    };
    const JSON: &str = "Content-Type: application/json\r\n";
    let [_, path] = PATHS;
    let held = async || {
        upstream.answer(written(JSON, &answer("forbidden"), None));
        client.post(path, &chat).await.status == 446
    };
    stack.until("the guardrail holds", held).await;
    let first = upstream.take().len();
    let cases = [
        (JSON, answer("zebra forbidden"), 446),
        ("Content-Type: text/event-stream\r\n", stream("forbidden"), 446),
        ("Content-Type: application/json\r\nContent-Encoding: gzip\r\n", packed(&answer("forbidden")), 446),
        (JSON, answer("fine"), 200),
    ];
    for (headers, body, expected) in &cases {
        upstream.answer(written(headers, body, Some(90)));
        assert_eq!(client.post(path, &chat).await.status, *expected, "{headers}");
    }
    let all = rows(&stack, first + cases.len()).await;
    for (row, (headers, _, expected)) in all[first..].iter().zip(&cases) {
        assert_eq!((status(row), tokens(row)), (i32::from(*expected), (1000, 100)), "{headers}");
        let cost: Option<Decimal> = row.get("cost");
        assert!(cost.is_some_and(|cost| cost > 0.into()), "{headers}: {cost:?}");
        let told: Value = row.get("hook_results");
        assert_eq!(told["after_request_hooks"][0]["verdict"], *expected == 200, "{headers}: {told}");
    }
}
