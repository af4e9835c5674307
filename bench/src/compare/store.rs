//! The gateway's side of the comparison needs what production has: a Postgres with a tenant and a key in it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context;
use shared::bootstrap;
use shared::db::migrate;
use shared::identity::scopes;
use shared::model::KeyKind;
use uuid::Uuid;

use super::{mcp, prompt, request, usage};
use crate::postgres::{Options, Purpose, Server, template};

const DATABASE: &str = "bench";
const PREFIX: &str = "pk_";

/// Dropping it stops the server.
pub struct Store {
    server: Option<Server>,
    workspace: Uuid,
    /// A service key with every scope a service key can have.
    pub key: String,
    /// The same in a workspace where limits hold: of the key, of the workspace and of two policies. None is ever reached.
    pub limited_key: String,
    /// The same in a workspace where three checks look at every request. All of them pass.
    pub guarded_key: String,
}

const GUARDED: &str = r#"
    INSERT INTO workspaces (organisation_id, slug, name, defaults)
    VALUES ($1, 'guarded', 'Guarded', '{"input_guardrails": ["pg-bench"]}') RETURNING id"#;
const GUARDRAIL: &str = r#"
    INSERT INTO guardrails (organisation_id, workspace_id, slug, name, version_id, content)
    VALUES ($1, $2, 'pg-bench', 'Three checks', gen_random_uuid(), '{"actions": {"deny": true}, "checks": [
        {"id": "default.contains", "parameters": {"operator": "none", "words": ["password", "secret"]}},
        {"id": "default.regexMatch", "parameters": {"rule": "[0-9]{16}", "not": true}},
        {"id": "default.wordCount", "parameters": {"minWords": 1, "maxWords": 100000}}]}')"#;
const WORKSPACE: &str = r#"
    INSERT INTO workspaces (organisation_id, slug, name, usage_limits) VALUES ($1, 'limited', 'Limited',
        '[{"type": "cost", "credit_limit": 1000000, "last_reset_at": "2026-01-01T00:00:00.000Z"}]') RETURNING id"#;
const KEY_LIMIT: &str = r#"
    UPDATE api_keys SET rate_limits = '[{"type": "requests", "unit": "rpm", "value": 1000000000}]'
    WHERE workspace_id = $1"#;
const RATE_POLICY: &str = r#"
    INSERT INTO rate_limits_policies (organisation_id, workspace_id, name, conditions, group_by, type, unit, value)
    VALUES ($1, $2, 'tokens of each key', '[{"key": "workspace_id", "value": "limited"}]', '[{"key": "api_key"}]',
        'tokens', 'rpm', 1000000000000)"#;
const USAGE_POLICY: &str = r#"
    INSERT INTO usage_limits_policies (organisation_id, workspace_id, name, conditions, group_by, type, credit_limit)
    VALUES ($1, $2, 'spend of each key', '[{"key": "endpoint_type", "value": "chatComplete"}]', '[{"key": "api_key"}]',
        'cost', 1000000)"#;

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
        let organisation = tenant.organisation_id;
        let workspace: Uuid = client.query_one(WORKSPACE, &[&organisation]).await?.try_get(0)?;
        let limited = bootstrap::create_workspace_key(&client, workspace, "limited", &scopes, PREFIX).await?;
        client.execute(KEY_LIMIT, &[&workspace]).await?;
        for policy in [RATE_POLICY, USAGE_POLICY] {
            client.execute(policy, &[&organisation, &workspace]).await?;
        }
        client.execute(prompt::INSERT, &[&tenant.workspace_id, &prompt::template(&request::body())?]).await?;
        let workspace: Uuid = client.query_one(GUARDED, &[&organisation]).await?.try_get(0)?;
        client.execute(GUARDRAIL, &[&organisation, &workspace]).await?;
        let guarded = bootstrap::create_workspace_key(&client, workspace, "guarded", &scopes, PREFIX).await?;
        let (limited_key, guarded_key) = (limited.key, guarded.key);
        Ok(Self { server: Some(server), workspace: tenant.workspace_id, key, limited_key, guarded_key })
    }

    /// The provider at this address has an MCP server, too.
    pub async fn register_mcp(&self, provider: SocketAddr) -> anyhow::Result<()> {
        let client = template::connect(&self.url(), DATABASE).await?;
        let url = format!("http://{provider}/mcp/stateless");
        client.execute(mcp::INSERT, &[&self.workspace, &url]).await?;
        Ok(())
    }

    pub fn url(&self) -> String {
        self.server.as_ref().map(|server| server.url(DATABASE)).unwrap_or_default()
    }

    pub fn postmaster(&self) -> Option<u32> {
        self.server.as_ref().and_then(Server::postmaster)
    }

    /// Postgres would stand on another machine. Here it gets the time that those who are compared leave, as far as the
    /// kernel lets us say so: each of its processes is a session, and those share time by their own `autogroup`.
    pub fn step_back(&self) {
        const LOWEST_PRIORITY: &str = "19";
        for pid in self.postmaster().into_iter().flat_map(usage::tree) {
            let _ = fs::write(format!("/proc/{pid}/autogroup"), LOWEST_PRIORITY);
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.server.take().map(Server::remove) {
            eprintln!("the bench's Postgres stays behind: {error:#}");
        }
    }
}
