//! A service that judges: a webhook, or a vendor of guardrail checks. It answers as it is told to, well or badly, and keeps
//! what it was asked.

use serde_json::Value;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What the service does with the next requests.
#[derive(Debug, Clone)]
pub enum Says {
    Json(Value),
    Status(u16, String),
    /// Takes the request and says nothing.
    Silence,
    HangUp,
    Garbage,
    /// A body of this many bytes.
    Huge(usize),
    /// Sends the client elsewhere, where the answer would be good.
    Redirect(String),
}

/// What it was asked.
#[derive(Debug, Clone)]
pub struct AskedGuard {
    /// As it came, the first line included.
    pub head: String,
    pub body: Value,
    /// The same as it came.
    pub text: String,
}

pub struct GuardService {
    port: u16,
    site: Arc<Site>,
}

struct Site {
    says: Mutex<Says>,
    asked: Mutex<Vec<AskedGuard>>,
    /// Connections now, and the most there were at once.
    connections: Mutex<(usize, usize)>,
}

impl GuardService {
    pub async fn start(says: Says) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let site = Arc::new(Site { says: Mutex::new(says), asked: Mutex::default(), connections: Mutex::default() });
        let served = site.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A client that hangs up is what some tests wait for.
                tokio::spawn(serve(stream, served.clone()));
            }
        });
        Self { port, site }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/judge", self.port)
    }

    pub fn says(&self, says: Says) {
        *self.site.says.lock().unwrap() = says;
    }

    pub fn asked(&self) -> Vec<AskedGuard> {
        self.site.asked.lock().unwrap().clone()
    }

    /// The most connections that it had at one time.
    pub fn most_connections(&self) -> usize {
        self.site.connections.lock().unwrap().1
    }
}

async fn serve(mut stream: TcpStream, site: Arc<Site>) {
    {
        let mut connections = site.connections.lock().unwrap();
        connections.0 += 1;
        connections.1 = connections.1.max(connections.0);
    }
    while let Some(()) = answer(&mut stream, &site).await {}
    site.connections.lock().unwrap().0 -= 1;
}

/// One request; none when the connection is over.
async fn answer(stream: &mut TcpStream, site: &Site) -> Option<()> {
    let mut read = Vec::new();
    let end = loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&read[..end]).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let whole = end + length.unwrap_or(0);
    while read.len() < whole {
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
    let body = serde_json::from_slice(&read[end..whole]).unwrap_or_default();
    let text = String::from_utf8_lossy(&read[end..whole]).into_owned();
    site.asked.lock().unwrap().push(AskedGuard { head, body, text });
    let says = site.says.lock().unwrap().clone();
    let (status, more, body) = match says {
        Says::Json(json) => (200, String::new(), json.to_string().into_bytes()),
        Says::Status(status, text) => (status, String::new(), text.into_bytes()),
        Says::Garbage => (200, String::new(), b"<html>what?</html>".to_vec()),
        Says::Huge(bytes) => (200, String::new(), vec![b' '; bytes]),
        Says::Redirect(url) => (302, format!("location: {url}\r\n"), Vec::new()),
        Says::HangUp => return None,
        Says::Silence => {
            // Until the client gives up.
            while stream.read_buf(&mut read).await.ok()? > 0 {}
            return None;
        }
    };
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\n{more}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.ok()?;
    stream.write_all(&body).await.ok()
}
