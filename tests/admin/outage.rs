//! Postgres goes away and comes back: the control plane says so, and recovers without a restart.

use crate::service::Service;
use harness::{Client, Database, until};
use std::net::SocketAddr;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// Stands between the service and Postgres, so that one test can cut the line of its own database alone.
struct Line {
    address: SocketAddr,
    server: String,
    copying: Option<tokio::task::JoinHandle<()>>,
}

impl Line {
    async fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut line = Self { address, server, copying: None };
        line.carry(listener);
        line
    }

    fn carry(&mut self, listener: TcpListener) {
        let server = self.server.clone();
        self.copying = Some(tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut here, _)) = listener.accept().await {
                let mut there = TcpStream::connect(&server).await.unwrap();
                connections.spawn(async move { copy_bidirectional(&mut here, &mut there).await });
            }
        }));
    }

    async fn cut(&mut self) {
        let copying = self.copying.take().unwrap();
        copying.abort();
        let _ = copying.await;
    }

    fn restore(&mut self) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(self.address).unwrap();
        self.carry(socket.listen(64).unwrap());
    }
}

#[tokio::test]
async fn without_postgres_calls_get_503_and_with_it_they_work_again() {
    let database = Database::fresh().await;
    let mut url = url::Url::parse(&database.url()).unwrap();
    let mut line = Line::to(format!("{}:{}", url.host_str().unwrap(), url.port().unwrap_or(5432))).await;
    url.set_ip_host(line.address.ip()).unwrap();
    url.set_port(Some(line.address.port())).unwrap();
    let service = Service::start_on(database, url.as_str(), &["--database-connect-timeout-ms=300"]).await;
    let (client, root) = (service.administrator(), Client::new(&service.origin));
    assert_eq!(client.get("/api-keys/self").await.status, 200);

    line.cut().await;
    let refused = client.get("/api-keys/self").await;
    assert_eq!((refused.status.as_u16(), refused.json()["data"]["errorCode"].as_str()), (503, Some("AB04")));
    assert_eq!(refused.header("retry-after"), "5");
    assert!(!refused.text().contains("127.0.0.1"), "the cause is for the log: {}", refused.text());
    assert_eq!(root.get("/readyz").await.status, 503);
    assert_eq!(root.get("/healthz").await.status, 200);
    assert_eq!(service.client().get("/openapi.json").await.status, 200);
    assert_eq!(service.client().get("/configs").await.status, 401);

    line.restore();
    until("the control plane works again", async || client.get("/api-keys/self").await.status == 200).await;
    assert_eq!(root.get("/readyz").await.status, 200);
}
