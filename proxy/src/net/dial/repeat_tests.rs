//! What a provider receives of one call, whatever becomes of its connection: counted by servers that speak HTTP/2 and
//! HTTP/1 byte by byte. A request that was worked on is worked on once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use super::lab::{Authority, End, Leaf, Server, accept, call, dialer, dialer_with, exchange, pattern, soon};
use super::{Dialer, Origin, UpstreamError};

/// What a provider does to a request once all of it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Reset(u32),
    /// It goes away, having taken this request or not, and says why.
    GoAway {
        took_it: bool,
        reason: u32,
    },
    Close,
    /// Bytes that are no HTTP/2.
    Garbage,
}

const NO_ERROR: u32 = 0;
const PROTOCOL_ERROR: u32 = 1;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;
const ENHANCE_YOUR_CALM: u32 = 11;
const HTTP_1_1_REQUIRED: u32 = 13;

const FATES: &[Fate] = &[
    Fate::Reset(NO_ERROR),
    Fate::Reset(PROTOCOL_ERROR),
    Fate::Reset(INTERNAL_ERROR),
    Fate::Reset(REFUSED_STREAM),
    Fate::Reset(CANCEL),
    Fate::Reset(ENHANCE_YOUR_CALM),
    Fate::Reset(HTTP_1_1_REQUIRED),
    Fate::GoAway { took_it: true, reason: NO_ERROR },
    Fate::GoAway { took_it: true, reason: INTERNAL_ERROR },
    Fate::GoAway { took_it: false, reason: NO_ERROR },
    Fate::GoAway { took_it: false, reason: INTERNAL_ERROR },
    Fate::Close,
    Fate::Garbage,
];

impl Fate {
    /// The provider says that it did not work on the request.
    fn is_declined(self) -> bool {
        matches!(self, Self::Reset(REFUSED_STREAM) | Self::GoAway { took_it: false, .. })
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// One connection of HTTP/2: the requests before number `meets` are answered, that one meets its fate.
async fn speak<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    meets: Option<usize>,
    fate: Fate,
    says_head: bool,
    received: Arc<AtomicUsize>,
) -> Option<()> {
    stream.read_exact(&mut [0; 24]).await.ok()?;
    stream.write_all(&frame(4, 0, 0, &[])).await.ok()?;
    let mut count = 0;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await.ok()?;
        let (kind, flags) = (head[3], head[4]);
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        match kind {
            4 if flags & 1 == 0 => stream.write_all(&frame(4, 1, 0, &[])).await.ok()?,
            6 if flags & 1 == 0 => stream.write_all(&frame(6, 1, 0, &payload)).await.ok()?,
            // The end of a request, in its head or its body.
            0 | 1 if flags & 1 == 1 => {
                count += 1;
                received.fetch_add(1, SeqCst);
                // `:status: 200`, as the table of HPACK has it.
                if Some(count) != meets {
                    stream.write_all(&frame(1, 5, id, &[0x88])).await.ok()?;
                    continue;
                }
                if says_head {
                    stream.write_all(&frame(1, 4, id, &[0x88])).await.ok()?;
                    stream.write_all(&frame(0, 0, id, b"half")).await.ok()?;
                }
                match fate {
                    Fate::Reset(reason) => stream.write_all(&frame(3, 0, id, &reason.to_be_bytes())).await.ok()?,
                    Fate::GoAway { took_it, reason } => {
                        let last = if took_it { id } else { id.saturating_sub(2) };
                        let payload = [last.to_be_bytes(), reason.to_be_bytes()].concat();
                        stream.write_all(&frame(7, 0, 0, &payload)).await.ok()?;
                        stream.flush().await.ok()?;
                        return None;
                    }
                    Fate::Close => return None,
                    // A body on the stream that has none.
                    Fate::Garbage => stream.write_all(&frame(0, 0, 0, b"?")).await.ok()?,
                }
                stream.flush().await.ok()?;
            }
            _ => {}
        }
    }
}

/// As the engine calls: once more over a fresh connection, if the request cannot have been worked on.
async fn call_or_redial(dialer: &Dialer, origin: &Arc<Origin>, body: &[u8]) -> Result<Vec<u8>, UpstreamError> {
    let first = exchange(dialer.connect(origin, false).await.unwrap(), body).await;
    match first {
        Err(error) if error.is_unread() => exchange(dialer.connect(origin, true).await.unwrap(), body).await,
        other => other,
    }
}

#[tokio::test]
async fn a_post_over_http2_is_worked_on_once_whatever_ends_its_stream() {
    for fate in FATES {
        for is_reused in [false, true] {
            for says_head in [false, true] {
                let authority = Authority::new();
                let acceptor = Arc::new(authority.issue(&Leaf::h2()));
                let received = Arc::new(AtomicUsize::new(0));
                let count = received.clone();
                let server = Server::start(move |tcp, number| {
                    let (acceptor, received) = (acceptor.clone(), count.clone());
                    let meets = (number == 1).then_some(if is_reused { 2 } else { 1 });
                    async move {
                        let Some(stream) = accept(&acceptor, tcp).await else { return };
                        let _ = speak(stream, meets, *fate, says_head, received).await;
                    }
                })
                .await;
                let file = authority.file();
                let dialer = dialer_with(|settings| settings.outbound.upstream_ca_file = Some(file.path().into()));
                let origin = server.tls_origin(&dialer, "localhost");
                if is_reused {
                    call(&dialer, &origin).await;
                    received.store(0, SeqCst);
                }
                let called = soon(call_or_redial(&dialer, &origin, b"hello")).await;
                let name = format!("{fate:?}, reused {is_reused}, head seen {says_head}");
                let is_repeated = fate.is_declined() && !says_head;
                assert_eq!(received.load(SeqCst), if is_repeated { 2 } else { 1 }, "{name}: {called:?}");
                assert_eq!(called.is_ok(), is_repeated, "{name}: {called:?}");
            }
        }
    }
}

/// What a provider does to the second request of a connection over HTTP/1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Second {
    /// It had closed the connection before.
    MeetsClosed,
    /// It breaks off while the request is still on its way.
    IsCutInside,
    IsReadAndDropped,
    IsReadAndHalfAnswered,
}

#[tokio::test]
async fn a_post_over_http1_is_worked_on_once_whatever_ends_its_connection() {
    for (second, length, is_answered) in [
        (Second::MeetsClosed, 5, true),
        (Second::MeetsClosed, 0, true),
        (Second::IsCutInside, 20 << 20, true),
        (Second::IsReadAndDropped, 5, false),
        (Second::IsReadAndDropped, 300_000, false),
        (Second::IsReadAndHalfAnswered, 5, false),
    ] {
        let received = Arc::new(AtomicUsize::new(0));
        let (closing, closed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (count, close, is_closed) = (received.clone(), closing.clone(), closed.clone());
        let server = Server::start(move |stream, number| {
            let (received, close, is_closed) = (count.clone(), close.clone(), is_closed.clone());
            async move {
                let mut end = End::new(stream);
                while end.request().await.is_some() {
                    received.fetch_add(1, SeqCst);
                    end.answer(&number.to_string()).await;
                    match second {
                        _ if number > 1 => continue,
                        Second::MeetsClosed => {
                            close.notified().await;
                            drop(end);
                            is_closed.notify_one();
                            return;
                        }
                        Second::IsCutInside => {
                            let _ = end.head().await;
                            return;
                        }
                        Second::IsReadAndDropped | Second::IsReadAndHalfAnswered => {
                            let _ = end.request().await;
                            received.fetch_add(1, SeqCst);
                            if second == Second::IsReadAndHalfAnswered {
                                end.say("HTTP/1.1 200 OK\r\ncontent-le").await;
                            }
                            return;
                        }
                    }
                }
            }
        })
        .await;
        let dialer = dialer();
        let origin = server.origin(&dialer);
        call(&dialer, &origin).await;
        received.store(0, SeqCst);
        let upstream = dialer.connect(&origin, false).await.unwrap();
        assert!(upstream.is_reused());
        if second == Second::MeetsClosed {
            // Taken from the pool while it was alive, and closed before anything was written.
            closing.notify_one();
            soon(closed.notified()).await;
        }
        let body = pattern(length);
        let mut called = soon(exchange(upstream, &body)).await;
        if called.as_ref().is_err_and(UpstreamError::is_unread) {
            called = soon(exchange(dialer.connect(&origin, true).await.unwrap(), &body)).await;
        }
        assert_eq!(called.is_ok(), is_answered, "{second:?}: {called:?}");
        assert_eq!(received.load(SeqCst), 1, "{second:?}: what the provider read whole");
    }
}

#[tokio::test]
async fn a_fresh_connection_that_ends_without_a_word_is_not_tried_again() {
    let server = Server::start(|stream, _| async move {
        let mut end = End::new(stream);
        let _ = end.request().await;
    })
    .await;
    let dialer = dialer();
    let mut upstream = dialer.connect(&server.origin(&dialer), false).await.unwrap();
    upstream.set_timeouts(Duration::from_secs(20), Duration::from_secs(20));
    upstream.send(super::lab::post(), Bytes::from_static(b"hello")).await.unwrap();
    assert!(!soon(upstream.read_head()).await.unwrap_err().is_unread());
    assert_eq!(server.accepted(), 1);
}
