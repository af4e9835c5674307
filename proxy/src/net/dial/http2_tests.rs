//! HTTP/2 over TLS, against a server that is steered by the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use tokio::sync::{Notify, mpsc};

use super::lab::{Authority, Leaf, Server, accept, body, call, dialer_with, exchange, pattern, post, soon};
use super::{Class, Dialer, Origin};

type Ask = Request<RecvStream>;
type Reply = SendResponse<Bytes>;

struct Lab {
    server: Server,
    dialer: Arc<Dialer>,
    origin: Arc<Origin>,
}

/// Serves each stream by `serve`, which gets its connection's number; a connection ends when `serve` says false.
async fn lab<F, S>(max_streams: usize, serve: F) -> Lab
where
    F: Fn(Ask, Reply, usize) -> S + Send + Sync + 'static,
    S: Future<Output = bool> + Send + 'static,
{
    let authority = Authority::new();
    let acceptor = Arc::new(authority.issue(&Leaf::h2()));
    let serve = Arc::new(serve);
    let server = Server::start(move |tcp, number| {
        let (acceptor, serve) = (acceptor.clone(), serve.clone());
        async move {
            let Some(stream) = accept(&acceptor, tcp).await else { return };
            let mut connection =
                h2::server::Builder::new().initial_window_size(1 << 20).handshake(stream).await.unwrap();
            let (stop, mut stopped) = mpsc::unbounded_channel::<()>();
            loop {
                let accepted = tokio::select! {
                    accepted = connection.accept() => accepted,
                    _ = stopped.recv() => return,
                };
                let Some(Ok((ask, reply))) = accepted else { return };
                let (serve, stop) = (serve.clone(), stop.clone());
                tokio::spawn(async move {
                    if !serve(ask, reply, number).await {
                        let _ = stop.send(());
                    }
                });
            }
        }
    })
    .await;
    let file = authority.file();
    let dialer = Arc::new(dialer_with(|settings| {
        settings.outbound.upstream_ca_file = Some(file.path().into());
        settings.upstream_max_h2_streams = max_streams;
    }));
    let origin = server.tls_origin(&dialer, "localhost");
    Lab { server, dialer, origin }
}

async fn read(stream: &mut RecvStream) -> Vec<u8> {
    let mut received = Vec::new();
    while let Some(Ok(piece)) = stream.data().await {
        stream.flow_control().release_capacity(piece.len()).unwrap();
        received.extend_from_slice(&piece);
    }
    received
}

fn say(reply: &mut Reply, status: u16, text: &str) {
    let head = Response::builder().status(status).body(()).unwrap();
    let mut out = reply.send_response(head, text.is_empty()).unwrap();
    if !text.is_empty() {
        out.send_data(Bytes::copy_from_slice(text.as_bytes()), true).unwrap();
    }
}

async fn number(mut ask: Ask, mut reply: Reply, number: usize) -> bool {
    read(ask.body_mut()).await;
    say(&mut reply, 200, &number.to_string());
    true
}

#[tokio::test]
async fn a_request_names_its_authority_and_leaves_h1_habits_behind() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    let lab = lab(100, move |ask, reply, n| {
        tx.send(ask.uri().to_string()).unwrap();
        let mut names: Vec<_> = ask.headers().keys().map(|name| name.as_str().to_owned()).collect();
        names.sort();
        tx.send(names.join(",")).unwrap();
        number(ask, reply, n)
    })
    .await;
    let mut head = post();
    for (name, value) in [
        ("host", "evil.example"),
        ("connection", "keep-alive"),
        ("keep-alive", "5"),
        ("te", "gzip"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "x"),
        ("x-kept", "yes"),
    ] {
        head.insert_header(name, value).unwrap();
    }
    let mut upstream = lab.dialer.connect(&lab.origin, false).await.unwrap();
    assert!(upstream.is_h2() && !upstream.is_reused());
    upstream.send(head, Bytes::from_static(b"hello")).await.unwrap();
    upstream.read_head().await.unwrap();
    assert_eq!(body(&mut upstream).await.unwrap(), b"1");
    let port = lab.server.address.port();
    assert_eq!(rx.recv().await.unwrap(), format!("https://localhost:{port}/v1/chat/completions?a=1"));
    assert_eq!(rx.recv().await.unwrap(), "content-length,x-kept");
}

#[tokio::test]
async fn bodies_of_every_size_arrive_whole() {
    let lab = lab(100, |mut ask, mut reply, _| async move {
        let mut left = Bytes::from(read(ask.body_mut()).await);
        let mut out = reply.send_response(Response::new(()), left.is_empty()).unwrap();
        while !left.is_empty() {
            out.reserve_capacity(left.len());
            let ready = std::future::poll_fn(|cx| out.poll_capacity(cx)).await.unwrap().unwrap();
            let piece = left.split_to(ready.min(left.len()));
            out.send_data(piece, left.is_empty()).unwrap();
        }
        true
    })
    .await;
    for length in [0, 1, 16_384, 100_000, 300_000, 5 << 20] {
        let sent = pattern(length);
        let upstream = lab.dialer.connect(&lab.origin, false).await.unwrap();
        let received = soon(exchange(upstream, &sent)).await.unwrap();
        assert!(received == sent, "{length} bytes came back as {}", received.len());
    }
    assert_eq!(lab.server.accepted(), 1);
}

#[tokio::test]
async fn concurrent_requests_share_a_connection_up_to_its_limit() {
    let lab = lab(3, number).await;
    let mut calls = Vec::new();
    for _ in 0..7 {
        calls.push(lab.dialer.connect(&lab.origin, false).await.unwrap());
    }
    assert_eq!(lab.server.accepted(), 3);
    for upstream in calls {
        exchange(upstream, b"x").await.unwrap();
    }
    for _ in 0..10 {
        assert_eq!(call(&lab.dialer, &lab.origin).await, b"1");
    }
    assert_eq!(lab.server.accepted(), 3);
}

#[tokio::test]
async fn dropping_a_call_resets_its_stream_and_keeps_the_connection() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    let lab = lab(100, move |mut ask, mut reply, n| {
        let tx = tx.clone();
        async move {
            if read(ask.body_mut()).await == b"hello" {
                say(&mut reply, 200, &n.to_string());
                return true;
            }
            let mut out = reply.send_response(Response::new(()), false).unwrap();
            out.send_data(Bytes::from_static(b"first"), false).unwrap();
            let reason = std::future::poll_fn(|cx| out.poll_reset(cx)).await;
            tx.send(reason.unwrap()).unwrap();
            true
        }
    })
    .await;
    let mut upstream = lab.dialer.connect(&lab.origin, false).await.unwrap();
    upstream.send(post(), Bytes::from_static(b"stream")).await.unwrap();
    upstream.read_head().await.unwrap();
    assert_eq!(upstream.read_body().await.unwrap().unwrap(), "first");
    assert!(!upstream.is_done());
    drop(upstream);
    assert_eq!(soon(rx.recv()).await.unwrap(), Reason::CANCEL);
    assert_eq!(call(&lab.dialer, &lab.origin).await, b"1");
    assert_eq!(lab.server.accepted(), 1);
}

#[tokio::test]
async fn a_refused_stream_may_be_sent_again() {
    let count = AtomicUsize::new(0);
    let lab = lab(100, move |ask, mut reply, n| {
        let refuse = count.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if refuse {
                reply.send_reset(Reason::REFUSED_STREAM);
                return true;
            }
            number(ask, reply, n).await
        }
    })
    .await;
    let error = soon(exchange(lab.dialer.connect(&lab.origin, false).await.unwrap(), b"x")).await.unwrap_err();
    assert!(error.is_unread(), "{error:?}");
    assert_eq!(exchange(lab.dialer.connect(&lab.origin, true).await.unwrap(), b"x").await.unwrap(), b"2");
}

#[tokio::test]
async fn an_answer_cut_inside_is_an_error_however_politely() {
    for reason in [Reason::NO_ERROR, Reason::INTERNAL_ERROR, Reason::CANCEL] {
        let cut = Arc::new(Notify::new());
        let when = cut.clone();
        let lab = lab(100, move |mut ask, mut reply, _| {
            let when = when.clone();
            async move {
                read(ask.body_mut()).await;
                let mut out = reply.send_response(Response::new(()), false).unwrap();
                out.send_data(Bytes::from_static(b"half"), false).unwrap();
                when.notified().await;
                out.send_reset(reason);
                true
            }
        })
        .await;
        let mut upstream = lab.dialer.connect(&lab.origin, false).await.unwrap();
        upstream.send(post(), Bytes::from_static(b"x")).await.unwrap();
        soon(upstream.read_head()).await.unwrap();
        assert_eq!(soon(upstream.read_body()).await.unwrap().unwrap(), "half");
        cut.notify_one();
        let error = soon(upstream.read_body()).await.unwrap_err();
        assert_eq!((error.class(), error.is_unread()), (Class::Reset, false), "{reason:?}");
        assert!(!upstream.is_done());
    }
}

#[tokio::test]
async fn a_refusal_is_heard_although_the_upload_is_not_read() {
    for reset in [false, true] {
        let lab = lab(100, move |ask, mut reply, _| async move {
            say(&mut reply, 413, "big");
            if !reset {
                std::future::pending::<()>().await;
            }
            // Dropping the unread body makes the server reset the stream, politely.
            drop(ask);
            true
        })
        .await;
        let mut upstream = lab.dialer.connect(&lab.origin, false).await.unwrap();
        // No timeout ends this in time: what is heard was listened for.
        upstream.set_timeouts(Duration::from_secs(600), Duration::from_secs(600));
        soon(upstream.send(post(), pattern(20 << 20).into())).await.unwrap();
        soon(upstream.read_head()).await.unwrap();
        assert_eq!(upstream.head().status, 413);
        assert_eq!(soon(body(&mut upstream)).await.unwrap(), b"big", "reset: {reset}");
        upstream.release();
    }
}

#[tokio::test]
async fn trailers_end_an_answer() {
    let lab = lab(100, |mut ask, mut reply, _| async move {
        read(ask.body_mut()).await;
        let mut out = reply.send_response(Response::new(()), false).unwrap();
        out.send_data(Bytes::from_static(b"ok"), false).unwrap();
        out.send_trailers(HeaderMap::from_iter([("x-end".parse().unwrap(), "1".parse().unwrap())])).unwrap();
        true
    })
    .await;
    assert_eq!(soon(call(&lab.dialer, &lab.origin)).await, b"ok");
}

#[tokio::test]
async fn when_a_connection_dies_its_requests_open_one_new_one_together() {
    let dying = Arc::new(tokio::sync::Semaphore::new(0));
    let seen = dying.clone();
    let lab = lab(100, move |mut ask, reply, n| {
        let dying = dying.clone();
        async move {
            match n {
                1 if read(ask.body_mut()).await == b"last" => {
                    dying.add_permits(1);
                    false
                }
                1 => {
                    // Never answered: this stream dies with its connection.
                    dying.add_permits(1);
                    std::future::pending().await
                }
                _ => number(ask, reply, n).await,
            }
        }
    })
    .await;
    let tasks: Vec<_> = (0..50)
        .map(|n| {
            let (dialer, origin, seen) = (lab.dialer.clone(), lab.origin.clone(), seen.clone());
            let first = n == 0;
            tokio::spawn(async move {
                if !first {
                    // All on the connection that the first one opens.
                    let _ = seen.acquire().await.map(|permit| permit.forget());
                    seen.add_permits(1);
                }
                let upstream = dialer.connect(&origin, false).await.unwrap();
                let error = exchange(upstream, b"wait").await.unwrap_err();
                assert_eq!(error.class(), Class::Reset);
                exchange(dialer.connect(&origin, true).await.unwrap(), b"again").await.unwrap()
            })
        })
        .collect();
    soon(async {
        while seen.available_permits() < 50 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let killer = lab.dialer.connect(&lab.origin, false).await.unwrap();
    let _ = soon(exchange(killer, b"last")).await.unwrap_err();
    for task in tasks {
        assert_eq!(soon(task).await.unwrap(), b"2");
    }
    assert_eq!(lab.server.accepted(), 2);
}
