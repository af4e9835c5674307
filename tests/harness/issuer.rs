//! An issuer of tokens: RSA keys made for the test, tokens signed by them in any shape, and a key server on loopback
//! that rotates, fails, falls silent or talks nonsense on demand.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::sign::Signer;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

/// What the key server does with the next requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serving {
    Keys,
    Status(u16),
    /// Accepts and says nothing.
    Silence,
    HangUp,
    Garbage,
    Huge,
    /// Sends the client elsewhere, where the keys would be.
    Redirect,
}

pub struct Issuer {
    site: Arc<Site>,
    port: u16,
}

struct Site {
    keys: Mutex<Vec<(String, PKey<Private>)>>,
    serving: Mutex<Serving>,
    fetches: AtomicUsize,
}

impl Issuer {
    /// With one key, `k1`.
    pub async fn start() -> Self {
        let site = Arc::new(Site {
            keys: Mutex::new(vec![("k1".into(), new_key(2048))]),
            serving: Mutex::new(Serving::Keys),
            fetches: AtomicUsize::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        tokio::spawn(accept(listener, site.clone()));
        Self { site, port }
    }

    /// Where the keys are; the query must arrive too.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/keys?tenant=1", self.port)
    }

    pub fn jwks(&self) -> Value {
        self.site.jwks()
    }

    /// Signs with a new key from now on; the old ones are no longer served.
    pub fn rotate(&self, kid: &str) {
        *self.site.keys.lock().unwrap() = vec![(kid.into(), new_key(2048))];
    }

    pub fn serve(&self, serving: Serving) {
        *self.site.serving.lock().unwrap() = serving;
    }

    /// How often the keys were asked for.
    pub fn fetches(&self) -> usize {
        self.site.fetches.load(Ordering::SeqCst)
    }

    /// A token with these claims under the usual header.
    pub fn token(&self, claims: &Value) -> String {
        let kid = self.site.keys.lock().unwrap()[0].0.clone();
        self.sign(&json!({ "alg": "RS256", "typ": "JWT", "kid": kid }), claims)
    }

    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", encoded(header), encoded(claims));
        let keys = self.site.keys.lock().unwrap();
        let mut signer = Signer::new(MessageDigest::sha256(), &keys[0].1).expect("an RSA key signs");
        let signature = signer.sign_oneshot_to_vec(message.as_bytes()).expect("an RSA key signs");
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// The public key as PEM, which every client may know.
    pub fn public_pem(&self) -> Vec<u8> {
        self.site.keys.lock().unwrap()[0].1.public_key_to_pem().expect("a key has a public half")
    }
}

/// What a good token says, valid for five minutes.
pub fn claims(organisation: Uuid, workspace: &str, scope: &str) -> Value {
    json!({
        "gateway_oid": organisation, "gateway_workspace": workspace, "scope": scope,
        "sub": "somebody", "exp": chrono::Utc::now().timestamp() + 300,
    })
}

impl Site {
    fn jwks(&self) -> Value {
        let jwk = |(kid, key): &(String, PKey<Private>)| {
            let rsa = key.rsa().expect("all keys are RSA");
            let number = |number: &openssl::bn::BigNumRef| URL_SAFE_NO_PAD.encode(number.to_vec());
            json!({ "kid": kid, "kty": "RSA", "use": "sig", "n": number(rsa.n()), "e": number(rsa.e()) })
        };
        json!({ "keys": self.keys.lock().unwrap().iter().map(jwk).collect::<Vec<_>>() })
    }
}

fn new_key(bits: u32) -> PKey<Private> {
    PKey::from_rsa(Rsa::generate(bits).expect("a key can be made")).expect("a key can be made")
}

async fn accept(listener: TcpListener, site: Arc<Site>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream, site.clone()));
    }
}

async fn answer(mut stream: TcpStream, site: Arc<Site>) {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read_buf(&mut head).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    site.fetches.fetch_add(1, Ordering::SeqCst);
    let serving = *site.serving.lock().unwrap();
    let is_asked_for = head.starts_with(b"GET /keys?tenant=1");
    let (status, more, body) = match serving {
        _ if !is_asked_for => (404, "", String::new()),
        Serving::Keys => (200, "", site.jwks().to_string()),
        Serving::Status(status) => (status, "", String::new()),
        Serving::Silence => return std::future::pending().await,
        Serving::HangUp => return,
        Serving::Garbage => (200, "", "<html>nothing to see</html>".into()),
        Serving::Huge => (200, "", " ".repeat(4 << 20)),
        Serving::Redirect => (302, "location: /keys?tenant=1\r\n", String::new()),
    };
    let head = format!("HTTP/1.1 {status} X\r\n{more}content-length: {}\r\n\r\n", body.len());
    let _ = stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await;
}
