//! The stack of the proof with everything that its calls need: an embedder, a judge, a prompt, an MCP server with a priced tool,
//! and a strict budget.

use super::kinds::{EMBEDDER, JUDGE, Kind, STRICT, WINDOWS};
use crate::compare::mcp::INSERT;
use crate::mock::{Mock, Options};
use crate::prove::client::{Caller, empty};
use crate::prove::report::Report;
use crate::prove::stack::Stack;
use anyhow::{Context as _, ensure};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use shared::bootstrap;
use shared::secrets::seal::Keyring;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);
/// What one call under the strict budget uses, about: half of them find it used up.
const TOKENS_OF_ONE: u32 = 30;
/// Of a call of the tool, in cents.
pub const PRICE: f64 = 2.5;
const PROMPT: &str = "bill";
/// A prompt whose text is what the call says.
const ADD_PROMPT: &str = r#"
    WITH made AS (
        INSERT INTO prompts (organisation_id, workspace_id, collection_id, slug, name, version_id, latest_version_id,
            latest_version)
        SELECT c.organisation_id, c.workspace_id, c.id, $2, 'p', gen_random_uuid(), gen_random_uuid(), 1
        FROM collections c WHERE c.workspace_id = $1 AND c.is_default
        RETURNING id, organisation_id, version_id)
    INSERT INTO prompt_versions (id, organisation_id, prompt_id, number, template, parameters, model, virtual_key)
    SELECT version_id, organisation_id, id, 1,
        json_build_array(json_build_object('role', 'user', 'content', '{{name}}'))::text, '{"max_tokens": 100}'::json,
        'gpt-4o-mini', 'main'
    FROM made"#;

pub struct Shop {
    pub stack: Stack,
    /// Keeps its own bill.
    pub embedder: Mock,
    /// Tokens of the strict budget.
    pub cap: u32,
    pub policy: String,
    counter: Counter,
    database: tokio_postgres::Client,
}

/// What a client needs to make calls.
#[derive(Clone)]
pub struct Counter {
    pub provider: String,
    pub bare: Caller,
    pub mcp: Caller,
    pub judge: String,
    pub prompt: &'static str,
}

impl Counter {
    /// The mock under an account of this name.
    pub fn target(&self, account: &str) -> Value {
        json!({ "provider": "openai", "api_key": format!("sk-{account}"), "custom_host": self.provider })
    }

    /// A caller by this config, whose logs have the tag.
    pub fn by(&self, config: &Value, tag: &str) -> anyhow::Result<Caller> {
        self.bare
            .with("x-gateway-config", &config.to_string())?
            .with("x-gateway-metadata", &json!({ "bill": tag }).to_string())
    }

    /// The same, where headers name the provider.
    pub fn by_headers(&self, account: &str, tag: &str) -> anyhow::Result<Caller> {
        self.bare
            .with("x-gateway-provider", "openai")?
            .with("x-gateway-custom-host", &self.provider)?
            .with("authorization", &format!("Bearer sk-{account}"))?
            .with("x-gateway-metadata", &json!({ "bill": tag }).to_string())
    }
}

impl Shop {
    pub async fn open(calls: u32) -> anyhow::Result<Self> {
        let embedder = Mock::try_start(Options { remember: 0, bills: true, ..Options::default() })?;
        let embeddings = format!("{}/embeddings", embedder.url());
        let keyring = Keyring::generate("proof")?;
        let stack = Stack::billing(&[
            ("GATEWAY_MASTER_KEY", keyring.trim()),
            ("JOURNAL_SHIP_MS", "200"),
            ("BATCH_ROWS", "10"),
            ("BATCH_EVERY_SECONDS", "1"),
            ("LIMITS_WAIT_MS", "20000"),
            ("SEMANTIC_CACHE_EMBEDDING_PROVIDER", "openai"),
            ("SEMANTIC_CACHE_EMBEDDINGS_URL", &embeddings),
            ("SEMANTIC_CACHE_EMBEDDING_API_KEY", EMBEDDER),
            ("SEMANTIC_CACHE_WAIT_MS", "20000"),
        ])
        .await?;
        let (database, workspace) = (stack.database().await?, stack.workspace().await?);
        let administrator = stack.administrator().await?;
        let judge = json!({ "provider": "openai", "api_key": JUDGE, "custom_host": stack.mock.url(),
            "override_params": { "model": "gpt-4o-mini" } });
        let judge = json!({ "name": "Judge", "workspace_id": workspace, "config": judge });
        let judge = made(&administrator, Method::POST, "/v1/configs", &judge).await?;
        let judge = judge["slug"].as_str().context("a config has no slug")?.to_owned();
        let cap = (calls / Kind::ALL.len() as u32 * TOKENS_OF_ONE).max(500);
        let budget = json!({ "name": "Strict", "workspace_id": workspace, "type": "tokens", "credit_limit": cap,
            "strict": true, "conditions": [{ "key": "metadata.purse", "value": STRICT }],
            "group_by": [{ "key": "metadata.purse" }] });
        let policy = made(&administrator, Method::POST, "/v1/policies/usage-limits", &budget).await?;
        let policy = policy["id"].as_str().context("a policy has no id")?.to_owned();
        database.execute(ADD_PROMPT, &[&workspace, &PROMPT]).await?;
        database.execute(INSERT, &[&workspace, &format!("{}/mcp/stateless", stack.mock.origin())]).await?;
        let price = json!({ "capabilities": [{ "name": "echo", "type": "tool", "price": PRICE }] });
        made(&administrator, Method::PUT, "/v1/mcp-integrations/bench/capabilities", &price).await?;
        let key = bootstrap::create_workspace_key(&database, workspace, "MCP", &["mcp.invoke"], "pk_").await?.key;
        let bare = stack.bare()?;
        let mcp = bare.with("x-gateway-api-key", &key)?.with("accept", "application/json, text/event-stream")?;
        let counter = Counter { provider: stack.mock.url(), bare, mcp, judge, prompt: PROMPT };
        let mut shop = Self { stack, embedder, cap, policy, counter, database };
        // What was written is known to a proxy that starts.
        shop.stack.proxy.signal(crate::process::Signal::TERM)?;
        shop.stack.proxy.ended_within(PATIENCE).await?.context("the proxy does not leave")?;
        shop.stack.restart_proxy().await?;
        // It may start from what it kept on disk.
        let (mcp, end) = (&shop.counter.mcp, Instant::now() + PATIENCE);
        while mcp.status(mcp.request(Method::DELETE, "/bench/mcp", empty())).await? != StatusCode::OK {
            ensure!(Instant::now() < end, "the proxy does not learn of the MCP server");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(shop)
    }

    pub fn counter(&self) -> Counter {
        self.counter.clone()
    }

    /// Whether a batch that is not over is there, by window.
    pub async fn batches_under_way(&self) -> anyhow::Result<[bool; 2]> {
        const MODES: &str = "SELECT DISTINCT mode FROM batches WHERE status IN ('in_progress', 'finalizing')";
        let rows = self.database.query(MODES, &[]).await?;
        let modes: Vec<String> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        Ok(WINDOWS.map(|window| modes.iter().any(|mode| mode == window.value)))
    }

    /// What a killed proxy had leased is free, as it would be after the time of its leases.
    pub async fn end_leases(&self) -> anyhow::Result<()> {
        const BATCHES: &str = "UPDATE batches SET lease_until = now() WHERE lease_until > now()";
        const ROWS: &str = "UPDATE batch_rows SET lease_until = now() WHERE state = 1 AND lease_until > now()";
        for statement in [BATCHES, ROWS] {
            self.database.execute(statement, &[]).await?;
        }
        Ok(())
    }

    pub fn close(self, report: &mut Report) -> anyhow::Result<()> {
        self.stack.stop(report)
    }
}

async fn made(caller: &Caller, method: Method, path: &str, body: &Value) -> anyhow::Result<Value> {
    let mut request = caller.post_json(path, body);
    *request.method_mut() = method;
    object(caller.answer(request).await?).with_context(|| path.to_owned())
}

pub fn object((status, text): (StatusCode, String)) -> anyhow::Result<Value> {
    ensure!(status.is_success(), "{status}: {text}");
    Ok(serde_json::from_str(&text)?)
}
