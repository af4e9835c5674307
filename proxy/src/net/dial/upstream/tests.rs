//! One exchange over HTTP/1: what is sent, how answers end, and what each failure is called.

use super::*;
use crate::net::dial::lab::{End, Server, body, call, dialer, exchange, get, header, post, soon};
use crate::net::dial::{Dialer, Upstream};
use std::sync::Mutex;
use tokio::sync::mpsc;

/// A server that answers every request with `answer` and then closes.
async fn saying(answer: &'static str) -> Server {
    Server::start(move |stream, _| async move {
        let mut end = End::new(stream);
        if end.request().await.is_some() {
            end.say(answer).await;
        }
    })
    .await
}

async fn started(dialer: &Dialer, server: &Server) -> Upstream {
    let mut upstream = dialer.connect(&server.origin(dialer), false).await.unwrap();
    upstream.send(post(), Bytes::from_static(b"hello")).await.unwrap();
    upstream
}

struct Pieces(Vec<&'static str>);

impl PieceSource for Pieces {
    async fn next_piece(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        Ok((!self.0.is_empty()).then(|| Bytes::from_static(self.0.remove(0).as_bytes())))
    }
}

#[tokio::test]
async fn a_body_may_come_in_pieces_if_its_length_is_known() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    let server = Server::start(move |stream, _| {
        let tx = tx.clone();
        async move {
            let mut end = End::new(stream);
            if let Some(request) = end.request().await {
                tx.send(request).unwrap();
                end.answer("ok").await;
            }
        }
    })
    .await;
    let dialer = dialer();
    let mut upstream = dialer.connect(&server.origin(&dialer), false).await.unwrap();
    soon(upstream.send_pieces(&post().into(), 10, &mut Pieces(vec!["hel", "lo wo", "rl"]))).await.unwrap();
    soon(upstream.read_head()).await.unwrap();
    assert_eq!(upstream.head().status, 200);
    let request = rx.recv().await.unwrap();
    assert_eq!((header(&request.head, "content-length"), &request.body[..]), (Some("10"), &b"hello worl"[..]));
    for pieces in [vec!["hello"], vec!["hello", " world!"]] {
        let mut upstream = dialer.connect(&server.origin(&dialer), true).await.unwrap();
        assert!(upstream.send_pieces(&post().into(), 10, &mut Pieces(pieces)).await.is_err());
    }
}

#[tokio::test]
async fn host_and_framing_are_ours() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    let server = Server::start(move |stream, _| {
        let tx = tx.clone();
        async move {
            let mut end = End::new(stream);
            while let Some(request) = end.request().await {
                tx.send(request).unwrap();
                end.answer("ok").await;
            }
        }
    })
    .await;
    let dialer = dialer();
    let origin = server.origin(&dialer);
    let mut head = post();
    head.insert_header("host", "evil.example").unwrap();
    head.insert_header("content-length", "99").unwrap();
    head.insert_header("transfer-encoding", "chunked").unwrap();
    head.insert_header("X-Kept", "yes").unwrap();
    let mut upstream = dialer.connect(&origin, false).await.unwrap();
    upstream.send(head, Bytes::from_static(b"hello")).await.unwrap();
    upstream.read_head().await.unwrap();
    body(&mut upstream).await.unwrap();
    upstream.release();
    let request = rx.recv().await.unwrap();
    assert!(request.head.starts_with("POST /v1/chat/completions?a=1 HTTP/1.1\r\n"), "{}", request.head);
    assert_eq!(header(&request.head, "host"), Some(server.address.to_string().as_str()));
    assert_eq!(header(&request.head, "content-length"), Some("5"));
    assert_eq!(header(&request.head, "transfer-encoding"), None);
    assert_eq!(header(&request.head, "x-kept"), Some("yes"));
    assert_eq!(request.body, b"hello");

    for (head, expected) in [(post(), Some("0")), (get(), None)] {
        let mut upstream = dialer.connect(&origin, false).await.unwrap();
        upstream.send(head, Bytes::new()).await.unwrap();
        upstream.read_head().await.unwrap();
        body(&mut upstream).await.unwrap();
        upstream.release();
        assert_eq!(header(&rx.recv().await.unwrap().head, "content-length"), expected);
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn answers_end_where_their_framing_says() {
    let dialer = dialer();
    for (answer, status, expected) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", 200, "hello"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", 200, "hello"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nx: y\r\n\r\n", 200, "hello"),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            200,
            "hello",
        ),
        ("HTTP/1.1 200 OK\r\n\r\nhello", 200, "hello"),
        ("HTTP/1.0 200 OK\r\n\r\nhello", 200, "hello"),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, ""),
        ("HTTP/1.1 429 Slow\r\ncontent-length: 0\r\nretry-after: 3\r\n\r\n", 429, ""),
        ("HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n", 302, ""),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            200,
            "ok",
        ),
    ] {
        let server = saying(answer).await;
        let mut upstream = started(&dialer, &server).await;
        soon(upstream.read_head()).await.unwrap();
        assert_eq!(upstream.head().status, status, "{answer:?}");
        assert_eq!(soon(body(&mut upstream)).await.unwrap(), expected.as_bytes(), "{answer:?}");
        assert_eq!(upstream.read_body().await.unwrap(), None);
        assert_eq!(server.accepted(), 1, "nothing is followed: {answer:?}");
    }
}

#[tokio::test]
async fn the_end_is_known_with_the_last_piece() {
    let server = saying("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await;
    let dialer = dialer();
    let mut upstream = started(&dialer, &server).await;
    upstream.read_head().await.unwrap();
    assert!(!upstream.is_done());
    assert_eq!(upstream.read_body().await.unwrap().unwrap(), "hello");
    assert!(upstream.is_done());

    let server = saying("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let mut upstream = started(&dialer, &server).await;
    upstream.read_head().await.unwrap();
    assert!(upstream.is_done());
}

#[tokio::test]
async fn each_broken_answer_has_its_class() {
    let dialer = dialer();
    for (answer, in_body, class) in [
        ("", false, Class::Reset),
        ("HTTP/1.1 200 OK\r\ncontent-le", false, Class::Reset),
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", false, Class::Protocol),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello", false, Class::Protocol),
        ("HTTP/1.1 200 OK\r\ncontent-length: five\r\n\r\nhello", false, Class::Protocol),
        ("HTTP/1.1 200 OK\r\nbad header\r\n\r\n", false, Class::Protocol),
        ("HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", false, Class::Protocol),
        ("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello", true, Class::Reset),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel", true, Class::Reset),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", true, Class::Reset),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", true, Class::Protocol),
    ] {
        let server = saying(answer).await;
        let mut upstream = started(&dialer, &server).await;
        let head = soon(upstream.read_head()).await;
        assert_eq!(head.is_ok(), in_body, "{answer:?}: {head:?}");
        let error = match head {
            Err(error) => error,
            Ok(()) => soon(body(&mut upstream)).await.unwrap_err(),
        };
        assert_eq!(error.class(), class, "{answer:?}");
        assert!(!error.is_unread(), "a new connection cannot be stale: {answer:?}");
        upstream.release();
        assert_eq!(dialer.idle_connections(), 0);
    }
}

#[tokio::test]
async fn silence_has_two_names() {
    let server = Server::start(|stream, number| async move {
        let mut end = End::new(stream);
        end.request().await.unwrap();
        if number == 2 {
            end.say("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello").await;
        }
        end.gone().await;
    })
    .await;
    let dialer = dialer();
    let short = Duration::from_millis(50);
    let long = Duration::from_secs(20);

    let mut upstream = dialer.connect(&server.origin(&dialer), false).await.unwrap();
    upstream.set_timeouts(short, long);
    upstream.send(post(), Bytes::from_static(b"x")).await.unwrap();
    let error = soon(upstream.read_head()).await.unwrap_err();
    assert_eq!(error.class(), Class::FirstByteTimeout);

    let mut upstream = dialer.connect(&server.origin(&dialer), false).await.unwrap();
    upstream.set_timeouts(long, short);
    upstream.send(post(), Bytes::from_static(b"x")).await.unwrap();
    upstream.read_head().await.unwrap();
    assert_eq!(upstream.read_body().await.unwrap().unwrap(), "hello");
    let error = soon(upstream.read_body()).await.unwrap_err();
    assert_eq!(error.class(), Class::IdleTimeout);
}

#[tokio::test]
async fn a_head_that_trickles_does_not_win_time() {
    let server = Server::start(|stream, _| async move {
        let mut end = End::new(stream);
        end.request().await.unwrap();
        end.say("HTTP/1.1 200 OK\r\nx: ").await;
        loop {
            end.say("y").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let dialer = dialer();
    let mut upstream = dialer.connect(&server.origin(&dialer), false).await.unwrap();
    upstream.set_timeouts(Duration::from_millis(100), Duration::from_secs(20));
    upstream.send(post(), Bytes::from_static(b"x")).await.unwrap();
    let error = soon(upstream.read_head()).await.unwrap_err();
    assert_eq!(error.class(), Class::FirstByteTimeout);
}

#[tokio::test]
async fn an_upload_counts_towards_the_first_byte() {
    let server = Server::start(|stream, _| async move {
        let _held = stream;
        std::future::pending().await
    })
    .await;
    let dialer = dialer();
    let mut upstream = dialer.connect(&server.origin(&dialer), false).await.unwrap();
    upstream.set_timeouts(Duration::from_millis(50), Duration::from_secs(20));
    let error = soon(upstream.send(post(), vec![0; 20 << 20].into())).await.unwrap_err();
    assert_eq!(error.class(), Class::FirstByteTimeout);
}

#[tokio::test]
async fn a_server_that_does_not_read_is_not_waited_for_forever() {
    let server = Server::start(|stream, _| async move {
        let _held = stream;
        std::future::pending().await
    })
    .await;
    let dialer = dialer();
    let mut upstream = dialer.connect(&server.origin(&dialer), false).await.unwrap();
    upstream.set_timeouts(Duration::from_secs(20), Duration::from_millis(50));
    let error = soon(upstream.send(post(), vec![0; 20 << 20].into())).await.unwrap_err();
    assert_eq!(error.class(), Class::WriteTimeout);
    assert!(!error.is_unread());
}

/// The first request of each connection is answered, the second meets `end`.
async fn second_meets(partial: &'static str) -> Server {
    Server::start(move |stream, number| async move {
        let mut end = End::new(stream);
        end.request().await.unwrap();
        end.answer(&number.to_string()).await;
        end.request().await.unwrap();
        end.say(partial).await;
    })
    .await
}

#[tokio::test]
async fn a_request_that_was_read_is_not_sent_again_though_its_connection_ends_without_a_word() {
    let server = second_meets("").await;
    let dialer = dialer();
    let origin = server.origin(&dialer);
    call(&dialer, &origin).await;
    let upstream = dialer.connect(&origin, false).await.unwrap();
    assert!(upstream.is_reused());
    let error = exchange(upstream, b"again").await.unwrap_err();
    assert_eq!((error.class(), error.is_unread()), (Class::Reset, false));
    assert_eq!(exchange(dialer.connect(&origin, true).await.unwrap(), b"again").await.unwrap(), b"2");
}

#[tokio::test]
async fn a_request_that_was_begun_to_be_answered_is_not_sent_again() {
    for partial in ["H", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"] {
        let server = second_meets(partial).await;
        let dialer = dialer();
        let origin = server.origin(&dialer);
        call(&dialer, &origin).await;
        let upstream = dialer.connect(&origin, false).await.unwrap();
        assert!(upstream.is_reused());
        let error = exchange(upstream, b"again").await.unwrap_err();
        assert_eq!((error.class(), error.is_unread()), (Class::Reset, false), "{partial:?}");
    }
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    let server = Server::start(move |stream, _| {
        let tx = tx.clone();
        async move {
            let mut end = End::new(stream);
            end.request().await.unwrap();
            end.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n").await;
            end.gone().await;
            tx.send(()).unwrap();
        }
    })
    .await;
    let dialer = dialer();
    let mut upstream = started(&dialer, &server).await;
    upstream.read_head().await.unwrap();
    assert_eq!(upstream.read_body().await.unwrap().unwrap(), "hello");
    drop(upstream);
    soon(rx.recv()).await.unwrap();
    assert_eq!(dialer.idle_connections(), 0);
}

#[tokio::test]
async fn a_read_that_is_given_up_loses_nothing() {
    let (tx, rx) = mpsc::unbounded_channel::<&'static str>();
    let rx = Mutex::new(Some(rx));
    let server = Server::start(move |stream, _| {
        let mut rx = rx.lock().unwrap().take().unwrap();
        async move {
            let mut end = End::new(stream);
            end.request().await.unwrap();
            while let Some(text) = rx.recv().await {
                end.say(text).await;
            }
        }
    })
    .await;
    let dialer = dialer();
    let mut upstream = started(&dialer, &server).await;
    for part in ["HTTP/1.1 20", "0 OK\r\ntransfer-enc"] {
        tx.send(part).unwrap();
        // Given up after part of the head arrived, or before: either way the next read goes on.
        let _ = tokio::time::timeout(Duration::from_millis(5), upstream.read_head()).await;
    }
    tx.send("oding: chunked\r\n\r\n").unwrap();
    soon(upstream.read_head()).await.unwrap();
    let mut received = Vec::new();
    for part in ["5\r", "\nhel", "lo\r\n6\r\n world", "\r\n0\r\n", "\r\n"] {
        tx.send(part).unwrap();
        while let Ok(piece) = tokio::time::timeout(Duration::from_millis(5), upstream.read_body()).await {
            match piece.unwrap() {
                Some(piece) => received.extend_from_slice(&piece),
                None => break,
            }
        }
    }
    received.extend(soon(body(&mut upstream)).await.unwrap());
    assert_eq!(String::from_utf8(received).unwrap(), "hello world");
    upstream.release();
    assert_eq!(dialer.idle_connections(), 1);
}

#[tokio::test]
async fn a_call_cut_while_sending_is_never_pooled() {
    let server = Server::start(|stream, _| async move {
        let _held = stream;
        std::future::pending().await
    })
    .await;
    let dialer = dialer();
    let mut upstream = dialer.connect(&server.origin(&dialer), false).await.unwrap();
    let cut = tokio::time::timeout(Duration::from_millis(20), upstream.send(post(), vec![0; 20 << 20].into())).await;
    assert!(cut.is_err());
    upstream.release();
    assert_eq!(dialer.idle_connections(), 0);
}

#[tokio::test]
async fn using_a_call_out_of_order_is_an_error_not_a_crash() {
    let server = saying("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let dialer = dialer();
    let mut upstream = dialer.connect(&server.origin(&dialer), false).await.unwrap();
    assert_eq!(upstream.read_head().await.unwrap_err().class(), Class::Protocol);
    assert_eq!(upstream.read_body().await.unwrap_err().class(), Class::Protocol);
    upstream.send(post(), Bytes::new()).await.unwrap();
    assert_eq!(upstream.send(post(), Bytes::new()).await.unwrap_err().class(), Class::Protocol);
}

#[tokio::test]
async fn errors_quote_neither_request_nor_answer() {
    let server = saying("HTTP/1.1 canary-answer\r\n\r\n").await;
    let dialer = dialer();
    let mut head = post();
    head.insert_header("authorization", "Bearer canary-request").unwrap();
    let mut upstream = dialer.connect(&server.origin(&dialer), false).await.unwrap();
    upstream.send(head, Bytes::from_static(b"canary-body")).await.unwrap();
    let error = upstream.read_head().await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
}
