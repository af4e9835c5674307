//! Who is believed: certificates that prove the host, and every kind that does not.

use super::*;
use crate::net::dial::lab::{Authority, End, Leaf, Server, accept, call, dialer, dialer_with, soon};
use crate::net::dial::{Dialer, Origin};
use std::io::Write;
use tokio::sync::mpsc;

/// A TLS server that shows `leaf`, and the SNI each client sent.
async fn server(authority: &Authority, leaf: &Leaf) -> (Server, mpsc::UnboundedReceiver<Option<String>>) {
    serve(authority.issue(leaf)).await
}

async fn serve(acceptor: openssl::ssl::SslAcceptor) -> (Server, mpsc::UnboundedReceiver<Option<String>>) {
    let (tx, rx) = mpsc::unbounded_channel();
    let acceptor = Arc::new(acceptor);
    let server = Server::start(move |tcp, _| {
        let (acceptor, tx) = (acceptor.clone(), tx.clone());
        async move {
            let Some(stream) = accept(&acceptor, tcp).await else { return };
            let sni = stream.ssl().servername(openssl::ssl::NameType::HOST_NAME).map(str::to_owned);
            let _ = tx.send(sni);
            let mut end = End::new(stream);
            while end.request().await.is_some() {
                end.answer("ok").await;
            }
        }
    })
    .await;
    (server, rx)
}

fn trusting(authority: &Authority) -> Dialer {
    let file = authority.file();
    dialer_with(|settings| settings.outbound.upstream_ca_file = Some(file.path().into()))
}

async fn refusal(dialer: &Dialer, origin: &Arc<Origin>) -> DialError {
    soon(dialer.connect(origin, false)).await.err().expect("this certificate must be refused")
}

#[tokio::test]
async fn a_certificate_for_the_host_is_believed_and_the_host_is_the_sni() {
    let authority = Authority::new();
    let (server, mut sni) = server(&authority, &Leaf::default()).await;
    let dialer = trusting(&authority);
    assert_eq!(call(&dialer, &server.tls_origin(&dialer, "localhost")).await, b"ok");
    assert_eq!(sni.recv().await.unwrap().as_deref(), Some("localhost"));
}

#[tokio::test]
async fn an_address_must_be_in_the_certificate() {
    let authority = Authority::new();
    let address: std::net::IpAddr = "127.0.0.1".parse().unwrap();
    let named = Leaf { addresses: vec![address], names: Vec::new(), ..Leaf::default() };
    let (good, mut sni) = server(&authority, &named).await;
    let dialer = trusting(&authority);
    assert_eq!(call(&dialer, &good.tls_origin(&dialer, "127.0.0.1")).await, b"ok");
    assert_eq!(sni.recv().await.unwrap(), None, "an address is never an SNI");

    let other = Leaf { addresses: vec!["127.0.0.2".parse().unwrap()], ..Leaf::default() };
    for leaf in [Leaf::default(), other] {
        let (bad, _) = server(&authority, &leaf).await;
        let error = refusal(&dialer, &bad.tls_origin(&dialer, "127.0.0.1")).await;
        assert_eq!(error.class(), Class::Tls);
        assert!(error.to_string().contains("IP address mismatch"), "{error}");
    }
}

#[tokio::test]
async fn a_certificate_that_does_not_prove_the_host_is_refused() {
    let authority = Authority::new();
    let stranger = Authority::new();
    let dialer = trusting(&authority);
    for (acceptor, reason) in [
        (authority.issue(&Leaf { names: vec!["other.example"], ..Leaf::default() }), "hostname mismatch"),
        (authority.issue(&Leaf { names: vec!["*.localhost"], ..Leaf::default() }), "hostname mismatch"),
        (authority.issue(&Leaf { names: Vec::new(), ..Leaf::default() }), "hostname mismatch"),
        (authority.issue(&Leaf { ends: -1, ..Leaf::default() }), "expired"),
        (stranger.issue(&Leaf::default()), "unable to get local issuer certificate"),
        (stranger.show_itself(), "self-signed certificate"),
    ] {
        let (server, _) = serve(acceptor).await;
        let error = refusal(&dialer, &server.tls_origin(&dialer, "localhost")).await;
        assert_eq!(error.class(), Class::Tls);
        assert!(error.to_string().contains(reason), "{reason}: {error}");
        assert_eq!(dialer.pool_counts().opened, 0);
    }
}

#[tokio::test]
async fn without_further_authorities_only_the_systems_are_believed() {
    let authority = Authority::new();
    let (server, _) = server(&authority, &Leaf::default()).await;
    let dialer = dialer();
    let error = refusal(&dialer, &server.tls_origin(&dialer, "localhost")).await;
    assert_eq!(error.class(), Class::Tls);
}

#[tokio::test]
async fn old_tls_is_refused() {
    let authority = Authority::new();
    let acceptor = {
        use openssl::ssl::{SslAcceptor, SslMethod};
        let leaf = authority.issue(&Leaf::default());
        let mut old = SslAcceptor::mozilla_intermediate(SslMethod::tls_server()).unwrap();
        old.set_certificate(leaf.context().certificate().unwrap()).unwrap();
        old.set_private_key(leaf.context().private_key().unwrap()).unwrap();
        old.set_min_proto_version(None).unwrap();
        old.set_max_proto_version(Some(SslVersion::TLS1_1)).unwrap();
        old.set_cipher_list("ALL:@SECLEVEL=0").unwrap();
        Arc::new(old.build())
    };
    let server = Server::start(move |tcp, _| {
        let acceptor = acceptor.clone();
        async move { assert!(accept(&acceptor, tcp).await.is_none()) }
    })
    .await;
    let dialer = trusting(&authority);
    let error = refusal(&dialer, &server.tls_origin(&dialer, "localhost")).await;
    assert_eq!(error.class(), Class::Tls);
}

#[tokio::test]
async fn a_server_without_tls_is_a_tls_error() {
    let server = Server::start(|stream, _| async move { End::new(stream).say("HTTP/1.1 400 Bad\r\n\r\n").await }).await;
    let dialer = dialer();
    let error = refusal(&dialer, &server.tls_origin(&dialer, "localhost")).await;
    assert_eq!(error.class(), Class::Tls);
}

#[test]
fn a_useless_authority_file_stops_the_start() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for content in ["", "not a certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        file.as_file().set_len(0).unwrap();
        file.write_all(content.as_bytes()).unwrap();
        let error = Trust::new(Some(file.path())).err().expect("nothing to trust in there");
        assert!(format!("{error:#}").contains("UPSTREAM_CA_FILE"), "{error:#}");
    }
    assert!(Trust::new(Some(Path::new("/nowhere/ca.pem"))).is_err());
}

#[test]
fn the_relay_lane_gets_the_systems_authorities_too() {
    let authority = Authority::new();
    let file = authority.file();
    let all = Trust::new(Some(file.path())).unwrap().authorities().unwrap();
    let system = system_authorities().map_or(0, |path| read_authorities(&path).unwrap().len());
    assert_eq!(all.len(), 1 + system);
    assert!(Trust::new(None).unwrap().authorities().is_none());
}

#[test]
fn each_way_a_connect_fails_has_its_class() {
    for (kind, class) in [
        (io::ErrorKind::ConnectionRefused, Class::Refused),
        (io::ErrorKind::TimedOut, Class::ConnectTimeout),
        (io::ErrorKind::ConnectionReset, Class::Reset),
        (io::ErrorKind::HostUnreachable, Class::Unreachable),
        (io::ErrorKind::NetworkUnreachable, Class::Unreachable),
        (io::ErrorKind::AddrNotAvailable, Class::Unreachable),
    ] {
        assert_eq!(why_connect_failed(kind).class(), class, "{kind:?}");
    }
}
