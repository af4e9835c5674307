//! Many prompts with many versions each: a proxy holds those that can be asked for without a number, a published one has
//! effect within a second, and any other version runs although it is not held. Rows are written by SQL.

use super::client::{Caller, empty};
use super::report::{Report, Spread, megabytes};
use super::stack::Stack;
use crate::process::Signal;
use anyhow::{Context as _, ensure};
use http::{Method, StatusCode};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio_postgres::Client;

const LIMIT: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(120);
const EDITS: u32 = 50;
/// Prompts that are written in one transaction.
const AT_ONCE: u32 = 500;
/// What a prompt may take in memory beyond ten times its text.
const MAX_BYTES_OF_ONE: u64 = 16 << 10;
const HELD: &str = "gateway_snapshot_rows{table=\"served_prompt_versions\"}";

/// The first version is the default; the second names a partial that nobody has, so that it cannot be run.
const PROMPTS: &str = r#"
    WITH made AS (
        INSERT INTO prompts (organisation_id, workspace_id, collection_id, slug, name, version_id, latest_version_id,
            latest_version)
        SELECT c.organisation_id, c.workspace_id, c.id, 'pp-' || n, 'p', gen_random_uuid(), gen_random_uuid(), $4::int
        FROM collections c, generate_series($2::bigint, $3::bigint) n WHERE c.workspace_id = $1 AND c.is_default
        RETURNING id, organisation_id, version_id, latest_version_id)
    INSERT INTO prompt_versions (id, organisation_id, prompt_id, number, template, parameters, model, virtual_key)
    SELECT CASE n WHEN 1 THEN version_id WHEN $4::int THEN latest_version_id ELSE gen_random_uuid() END,
        organisation_id, id, n,
        CASE n WHEN 2 THEN '{{>pl-none}}' ELSE json_build_array(json_build_object('role', 'user', 'content',
            'Version ' || n || ' for {{name}}. ' || repeat('Answer in one line. ', 25)))::text END,
        '{"temperature": 0.5}'::json, 'gpt-4o-mini', 'main'
    FROM made, generate_series(1, $4::int) n"#;
const PUBLISH: &str = "UPDATE prompts p SET version_id = v.id FROM prompt_versions v
    WHERE p.slug = $1 AND v.prompt_id = p.id AND v.number = $2";

pub async fn prove(prompts: u32, versions: u32, report: &mut Report) -> anyhow::Result<()> {
    ensure!(prompts > 0 && versions > 2, "a prompt here has three versions or more");
    let mut stack = Stack::start(&[]).await?;
    let (writer, workspace) = (stack.database().await?, stack.workspace().await?);
    let caller = stack.caller()?;
    let before = stack.proxy.memory()?;
    let begun = Instant::now();
    for first in (1..=prompts).step_by(AT_ONCE as usize) {
        let last = (first + AT_ONCE - 1).min(prompts);
        let (first, last, versions) = (i64::from(first), i64::from(last), versions.cast_signed());
        writer.execute(PROMPTS, &[&workspace, &first, &last, &versions]).await?;
    }
    until(&stack, prompts).await?;
    report.figure("prompts with versions each", format!("{prompts} with {versions}"));
    report.figure("written and in memory after", format!("{:.2} s", begun.elapsed().as_secs_f64()));
    let grown = stack.proxy.memory()?.saturating_sub(before);
    report.figure("memory for them", megabytes(grown));
    report.figure("memory for each", format!("{:.1} KiB", grown as f64 / f64::from(prompts) / 1024.0));
    report.promise("a prompt takes little memory", grown / u64::from(prompts) <= MAX_BYTES_OF_ONE);

    stack.proxy.signal(Signal::TERM)?;
    stack.proxy.ended_within(PATIENCE).await?.context("the proxy does not leave")?;
    let begun = Instant::now();
    stack.restart_proxy().await?;
    until(&stack, prompts).await?;
    report.figure("in memory after a start", format!("{:.2} s", begun.elapsed().as_secs_f64()));

    let mut times = Vec::new();
    for edit in 0..EDITS {
        let slug = format!("pp-{}", 1 + edit * (prompts / EDITS).max(1) % prompts);
        times.push(published(&writer, &caller, &slug, 2, StatusCode::BAD_REQUEST).await?);
        times.push(published(&writer, &caller, &slug, 1, StatusCode::OK).await?);
    }
    let spread = Spread::of(times).context("nothing was measured")?;
    report.figure("a published version has effect after", spread);
    report.promise("the p99 of what is published has effect within a second", spread.p99 <= LIMIT);

    let mut times = Vec::new();
    for number in 0..EDITS {
        let path = format!("pp-{}@{versions}", 1 + number % prompts);
        let begun = Instant::now();
        ensure!(run(&caller, &path).await? == StatusCode::OK, "{path} is not run");
        times.push(begun.elapsed());
    }
    let spread = Spread::of(times).context("nothing was measured")?;
    report.figure("a version that is not held is run after", spread);
    report.promise("only default versions are held", held(&stack).await? == f64::from(prompts));
    drop(writer);
    stack.stop(report)
}

async fn published(
    writer: &Client,
    caller: &Caller,
    slug: &str,
    version: i32,
    status: StatusCode,
) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    ensure!(writer.execute(PUBLISH, &[&slug, &version]).await? == 1, "one prompt is published");
    while run(caller, slug).await? != status {
        ensure!(begun.elapsed() < PATIENCE, "{slug} is not run in version {version}");
    }
    Ok(begun.elapsed())
}

async fn run(caller: &Caller, reference: &str) -> anyhow::Result<StatusCode> {
    let body = json!({ "variables": { "name": "Ada" } });
    caller.status(caller.post_json(&format!("/v1/prompts/{reference}/completions"), &body)).await
}

async fn until(stack: &Stack, rows: u32) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while held(stack).await? < f64::from(rows) {
        ensure!(Instant::now() < end, "the proxy does not hold {rows} versions");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

async fn held(stack: &Stack) -> anyhow::Result<f64> {
    let health = stack.health();
    let (_, text) = health.answer(health.request(Method::GET, "/metrics", empty())).await?;
    let value = text.lines().find_map(|line| line.strip_prefix(HELD)?.trim().parse().ok());
    value.context("the proxy does not say how many versions it holds")
}
