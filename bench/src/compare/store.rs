//! The gateway's side of the comparison needs what production has: a Postgres with a tenant and a key in it.

use std::path::Path;

use anyhow::Context;
use shared::model::KeyKind;
use shared::{bootstrap, migrate, scopes};

use crate::postgres::{Options, Purpose, Server, template};

const DATABASE: &str = "bench";
const PREFIX: &str = "pk_";

/// Dropping it stops the server.
pub struct Store {
    server: Option<Server>,
    /// A service key with every scope a service key can have.
    pub key: String,
}

impl Store {
    pub async fn start(folder: &Path) -> anyhow::Result<Self> {
        let options = Options::new(folder, Purpose::Test);
        let server = tokio::task::spawn_blocking(move || Server::start(&options)).await??;
        server.create_database(DATABASE).await?;
        let mut client = template::connect(&server.url(DATABASE), DATABASE).await?;
        migrate::run(&mut client).await.context("cannot migrate the bench's database")?;
        let tenant = bootstrap::create_organisation(&mut client, "Bench", "bench@example.com", PREFIX).await?;
        let scopes = scopes::all_for(KeyKind::WorkspaceService);
        let key = bootstrap::create_workspace_key(&client, tenant.workspace_id, "bench", &scopes, PREFIX).await?.key;
        Ok(Self { server: Some(server), key })
    }

    pub fn url(&self) -> String {
        self.server.as_ref().map(|server| server.url(DATABASE)).unwrap_or_default()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.server.take().map(Server::remove) {
            eprintln!("the bench's Postgres stays behind: {error:#}");
        }
    }
}
