//! The mock provider as a program: for `make run`, the bench, and trying things by hand with curl.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Context;
use bench::mock::{Identity, Mock, Options, Tls};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

/// A provider that answers as OpenAI, Anthropic, Gemini, Bedrock and Cohere do, and fails as each request asks.
#[derive(Parser)]
struct Arguments {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1")]
    host: IpAddr,
    /// Port for HTTP/1.1 and HTTP/2 in the clear; 0 picks a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Further port that speaks TLS.
    #[arg(long, requires_all = ["cert", "key"])]
    tls_port: Option<u16>,
    /// PEM file of the certificate chain.
    #[arg(long)]
    cert: Option<PathBuf>,
    /// PEM file of the certificate's private key.
    #[arg(long)]
    key: Option<PathBuf>,
    /// How many requests `/__mock/requests` can show.
    #[arg(long, default_value_t = 100)]
    remember: usize,
}

#[expect(clippy::print_stdout, reason = "scripts read the address from here")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let tls = match (arguments.tls_port, &arguments.cert, &arguments.key) {
        (Some(port), Some(cert), Some(key)) => {
            let identity = Identity { cert_pem: read(cert)?, key_pem: read(key)? };
            Some(Tls { port, identity, h2: true })
        }
        _ => None,
    };
    let options =
        Options { host: arguments.host, port: arguments.port, tls, remember: arguments.remember, bills: false };
    let mock = Mock::try_start(options).with_context(|| format!("cannot serve on port {}", arguments.port))?;
    println!("mock provider listening on {}", mock.url());
    if let Some(url) = mock.tls_url() {
        println!("mock provider listening on {url}");
    }
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

fn read(path: &PathBuf) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}
