//! A key that was created or revoked: how soon a running proxy heeds it, with few keys loaded and with very many.
//!
//! Rows are written by SQL and the effect is seen by HTTP. The clock starts before the write, so its commit counts.

use super::client::Caller;
use super::report::{Report, Spread, megabytes};
use super::stack::Stack;
use anyhow::{Context as _, ensure};
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::json;
use shared::bootstrap;
use shared::identity::scopes;
use shared::model::KeyKind;
use std::time::{Duration, Instant};
use tokio_postgres::Client;
use uuid::Uuid;

const CHANGES: usize = 100;
const LIMIT: Duration = Duration::from_secs(1);
/// What has had no effect by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

const FILL: &str = "INSERT INTO api_keys (organisation_id, workspace_id, kind, name, hash, mask, scopes)
                    SELECT w.organisation_id, w.id, 'workspace-service', 'Many', sha256(n::text::bytea), '*', $2
                    FROM generate_series(1, $3::bigint) n, workspaces w WHERE w.id = $1";
const REVOKE: &str = "UPDATE api_keys SET status = 'archived' WHERE id = $1";

pub async fn prove(keys: u32, report: &mut Report) -> anyhow::Result<()> {
    let stack = Stack::start(&[]).await?;
    let writer = stack.database().await?;
    let workspace = bootstrap::first_workspace(&writer).await?.context("there is no default workspace")?;
    measure("few", &stack, &writer, workspace, report).await?;

    let begun = Instant::now();
    let scopes = scopes::all_for(KeyKind::WorkspaceService);
    writer.execute(FILL, &[&workspace, &scopes, &i64::from(keys)]).await?;
    let written = begun.elapsed();
    until_held(&stack, keys).await?;
    report.figure("keys written in one transaction", keys);
    report.figure("in memory after their commit by", format!("{:.2} s", (begun.elapsed() - written).as_secs_f64()));
    measure(&keys.to_string(), &stack, &writer, workspace, report).await?;
    report.figure("peak memory of the proxy", megabytes(stack.proxy.peak_memory()?));
    drop(writer);
    stack.stop(report)
}

/// Creates a key and revokes it, over and over.
async fn measure(
    held: &str,
    stack: &Stack,
    writer: &Client,
    workspace: Uuid,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (mut created, mut revoked) = (Vec::new(), Vec::new());
    for _ in 0..CHANGES / 2 {
        let begun = Instant::now();
        let key = bootstrap::create_workspace_key(writer, workspace, "Proof", &["completions.write"], "pk_").await?;
        let caller = stack.caller_with(&key.key)?;
        created.push(effect(&caller, begun, StatusCode::OK).await?);
        let begun = Instant::now();
        writer.execute(REVOKE, &[&key.id]).await?;
        revoked.push(effect(&caller, begun, StatusCode::UNAUTHORIZED).await?);
    }
    for (what, times) in [("created", created.clone()), ("revoked", revoked.clone())] {
        if let Some(spread) = Spread::of(times) {
            report.figure(&format!("with {held} keys, {what} ones"), spread);
        }
    }
    let both = Spread::of([created, revoked].concat()).context("nothing was measured")?;
    report.promise(&format!("with {held} keys, the p99 of {CHANGES} changes is within a second"), both.p99 <= LIMIT);
    Ok(())
}

/// Asks again and again on one connection until the answer is the expected one.
pub async fn effect(caller: &Caller, begun: Instant, expected: StatusCode) -> anyhow::Result<Duration> {
    let mut connection = caller.connect().await?;
    loop {
        if !connection.is_open() {
            connection = caller.connect().await?;
        }
        let answer = connection.send(caller.chat(&json!({}), false)).await?;
        let status = answer.status();
        let time = begun.elapsed();
        if status == expected {
            return Ok(time);
        }
        ensure!(time < PATIENCE, "still {status} after {time:.1?}, where {expected} is due");
        answer.into_body().collect().await?;
    }
}

/// Waits until the proxy says that it holds this many keys.
async fn until_held(stack: &Stack, keys: u32) -> anyhow::Result<()> {
    let health = stack.health();
    let end = Instant::now() + PATIENCE;
    loop {
        let mut connection = health.connect().await?;
        let answer = connection.send(health.request(http::Method::GET, "/metrics", super::client::empty())).await?;
        let text = answer.into_body().collect().await?.to_bytes();
        let held = String::from_utf8_lossy(&text)
            .lines()
            .find_map(|line| line.strip_prefix("gateway_snapshot_rows{table=\"api_keys\"} ")?.parse::<u32>().ok());
        if held.is_some_and(|held| held >= keys) {
            return Ok(());
        }
        ensure!(Instant::now() < end, "the proxy holds {held:?} keys, where {keys} are due");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
