//! Bodies on the engine lane: every size, framing and protocol arrives whole on the other side, and the limits hold.

mod half_events;
mod limits;

use crate::http2::{Http2, connected, tls};
use crate::raw::find;
use bench::mock::{self, Authority, Mock};
use bench::ports::Reservation;
use bytes::Bytes;
use harness::{Answer, Stack};
use http::{HeaderMap, Request, StatusCode};
use openssl::sha::sha256;
use serde_json::json;
use std::fs;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

const SIZES: [usize; 4] = [1 << 10, 70 << 10, 1 << 20, 20 << 20];

/// A stack with TLS on both sides, and a second provider whose TLS does not speak HTTP/2.
struct Secure {
    stack: Stack,
    plain_tls: Mock,
    authority: String,
    tls_port: Reservation,
}

impl Secure {
    async fn start() -> Self {
        let authority = Authority::new().unwrap();
        let identity = authority.issue(&["localhost"]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let with_tls = |h2| mock::Options {
            tls: Some(mock::Tls { port: 0, identity: identity.clone(), h2 }),
            ..mock::Options::default()
        };
        let tls_port = Reservation::any().unwrap();
        let stack = Stack::builder()
            .mock(with_tls(true))
            .proxy("UPSTREAM_CA_FILE", file("authority.pem", &authority.pem().unwrap()))
            .proxy("PROXY_TLS_PORT", tls_port.port().to_string())
            .proxy("PROXY_TLS_CERT", file("cert.pem", &identity.cert_pem))
            .proxy("PROXY_TLS_KEY", file("key.pem", &identity.key_pem))
            .start()
            .await;
        Self { stack, plain_tls: Mock::start(with_tls(false)), authority: authority.pem().unwrap(), tls_port }
    }

    /// Name, base URL, and the mock behind it.
    fn upstreams(&self) -> [(&'static str, String, &Mock); 3] {
        [
            ("HTTP/1", self.stack.mock.url(), &self.stack.mock),
            ("HTTP/1 in TLS", self.plain_tls.tls_url().unwrap(), &self.plain_tls),
            ("HTTP/2 in TLS", self.stack.mock.tls_url().unwrap(), &self.stack.mock),
        ]
    }

    async fn send(&self, downstream: &str, upstream: &str, body: Bytes, has_length: bool) -> Answer {
        let request = self.request(upstream, has_length.then_some(body.len()));
        match downstream {
            "HTTP/1" => http1(connected(self.stack.proxy_port).await, request, body).await,
            "HTTP/1 in TLS" => {
                http1(tls(self.tls_port.port(), &self.authority, b"\x08http/1.1").await, request, body).await
            }
            "HTTP/2" => Http2::open(self.stack.proxy_port).await.exchange(request, body).await.unwrap(),
            _ => Http2::open_tls(self.tls_port.port(), &self.authority).await.exchange(request, body).await.unwrap(),
        }
    }

    fn request(&self, upstream: &str, length: Option<usize>) -> Request<()> {
        let request = Request::post("http://localhost/v1/chat/completions")
            .header("x-gateway-api-key", &self.stack.home.workspace_key)
            .header("x-gateway-provider", "openai")
            .header("authorization", "Bearer sk-mock")
            .header("x-gateway-custom-host", upstream)
            .header("content-type", "application/json");
        let request = match length {
            Some(length) => request.header("content-length", length),
            None => request,
        };
        request.body(()).unwrap()
    }
}

const DOWNSTREAMS: [&str; 4] = ["HTTP/1", "HTTP/1 in TLS", "HTTP/2", "HTTP/2 in TLS"];

/// A chat of exactly this many bytes.
fn chat_of(size: usize) -> Bytes {
    let (before, after) = (r#"{"model":"m","messages":[{"role":"user","content":""#, r#""}]}"#);
    let mut body = before.to_owned() + &"All work and no play. ".repeat(size / 22 + 1);
    body.truncate(size - after.len());
    Bytes::from(body + after)
}

/// One exchange of HTTP/1, chunked when the request names no length.
async fn http1(mut io: impl AsyncRead + AsyncWrite + Unpin, request: Request<()>, body: Bytes) -> Answer {
    let mut head =
        format!("{} {} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n", request.method(), request.uri().path());
    for (name, value) in request.headers() {
        head += &format!("{name}: {}\r\n", value.to_str().unwrap());
    }
    if request.headers().contains_key("content-length") {
        io.write_all((head + "\r\n").as_bytes()).await.unwrap();
        io.write_all(&body).await.unwrap();
    } else {
        io.write_all((head + "transfer-encoding: chunked\r\n\r\n").as_bytes()).await.unwrap();
        for piece in body.chunks(60_001) {
            io.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await.unwrap();
            io.write_all(piece).await.unwrap();
            io.write_all(b"\r\n").await.unwrap();
        }
        io.write_all(b"0\r\n\r\n").await.unwrap();
    }
    io.flush().await.unwrap();
    let mut bytes = Vec::new();
    // TLS peers may leave without a goodbye; the framing tells whether something is missing.
    let _ = io.read_to_end(&mut bytes).await;
    parsed(&bytes)
}

fn parsed(bytes: &[u8]) -> Answer {
    let end = find(bytes, b"\r\n\r\n").expect("an answer has a head");
    let head = String::from_utf8_lossy(&bytes[..end]);
    let status = head[9..12].parse::<u16>().unwrap();
    let mut headers = HeaderMap::new();
    for (name, value) in head.split("\r\n").skip(1).filter_map(|line| line.split_once(": ")) {
        headers.append(http::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
    }
    let mut rest = &bytes[end + 4..];
    let mut body = Vec::new();
    if headers.contains_key("transfer-encoding") {
        loop {
            let line = find(rest, b"\r\n").expect("a chunk has a size");
            let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
            if size == 0 {
                break;
            }
            body.extend_from_slice(&rest[line + 2..line + 2 + size]);
            rest = &rest[line + 4 + size..];
        }
    } else {
        body.extend_from_slice(rest);
        assert_eq!(headers["content-length"], body.len().to_string());
    }
    Answer { status: StatusCode::from_u16(status).unwrap(), headers, body: body.into() }
}

/// The largest bodies take their time: each protocol meets them once on either side, and the framings take turns.
fn is_spared(downstream: &str, upstream: &str, has_length: bool) -> bool {
    (downstream != "HTTP/1" && upstream != "HTTP/1") || has_length == downstream.contains("TLS")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_every_size_arrive_whole_over_every_protocol() {
    let secure = Secure::start().await;
    for (upstream, url, mock) in secure.upstreams() {
        for downstream in DOWNSTREAMS {
            for (index, size) in SIZES.into_iter().enumerate() {
                for has_length in [true, false] {
                    if index == 3 && is_spared(downstream, upstream, has_length) {
                        continue;
                    }
                    let what = format!("{downstream} to {upstream}, {size} bytes, length said: {has_length}");
                    mock.reset();
                    let body = chat_of(size);
                    let answer = secure.send(downstream, &url, body.clone(), has_length).await;
                    assert_eq!(answer.status, 200, "{what}: {}", answer.text());
                    let arrived = mock.requests();
                    assert_eq!(arrived.len(), 1, "{what}");
                    assert_eq!(arrived[0].body_bytes, size as u64, "{what}");
                    assert_eq!(arrived[0].body_sha256, mock::pattern::hex(&sha256(&body)), "{what}");
                    let version = if upstream == "HTTP/2 in TLS" { "HTTP/2" } else { "HTTP/1.1" };
                    assert_eq!(arrived[0].version, version, "{what}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_every_size_arrive_whole_over_every_protocol() {
    let secure = Secure::start().await;
    for (upstream, url, mock) in secure.upstreams() {
        for (index, size) in SIZES.into_iter().enumerate() {
            let expected = chat_of(size);
            let text = std::str::from_utf8(&expected).unwrap();
            for downstream in DOWNSTREAMS {
                for has_length in [true, false] {
                    if index == 3 && is_spared(downstream, upstream, has_length) {
                        continue;
                    }
                    let what = format!("{upstream} to {downstream}, {size} bytes, length said: {has_length}");
                    mock.script(json!([{ "body": text, "no_content_length": !has_length }])).unwrap();
                    let answer = secure.send(downstream, &url, chat_of(1000), true).await;
                    assert_eq!(answer.status, 200, "{what}");
                    assert!(answer.body == expected, "{what}: {} bytes came", answer.body.len());
                    if has_length {
                        assert_eq!(answer.header("content-length"), size.to_string(), "{what}");
                    }
                    if downstream.starts_with("HTTP/2") {
                        assert_eq!(
                            (answer.header("transfer-encoding"), answer.header("connection")),
                            ("", ""),
                            "{what}"
                        );
                    }
                }
            }
        }
    }
}

/// Over HTTP/2 a cut answer must end with a reset, or half of it would pass for the whole.
#[tokio::test]
async fn a_torn_answer_resets_an_http2_stream_and_spares_the_connection() {
    let secure = Secure::start().await;
    let http2 = Http2::open(secure.stack.proxy_port).await;
    for (upstream, url, mock) in secure.upstreams() {
        mock.script(json!([{ "reply_bytes": 2_000_000, "cut_at": 1_000_000, "no_content_length": true }])).unwrap();
        let torn = http2.exchange(secure.request(&url, None), chat_of(1000)).await;
        // A provider's own reset may overtake what it had sent; then nothing has left yet and the answer is a clean 502.
        if let Ok(answer) = torn {
            assert_eq!(answer.status, 502, "{upstream}: {} bytes passed for an answer", answer.body.len());
        }
        let whole = http2.exchange(secure.request(&url, None), chat_of(1000)).await;
        assert_eq!(whole.unwrap().status, 200, "{upstream}");
    }
}

#[tokio::test]
async fn a_stream_that_an_http2_client_drops_is_cancelled_and_spares_the_connection() {
    let secure = Secure::start().await;
    let http2 = Http2::open(secure.stack.proxy_port).await;
    for (upstream, url, mock) in secure.upstreams() {
        mock.reset();
        mock.script(json!([{ "chunks": 1000, "stall_after_bytes": 2000 }])).unwrap();
        let body = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "x" }] });
        let mut stream = http2.begin(secure.request(&url, None), Bytes::from(body.to_string())).await.unwrap();
        assert!(stream.data().await.is_some_and(|event| event.is_ok()), "{upstream}");
        drop(stream);
        let counts =
            tokio::time::timeout(std::time::Duration::from_secs(30), mock.until(|counts| counts.in_flight == 0));
        assert_eq!(counts.await.expect("the provider is told").cancelled, 1, "{upstream}");
        assert_eq!(http2.exchange(secure.request(&url, None), chat_of(1000)).await.unwrap().status, 200, "{upstream}");
    }
}
