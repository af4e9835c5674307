//! An HTTP/2 client, in the clear or inside TLS, that sends a body with or without saying its length.

use bytes::{Bytes, BytesMut};
use h2::client::SendRequest;
use harness::Answer;
use http::Request;
use openssl::ssl::{SslConnector, SslMethod};
use openssl::x509::X509;
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_openssl::SslStream;

pub struct Http2(SendRequest<Bytes>);

impl Http2 {
    /// By prior knowledge, in the clear.
    pub async fn open(port: u16) -> Self {
        Self::over(connected(port).await).await
    }

    /// Inside TLS, agreed on by ALPN. `authority` signed the certificate.
    pub async fn open_tls(port: u16, authority: &str) -> Self {
        let stream = tls(port, authority, b"\x02h2").await;
        assert_eq!(stream.ssl().selected_alpn_protocol(), Some(&b"h2"[..]));
        Self::over(stream).await
    }

    async fn over(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(1 << 20).initial_connection_window_size(1 << 24);
        let (send, connection) = builder.handshake(io).await.expect("the proxy speaks HTTP/2");
        // Its end shows in the requests over it.
        tokio::spawn(connection);
        Self(send)
    }

    /// One exchange. An answer may come before the whole body was taken.
    pub async fn exchange(&self, request: Request<()>, body: Bytes) -> Result<Answer, h2::Error> {
        let mut send = self.0.clone().ready().await?;
        let (response, stream) = send.send_request(request, body.is_empty())?;
        let sending = tokio::spawn(upload(stream, body));
        let response = response.await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut incoming = response.into_body();
        let mut body = BytesMut::new();
        while let Some(piece) = incoming.data().await {
            let piece = piece?;
            incoming.flow_control().release_capacity(piece.len())?;
            body.extend_from_slice(&piece);
        }
        sending.abort();
        Ok(Answer { status, headers, body: body.freeze() })
    }

    /// Sends a request and hands out its answer's stream, to be read or dropped.
    pub async fn begin(&self, request: Request<()>, body: Bytes) -> Result<h2::RecvStream, h2::Error> {
        let mut send = self.0.clone().ready().await?;
        let (response, mut stream) = send.send_request(request, false)?;
        stream.send_data(body, true)?;
        Ok(response.await?.into_body())
    }
}

async fn upload(mut stream: h2::SendStream<Bytes>, mut body: Bytes) {
    while !body.is_empty() {
        stream.reserve_capacity(body.len());
        let granted = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
        let Some(Ok(granted)) = granted else { return };
        let piece = body.split_to(granted.min(body.len()));
        if stream.send_data(piece, body.is_empty()).is_err() {
            return;
        }
    }
}

pub async fn connected(port: u16) -> TcpStream {
    let tcp = TcpStream::connect(("127.0.0.1", port)).await.expect("the port is open");
    tcp.set_nodelay(true).expect("a socket takes its options");
    tcp
}

pub async fn tls(port: u16, authority: &str, alpn: &[u8]) -> SslStream<TcpStream> {
    let mut builder = SslConnector::builder(SslMethod::tls_client()).unwrap();
    builder.cert_store_mut().add_cert(X509::from_pem(authority.as_bytes()).unwrap()).unwrap();
    builder.set_alpn_protos(alpn).unwrap();
    let ssl = builder.build().configure().unwrap().into_ssl("localhost").unwrap();
    let mut stream = SslStream::new(ssl, connected(port).await).unwrap();
    Pin::new(&mut stream).connect().await.expect("the proxy's certificate is valid");
    stream
}
