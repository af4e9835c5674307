//! Request smuggling: whatever the bytes, a request is either refused and its connection closed, or it reaches the
//! provider as exactly one well-formed request. What stands behind it is never taken for a request of its own
//! unless it is one.

mod http2;
mod onward;

use crate::raw::{Wire, credentials, post};
use harness::{Stack, chat};
use serde_json::json;

const ENGINE: &str = "/v1/chat/completions";
const RELAY: &str = "/v1/rerank";

/// What must become of the bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    /// 400, the connection closed, nothing at the provider.
    Refused,
    /// Answered as one request with this many body bytes, and the connection closed.
    OneThenClosed(u64),
    /// Answered as one request with this many body bytes; the connection goes on.
    One(u64),
    /// Never complete: nothing at the provider, no success to the client.
    Incomplete,
}
use Fate::{Incomplete, One, OneThenClosed, Refused};

const BODY: &str = r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;

/// A request that must never be seen on its own.
fn poison(common: &str) -> String {
    format!("GET /v1/smuggled HTTP/1.1\r\n{common}\r\n")
}

fn chunked(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}

/// Everything after `POST path HTTP/1.1` and the credentials.
fn cases(common: &str) -> Vec<(&'static str, String, Fate)> {
    let size = BODY.len() as u64;
    let poison = poison(common);
    let plain = |headers: &str, body: &str| format!("{headers}\r\n\r\n{body}");
    vec![
        ("a length and nothing odd", plain(&format!("Content-Length: {size}"), BODY), One(size)),
        ("chunks and nothing odd", plain("Transfer-Encoding: chunked", &chunked(BODY)), One(size)),
        (
            "CL.TE: chunks win over a length that covers the poison",
            plain(
                &format!("Content-Length: {}\r\nTransfer-Encoding: chunked", chunked(BODY).len() + poison.len()),
                &format!("{}{poison}", chunked(BODY)),
            ),
            OneThenClosed(size),
        ),
        (
            "TE.CL: chunks win over a length that ends inside them",
            plain("Content-Length: 4\r\nTransfer-Encoding: chunked", &format!("{}{poison}", chunked(BODY))),
            OneThenClosed(size),
        ),
        ("TE.TE: an unknown coding", plain("Transfer-Encoding: xchunked", &chunked(BODY)), Refused),
        ("TE.TE: a quoted coding", plain("Transfer-Encoding: \"chunked\"", &chunked(BODY)), Refused),
        ("TE.TE: chunked is not the last", plain("Transfer-Encoding: chunked, identity", &chunked(BODY)), Refused),
        (
            "TE.TE: a second line that is not chunked",
            plain("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", &chunked(BODY)),
            Refused,
        ),
        ("TE.TE: a list that ends in nothing", plain("Transfer-Encoding: chunked,", &chunked(BODY)), Refused),
        ("TE.TE: a vertical tab", plain("Transfer-Encoding:\x0bchunked", &chunked(BODY)), Refused),
        ("TE.TE: the name and a space", plain("Transfer-Encoding : chunked", &chunked(BODY)), Refused),
        (
            "TE.TE: the name on a folded line",
            plain(&format!("Content-Length: {size}\r\nX-A: b\r\n Transfer-Encoding: chunked"), BODY),
            Refused,
        ),
        ("a coding on a line of its own", plain("Transfer-Encoding:\r\n chunked", &chunked(BODY)), Refused),
        ("the same length twice", plain(&format!("Content-Length: {size}\r\nContent-Length: {size}"), BODY), One(size)),
        ("two lengths", plain(&format!("Content-Length: {size}\r\nContent-Length: 0"), BODY), Refused),
        ("two lengths in a list", plain(&format!("Content-Length: {size}, 0"), BODY), Refused),
        ("a length with a sign", plain(&format!("Content-Length: +{size}"), BODY), Refused),
        ("a negative length", plain("Content-Length: -1", BODY), Refused),
        ("a length in hex", plain("Content-Length: 0x10", BODY), Refused),
        ("a length with a space inside", plain("Content-Length: 5 6", BODY), Refused),
        ("a length with a fraction", plain("Content-Length: 56.0", BODY), Refused),
        ("an empty length", plain("Content-Length:", BODY), Refused),
        ("a length beyond every integer", plain("Content-Length: 99999999999999999999999", BODY), Refused),
        ("the length's name and a space", plain(&format!("Content-Length : {size}"), BODY), Refused),
        ("a folded header", plain(&format!("X-A: b\r\n c\r\nContent-Length: {size}"), BODY), Refused),
        ("a bare CR in a value", plain(&format!("X-A: b\rX-B: c\r\nContent-Length: {size}"), BODY), Refused),
        ("a NUL in a value", plain(&format!("X-A: b\0c\r\nContent-Length: {size}"), BODY), Refused),
        ("a NUL in a name", plain(&format!("X\0A: b\r\nContent-Length: {size}"), BODY), Refused),
        ("a header without a name", plain(&format!(": b\r\nContent-Length: {size}"), BODY), Refused),
        ("a header without a colon", plain(&format!("nonsense\r\nContent-Length: {size}"), BODY), Refused),
        (
            "a space before the first header's name",
            plain(&format!("X-A: b\r\n X: y\r\nContent-Length: {size}"), BODY),
            Refused,
        ),
        ("two hosts", plain(&format!("Host: other.test\r\nContent-Length: {size}"), BODY), Refused),
        // Line feeds alone end lines for us, as the standard allows; what goes on has proper ends.
        ("bare line feeds between headers", format!("X-A: b\nContent-Length: {size}\n\n{BODY}"), One(size)),
        (
            "a bare line feed cannot hide a header",
            plain(&format!("X-A: b\nTransfer-Encoding: chunked\r\nContent-Length: {size}"), &chunked(BODY)),
            OneThenClosed(size),
        ),
        ("a chunk size that is no number", plain("Transfer-Encoding: chunked", "zz\r\nab\r\n0\r\n\r\n"), Incomplete),
        ("a negative chunk size", plain("Transfer-Encoding: chunked", "-1\r\nab\r\n0\r\n\r\n"), Incomplete),
        ("a chunk size with 0x", plain("Transfer-Encoding: chunked", "0x2\r\nab\r\n0\r\n\r\n"), Incomplete),
        (
            "a chunk size beyond every integer",
            plain("Transfer-Encoding: chunked", &format!("fffffffffffffffff\r\n{BODY}\r\n0\r\n\r\n")),
            Incomplete,
        ),
        ("a chunk longer than its size", plain("Transfer-Encoding: chunked", "2\r\nabcd\r\n0\r\n\r\n"), Incomplete),
        ("no last chunk", plain("Transfer-Encoding: chunked", &format!("{size:x}\r\n{BODY}\r\n")), Incomplete),
        ("a body shorter than its length", plain(&format!("Content-Length: {}", size + 9), BODY), Incomplete),
        (
            "chunk extensions",
            plain("Transfer-Encoding: chunked", &format!("{size:x};name=\"v\"\r\n{BODY}\r\n0;x\r\n\r\n")),
            One(size),
        ),
        (
            "trailers cannot bring headers in",
            plain(
                "Transfer-Encoding: chunked",
                &format!("{size:x}\r\n{BODY}\r\n0\r\nx-gateway-provider: anthropic\r\n\r\n"),
            ),
            One(size),
        ),
    ]
}

#[tokio::test]
async fn a_request_with_odd_framing_is_refused_or_is_exactly_one_request() {
    let stack = Stack::start().await;
    let common = credentials(&stack);
    for path in [ENGINE, RELAY] {
        for (name, rest, fate) in cases(&common) {
            stack.mock.reset();
            let mut wire = Wire::open(stack.proxy_port).await;
            wire.send(format!("POST {path} HTTP/1.1\r\n{common}Content-Type: application/json\r\n{rest}")).await;
            judge(&stack, &mut wire, fate, &format!("{name}, to {path}")).await;
        }
    }
}

async fn judge(stack: &Stack, wire: &mut Wire, fate: Fate, what: &str) {
    if fate == Incomplete {
        wire.finish().await;
    }
    let answer = wire.answer().await;
    let status = answer.as_ref().map_or(0, |answer| answer.status);
    match fate {
        Refused => {
            assert_eq!(status, 400, "{what}");
            assert!(wire.is_closed().await, "{what}: more than one answer");
        }
        One(_) => {
            assert_eq!(status, 200, "{what}: {answer:?}");
            // The connection must be exactly where the next request begins.
            wire.send(post(ENGINE, &credentials(stack), &chat("after").to_string())).await;
            assert_eq!(wire.answer().await.map(|answer| answer.status), Some(200), "after {what}");
        }
        OneThenClosed(_) => {
            assert_eq!(status, 200, "{what}: {answer:?}");
            assert!(
                answer.is_some_and(|answer| answer.says_close()),
                "{what}: the answer promises to keep the connection"
            );
            assert!(wire.is_closed().await, "{what}: more than one answer");
        }
        Incomplete => {
            assert!(!(200..300).contains(&status), "{what}: {answer:?}");
            assert!(wire.is_closed().await, "{what}: more than one answer");
        }
    }
    let arrived = stack.mock.requests();
    let bodies: Vec<u64> = arrived.iter().map(|request| request.body_bytes).collect();
    let after = chat("after").to_string().len() as u64;
    let expected = match fate {
        Refused | Incomplete => vec![],
        OneThenClosed(size) => vec![size],
        One(size) => vec![size, after],
    };
    assert_eq!(bodies, expected, "{what}: {arrived:?}");
    assert!(arrived.iter().all(|request| !request.path.contains("smuggled")), "{what}: {arrived:?}");
}

/// Only the request line is odd here.
#[tokio::test]
async fn a_request_line_that_can_be_read_in_two_ways_is_refused() {
    let stack = Stack::start().await;
    let common = credentials(&stack);
    let without_host = common.replacen("Host: gateway.test\r\n", "", 1);
    for (name, line, headers, status) in [
        ("HTTP/0.9", "GET /v1/models", "", None),
        ("a version that does not exist", "GET /v1/models HTTP/1.2", &*common, Some(400)),
        ("HTTP/2 in the clear without its preface", "GET /v1/models HTTP/2.0", &*common, Some(400)),
        ("no target", "GET  HTTP/1.1", &*common, Some(400)),
        ("a quote in the query, which URIs do not have", "GET /v1/models?a=\"b\" HTTP/1.1", &*common, Some(400)),
        ("an absolute target of another host", "GET http://evil.test/v1/models HTTP/1.1", &*common, Some(400)),
        ("a target with credentials", "GET http://a@gateway.test/v1/models HTTP/1.1", &*common, Some(400)),
        ("an absolute target of the same host", "GET http://gateway.test/v1/models HTTP/1.1", &*common, Some(200)),
        ("no host at all in HTTP/1.0", "GET /v1/models HTTP/1.0", &*without_host, Some(200)),
        ("a method with a space before it", " GET /v1/models HTTP/1.1", &*common, Some(400)),
        ("CONNECT", "CONNECT gateway.test:443 HTTP/1.1", &*without_host, Some(405)),
    ] {
        stack.mock.reset();
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(format!("{line}\r\n{headers}\r\n")).await;
        if status.is_none() {
            wire.finish().await;
        }
        let answer = wire.answer_to("GET").await;
        let got = answer.as_ref().map(|answer| answer.status);
        match status {
            Some(200) => assert_eq!((got, stack.mock.requests().len()), (Some(200), 1), "{name}"),
            Some(status) => {
                assert_eq!(got, Some(status), "{name}");
                assert!(wire.is_closed().await, "{name}");
            }
            None => assert!(got.is_none_or(|status| status == 400), "{name}: {got:?}"),
        }
        if got != Some(200) {
            assert!(stack.mock.requests().is_empty(), "{name}: {:?}", stack.mock.requests());
        }
    }
}

#[tokio::test]
async fn http_1_0_with_chunks_is_refused() {
    let stack = Stack::start().await;
    let mut wire = Wire::open(stack.proxy_port).await;
    let common = credentials(&stack);
    wire.send(format!("POST {ENGINE} HTTP/1.0\r\n{common}Transfer-Encoding: chunked\r\n\r\n{}", chunked(BODY))).await;
    assert_eq!(wire.answer().await.map(|answer| answer.status), Some(400));
    assert!(wire.is_closed().await);
    assert!(stack.mock.requests().is_empty());
}

/// A client may send its next request before the answer: it is served in turn, as the request that it is.
#[tokio::test]
async fn a_pipelined_request_neither_joins_nor_spoils_the_one_before_it() {
    let stack = Stack::start().await;
    let common = credentials(&stack);
    for path in [ENGINE, RELAY] {
        for together in [true, false] {
            stack.mock.reset();
            stack.mock.script(json!([{ "latency_ms": 200 }])).unwrap();
            let mut wire = Wire::open(stack.proxy_port).await;
            let (first, second) = (post(path, &common, BODY), post(path, &common, &chat("second").to_string()));
            if together {
                wire.send(format!("{first}{second}")).await;
            } else {
                wire.send(first).await;
                stack.mock.until(|counts| counts.in_flight == 1).await;
                wire.send(second).await;
            }
            let what = format!("{path}, together: {together}");
            for turn in ["first", "second"] {
                let answer = wire.answer().await.unwrap_or_else(|| panic!("{what}: the {turn} request was dropped"));
                assert_eq!(answer.status, 200, "{what}: {answer:?}");
            }
            let arrived: Vec<_> = stack.mock.requests().into_iter().map(|request| request.body).collect();
            assert_eq!(arrived, [BODY.as_bytes(), chat("second").to_string().as_bytes()], "{what}");
        }
    }
}
