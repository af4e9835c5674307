//! TLS with throwaway certificates, verified as production verifies them.

use std::pin::Pin;

use bench::mock::{Authority, Identity, Mock, Options, Tls};
use openssl::ssl::{SslConnector, SslMethod};
use openssl::x509::X509;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_openssl::SslStream;

fn mock_with(identity: Identity, h2: bool) -> Mock {
    Mock::start(Options { tls: Some(Tls { port: 0, identity, h2 }), ..Options::default() })
}

/// A verified connection, or why there is none.
async fn connect(mock: &Mock, trusted: &Authority, host: &str, alpn: &[u8]) -> Result<SslStream<TcpStream>, String> {
    let mut connector = SslConnector::builder(SslMethod::tls()).unwrap();
    let authority = X509::from_pem(trusted.pem().unwrap().as_bytes()).unwrap();
    connector.cert_store_mut().add_cert(authority).unwrap();
    connector.set_alpn_protos(alpn).unwrap();
    let ssl = connector.build().configure().unwrap().into_ssl(host).unwrap();
    let tcp = TcpStream::connect(mock.tls_address().unwrap()).await.unwrap();
    let mut tls = SslStream::new(ssl, tcp).unwrap();
    match Pin::new(&mut tls).connect().await {
        Ok(()) => Ok(tls),
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test]
async fn the_protocol_is_chosen_by_alpn() {
    let authority = Authority::new().unwrap();
    let identity = authority.issue(&["localhost", "127.0.0.1"]).unwrap();
    for (h2, wanted, chosen) in [
        (true, &b"\x02h2\x08http/1.1"[..], &b"h2"[..]),
        (true, b"\x08http/1.1", b"http/1.1"),
        (false, b"\x02h2\x08http/1.1", b"http/1.1"),
    ] {
        let mock = mock_with(identity.clone(), h2);
        let tls = connect(&mock, &authority, "localhost", wanted).await.unwrap();
        assert_eq!(tls.ssl().selected_alpn_protocol(), Some(chosen));
    }
}

#[tokio::test]
async fn requests_are_answered_inside_tls() {
    let authority = Authority::new().unwrap();
    let mock = mock_with(authority.issue(&["localhost", "127.0.0.1"]).unwrap(), true);
    for host in ["localhost", "127.0.0.1"] {
        let mut tls = connect(&mock, &authority, host, b"\x08http/1.1").await.unwrap();
        let head = b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nx-api-key: k\r\nconnection: close\r\n\r\n";
        tls.write_all(head).await.unwrap();
        let mut answer = String::new();
        tls.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }
    assert!(mock.tls_url().unwrap().starts_with("https://localhost:"));
}

#[tokio::test]
async fn a_wrong_certificate_is_wrong_to_a_careful_client() {
    let authority = Authority::new().unwrap();
    for (identity, trusted) in [
        (authority.issue_expired(&["localhost"]).unwrap(), &authority),
        (authority.issue(&["elsewhere.example"]).unwrap(), &authority),
        (authority.issue(&["localhost"]).unwrap(), &Authority::new().unwrap()),
    ] {
        let mock = mock_with(identity, true);
        let refused = connect(&mock, trusted, "localhost", b"\x08http/1.1").await;
        assert!(refused.err().unwrap().contains("certificate verify failed"));
    }
}
