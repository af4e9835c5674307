//! The control plane's only way to addresses that customers name. Name and address are judged by the rules that the
//! proxy's dialer obeys, the address that was judged is the one that is dialled, certificates are always verified,
//! redirects are answers like any other, and what is read is bounded.

pub mod dns_txt;
pub mod mcp;
pub mod model_configs;
pub mod oauth;

use anyhow::Context as _;
use axum::http::{HeaderMap, Method, Request, header};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Full, Limited};
use hyper_util::rt::TokioIo;
use openssl::ssl::{SslConnector, SslMethod, SslVersion};
use openssl::x509::X509;
use shared::outbound::{Guard, Host, Origin, check_address};
use shared::settings;
use std::net::SocketAddr;
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_openssl::SslStream;

pub struct Outbound {
    guard: Guard,
    dns_server: Option<SocketAddr>,
    connector: SslConnector,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Why there is no answer, in words that repeat nothing of it.
#[derive(Debug)]
pub enum PostError {
    Forbidden(String),
    TooLong,
    Broken(String),
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Outbound {
    pub fn new(settings: &settings::Outbound) -> anyhow::Result<Self> {
        let mut builder = SslConnector::builder(SslMethod::tls_client())?;
        builder.set_min_proto_version(Some(SslVersion::TLS1_2))?;
        if let Some(path) = &settings.upstream_ca_file {
            let named = || format!("UPSTREAM_CA_FILE: {}", path.display());
            let authorities = X509::stack_from_pem(&std::fs::read(path).with_context(named)?).with_context(named)?;
            anyhow::ensure!(!authorities.is_empty(), "{}: no certificate in this file", named());
            for authority in authorities {
                builder.cert_store_mut().add_cert(authority)?;
            }
        }
        Ok(Self {
            guard: Guard::new(&settings.trusted_custom_hosts, &settings.own_hostnames)?
                .allowing_plain(settings.plain_custom_hosts),
            dns_server: settings.dns_server,
            connector: builder.build(),
        })
    }

    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Whom proofs of domains are asked from; none for the system's own.
    pub fn dns_server(&self) -> Option<SocketAddr> {
        self.dns_server
    }

    /// The body behind a URL, or a few words that say why not. Whoever calls it sets the time limit.
    pub async fn get(&self, url: &str, longest: usize) -> Result<Vec<u8>, String> {
        let (origin, path) = self.guard.custom_url(url).map_err(|rule| rule.to_string())?;
        let stream = self.connect(&origin).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let connection = tokio::spawn(connection);
        let request = Request::get(path.as_str())
            .header(header::HOST, origin.authority_value())
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, "portcullis")
            .body(Empty::<Bytes>::new())
            .map_err(|_| "the request cannot be made".to_owned())?;
        let answer = sender.send_request(request).await.map_err(broken);
        let body = match answer {
            Ok(answer) if answer.status() != 200 => Err(format!("it answered {}", answer.status().as_u16())),
            Ok(answer) => match Limited::new(answer.into_body(), longest).collect().await {
                Ok(body) => Ok(body.to_bytes().to_vec()),
                Err(error) if error.is::<http_body_util::LengthLimitError>() => Err("the answer is too long".into()),
                Err(_) => Err("the answer broke off".into()),
            },
            Err(error) => Err(error),
        };
        connection.abort();
        body
    }

    /// Posts a body with these headers and reads the answer, whatever its status. Whoever calls it sets the time limit.
    pub async fn post(
        &self,
        url: &str,
        headers: &HeaderMap,
        body: Vec<u8>,
        longest: usize,
    ) -> Result<(u16, Vec<u8>), PostError> {
        self.exchange(Method::POST, url, headers, body, longest).await
    }

    /// The same by GET.
    pub async fn get_with(&self, url: &str, headers: &HeaderMap, longest: usize) -> Result<(u16, Vec<u8>), PostError> {
        self.exchange(Method::GET, url, headers, Vec::new(), longest).await
    }

    async fn exchange(
        &self,
        method: Method,
        url: &str,
        headers: &HeaderMap,
        body: Vec<u8>,
        longest: usize,
    ) -> Result<(u16, Vec<u8>), PostError> {
        let (origin, path) = self.guard.custom_url(url).map_err(|rule| PostError::Forbidden(rule.to_string()))?;
        let stream = self.connect(&origin).await.map_err(PostError::Broken)?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| PostError::Broken(broken(error)))?;
        // Ended with the call, also by whoever stops waiting for it.
        let _connection = AbortOnDrop(tokio::spawn(async move { drop(connection.await) }));
        let mut request = Request::builder().method(method).uri(path.as_str()).body(Full::new(Bytes::from(body)));
        if let Ok(request) = &mut request {
            *request.headers_mut() = headers.clone();
            request.headers_mut().insert(header::HOST, origin.authority_value().clone());
        }
        let request = request.map_err(|_| PostError::Broken("the request cannot be made".into()))?;
        let answer = sender.send_request(request).await.map_err(|error| PostError::Broken(broken(error)))?;
        let status = answer.status().as_u16();
        match Limited::new(answer.into_body(), longest).collect().await {
            Ok(body) => Ok((status, body.to_bytes().to_vec())),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(PostError::TooLong),
            Err(_) => Err(PostError::Broken("the answer broke off".into())),
        }
    }

    /// Asks a URL with these headers, for its status alone: what it says may repeat a credential.
    pub async fn status(&self, url: &str, headers: &HeaderMap) -> Result<u16, String> {
        let (origin, path) = self.guard.custom_url(url).map_err(|rule| rule.to_string())?;
        let stream = self.connect(&origin).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let connection = tokio::spawn(connection);
        let mut request = Request::get(path.as_str()).body(Empty::<Bytes>::new());
        if let Ok(request) = &mut request {
            *request.headers_mut() = headers.clone();
            request.headers_mut().insert(header::HOST, origin.authority_value().clone());
        }
        let answer = match request {
            Ok(request) => sender.send_request(request).await.map_err(broken),
            Err(_) => Err("the request cannot be made".to_owned()),
        };
        connection.abort();
        answer.map(|answer| answer.status().as_u16())
    }

    async fn connect(&self, origin: &Origin) -> Result<Box<dyn Stream>, String> {
        let mut failed = "its host name has no address".to_owned();
        for address in addresses(origin).await? {
            match TcpStream::connect(address).await {
                Ok(tcp) if origin.is_tls() => return Ok(Box::new(self.secured(tcp, origin).await?)),
                Ok(tcp) => return Ok(Box::new(tcp)),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                    failed = "the connection was refused".into();
                }
                Err(_) => failed = "its address cannot be reached".into(),
            }
        }
        Err(failed)
    }

    async fn secured(&self, tcp: TcpStream, origin: &Origin) -> Result<SslStream<TcpStream>, String> {
        let ssl = self.connector.configure().and_then(|setup| setup.into_ssl(origin.host_name()));
        let stream = ssl.and_then(|ssl| SslStream::new(ssl, tcp));
        let mut stream = stream.map_err(|_| "the TLS set-up failed".to_owned())?;
        match Pin::new(&mut stream).connect().await {
            Ok(()) => Ok(stream),
            Err(_) => Err("the TLS handshake failed, or its certificate was refused".into()),
        }
    }
}

/// Resolved and judged. One forbidden address refuses them all: a name that mixes public and private addresses is
/// what DNS rebinding looks like.
async fn addresses(origin: &Origin) -> Result<Vec<SocketAddr>, String> {
    let addresses: Vec<SocketAddr> = match origin.host() {
        Host::Address(address) => vec![SocketAddr::new(*address, origin.port())],
        Host::Name(name) => match tokio::net::lookup_host((name.as_str(), origin.port())).await {
            Ok(found) => found.collect(),
            Err(_) => return Err("its host name did not resolve".into()),
        },
    };
    for address in &addresses {
        check_address(address.ip(), origin.is_trusted()).map_err(|rule| format!("once resolved, {rule}"))?;
    }
    Ok(addresses)
}

fn broken(_: hyper::Error) -> String {
    "the answer is not HTTP, or broke off".into()
}
