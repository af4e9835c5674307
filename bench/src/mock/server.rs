//! Accepts connections and hands their requests to `answer`: HTTP/1.1 and HTTP/2, told apart by the first bytes, in
//! the clear or inside TLS.

use std::io;
use std::net::TcpListener as StdListener;
use std::pin::Pin;
use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use openssl::pkey::PKey;
use openssl::ssl::{AlpnError, Ssl, SslAcceptor, SslMethod, select_next_proto};
use openssl::x509::X509;
use tokio::net::{TcpListener, TcpStream};
use tokio_openssl::SslStream;

use super::answer::answer;
use super::authority::Identity;
use super::state::State;
use super::wire::{Link, Socket, Wire};

pub async fn run(plain: StdListener, tls: Option<(StdListener, SslAcceptor)>, state: Arc<State>) -> io::Result<()> {
    let plain = TcpListener::from_std(plain)?;
    if let Some((listener, acceptor)) = tls {
        tokio::spawn(accept_tls(TcpListener::from_std(listener)?, acceptor, state.clone()));
    }
    loop {
        let tcp = accept(&plain).await;
        tokio::spawn(serve(Socket::Plain(tcp), state.clone()));
    }
}

async fn accept_tls(listener: TcpListener, acceptor: SslAcceptor, state: Arc<State>) {
    loop {
        let tcp = accept(&listener).await;
        let (acceptor, state) = (acceptor.clone(), state.clone());
        tokio::spawn(async move {
            let Ok(ssl) = Ssl::new(acceptor.context()) else { return };
            let Ok(mut tls) = SslStream::new(ssl, tcp) else { return };
            // A client that refuses our certificate is a test's business, not ours.
            if Pin::new(&mut tls).accept().await.is_ok() {
                serve(Socket::Tls(Box::new(tls)), state).await;
            }
        });
    }
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((tcp, _)) => {
                // Small writes must leave when they are made; failing means the peer has gone already.
                let _ = tcp.set_nodelay(true);
                return tcp;
            }
            // Out of descriptors, mostly: they come back when connections close.
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
        }
    }
}

async fn serve(socket: Socket, state: Arc<State>) {
    let link = Arc::new(Link::new(state));
    let io = TokioIo::new(Wire::new(socket, link.clone()));
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http2().initial_stream_window_size(1 << 20).initial_connection_window_size(16 << 20);
    let service = service_fn(|request| answer(request, link.clone()));
    let connection = builder.serve_connection_with_upgrades(io, service);
    tokio::pin!(connection);
    // How a connection ended is visible to its client; the counters say the rest.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = link.closing() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

pub fn acceptor(identity: &Identity, h2: bool) -> io::Result<SslAcceptor> {
    let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls())?;
    builder.set_private_key(&*PKey::private_key_from_pem(identity.key_pem.as_bytes())?)?;
    let mut chain = X509::stack_from_pem(identity.cert_pem.as_bytes())?.into_iter();
    let own = chain.next().ok_or_else(|| io::Error::other("the certificate file holds no certificate"))?;
    builder.set_certificate(&own)?;
    for authority in chain {
        builder.add_extra_chain_cert(authority)?;
    }
    builder.check_private_key()?;
    let offered: &[u8] = if h2 { b"\x02h2\x08http/1.1" } else { b"\x08http/1.1" };
    builder.set_alpn_select_callback(move |_, wanted| select_next_proto(offered, wanted).ok_or(AlpnError::NOACK));
    Ok(builder.build())
}
