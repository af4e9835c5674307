//! TLS for a connection to Postgres, if there is to be any. Without it nothing is made and no file is read, which the
//! driver's own types do not allow: they want a whole connector even to leave it unused.

use openssl::error::ErrorStack;
use postgres_openssl::{MakeTlsConnector, TlsConnector, TlsStream};
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use tokio_postgres::Socket;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};

/// What every connection of the same settings shares.
#[derive(Clone)]
pub struct TlsOffer(pub(super) Option<Arc<MakeTlsConnector>>);

/// The same for one connection.
pub struct Handshake(Option<TlsConnector>);

impl MakeTlsConnect<Socket> for TlsOffer {
    type Stream = TlsStream<Socket>;
    type TlsConnect = Handshake;
    type Error = ErrorStack;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, ErrorStack> {
        match &self.0 {
            Some(tls) => MakeTlsConnect::<Socket>::make_tls_connect(&mut MakeTlsConnector::clone(tls), domain)
                .map(|connector| Handshake(Some(connector))),
            None => Ok(Handshake(None)),
        }
    }
}

impl TlsConnect<Socket> for Handshake {
    type Stream = TlsStream<Socket>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<TlsStream<Socket>, Self::Error>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        match self.0 {
            Some(tls) => tls.connect(stream),
            // The driver does not come here: it was told not to ask for TLS.
            None => Box::pin(std::future::ready(Err("DB_SSL is DISABLED".into()))),
        }
    }
}
