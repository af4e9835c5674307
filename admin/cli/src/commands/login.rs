//! `login`: tries a key and saves it with its address as a context.

use super::secret_input;
use crate::context::{self, Context};
use crate::global::Global;
use crate::http::{Call, Client};
use crate::outcome::{Exit, Failure};
use crate::output::{Output, printable};
use crate::session::origin;

/// Save a gateway and a key as a context, after trying them.
#[derive(clap::Args)]
pub struct Login {
    /// The gateway's address.
    #[arg(value_name = "URL")]
    address: String,
    /// Read the key from stdin.
    #[arg(long, required = true)]
    key_stdin: bool,
    /// What to call the context; the host's name unless given.
    #[arg(long)]
    name: Option<String>,
}

pub async fn run(global: &Global, login: Login) -> Result<Exit, Failure> {
    let url = origin(&login.address)?;
    let parsed = url::Url::parse(&url).map_err(|error| Failure::new(error.to_string()))?;
    let host = parsed.host_str().unwrap_or_default();
    if parsed.scheme() == "http" && !["localhost", "127.0.0.1", "[::1]"].contains(&host) {
        eprintln!("warning: http sends the key in the clear");
    }
    debug_assert!(login.key_stdin);
    let key = secret_input::from_stdin()?;
    let own = Client::new(&url, Some(key.clone()), global.as_curl)?.call(Call::get("/api-keys/self")).await?;
    let path = context::path()?;
    let mut contexts = context::read(&path)?;
    let name = login.name.unwrap_or_else(|| host.to_owned());
    let saved = Context { url, key, workspace: global.workspace.clone() };
    contexts.contexts.insert(name.clone(), saved);
    contexts.current = Some(name.clone());
    context::write(&path, &contexts)?;
    eprintln!(
        "Signed in as {} ({}); the context is `{name}`.",
        printable(own["name"].as_str().unwrap_or("?")),
        own["type"].as_str().unwrap_or("?")
    );
    Output::new(global.output, global.quiet).hint("portcullis whoami");
    Ok(Exit::Fine)
}
