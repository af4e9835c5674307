//! The dialer as a whole: where it may go, how it gets there, and what it hands to the relay lane.

use super::lab::{End, Server, call, dialer, dialer_with, dialer_with_names, settings, soon};
use super::*;
use futures::FutureExt;
use parking_lot::Mutex;
use pingora_core::upstreams::peer::Peer;
use std::collections::VecDeque;
use tokio::net::TcpSocket;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Every question gets the next of these answers.
fn answering(answers: &[&[&str]]) -> Dialer {
    let answers: VecDeque<Vec<IpAddr>> =
        answers.iter().map(|list| list.iter().map(|text| ip(text)).collect()).collect();
    let answers = Mutex::new(answers);
    dialer_with_names(Box::new(move |_| {
        let answer = answers.lock().pop_front().ok_or_else(|| std::io::ErrorKind::NotFound.into());
        std::future::ready(answer).boxed()
    }))
}

#[tokio::test]
async fn a_custom_host_is_judged_by_every_rule() {
    let dialer = dialer();
    for (url, expected) in [
        ("https://api.openai.com/v1", None),
        ("http://127.0.0.1:8080", None),
        ("http://gpu.lab.example", None),
        ("http://127.0.0.2", Some(BadHost::Private)),
        ("https://gateway.example/v1", Some(BadHost::Itself)),
        ("https://GATEWAY.example:8443", Some(BadHost::Itself)),
        ("http://169.254.169.254", Some(BadHost::Metadata)),
        ("http://2130706433", Some(BadHost::Spelling)),
        ("http://x.internal", Some(BadHost::Domain)),
        ("http://127.0.0.1.nip.io", Some(BadHost::Rebinding)),
        ("ftp://api.openai.com", Some(BadHost::Scheme)),
    ] {
        assert_eq!(dialer.custom_host(url).err(), expected, "{url}");
    }
}

#[tokio::test]
async fn the_operators_host_may_be_private_but_not_metadata() {
    let dialer = dialer();
    for (url, expected) in [
        ("http://10.0.0.1:11434", None),
        ("http://ollama.internal", None),
        ("http://169.254.169.254", Some(BadHost::Metadata)),
        ("http://metadata.google.internal", Some(BadHost::Metadata)),
        ("not a url", Some(BadHost::Scheme)),
    ] {
        assert_eq!(dialer.known_host(url).err(), expected, "{url}");
    }
}

#[tokio::test]
async fn a_public_name_that_leads_inside_is_blocked_before_any_socket_opens() {
    let server = Server::counting().await;
    let url = format!("http://rebound.example:{}", server.address.port());
    for answer in [
        &["127.0.0.1"][..],
        &["93.184.216.34", "127.0.0.1"],
        &["127.0.0.1", "93.184.216.34"],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::7f00:1"],
        &["10.0.0.1"],
        &["169.254.169.254"],
        &["fd00:ec2::254"],
        &["0.0.0.0"],
    ] {
        let dialer = answering(&[answer, answer]);
        let origin = dialer.custom_host(&url).unwrap();
        assert_eq!(dialer.connect(&origin, false).await.err().unwrap().class(), Class::Blocked, "{answer:?}");
        let peer = dialer.peer(&origin, &[], false, Duration::from_secs(1)).await;
        assert_eq!(peer.err().unwrap().class(), Class::Blocked, "{answer:?}");
    }
    assert_eq!(server.accepted(), 0);
}

#[tokio::test]
async fn a_trusted_name_still_cannot_lead_to_metadata() {
    let dialer = answering(&[&["169.254.169.254"], &["10.0.0.1"]]);
    let origin = dialer.custom_host("http://lab.example").unwrap();
    let error = dialer.peer(&origin, &[], false, Duration::from_secs(1)).await.err().unwrap();
    assert_eq!(error.class(), Class::Blocked);
    assert!(error.to_string().contains("metadata"), "{error}");
    assert!(dialer.peer(&origin, &[], false, Duration::from_secs(1)).await.is_ok());
}

#[tokio::test]
async fn every_resolution_is_judged_anew() {
    let dialer = answering(&[&["93.184.216.34"], &["192.168.1.1"]]);
    let origin = dialer.custom_host("https://rebinding.example").unwrap();
    let peer = dialer.peer(&origin, &[], false, Duration::from_secs(1)).await.unwrap();
    assert_eq!(peer.address().as_inet().unwrap().to_string(), "93.184.216.34:443", "pinned");
    assert_eq!(dialer.peer(&origin, &[], false, Duration::from_secs(1)).await.err().unwrap().class(), Class::Blocked);
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_fails() {
    let server = Server::counting().await;
    // Nobody listens on 127.0.0.2 at that port.
    let dialer = answering(&[&["127.0.0.2", "127.0.0.1"]]);
    let origin = dialer.custom_host(&format!("http://lab.example:{}", server.address.port())).unwrap();
    assert_eq!(soon(call(&dialer, &origin)).await, b"1");
}

#[tokio::test]
async fn an_unresolvable_name_and_a_closed_port_have_their_classes() {
    let dialer = answering(&[]);
    let origin = dialer.custom_host("http://nowhere.example").unwrap();
    assert_eq!(dialer.connect(&origin, false).await.err().unwrap().class(), Class::Dns);

    let origin = dialer.custom_host("http://127.0.0.1:1").unwrap();
    assert_eq!(dialer.connect(&origin, false).await.err().unwrap().class(), Class::Refused);
}

#[tokio::test]
async fn connecting_has_an_end() {
    let dialer = dialer_with(|settings| settings.upstream_connect_timeout_ms = 100);

    // A TLS handshake that nobody answers.
    let silent = Server::start(|stream, _| async move { End::new(stream).gone().await }).await;
    let origin = silent.tls_origin(&dialer, "localhost");
    assert_eq!(soon(dialer.connect(&origin, false)).await.err().unwrap().class(), Class::ConnectTimeout);

    let swallowing = Swallowing::bind("127.0.0.1:0").await;
    let origin = dialer.custom_host(&format!("http://{}", swallowing.address)).unwrap();
    assert_eq!(soon(dialer.connect(&origin, false)).await.err().unwrap().class(), Class::ConnectTimeout);
}

#[tokio::test]
async fn an_address_that_swallows_packets_leaves_time_for_the_next() {
    let server = Server::counting().await;
    let port = server.address.port();
    let _swallowing = Swallowing::bind(&format!("127.0.0.2:{port}")).await;
    let dialer = answering(&[&["127.0.0.2", "127.0.0.1"]]);
    let origin = dialer.custom_host(&format!("http://lab.example:{port}")).unwrap();
    assert_eq!(soon(call(&dialer, &origin)).await, b"1");
}

/// An address where connecting neither succeeds nor fails: its accept queue is full, and the kernel drops what comes.
struct Swallowing {
    address: SocketAddr,
    _listener: tokio::net::TcpListener,
    _queued: Vec<tokio::net::TcpStream>,
}

impl Swallowing {
    async fn bind(address: &str) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(address.parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut queued = Vec::new();
        let attempt = || tokio::time::timeout(Duration::from_millis(200), tokio::net::TcpStream::connect(address));
        while let Ok(Ok(stream)) = attempt().await {
            queued.push(stream);
        }
        Self { address, _listener: listener, _queued: queued }
    }
}

#[tokio::test]
async fn a_peer_is_pinned_verified_and_bounded() {
    let dialer = answering(&[&["93.184.216.34", "93.184.216.35"]]);
    let origin = dialer.custom_host("https://public.example:8443/v1").unwrap();
    let peer = dialer.peer(&origin, &[], false, Duration::from_secs(7)).await.unwrap();
    assert_eq!(peer.address().as_inet().unwrap().to_string(), "93.184.216.34:8443");
    assert_eq!(peer.sni(), "public.example");
    assert!(peer.tls() && peer.verify_cert() && peer.verify_hostname());
    assert_eq!(peer.options.alpn, ALPN::H2H1);
    assert_eq!(peer.options.read_timeout, Some(Duration::from_secs(7)));
    assert!(peer.options.total_connection_timeout.is_some() && peer.options.write_timeout.is_some());
    assert_eq!((peer.options.max_h2_streams, peer.options.h2_ping_interval), (100, Some(H2_PING)));
    assert_eq!(peer.group_key, 0);
    assert!(peer.get_proxy().is_none());

    let upgrade = dialer_with(|_| ()).custom_host("https://127.0.0.1").unwrap();
    let peer = dialer.peer(&upgrade, &[], true, Duration::from_secs(7)).await.unwrap();
    assert_eq!(peer.options.alpn, ALPN::H1);
    assert_eq!(peer.sni(), "127.0.0.1", "without it Pingora would not verify");
    assert_eq!(peer.group_key, 1, "trusted connections are kept apart");

    let plain = dialer.custom_host("http://[2606:4700::1111]:8080").unwrap();
    let peer = dialer.peer(&plain, &[], false, Duration::from_secs(7)).await.unwrap();
    assert_eq!(peer.options.alpn, ALPN::H1);
    assert_eq!((peer.sni(), peer.tls()), ("2606:4700::1111", false));
}

#[tokio::test]
async fn a_failed_peer_is_followed_by_the_next_address() {
    let lookup = |_| std::future::ready(Ok(vec![ip("93.184.216.34"), ip("93.184.216.35")])).boxed();
    let resolver = NameResolver::with_lookup(Duration::from_secs(30), Box::new(lookup));
    let dialer = Dialer::with_resolver(&settings(), resolver).unwrap();
    let origin = dialer.custom_host("https://public.example").unwrap();
    let mut tried = Vec::new();
    let first = dialer.peer(&origin, &tried, false, Duration::from_secs(1)).await.unwrap();
    assert_eq!(first.options.connection_timeout, Some(Duration::from_secs(5)), "half of the time is the other's");
    assert!(dialer.demote(&origin, &first, &mut tried), "there is another");
    let second = dialer.peer(&origin, &tried, false, Duration::from_secs(1)).await.unwrap();
    assert_eq!(second.address().as_inet().unwrap().ip(), ip("93.184.216.35"));
    // Somebody else's failure has changed the order meanwhile.
    dialer.demote(&origin, &second, &mut Vec::new());
    let second = dialer.peer(&origin, &tried, false, Duration::from_secs(1)).await.unwrap();
    assert_eq!(second.address().as_inet().unwrap().ip(), ip("93.184.216.35"));
    assert!(!dialer.demote(&origin, &second, &mut tried), "all were tried");
}

#[test]
fn settings_that_make_no_sense_stop_the_start() {
    let mut bad = settings();
    bad.outbound.trusted_custom_hosts = vec!["http://x".into()];
    assert!(Dialer::new(&bad).is_err());
    let mut bad = settings();
    bad.outbound.upstream_ca_file = Some("/nowhere/ca.pem".into());
    assert!(Dialer::new(&bad).is_err());
}
