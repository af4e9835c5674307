//! Bodies end where the head said, and answers are framed so that their client knows where they end.

use super::*;
use crate::gateway::client_connection::ConnectionTimeouts;
use futures::poll;
use http::Method;
use pingora_core::protocols::l4::stream::Stream as TcpConnection;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

const NEXT: &[u8] = b"POST /v1/next";

/// A connection as the gateway has it, and its client's end.
async fn connected() -> (ClientConnection, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    let endless = ConnectionTimeouts { idle: Duration::MAX, head: Duration::MAX, write: Duration::MAX };
    (ClientConnection::new(Box::new(TcpConnection::from(accepted)), endless), client)
}

fn asked() -> RequestHeader {
    RequestHeader::build_no_case(Method::POST, b"/v1/chat/completions", None).unwrap()
}

fn head(status: u16, length: Option<usize>) -> ResponseHeader {
    let mut head = ResponseHeader::build(status, None).unwrap();
    if let Some(length) = length {
        head.insert_header(header::CONTENT_LENGTH, length.to_string()).unwrap();
    }
    head
}

/// What a client gets of an answer that is written by `write`, without the date.
async fn written(is_kept_alive: bool, write: impl AsyncFnOnce(&mut PlainClient<'_>)) -> String {
    let (mut connection, mut client) = connected().await;
    let (head, mut unread) = (asked(), BytesMut::new());
    let mut plain = PlainClient::new(&mut connection, &head, &mut unread, 0, is_kept_alive);
    write(&mut plain).await;
    assert!(plain.has_begun());
    drop(connection);
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    let lines = text.split_inclusive("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with("date:"));
    lines.collect()
}

#[tokio::test]
async fn a_body_ends_where_its_head_said_and_what_follows_is_left() {
    let (mut connection, mut client) = connected().await;
    let head = asked();
    let mut unread = BytesMut::from(&b"one "[..]);
    let mut plain = PlainClient::new(&mut connection, &head, &mut unread, 11, true);
    client.write_all(&[b"two thr", NEXT].concat()).await.unwrap();
    let mut body = Vec::new();
    while let Some(piece) = plain.read_body().await.unwrap() {
        assert!(!plain.is_read() || body.len() + piece.len() == 11);
        body.extend_from_slice(&piece);
    }
    assert!(plain.is_read() && plain.read_body().await == Ok(None));
    assert_eq!((&body[..], &unread[..]), (&b"one two thr"[..], NEXT));
}

#[tokio::test]
async fn a_client_that_leaves_inside_its_body_is_gone() {
    let (mut connection, mut client) = connected().await;
    let (head, mut unread) = (asked(), BytesMut::new());
    let mut plain = PlainClient::new(&mut connection, &head, &mut unread, 10, true);
    client.write_all(b"half").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(plain.read_body().await, Ok(Some(Bytes::from_static(b"half"))));
    assert_eq!(plain.read_body().await, Err(ClientGone));
    assert!(!plain.drain().await);
}

#[tokio::test]
async fn a_next_request_is_no_departure() {
    let (mut connection, mut client) = connected().await;
    let (head, mut unread) = (asked(), BytesMut::new());
    let mut plain = PlainClient::new(&mut connection, &head, &mut unread, 0, true);
    client.write_all(NEXT).await.unwrap();
    while plain.unread.len() < NEXT.len() {
        assert!(poll!(pin!(plain.gone())).is_pending());
        tokio::task::yield_now().await;
    }
    drop(client);
    plain.gone().await;
    assert_eq!(&unread[..], NEXT);
}

#[tokio::test]
async fn an_answer_without_a_length_comes_in_chunks() {
    let text = written(true, async |client| {
        client.write_head(head(200, None)).await.unwrap();
        client.write_body(Bytes::from_static(b"0123456789abcdef"), false).await.unwrap();
        client.write_body(Bytes::new(), false).await.unwrap();
        client.write_body(Bytes::from_static(b"end"), true).await.unwrap();
    });
    let expected = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n\
                    10\r\n0123456789abcdef\r\n3\r\nend\r\n0\r\n\r\n";
    assert_eq!(text.await, expected);
    let nothing_more = written(false, async |client| {
        client.write_beginning(head(200, None), Bytes::from_static(b"x"), false).await.unwrap();
        client.write_body(Bytes::new(), true).await.unwrap();
    });
    let expected = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    assert_eq!(nothing_more.await, expected);
}

#[tokio::test]
async fn an_answer_with_a_length_or_without_a_body_does_not() {
    let whole = written(true, async |client| {
        client.write_beginning(head(200, Some(4)), Bytes::from_static(b"bo"), false).await.unwrap();
        client.write_body(Bytes::from_static(b"dy"), true).await.unwrap();
    });
    assert_eq!(whole.await, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: keep-alive\r\n\r\nbody");
    let none = written(true, async |client| client.write_beginning(head(204, None), Bytes::new(), true).await.unwrap());
    assert_eq!(none.await, "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n");
}

#[tokio::test]
async fn a_whole_answer_is_one_text_however_long_it_is() {
    for length in [4, LARGEST_WHOLE + 1] {
        let body = Bytes::from("b".repeat(length));
        let lines = HeadLines::new(StatusCode::OK);
        let text = written(true, async |client| client.write_whole(lines, body.clone()).await.unwrap()).await;
        let (head, rest) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {length}")), "{head}");
        assert_eq!(rest.len(), length);
    }
}

/// It would be taken for the beginning of the next answer.
#[tokio::test]
async fn nothing_is_written_beyond_what_the_head_promised() {
    for (status, length, expected) in [(204, None, ""), (304, Some(7), ""), (200, Some(3), "abc")] {
        let text = written(true, async |client| {
            client.write_head(head(status, length)).await.unwrap();
            client.write_body(Bytes::from_static(b"ab"), false).await.unwrap();
            client.write_body(Bytes::from_static(b"cd"), true).await.unwrap();
        });
        assert_eq!(text.await.split_once("\r\n\r\n").unwrap().1, expected, "{status}");
    }
    let short = written(true, async |client| {
        client.write_head(head(200, Some(3))).await.unwrap();
        assert_eq!(client.write_body(Bytes::from_static(b"ab"), true).await, Err(ClientGone));
    });
    assert!(short.await.ends_with("\r\n\r\nab"));
}

#[tokio::test]
async fn a_head_whose_length_is_known_leaves_with_its_body() {
    let (mut connection, client) = connected().await;
    let (asked, mut unread) = (asked(), BytesMut::new());
    let mut plain = PlainClient::new(&mut connection, &asked, &mut unread, 0, true);
    plain.write_head(head(200, Some(4))).await.unwrap();
    assert!(plain.has_begun());
    assert!(client.try_read(&mut [0; 1]).is_err(), "nothing has left");
    plain.write_body(Bytes::from_static(b"body"), true).await.unwrap();
    client.readable().await.unwrap();
    let mut text = [0; 512];
    let length = client.try_read(&mut text).unwrap();
    assert!(text[..length].ends_with(b"\r\n\r\nbody"), "both in one packet");
}
