//! The link that opens the console of a development stack, signed in as its owner: the operator's own command makes it.

use anyhow::{Context as _, bail};
use std::path::Path;
use tokio::process::Command;
use tokio_postgres::Client;

/// A one-time link, good for ten minutes; none in a database without an owner.
pub async fn link(client: &Client, admin: &Path, environment: &[(String, String)]) -> anyhow::Result<Option<String>> {
    const OWNER: &str = "SELECT email, organisation_id::text FROM users WHERE role = 'owner' AND status = 'active'
        ORDER BY created_at, id LIMIT 1";
    let Some(owner) = client.query_opt(OWNER, &[]).await? else { return Ok(None) };
    let (email, organisation): (String, String) = (owner.try_get(0)?, owner.try_get(1)?);
    let mut command = Command::new(admin);
    command.args(["login-link", "--email", &email, "--organisation", &organisation]);
    command.envs(environment.iter().map(|(name, value)| (name, value))).kill_on_drop(true);
    let printed = command.output().await.context("cannot run gateway-admin login-link")?;
    if !printed.status.success() {
        bail!("gateway-admin login-link: {}", String::from_utf8_lossy(&printed.stderr).trim());
    }
    let text = String::from_utf8_lossy(&printed.stdout);
    Ok(text.split_whitespace().find(|word| word.contains("#token=")).map(str::to_owned))
}
