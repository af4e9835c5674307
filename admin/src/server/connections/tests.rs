//! Connections that are kept, and those that are closed.

use super::*;
use axum::extract::ConnectInfo;
use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;

struct Running {
    address: SocketAddr,
    open: IntGauge,
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<()>,
}

async fn start(limits: ConnectionLimits) -> Running {
    let router = Router::new()
        .route("/", get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.ip().to_string() }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let open = IntGauge::new("open", "open").unwrap();
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(serve(listener, router, limits, open.clone(), async {
        let _ = stopped.await;
    }));
    Running { address, open, stop, ended }
}

async fn ask(stream: &mut TcpStream) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut text = String::new();
    while !text.ends_with("127.0.0.1") {
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "{text}");
        text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    text
}

#[tokio::test]
async fn a_connection_without_a_whole_head_is_closed_and_one_that_asks_is_answered() {
    let running = start(ConnectionLimits { connections: 9, head: Duration::from_millis(50) }).await;
    for begun in ["", "GET / HT", "GET / HTTP/1.1\r\nhost: x\r\n"] {
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        stream.write_all(begun.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        assert!(!rest.starts_with(b"HTTP/1.1 200"), "{begun:?}");
    }
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    assert!(ask(&mut stream).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_connection_too_many_waits_until_another_ends() {
    let running = start(ConnectionLimits { connections: 2, ..ConnectionLimits::default() }).await;
    let (mut one, mut two) =
        (TcpStream::connect(running.address).await.unwrap(), TcpStream::connect(running.address).await.unwrap());
    ask(&mut one).await;
    ask(&mut two).await;
    let mut third = TcpStream::connect(running.address).await.unwrap();
    third.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    for _ in 0..50 {
        ask(&mut two).await;
        assert_eq!(running.open.get(), 2);
    }
    drop(one);
    let mut answer = String::new();
    third.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_stop_closes_idle_connections_and_ends() {
    let running = start(ConnectionLimits::default()).await;
    let mut idle = TcpStream::connect(running.address).await.unwrap();
    ask(&mut idle).await;
    running.stop.send(()).unwrap();
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty());
    running.ended.await.unwrap();
    assert!(TcpStream::connect(running.address).await.is_err());
}
