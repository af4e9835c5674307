//! A mail server that accepts everything and keeps it. As much SMTP as a sender needs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bench::mock::Identity;
use openssl::pkey::PKey;
use openssl::ssl::{Ssl, SslAcceptor, SslMethod};
use openssl::x509::X509;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_openssl::SslStream;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    Plain,
    /// Offers to go on encrypted.
    Starttls,
    Tls,
}

#[derive(Debug, Default)]
pub struct Letter {
    pub from: String,
    pub to: Vec<String>,
    /// Head and body as they came.
    pub text: String,
    /// What `AUTH PLAIN` said.
    pub login: Option<String>,
    pub is_encrypted: bool,
}

pub struct Sink {
    pub port: u16,
    letters: mpsc::UnboundedReceiver<Letter>,
    ends: mpsc::UnboundedReceiver<()>,
}

const PATIENCE: Duration = Duration::from_secs(30);

impl Sink {
    pub async fn start(speech: Speech) -> Self {
        Self::serve(speech, None).await
    }

    pub async fn with_tls(speech: Speech, identity: &Identity) -> Self {
        let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server()).unwrap();
        builder.set_certificate(&X509::from_pem(identity.cert_pem.as_bytes()).unwrap()).unwrap();
        builder.set_private_key(&PKey::private_key_from_pem(identity.key_pem.as_bytes()).unwrap()).unwrap();
        Self::serve(speech, Some(Arc::new(builder.build()))).await
    }

    async fn serve(speech: Speech, acceptor: Option<Arc<SslAcceptor>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let ((letter, letters), (end, ends)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (acceptor, letter, end) = (acceptor.clone(), letter.clone(), end.clone());
                tokio::spawn(async move {
                    // A sender that hangs up is what some tests wait for.
                    let _ = attend(client, speech, acceptor, letter).await;
                    let _ = end.send(());
                });
            }
        });
        Self { port, letters, ends }
    }

    /// The next letter.
    pub async fn letter(&mut self) -> Letter {
        tokio::time::timeout(PATIENCE, self.letters.recv()).await.expect("a letter comes").unwrap()
    }

    pub fn try_letter(&mut self) -> Option<Letter> {
        self.letters.try_recv().ok()
    }

    /// Waits until a connection has ended.
    pub async fn ended(&mut self) {
        tokio::time::timeout(PATIENCE, self.ends.recv()).await.expect("a connection ends").unwrap();
    }
}

async fn attend(
    client: TcpStream,
    speech: Speech,
    acceptor: Option<Arc<SslAcceptor>>,
    letters: mpsc::UnboundedSender<Letter>,
) -> io::Result<()> {
    let mut client = BufStream::new(client);
    if speech != Speech::Tls {
        client.write_all(b"220 sink\r\n").await?;
        if !converse(&mut client, speech == Speech::Starttls, false, &letters).await? {
            return Ok(());
        }
    }
    let Some(acceptor) = acceptor else { return Ok(()) };
    let mut client = SslStream::new(Ssl::new(acceptor.context())?, client.into_inner())?;
    Pin::new(&mut client).accept().await.map_err(io::Error::other)?;
    let mut client = BufStream::new(client);
    if speech == Speech::Tls {
        client.write_all(b"220 sink\r\n").await?;
    }
    converse(&mut client, false, true, &letters).await.map(drop)
}

/// True when the sender wants to go on encrypted.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    client: &mut BufStream<S>,
    offers_tls: bool,
    is_encrypted: bool,
    letters: &mpsc::UnboundedSender<Letter>,
) -> io::Result<bool> {
    let mut letter = Letter { is_encrypted, ..Letter::default() };
    loop {
        client.flush().await?;
        let Some(line) = line(client).await? else { return Ok(false) };
        let argument = line.split_once(' ').map_or("", |(_, rest)| rest);
        let address = || line.split(['<', '>']).nth(1).unwrap_or_default().to_owned();
        let reply = match line.get(..4).unwrap_or_default().to_ascii_uppercase().as_str() {
            "EHLO" if offers_tls => "250-sink\r\n250 STARTTLS\r\n",
            "EHLO" => "250-sink\r\n250 AUTH PLAIN\r\n",
            "STAR" => {
                client.write_all(b"220 go on\r\n").await?;
                client.flush().await?;
                return Ok(true);
            }
            "AUTH" => {
                let said = STANDARD.decode(argument.trim_start_matches("PLAIN ")).unwrap_or_default();
                letter.login = Some(String::from_utf8_lossy(&said).into_owned());
                "235 welcome\r\n"
            }
            "MAIL" => {
                letter.from = address();
                "250 ok\r\n"
            }
            "RCPT" => {
                letter.to.push(address());
                "250 ok\r\n"
            }
            "DATA" => {
                client.write_all(b"354 speak\r\n").await?;
                client.flush().await?;
                letter.text = data(client).await?;
                let login = letter.login.clone();
                let _ =
                    letters.send(std::mem::replace(&mut letter, Letter { login, is_encrypted, ..Letter::default() }));
                "250 kept\r\n"
            }
            "QUIT" => {
                client.write_all(b"221 bye\r\n").await?;
                client.flush().await?;
                return Ok(false);
            }
            _ => "250 ok\r\n",
        };
        client.write_all(reply.as_bytes()).await?;
    }
}

async fn line<S: AsyncRead + AsyncWrite + Unpin>(client: &mut BufStream<S>) -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = client.read_line(&mut line).await?;
    Ok((read > 0).then(|| line.trim_end().to_owned()))
}

async fn data<S: AsyncRead + AsyncWrite + Unpin>(client: &mut BufStream<S>) -> io::Result<String> {
    let mut text = String::new();
    loop {
        let mut line = String::new();
        if client.read_line(&mut line).await? == 0 || line == ".\r\n" {
            return Ok(text);
        }
        text += line.strip_prefix('.').unwrap_or(&line);
    }
}
