//! A large catalogue: an edit of a provider or a config reaches a running proxy within a second, and costs its own size
//! and not that of the catalogue. Rows are written by SQL, so that the clock measures the way to the proxy alone.

use super::client::{Caller, empty};
use super::report::{Report, Spread, megabytes};
use super::rotation::made;
use super::stack::Stack;
use anyhow::{Context as _, ensure};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::json;
use shared::secrets::seal::Keyring;
use std::time::{Duration, Instant};
use tokio_postgres::Client;
use uuid::Uuid;

const EDITS: usize = 100;
const LIMIT: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);
/// A change may be read twice: once with the notice, and once more if its transaction was still among the running ones.
const MAX_ROWS: f64 = 2.0;

const PROVIDERS: &str = "INSERT INTO providers (organisation_id, workspace_id, integration_id, slug, name)
    SELECT i.organisation_id, i.workspace_id, i.id, 'p-' || n, 'p-' || n
    FROM integrations i, generate_series(1, $2::bigint) n WHERE i.id = $1";
const CONFIGS: &str = "INSERT INTO configs (organisation_id, workspace_id, slug, name, config, version_id)
    SELECT i.organisation_id, i.workspace_id, 'pc-' || n, 'c', json_build_object('provider', '@p-' || n), gen_random_uuid()
    FROM integrations i, generate_series(1, $2::bigint) n WHERE i.id = $1";

pub async fn prove(providers: u32, configs: u32, report: &mut Report) -> anyhow::Result<()> {
    let keyring = Keyring::generate("proof")?;
    let stack = Stack::start(&[("GATEWAY_MASTER_KEY", keyring.trim())]).await?;
    let writer = stack.database().await?;
    let body = json!({
        "name": "main", "slug": "main", "ai_provider_id": "openai", "key": "sk-0123456789",
        "workspace_id": stack.workspace().await?, "configurations": { "custom_host": stack.mock.url() },
    });
    let integration = made(&stack.administrator().await?, "/v1/integrations", &body).await?;
    let integration: Uuid = integration["id"].as_str().context("it has an id")?.parse()?;
    let begun = Instant::now();
    writer.execute(PROVIDERS, &[&integration, &i64::from(providers)]).await?;
    writer.execute(CONFIGS, &[&integration, &i64::from(configs)]).await?;
    until(&stack, "gateway_snapshot_rows{table=\"providers\"}", providers).await?;
    until(&stack, "gateway_snapshot_rows{table=\"configs\"}", configs).await?;
    report.figure("providers and configs", format!("{providers} and {configs}"));
    report.figure("written and in memory after", format!("{:.2} s", begun.elapsed().as_secs_f64()));

    let (rows, reloads) = (read_rows(&stack).await?, metric(&stack, "gateway_snapshot_reloads_total").await?);
    let mut times = Vec::new();
    for n in 0..EDITS / 4 {
        let n = n as u32;
        let provider = format!("p-{}", n * (providers / 100).max(1) + 1);
        times.extend(of_provider(&stack, &writer, &provider).await?);
        let config = n * (configs / 100).max(1) + 1;
        times.extend(of_config(&stack, &writer, &format!("pc-{config}"), &format!("@p-{config}")).await?);
    }
    let per_edit = (read_rows(&stack).await? - rows) / times.len() as f64;
    let spread = Spread::of(times).context("nothing was measured")?;
    report.figure("an edit has effect after", spread);
    report.figure("rows read for an edit", format!("{per_edit:.2}"));
    report.figure("peak memory of the proxy", megabytes(stack.proxy.peak_memory()?));
    report.promise(&format!("the p99 of {EDITS} edits is within a second"), spread.p99 <= LIMIT);
    report.promise("an edit costs its own size", per_edit <= MAX_ROWS);
    report.promise("nothing was loaded whole", metric(&stack, "gateway_snapshot_reloads_total").await? == reloads);
    drop(writer);
    stack.stop(report)
}

/// Archived, and active again.
async fn of_provider(stack: &Stack, writer: &Client, slug: &str) -> anyhow::Result<[Duration; 2]> {
    const EDIT: &str = "UPDATE providers SET status = $2 WHERE slug = $1";
    let caller = stack.caller_of(slug).await?;
    let gone = effect(&caller, false, async || writer.execute(EDIT, &[&slug, &"archived"]).await).await?;
    let back = effect(&caller, true, async || writer.execute(EDIT, &[&slug, &"active"]).await).await?;
    Ok([gone, back])
}

/// Sent to a provider that nobody has, and back.
async fn of_config(stack: &Stack, writer: &Client, slug: &str, provider: &str) -> anyhow::Result<[Duration; 2]> {
    const EDIT: &str = "UPDATE configs SET config = json_build_object('provider', $2::text) WHERE slug = $1";
    let caller = stack.caller_by(slug).await?;
    let gone = effect(&caller, false, async || writer.execute(EDIT, &[&slug, &"@nobody"]).await).await?;
    let back = effect(&caller, true, async || writer.execute(EDIT, &[&slug, &provider]).await).await?;
    Ok([gone, back])
}

/// From before the edit to the first answer that shows it.
async fn effect(
    caller: &Caller,
    succeeds: bool,
    edit: impl AsyncFnOnce() -> Result<u64, tokio_postgres::Error>,
) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    ensure!(edit().await? == 1, "the edit touches one row");
    loop {
        let status = caller.status(caller.chat(&json!({}), false)).await?;
        let time = begun.elapsed();
        if (status == StatusCode::OK) == succeeds {
            return Ok(time);
        }
        ensure!(time < PATIENCE, "still {status} after {time:.1?}");
    }
}

async fn until(stack: &Stack, name: &str, rows: u32) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while metric(stack, name).await? < f64::from(rows) {
        ensure!(Instant::now() < end, "{name} does not reach {rows}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

async fn read_rows(stack: &Stack) -> anyhow::Result<f64> {
    metric(stack, "gateway_snapshot_read_rows_total").await
}

async fn metric(stack: &Stack, name: &str) -> anyhow::Result<f64> {
    let health = stack.health();
    let mut connection = health.connect().await?;
    let answer = connection.send(health.request(Method::GET, "/metrics", empty())).await?;
    let text = answer.into_body().collect().await?.to_bytes();
    let text = String::from_utf8_lossy(&text);
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.with_context(|| format!("the proxy has no metric {name}"))
}
