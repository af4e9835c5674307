//! What goes on to the provider is framed once and in one way, byte by byte, and what comes back framed in two ways
//! goes no further.

use crate::framing::{BODY, ENGINE, RELAY, chunked};
use crate::raw::{Wire, credentials_for, post};
use crate::upstream::RawUpstream;
use harness::Stack;

#[tokio::test]
async fn the_provider_sees_one_framing_whatever_the_client_mixed() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let common = credentials_for(&stack, &upstream.url());
    let size = BODY.len();
    for path in [ENGINE, RELAY] {
        for (name, framing, body) in [
            ("a length", format!("Content-Length: {size}"), BODY.to_owned()),
            ("the same length twice", format!("Content-Length: {size}\r\ncontent-length: {size}"), BODY.to_owned()),
            ("the same length in a list", format!("Content-Length: {size}, {size}"), BODY.to_owned()),
            ("a length with zeros before it", format!("Content-Length: 00{size}"), BODY.to_owned()),
            ("chunks", "Transfer-Encoding: chunked".to_owned(), chunked(BODY)),
            ("chunks in odd letters", "tRANSFER-eNCODING:  Chunked".to_owned(), chunked(BODY)),
            ("both", "Content-Length: 3\r\nTransfer-Encoding: chunked".to_owned(), chunked(BODY)),
            ("two codings", "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked".to_owned(), chunked(BODY)),
            (
                "hop headers",
                format!(
                    "Connection: x-hop, keep-alive\r\nX-Hop: 1\r\nTE: trailers\r\nKeep-Alive: 5\r\nContent-Length: {size}"
                ),
                BODY.to_owned(),
            ),
        ] {
            let what = format!("{name}, to {path}");
            let mut wire = Wire::open(stack.proxy_port).await;
            wire.send(format!(
                "POST {path} HTTP/1.1\r\n{common}Content-Type: application/json\r\n{framing}\r\n\r\n{body}"
            ))
            .await;
            let answer = wire.answer().await.unwrap_or_else(|| panic!("{what}: no answer"));
            assert_eq!(answer.status, 200, "{what}: {answer:?}");
            let seen = upstream.only();
            let (head, body) = seen.split_once("\r\n\r\n").expect("a request has a head");
            let head = head.to_ascii_lowercase();
            let headers: Vec<(&str, &str)> =
                head.split("\r\n").skip(1).filter_map(|line| line.split_once(": ")).collect();
            let of = |name: &str| {
                headers.iter().filter(|(found, _)| *found == name).map(|(_, value)| *value).collect::<Vec<_>>()
            };
            match (of("content-length")[..].as_ref(), of("transfer-encoding")[..].as_ref()) {
                ([length], []) => assert_eq!((*length, body), (&*size.to_string(), BODY), "{what}: {seen}"),
                ([], ["chunked"]) => assert_eq!(body, chunked(BODY), "{what}: {seen}"),
                framing => panic!("{what}: {framing:?} in {seen}"),
            }
            assert_eq!(of("host").len(), 1, "{what}: {seen}");
            assert!(!head.contains('\n') || !head.replace("\r\n", "").contains(['\r', '\n']), "{what}: {seen}");
            for hop in ["x-hop", "te", "keep-alive", "proxy-connection", "trailer", "upgrade"] {
                assert_eq!(of(hop), Vec::<&str>::new(), "{what}: {seen}");
            }
        }
    }
}

/// The mirror image: a provider must not be able to put a second answer on a client's connection.
#[tokio::test]
async fn an_answer_framed_in_two_ways_never_becomes_two_answers() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let common = credentials_for(&stack, &upstream.url());
    let extra = "HTTP/1.1 200 OK\r\nX-Poison: 1\r\nContent-Length: 2\r\n\r\n{}";
    for path in [ENGINE, RELAY] {
        for (name, bytes) in [
            ("a length that is too short", format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{{}}{extra}")),
            ("two lengths", format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 64\r\n\r\n{{}}{extra}")),
            (
                "both framings",
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: 80\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n{extra}"
                ),
            ),
            ("a folded header", format!("HTTP/1.1 200 OK\r\nX-A: b\r\n Content-Length: 2\r\n\r\n{extra}")),
            ("no HTTP", "SSH-2.0-OpenSSH_9.6\r\n".to_owned()),
            ("a status that is no number", "HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n".to_owned()),
            (
                "a chunk size that is no number",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n".to_owned(),
            ),
            ("nothing", String::new()),
        ] {
            let what = format!("{name}, from {path}");
            upstream.answer(bytes);
            let mut wire = Wire::open(stack.proxy_port).await;
            wire.send(post(path, &common, BODY)).await;
            let first = wire.answer().await;
            // Whatever the first answer was, the next belongs to the next request.
            wire.send(post(path, &common, BODY)).await;
            if let Some(next) = wire.answer().await {
                assert_eq!((next.status, next.header("x-poison")), (200, ""), "{what}: {first:?}, then {next:?}");
            }
        }
    }
}
