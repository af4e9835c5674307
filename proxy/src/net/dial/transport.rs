//! A connected socket, plain or TLS, and how it comes about. Certificates are always verified, against the host's name
//! or, for `https://203.0.113.7`, against the certificate's IP addresses.
//!
//! We do the handshake ourselves rather than through Pingora's connector: that one cannot verify an IP address, accepts
//! TLS 1.0, and builds a certificate store per connection when further authorities are trusted.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::Context as _;
use openssl::ssl::{SslConnector, SslMethod, SslVersion};
use openssl::x509::{X509, X509VerifyResult};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_openssl::SslStream;

use super::error::{Class, DialError};

/// First choice first. A server without ALPN gets HTTP/1.1.
const H2_OR_H1: &[u8] = b"\x02h2\x08http/1.1";

/// Where distributions keep the system's authorities as one PEM file; `SSL_CERT_FILE` wins.
const SYSTEM_AUTHORITIES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

pub enum Transport {
    Plain(TcpStream),
    Tls(SslStream<TcpStream>),
}

/// Who is believed.
pub struct Trust {
    connector: SslConnector,
    /// System and further authorities together, for the relay lane: what a Pingora peer is given replaces the system's.
    authorities: Option<Arc<Box<[X509]>>>,
}

impl Trust {
    pub fn new(further: Option<&Path>) -> anyhow::Result<Self> {
        let mut builder = SslConnector::builder(SslMethod::tls_client())?;
        builder.set_min_proto_version(Some(SslVersion::TLS1_2))?;
        builder.set_alpn_protos(H2_OR_H1)?;
        // One read per record instead of two.
        builder.set_read_ahead(true);
        let mut authorities = None;
        if let Some(path) = further {
            let mut all = read_authorities(path).with_context(|| format!("UPSTREAM_CA_FILE: {}", path.display()))?;
            for authority in &all {
                builder.cert_store_mut().add_cert(authority.clone())?;
            }
            if let Some(system) = system_authorities() {
                all.extend(read_authorities(&system).with_context(|| format!("authorities: {}", system.display()))?);
            }
            authorities = Some(Arc::new(all.into_boxed_slice()));
        }
        Ok(Self { connector: builder.build(), authorities })
    }

    pub fn authorities(&self) -> Option<Arc<Box<[X509]>>> {
        self.authorities.clone()
    }

    /// `host` is the name the certificate must prove; it is also the SNI unless it is an address.
    pub async fn handshake(&self, tcp: TcpStream, host: &str) -> Result<Transport, DialError> {
        let ssl = self
            .connector
            .configure()
            .and_then(|conf| conf.into_ssl(host))
            .map_err(|_| broken("the TLS set-up failed"))?;
        let mut stream = SslStream::new(ssl, tcp).map_err(|_| broken("the TLS set-up failed"))?;
        match Pin::new(&mut stream).connect().await {
            Ok(()) => Ok(Transport::Tls(stream)),
            Err(_) => Err(why_handshake_failed(stream.ssl().verify_result())),
        }
    }
}

fn broken(message: &'static str) -> DialError {
    DialError::new(Class::Tls, message)
}

fn why_handshake_failed(verified: X509VerifyResult) -> DialError {
    match verified {
        X509VerifyResult::OK => broken("the TLS handshake failed"),
        reason => {
            DialError::new(Class::Tls, format!("the provider's certificate was refused: {}", reason.error_string()))
        }
    }
}

fn read_authorities(path: &Path) -> anyhow::Result<Vec<X509>> {
    let authorities = X509::stack_from_pem(&std::fs::read(path)?)?;
    anyhow::ensure!(!authorities.is_empty(), "no certificate in this file");
    Ok(authorities)
}

fn system_authorities() -> Option<PathBuf> {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    named.into_iter().chain(SYSTEM_AUTHORITIES.iter().map(PathBuf::from)).find(|path| path.is_file())
}

impl Transport {
    pub async fn connect(address: SocketAddr) -> Result<TcpStream, DialError> {
        match TcpStream::connect(address).await {
            Ok(tcp) => {
                // Head and body leave in one write; waiting for more would only delay it.
                let _ = tcp.set_nodelay(true);
                Ok(tcp)
            }
            Err(e) => Err(why_connect_failed(e.kind())),
        }
    }

    pub fn is_h2(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.ssl().selected_alpn_protocol() == Some(b"h2"),
        }
    }

    /// TLS would send the parts as separate records and packets.
    pub fn gathers_writes(&self) -> bool {
        matches!(self, Self::Plain(_))
    }
}

fn why_connect_failed(kind: io::ErrorKind) -> DialError {
    match kind {
        io::ErrorKind::ConnectionRefused => DialError::new(Class::Refused, "the provider refused the connection"),
        io::ErrorKind::TimedOut => DialError::new(Class::ConnectTimeout, "connecting to the provider took too long"),
        io::ErrorKind::ConnectionReset => DialError::new(Class::Reset, "the provider reset the connection"),
        _ => DialError::new(Class::Unreachable, "the provider's address cannot be reached"),
    }
}

impl AsRawFd for Transport {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Plain(tcp) => tcp.as_raw_fd(),
            Self::Tls(stream) => stream.get_ref().as_raw_fd(),
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, bufs),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.gathers_writes()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests;
