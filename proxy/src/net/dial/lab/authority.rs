//! A certificate authority for one test, and TLS servers that show what it issued.

use std::io::Write;
use std::net::IpAddr;
use std::pin::Pin;

use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::ssl::{AlpnError, Ssl, SslAcceptor, SslMethod, select_next_proto};
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509, X509Name};
use tempfile::NamedTempFile;
use tokio::net::TcpStream;
use tokio_openssl::SslStream;

pub struct Authority {
    certificate: X509,
    key: PKey<Private>,
}

/// What a server's certificate says; the default is a valid one for `localhost`.
#[derive(Clone)]
pub struct Leaf {
    pub names: Vec<&'static str>,
    pub addresses: Vec<IpAddr>,
    /// Days from now; negative is past.
    pub ends: i64,
    /// Wire form of the protocols the server speaks, best first.
    pub protocols: &'static [u8],
}

impl Default for Leaf {
    fn default() -> Self {
        Self { names: vec!["localhost"], addresses: Vec::new(), ends: 2, protocols: b"\x08http/1.1" }
    }
}

impl Leaf {
    pub fn h2() -> Self {
        Self { protocols: b"\x02h2", ..Self::default() }
    }
}

impl Authority {
    pub fn new() -> Self {
        let key = new_key();
        let mut name = [0; 8];
        openssl::rand::rand_bytes(&mut name).unwrap();
        let certificate = certificate(&format!("Test Authority {name:?}"), &key, None, &Leaf::default());
        Self { certificate, key }
    }

    /// A server that shows the authority's own, self-signed certificate.
    pub fn show_itself(&self) -> SslAcceptor {
        acceptor(&self.certificate, &self.key, Leaf::default().protocols)
    }

    /// For `UPSTREAM_CA_FILE`.
    pub fn file(&self) -> NamedTempFile {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(&self.certificate.to_pem().unwrap()).unwrap();
        file
    }

    pub fn issue(&self, leaf: &Leaf) -> SslAcceptor {
        let key = new_key();
        let shown = certificate("Test Server", &key, Some(self), leaf);
        acceptor(&shown, &key, leaf.protocols)
    }
}

fn acceptor(shown: &X509, key: &PKey<Private>, protocols: &'static [u8]) -> SslAcceptor {
    let mut acceptor = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server()).unwrap();
    acceptor.set_certificate(shown).unwrap();
    acceptor.set_private_key(key).unwrap();
    acceptor.set_alpn_select_callback(move |_, offered| select_next_proto(protocols, offered).ok_or(AlpnError::NOACK));
    acceptor.build()
}

/// The server's side of the handshake; `None` when the client broke it off.
pub async fn accept(acceptor: &SslAcceptor, tcp: TcpStream) -> Option<SslStream<TcpStream>> {
    let ssl = Ssl::new(acceptor.context()).unwrap();
    let mut stream = SslStream::new(ssl, tcp).unwrap();
    Pin::new(&mut stream).accept().await.ok()?;
    Some(stream)
}

fn new_key() -> PKey<Private> {
    let curve = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    PKey::from_ec_key(EcKey::generate(&curve).unwrap()).unwrap()
}

/// Signed by `issuer`, or by itself when there is none.
fn certificate(name: &str, key: &PKey<Private>, issuer: Option<&Authority>, leaf: &Leaf) -> X509 {
    let mut subject = X509Name::builder().unwrap();
    subject.append_entry_by_text("CN", name).unwrap();
    let subject = subject.build();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    let day = |n: i64| Asn1Time::from_unix(now + n * 86_400).unwrap();

    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    let mut serial = BigNum::new().unwrap();
    serial.rand(64, openssl::bn::MsbOption::MAYBE_ZERO, false).unwrap();
    builder.set_serial_number(&serial.to_asn1_integer().unwrap()).unwrap();
    builder.set_subject_name(&subject).unwrap();
    builder.set_issuer_name(issuer.map_or(&subject, |authority| authority.certificate.subject_name())).unwrap();
    builder.set_not_before(&day(-10)).unwrap();
    builder.set_not_after(&day(leaf.ends)).unwrap();
    builder.set_pubkey(key).unwrap();
    if issuer.is_none() {
        builder.append_extension(BasicConstraints::new().critical().ca().build().unwrap()).unwrap();
    }
    if issuer.is_some() && (!leaf.names.is_empty() || !leaf.addresses.is_empty()) {
        let mut names = SubjectAlternativeName::new();
        for name in &leaf.names {
            names.dns(name);
        }
        for address in &leaf.addresses {
            names.ip(&address.to_string());
        }
        let context = builder.x509v3_context(None, None);
        let extension = names.build(&context).unwrap();
        builder.append_extension(extension).unwrap();
    }
    builder.sign(issuer.map_or(key, |authority| &authority.key), MessageDigest::sha256()).unwrap();
    builder.build()
}
