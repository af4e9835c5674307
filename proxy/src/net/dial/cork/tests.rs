//! Over real sockets: how many segments a request takes, and what happens when the server speaks first.

use super::*;
use crate::net::dial::Dialer;
use crate::net::dial::lab::{
    Authority, End, Leaf, Server, accept, body, call, dialer, dialer_with, pattern, post, soon,
};
use bytes::Bytes;
use std::time::Duration;
use tokio::net::TcpStream;

/// Data segments the socket has received. One write up to the loopback's 64 KB is one segment.
fn segments(tcp: &TcpStream) -> u32 {
    SocketDigest::from_raw_fd(tcp.as_raw_fd()).tcp_info().unwrap().tcpi_data_segs_in
}

#[tokio::test]
async fn head_and_body_leave_in_one_segment() {
    for length in [1, 1000, 30_000] {
        let server = Server::start(move |stream, _| async move {
            let mut end = End::new(stream);
            let request = end.request().await.unwrap();
            assert_eq!(request.body, pattern(length));
            let count = segments(&end.stream).to_string();
            end.answer(&count).await;
        })
        .await;
        let dialer = dialer();
        let upstream = dialer.connect(&server.origin(&dialer), false).await.unwrap();
        let received = crate::net::dial::lab::exchange(upstream, &pattern(length)).await.unwrap();
        assert_eq!(received, b"1", "{length} bytes");
    }
}

#[tokio::test]
async fn head_and_body_leave_in_one_segment_over_tls() {
    let authority = Authority::new();
    let acceptor = Arc::new(authority.issue(&Leaf::default()));
    let server = Server::start(move |tcp, _| {
        let acceptor = acceptor.clone();
        async move {
            let mut end = End::new(accept(&acceptor, tcp).await.unwrap());
            // The second request: nothing of the handshake is left to arrive.
            for _ in 0..2 {
                let before = segments(end.stream.get_ref());
                end.request().await.unwrap();
                let count = (segments(end.stream.get_ref()) - before).to_string();
                end.answer(&count).await;
            }
        }
    })
    .await;
    let file = authority.file();
    let dialer = dialer_with(|settings| settings.outbound.upstream_ca_file = Some(file.path().into()));
    let origin = server.tls_origin(&dialer, "localhost");
    call(&dialer, &origin).await;
    assert_eq!(call(&dialer, &origin).await, b"1");
}

#[tokio::test]
async fn a_request_without_a_body_leaves_at_once() {
    let server = Server::counting().await;
    let dialer = dialer();
    let mut upstream = dialer.connect(&server.origin(&dialer), false).await.unwrap();
    upstream.send(crate::net::dial::lab::get(), Bytes::new()).await.unwrap();
    soon(upstream.read_head()).await.unwrap();
    assert_eq!(body(&mut upstream).await.unwrap(), b"1");
}

async fn echo<S: AsyncRead + AsyncWrite + Unpin>(stream: S) {
    let mut end = End::new(stream);
    while let Some(request) = end.request().await {
        end.say(&format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", request.body.len())).await;
        end.stream.write_all(&request.body).await.unwrap();
        end.stream.flush().await.unwrap();
    }
}

#[tokio::test]
async fn bodies_of_every_size_arrive_whole() {
    let server = Server::start(|stream, _| echo(stream)).await;
    let dialer = dialer();
    for length in [0, 1, 16_383, 16_384, 16_385, 65_536, 1 << 20, (1 << 20) + 1, 20 << 20] {
        let upstream = dialer.connect(&server.origin(&dialer), false).await.unwrap();
        let sent = pattern(length);
        let received = soon(crate::net::dial::lab::exchange(upstream, &sent)).await.unwrap();
        assert!(received == sent, "{length} bytes came back as {}", received.len());
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn bodies_of_every_size_arrive_whole_over_tls() {
    let authority = Authority::new();
    let acceptor = Arc::new(authority.issue(&Leaf::default()));
    let server = Server::start(move |tcp, _| {
        let acceptor = acceptor.clone();
        async move { echo(accept(&acceptor, tcp).await.unwrap()).await }
    })
    .await;
    let file = authority.file();
    let dialer = dialer_with(|settings| settings.outbound.upstream_ca_file = Some(file.path().into()));
    for length in [0, 1, 16_000, 16_384, 16_385, 65_536, (1 << 20) + 1, 5 << 20] {
        let upstream = dialer.connect(&server.tls_origin(&dialer, "localhost"), false).await.unwrap();
        let sent = pattern(length);
        let received = soon(crate::net::dial::lab::exchange(upstream, &sent)).await.unwrap();
        assert!(received == sent, "{length} bytes came back as {}", received.len());
    }
    assert_eq!(server.accepted(), 1);
}

/// Sends 20 MB to a server that behaves as `serve` says, and reads what it answers.
async fn upload(dialer: &Dialer, server: &Server) -> (u16, Vec<u8>) {
    let mut upstream = dialer.connect(&server.origin(dialer), false).await.unwrap();
    // No timeout ends this in time: what is heard was listened for.
    upstream.set_timeouts(Duration::from_secs(600), Duration::from_secs(600));
    soon(upstream.send(post(), pattern(20 << 20).into())).await.unwrap();
    soon(upstream.read_head()).await.unwrap();
    let status = upstream.head().status.as_u16();
    let received = soon(body(&mut upstream)).await.unwrap();
    upstream.release();
    (status, received)
}

#[tokio::test]
async fn a_refusal_ends_the_upload_although_the_server_keeps_the_connection() {
    let server = Server::start(|stream, _| async move {
        let mut end = End::new(stream);
        end.head().await.unwrap();
        end.say("HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig").await;
        std::future::pending().await
    })
    .await;
    let dialer = dialer();
    assert_eq!(upload(&dialer, &server).await, (413, b"big".to_vec()));
    assert_eq!(dialer.idle_connections(), 0, "half a request is still owed on that connection");
}

#[tokio::test]
async fn a_refusal_is_heard_although_the_server_closes() {
    let server = Server::start(|stream, _| async move {
        let mut end = End::new(stream);
        end.head().await.unwrap();
        end.say("HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig").await;
    })
    .await;
    let dialer = dialer();
    assert_eq!(upload(&dialer, &server).await, (413, b"big".to_vec()));
    assert_eq!(dialer.idle_connections(), 0);
}

#[tokio::test]
async fn what_is_no_refusal_lets_the_upload_go_on() {
    for early in ["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"] {
        let server = Server::start(move |stream, _| async move {
            let mut end = End::new(stream);
            let head = end.head().await.unwrap();
            assert_eq!(crate::net::dial::lab::header(&head, "content-length"), Some("20971520"));
            end.say(early).await;
            let mut left = 20 << 20;
            let mut space = vec![0; 1 << 16];
            left -= end.buffered();
            while left > 0 {
                left -= tokio::io::AsyncReadExt::read(&mut end.stream, &mut space).await.unwrap();
            }
            match early.contains("100") {
                true => end.say("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone").await,
                false => end.say("done").await,
            }
            end.gone().await;
        })
        .await;
        let dialer = dialer();
        assert_eq!(upload(&dialer, &server).await, (200, b"done".to_vec()), "{early:?}");
        assert_eq!(dialer.idle_connections(), 1, "the request was wholly sent");
    }
}

#[test]
fn only_errors_and_noise_are_refusals() {
    for (early, expected) in [
        ("", false),
        ("HTTP", false),
        ("HTTP/1.1 ", false),
        ("HTTP/1.1 1", false),
        ("HTTP/1.1 200 OK", false),
        ("HTTP/1.1 302 Found", false),
        ("HTTP/1.1 4", true),
        ("HTTP/1.0 503 Busy", true),
        ("SSH-2.0", true),
        ("HTTP/2", true),
    ] {
        assert_eq!(is_refusal(early.as_bytes()), expected, "{early:?}");
    }
}

#[tokio::test]
async fn an_idle_connection_lives_until_the_server_speaks_or_closes() {
    let server = Server::start(|stream, number| async move {
        let mut end = End::new(stream);
        end.head().await.unwrap();
        match number {
            1 => end.say("HTTP/1.1 408 Too Late\r\n\r\n").await,
            _ => return,
        }
        end.gone().await;
    })
    .await;
    for _ in 0..2 {
        let tcp = TcpStream::connect(server.address).await.unwrap();
        let mut cork = Cork::new(Transport::Plain(tcp));
        assert!(cork.is_alive());
        cork.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        soon(async {
            while cork.is_alive() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_held_credential_is_never_shown() {
    let server = Server::counting().await;
    let tcp = TcpStream::connect(server.address).await.unwrap();
    let mut cork = Cork::new(Transport::Plain(tcp));
    cork.start(true, |held| held.extend_from_slice(b"POST / HTTP/1.1\r\nauthorization: Bearer canary\r\n\r\n"));
    assert!(!format!("{cork:?}").contains("canary"));
    assert!(cork.held.ends_with(b"canary\r\n\r\n"), "it was held");
}
