//! A client with its hands on the connection: the proofs must know whether a connection was refused, reused or cut,
//! and be able to leave at a moment of their choosing. Ordinary clients hide all of that.

use anyhow::Context as _;
use bytes::Bytes;
use futures::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

pub type Body = BoxBody<Bytes, Infallible>;

/// Who asks, and where.
#[derive(Debug, Clone)]
pub struct Caller {
    pub address: SocketAddr,
    headers: HeaderMap,
}

/// One HTTP/1.1 connection; closed when dropped.
pub struct Connection {
    sender: http1::SendRequest<Body>,
    driver: JoinHandle<()>,
}

impl Caller {
    pub fn at(port: u16) -> Self {
        Self { address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), headers: HeaderMap::new() }
    }

    /// The same caller with one header more, or another value for it.
    pub fn with(&self, name: &'static str, value: &str) -> anyhow::Result<Self> {
        let mut caller = self.clone();
        let value = HeaderValue::from_str(value).with_context(|| format!("{name} cannot have this value"))?;
        caller.headers.insert(HeaderName::from_static(name), value);
        Ok(caller)
    }

    pub async fn connect(&self) -> std::io::Result<Connection> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
        // How the connection ended shows in the answer, or in its absence.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Connection { sender, driver })
    }

    pub fn request(&self, method: Method, path: &str, body: Body) -> Request<Body> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap_or_default();
        request.headers_mut().clone_from(&self.headers);
        if let Ok(host) = HeaderValue::from_str(&self.address.to_string()) {
            request.headers_mut().insert(header::HOST, host);
        }
        request
    }

    pub fn chat(&self, fault: &Value, is_stream: bool) -> Request<Body> {
        self.post_json("/v1/chat/completions", &chat(fault, is_stream))
    }

    pub fn post_json(&self, path: &str, body: &Value) -> Request<Body> {
        let mut request = self.request(Method::POST, path, whole(body.to_string()));
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request
    }

    /// The bytes of a request that is sent many times.
    pub fn post_bytes(&self, path: &str, body: &str) -> Bytes {
        let mut bytes = self.head_bytes("POST", path);
        let end = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        bytes.extend_from_slice(end.as_bytes());
        bytes.into()
    }

    /// The beginning of a request: its first line and the caller's headers.
    pub fn head_bytes(&self, method: &str, path: &str) -> Vec<u8> {
        let mut bytes = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(format!("{name}: ").as_bytes());
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    }

    /// The status of one GET on a connection of its own.
    pub async fn status_of(&self, path: &str) -> anyhow::Result<StatusCode> {
        self.status(self.request(Method::GET, path, empty())).await
    }

    /// Status and text of one answer, on a connection of its own.
    pub async fn answer(&self, request: Request<Body>) -> anyhow::Result<(StatusCode, String)> {
        let mut connection = self.connect().await?;
        let answer = connection.send(request).await?;
        let status = answer.status();
        let text = answer.into_body().collect().await?.to_bytes();
        Ok((status, String::from_utf8_lossy(&text).into_owned()))
    }

    pub async fn status(&self, request: Request<Body>) -> anyhow::Result<StatusCode> {
        let mut connection = self.connect().await?;
        let answer = connection.send(request).await?;
        let status = answer.status();
        answer.into_body().collect().await?;
        Ok(status)
    }
}

impl Connection {
    pub async fn send(&mut self, request: Request<Body>) -> hyper::Result<Response<Incoming>> {
        self.sender.ready().await?;
        self.sender.send_request(request).await
    }

    pub fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Closes the socket before it returns.
    pub async fn leave(mut self) {
        self.driver.abort();
        let _ = (&mut self.driver).await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A request for chat whose text tells the mock what to do.
pub fn chat(fault: &Value, is_stream: bool) -> Value {
    let content = json!({ "mock": fault }).to_string();
    json!({ "model": "gpt-4o-mini", "stream": is_stream, "messages": [{ "role": "user", "content": content }] })
}

pub fn empty() -> Body {
    Full::default().boxed()
}

pub fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed()
}

pub fn pieces(pieces: impl Stream<Item = Bytes> + Send + Sync + 'static) -> Body {
    let frames = futures::StreamExt::map(pieces, |piece| Ok(Frame::data(piece)));
    StreamBody::new(frames).boxed()
}
