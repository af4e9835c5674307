//! The relay lane: whatever path, method and body a caller sends goes to its provider and comes back as it is.

mod control_plane;
mod cut_answers;
mod limits;
mod providers_own_paths;
mod reuse;
mod streaming_forms;
mod upgrades;
pub mod websocket;

use crate::raw::{Wire, credentials, credentials_for, post};
use crate::upstream::RawUpstream;
use bench::mock::pattern;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use harness::client::whole;
use harness::{Stack, chat};
use http::Method;
use openssl::sha::Sha256;
use serde_json::json;

const MANY: u64 = 30 << 20;

#[tokio::test]
async fn every_method_and_target_reaches_the_provider_as_it_was_written() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let common = credentials_for(&stack, &upstream.url());
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        for (sent, expected) in [
            ("/odd", "/odd"),
            ("/odd/", "/odd/"),
            ("/proxy/odd", "/odd"),
            ("/x?q=1&r=%20a%2Fb&s=+&empty=&&flag", "/x?q=1&r=%20a%2Fb&s=+&empty=&&flag"),
            ("/x?", "/x?"),
            ("/x?a?b/c=%zz", "/x?a?b/c=%zz"),
            (
                "/a%2Fb/%E6%9D%B1%00//double/./dot/../up;p=1,2@:!$'()*~",
                "/a%2Fb/%E6%9D%B1%00//double/./dot/../up;p=1,2@:!$'()*~",
            ),
            ("/{\"a\"}?json={a:[1]}|^`", "/{\"a\"}?json={a:[1]}|^`"),
            ("/caf%c3%a9/é/東京?q=é", "/caf%c3%a9/é/東京?q=é"),
        ] {
            // Chat is the engine's by POST alone.
            let target = if method == "POST" { sent } else { &sent.replace("/odd", "/chat/completions") };
            let expected = if method == "POST" { expected } else { &expected.replace("/odd", "/chat/completions") };
            let mut wire = Wire::open(stack.proxy_port).await;
            wire.send(format!("{method} /v1{target} HTTP/1.1\r\n{common}Content-Length: 3\r\n\r\nabc")).await;
            let answer = wire.answer().await.unwrap_or_else(|| panic!("{method} {target}: no answer"));
            assert_eq!(answer.status, 200, "{method} {target}: {answer:?}");
            let seen = upstream.only();
            let line = seen.split("\r\n").next().unwrap_or_default();
            assert_eq!(line, format!("{method} /v1{expected} HTTP/1.1"), "{target}");
            assert!(seen.ends_with("\r\n\r\nabc"), "{method} {target}: {seen}");
        }
    }
}

#[tokio::test]
async fn the_callers_headers_keep_their_order_and_spelling() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let mut wire = Wire::open(stack.proxy_port).await;
    let mine =
        "X-Zebra: 1\r\nAccept-ENCODING: gzip\r\nx-apple: 2\r\nX-zebra: 3\r\nUser-Agent:  spaces inside  kept\r\n";
    wire.send(format!("GET /v1/x HTTP/1.1\r\n{}{mine}\r\n", credentials_for(&stack, &upstream.url()))).await;
    assert_eq!(wire.answer_to("GET").await.map(|answer| answer.status), Some(200));
    let seen = upstream.only();
    for line in ["X-Zebra: 1", "Accept-ENCODING: gzip", "x-apple: 2", "X-zebra: 3", "User-Agent: spaces inside  kept"] {
        assert!(seen.contains(&format!("\r\n{line}\r\n")), "{line} in {seen}");
    }
}

#[tokio::test]
async fn an_answer_comes_back_with_its_bytes_and_headers_untouched() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    // Not really gzip, and that is the point: nobody looks.
    let body: Vec<u8> = [0x1f, 0x8b, 8, 0].into_iter().chain((0..=255).cycle().take(5000)).collect();
    let head = "Content-Type: text/odd\r\nContent-Encoding: gzip\r\nVary: a\r\nvary: b\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\
                ETag: \"x\"\r\nX-Odd:   spaces  \r\nx-gateway-provider: forged\r\nServer-Timing: db;dur=1\r\n\
                X-RateLimit-Limit-Requests: 7\r\nx-ratelimit-reset-tokens: 6m0s";
    let chunks = |body: &[u8]| {
        let mut out = Vec::new();
        for piece in body.chunks(777) {
            out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            out.extend_from_slice(piece);
            out.extend_from_slice(b"\r\n");
        }
        [&out[..], b"0\r\n\r\n"].concat()
    };
    for (framing, framed) in [
        (format!("Content-Length: {}", body.len()), body.clone()),
        ("Transfer-Encoding: chunked".to_owned(), chunks(&body)),
        // Nothing said: the answer ends with the connection.
        ("X-Nothing: said".to_owned(), body.clone()),
    ] {
        upstream
            .answer([format!("HTTP/1.1 203 Odd Words\r\n{head}\r\n{framing}\r\n\r\n").as_bytes(), &framed].concat());
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(format!("GET /v1/x HTTP/1.1\r\n{}\r\n", credentials_for(&stack, &upstream.url()))).await;
        let answer = wire.answer_to("GET").await.unwrap_or_else(|| panic!("{framing}: no answer"));
        assert_eq!(answer.status, 203, "{framing}");
        assert!(answer.body == body, "{framing}: {} bytes", answer.body.len());
        let all = |name: &str| -> Vec<&str> {
            answer.headers.iter().filter(|(found, _)| found == name).map(|(_, value)| &**value).collect()
        };
        assert_eq!(all("content-type"), ["text/odd"], "{framing}");
        assert_eq!(all("content-encoding"), ["gzip"], "{framing}");
        assert_eq!(all("vary"), ["a", "b"], "{framing}");
        assert_eq!(all("set-cookie"), ["a=1", "b=2"], "{framing}");
        assert_eq!((all("etag"), all("x-odd")), (vec!["\"x\""], vec!["spaces"]), "{framing}");
        assert_eq!(all("x-gateway-provider"), ["openai"], "{framing}: ours are set, not added");
        assert_eq!(all("server-timing"), ["db;dur=1"], "{framing}: the provider's own");
        assert_eq!(all("x-ratelimit-limit-requests"), ["7"], "{framing}: the provider's own");
        assert_eq!(all("x-ratelimit-reset-tokens"), ["6m0s"], "{framing}: the provider's own");
        assert!(all("x-gateway-server-timing")[0].starts_with("gateway;dur="), "{framing}: ours beside it");
    }
}

#[tokio::test]
async fn an_address_that_nobody_listens_at_is_followed_by_the_next_of_its_name() {
    let stack = Stack::start().await;
    // On 127.0.0.1 alone, while the name has an address of IPv6 too, which comes first.
    let upstream = RawUpstream::start().await;
    let url = upstream.url().replace("127.0.0.1", "localhost");
    let mut wire = Wire::open(stack.proxy_port).await;
    wire.send(post("/v1/x", &credentials_for(&stack, &url), "{}")).await;
    let answer = wire.answer().await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(upstream.only().ends_with("\r\n\r\n{}"), "the body came with it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_uploads_arrive_whole_with_and_without_a_length() {
    let stack = Stack::start().await;
    let pieces = || {
        futures::stream::iter((0..MANY).step_by(1 << 16)).map(|from| {
            let mut piece = BytesMut::zeroed((MANY - from).min(1 << 16) as usize);
            pattern::fill(from, &mut piece);
            Ok::<Bytes, std::io::Error>(piece.freeze())
        })
    };
    for has_length in [true, false] {
        stack.mock.reset();
        let mut request = stack.client().request(Method::PUT, "/files/large").header("content-type", "video/mp4");
        if has_length {
            request = request.header("content-length", MANY);
        }
        let answer = whole(request.body(reqwest::Body::wrap_stream(pieces()))).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let arrived = &stack.mock.requests()[0];
        assert_eq!(
            (arrived.body_bytes, &*arrived.body_sha256),
            (MANY, &*pattern::sha256(MANY)),
            "length said: {has_length}"
        );
        assert_eq!(arrived.header("content-type"), "video/mp4");
        assert_eq!(arrived.header("content-length"), if has_length { MANY.to_string() } else { String::new() });
    }
    stack.until_metric("gateway_request_body_bytes", 0.0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_downloads_arrive_whole_with_and_without_a_length() {
    let stack = Stack::start().await;
    for query in ["", "?mock=no_content_length"] {
        let path = format!("/bytes/{MANY}{query}");
        let response = stack.client().request(Method::GET, &path).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let (mut hash, mut length) = (Sha256::new(), 0);
        let mut pieces = response.bytes_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.unwrap();
            hash.update(&piece);
            length += piece.len() as u64;
        }
        assert_eq!((length, pattern::hex(&hash.finish())), (MANY, pattern::sha256(MANY)), "{path}");
    }
}

#[tokio::test]
async fn a_form_keeps_its_boundary_and_every_byte() {
    let stack = Stack::start().await;
    let mut body = b"--xYz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n".to_vec();
    body.extend((0..=255u8).cycle().take(100_000));
    body.extend_from_slice(
        b"\r\n--xYz\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n--xYz--\r\n",
    );
    let request = stack.client().request(Method::POST, "/audio/transcriptions");
    let kind = "multipart/form-data; boundary=xYz";
    let answer = whole(request.header("content-type", kind).body(body.clone())).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let arrived = &stack.mock.requests()[0];
    assert_eq!(arrived.header("content-type"), kind);
    assert!(arrived.body == body);
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_nobody_follows_it() {
    let stack = Stack::start().await;
    for path in ["/chat/completions", "/rerank"] {
        for status in [301, 302, 307, 308] {
            stack.mock.reset();
            let elsewhere = "http://169.254.169.254/latest/meta-data/";
            stack.mock.script(json!([{ "status": status, "headers": { "location": elsewhere } }])).unwrap();
            let answer = stack.client().post(path, &chat("x")).await;
            assert_eq!((answer.status.as_u16(), answer.header("location")), (status, elsewhere), "{path}");
            assert_eq!(stack.mock.requests().len(), 1, "{path} {status}");
        }
    }
}

#[tokio::test]
async fn a_cut_download_does_not_look_whole() {
    let stack = Stack::start().await;
    for fault in ["cut_at=500000", "cut_at=500000,no_content_length", "cut_at=500000,reset"] {
        let path = format!("/bytes/1000000?mock={fault}");
        let response = stack.client().request(Method::GET, &path).send().await.unwrap();
        assert_eq!(response.status(), 200, "{fault}");
        assert!(response.bytes().await.is_err(), "{fault}");
    }
}

/// Browsers ask before they call; nobody needs a key for that.
#[tokio::test]
async fn head_and_options_are_answered_by_the_gateway_with_an_empty_204() {
    let stack = Stack::start().await;
    let mut wire = Wire::open(stack.proxy_port).await;
    for (method, path, status) in [
        ("OPTIONS", "/v1/chat/completions", 204),
        ("OPTIONS", "/v1/anything", 204),
        ("HEAD", "/v1/models", 204),
        ("HEAD", "/v1/chat/completions", 204),
        ("HEAD", "/", 200),
        ("HEAD", "/elsewhere", 404),
        ("GET", "/", 200),
    ] {
        wire.send(format!("{method} {path} HTTP/1.1\r\nHost: gateway.test\r\nOrigin: https://app.test\r\n\r\n")).await;
        let answer = wire.answer_to(method).await.unwrap_or_else(|| panic!("{method} {path}: no answer"));
        assert_eq!(answer.status, status, "{method} {path}");
        assert_eq!(answer.header("access-control-allow-origin"), "*", "{method} {path}");
        if status == 204 {
            assert!(answer.header("access-control-allow-methods").contains("DELETE"), "{method} {path}");
            assert!(answer.header("access-control-allow-headers").contains("authorization"), "{method} {path}");
            assert_eq!(
                (answer.header("content-length"), answer.header("transfer-encoding")),
                ("", ""),
                "{method} {path}"
            );
        }
    }
    // Had one of them carried a body, this answer would not be found.
    wire.send(format!("GET /v1/models HTTP/1.1\r\n{}\r\n", credentials(&stack))).await;
    assert_eq!(wire.answer_to("GET").await.map(|answer| answer.status), Some(200));
}

/// A preflight that is granted is of no use when the answer itself is withheld from the page.
#[tokio::test]
async fn every_answer_to_a_page_of_another_origin_may_be_read_by_it() {
    let stack = Stack::start().await;
    let page = |client: harness::Client| client.with("origin", "https://app.test");
    for (what, answer) in [
        ("the engine's answer", page(stack.client()).post("/chat/completions", &chat("hello")).await),
        ("a relayed answer", page(stack.client()).get("/models").await),
        ("the control plane's answer", page(stack.administrator()).get("/labels").await),
        ("a refusal", page(stack.anonymous()).post("/chat/completions", &chat("hello")).await),
    ] {
        assert_eq!(answer.header("access-control-allow-origin"), "*", "{what}: {}", answer.status);
        assert_eq!(answer.header("access-control-expose-headers"), "*", "{what}");
    }
    let plain = stack.client().get("/models").await;
    assert_eq!(plain.header("access-control-allow-origin"), "", "nobody else needs it");
}
