//! A Postgres with TLS. Some builds of Postgres have none (the one from PyPI); then a relay in front of it speaks TLS
//! in its place, so that these tests run on every machine.

use bench::mock::Identity;
use bench::postgres::{Options, Purpose, Server, Tls};
use openssl::pkey::PKey;
use openssl::ssl::{Ssl, SslAcceptor, SslMethod, SslVerifyMode};
use openssl::x509::X509;
use openssl::x509::store::X509StoreBuilder;
use std::collections::HashMap;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_openssl::SslStream;
use tokio_postgres::Client;

pub struct Postgres {
    server: Server,
    relay: Option<Relay>,
    _folder: TempDir,
}

/// Whether the connection that reaches Postgres from this port is encrypted in front of the relay.
type Seen = Arc<Mutex<HashMap<u16, bool>>>;

struct Relay {
    port: u16,
    seen: Seen,
}

impl Postgres {
    pub async fn without_tls() -> Self {
        let folder = folder();
        let server = start(Options::new(folder.path().join("pg"), Purpose::Test)).await.unwrap();
        Self { server, relay: None, _folder: folder }
    }

    /// With a certificate, and the authority of client certificates if it shall demand them.
    pub async fn with_tls(identity: &Identity, client_authority: Option<&str>) -> Self {
        let folder = folder();
        let write = |name: &str, pem: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, pem).unwrap();
            path
        };
        let mut options = Options::new(folder.path().join("pg"), Purpose::Test);
        options.tls = Some(Tls {
            certificate: write("server.crt", &identity.cert_pem),
            key: write("server.key", &identity.key_pem),
            client_authority: client_authority.map(|pem| write("client-ca.crt", pem)),
        });
        match start(options.clone()).await {
            Ok(server) => Self { server, relay: None, _folder: folder },
            Err(error) if format!("{error:#}").contains("SSL is not supported by this build") => {
                let server = start(Options { tls: None, ..options }).await.unwrap();
                let relay = Relay::start(acceptor(identity, client_authority), server.port()).await;
                Self { server, relay: Some(relay), _folder: folder }
            }
            Err(error) => panic!("{error:#}"),
        }
    }

    /// A URL by which the server has this name.
    pub fn url(&self, host: &str) -> String {
        let mut url = url::Url::parse(&self.server.url("postgres")).unwrap();
        url.set_host(Some(host)).unwrap();
        url.set_port(Some(self.relay.as_ref().map_or(self.server.port(), |relay| relay.port))).unwrap();
        url.set_query(Some("hostaddr=127.0.0.1"));
        url.into()
    }

    pub async fn is_encrypted(&self, client: &Client) -> bool {
        let query = "SELECT ssl, inet_client_port() FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let row = client.query_one(query, &[]).await.unwrap();
        match &self.relay {
            None => row.get(0),
            Some(relay) => relay.seen.lock().unwrap()[&(row.get::<_, i32>(1) as u16)],
        }
    }
}

async fn start(options: Options) -> anyhow::Result<Server> {
    tokio::task::spawn_blocking(move || Server::start(&options)).await.unwrap()
}

/// Postgres may run as another user than we do.
fn folder() -> TempDir {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap()
}

fn acceptor(identity: &Identity, client_authority: Option<&str>) -> SslAcceptor {
    let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server()).unwrap();
    builder.set_certificate(&X509::from_pem(identity.cert_pem.as_bytes()).unwrap()).unwrap();
    builder.set_private_key(&PKey::private_key_from_pem(identity.key_pem.as_bytes()).unwrap()).unwrap();
    if let Some(pem) = client_authority {
        let mut store = X509StoreBuilder::new().unwrap();
        store.add_cert(X509::from_pem(pem.as_bytes()).unwrap()).unwrap();
        builder.set_verify_cert_store(store.build()).unwrap();
        builder.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
    }
    builder.build()
}

impl Relay {
    async fn start(acceptor: SslAcceptor, server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let relay = Self { port: listener.local_addr().unwrap().port(), seen: Seen::default() };
        let (acceptor, seen) = (Arc::new(acceptor), relay.seen.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, acceptor.clone(), server, seen.clone()));
            }
        });
        relay
    }
}

/// One connection: TLS if its first message asks for it, as Postgres does.
async fn serve(mut client: TcpStream, acceptor: Arc<SslAcceptor>, server: u16, seen: Seen) -> io::Result<()> {
    /// Length 8 and the code 80877103.
    const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
    let mut server = TcpStream::connect(("127.0.0.1", server)).await?;
    let port = server.local_addr()?.port();
    let mut first = [0; 8];
    client.read_exact(&mut first).await?;
    seen.lock().unwrap().insert(port, first == SSL_REQUEST);
    if first != SSL_REQUEST {
        server.write_all(&first).await?;
        return copy_bidirectional(&mut client, &mut server).await.map(drop);
    }
    client.write_all(b"S").await?;
    let mut client = SslStream::new(Ssl::new(acceptor.context())?, client)?;
    Pin::new(&mut client).accept().await.map_err(io::Error::other)?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}
