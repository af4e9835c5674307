//! The stack of the proof with everything that its calls need: an embedder, a judge, a prompt, an MCP server with a priced tool,
//! and a strict budget.

use super::kinds::{EMBEDDER, JUDGE, STRICT, chat};
use crate::compare::mcp::INSERT;
use crate::mock::{Mock, Options};
use crate::prove::client::{Caller, empty};
use crate::prove::report::Report;
use crate::prove::stack::Stack;
use anyhow::{Context as _, ensure};
use http::{HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};
use shared::bootstrap;
use shared::seal::Keyring;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);
/// What one call under the strict budget uses, about: half of them find it used up.
const TOKENS_OF_ONE: u32 = 30;
const PRICE: f64 = 2.5;
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
}

/// What a client needs to make calls.
#[derive(Clone)]
pub struct Counter {
    provider: String,
    bare: Caller,
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
        let cap = (calls / super::KINDS.len() as u32 * TOKENS_OF_ONE).max(500);
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
        let mut shop = Self { stack, embedder, cap, policy, counter };
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

    /// A batch of so many rows that bear one tag.
    pub async fn run_batch(&self, kind: &str, window: &str, rows: u32) -> anyhow::Result<()> {
        let (caller, tag) = (&self.counter.bare, format!("{kind}-0"));
        let lines: String = (0..rows)
            .map(|number| {
                let body = chat(&tag, 20, &json!({ "words": 20 }), false);
                let row = json!({ "custom_id": format!("row-{number}"), "method": "POST", "url": "/v1/chat/completions",
                    "body": body });
                format!("{row}\n")
            })
            .collect();
        let form = format!(
            "--xYz\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--xYz\r\nContent-Disposition: \
             form-data; name=\"file\"; filename=\"rows.jsonl\"\r\n\r\n{lines}\r\n--xYz--\r\n"
        );
        let mut request = caller.request(Method::POST, "/v1/files", crate::prove::client::whole(form));
        let kind_of_form = HeaderValue::from_static("multipart/form-data; boundary=xYz");
        request.headers_mut().insert(header::CONTENT_TYPE, kind_of_form);
        let file = object(caller.answer(request).await?)?;
        let options = json!({ "x-gateway-provider": "openai", "x-gateway-custom-host": self.counter.provider,
            "authorization": format!("Bearer sk-{kind}"), "x-gateway-metadata": json!({ "bill": tag }).to_string() });
        let asked = json!({ "input_file_id": file["id"], "endpoint": "/v1/chat/completions", "completion_window": window,
            "gateway_options": options });
        let batch = object(caller.answer(caller.post_json("/v1/batches", &asked)).await?)?;
        let path = format!("/v1/batches/{}", batch["id"].as_str().unwrap_or_default());
        let end = Instant::now() + PATIENCE;
        loop {
            let now = object(caller.answer(caller.request(Method::GET, &path, empty())).await?)?;
            if now["status"] == "completed" {
                return Ok(());
            }
            ensure!(Instant::now() < end && now["status"] != "failed", "the batch does not complete: {now}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
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

fn object((status, text): (StatusCode, String)) -> anyhow::Result<Value> {
    ensure!(status.is_success(), "{status}: {text}");
    Ok(serde_json::from_str(&text)?)
}
