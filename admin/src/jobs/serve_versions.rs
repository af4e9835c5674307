//! Looks again at versions of prompts and partials that found no room among what proxies follow for their workspace. Room comes
//! when others are archived or replaced; until then they are fetched when somebody names them, so this is about speed alone.
//! Versions of partials that only templates pin go on being fetched until their template is written again.

use super::{Job, JobRun};
use futures::FutureExt as _;
use std::time::Duration;
use tokio_postgres::Transaction;
use uuid::Uuid;

pub const JOB: Job =
    Job { name: "serve_versions", every: Duration::from_secs(60 * 60), work: |_, tx| work(tx).boxed() };

/// As `take_served_bytes` of the schema has it.
const MAX_SERVED_BYTES: i64 = 32 << 20;
/// Of each workspace, and in all: a workspace with many keeps no other from its turn.
const MAX_OF_WORKSPACE: i64 = 100;
const MAX_AT_ONCE: i64 = 1000;

async fn work(tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    // What fits by itself, weighed as `serve_prompt_version` and `serve_partial_version` do; at random, so that a large one keeps
    // no small ones out for good.
    const PROMPTS: &str = "WITH fitting AS (SELECT v.id, s.workspace_id,
                row_number() OVER (PARTITION BY s.workspace_id ORDER BY random()) AS turn FROM served_prompt_bytes s
            JOIN prompts p ON p.workspace_id = s.workspace_id AND p.status = 'active'
            CROSS JOIN LATERAL (SELECT p.version_id UNION SELECT unnest(a.version_id || a.split_versions)
                FROM prompt_version_labels a WHERE a.prompt_id = p.id) AS wanted (id)
            JOIN prompt_versions v ON v.id = wanted.id
            WHERE NOT v.is_served AND s.bytes + template_weight(v.template) + octet_length(v.parameters::text)
                + coalesce(octet_length(v.functions::text), 0) + coalesce(octet_length(v.tools::text), 0)
                + coalesce(octet_length(v.tool_choice::text), 0) <= $1)
        SELECT id FROM (SELECT * FROM fitting WHERE turn <= $2 ORDER BY turn LIMIT $3) AS found ORDER BY workspace_id, id";
    const PARTIALS: &str = "WITH fitting AS (SELECT v.id, s.workspace_id,
                row_number() OVER (PARTITION BY s.workspace_id ORDER BY random()) AS turn FROM served_prompt_bytes s
            JOIN prompt_partials p ON p.workspace_id = s.workspace_id AND p.status = 'active'
            JOIN partial_versions v ON v.id = p.version_id
            WHERE NOT v.is_served AND s.bytes + template_weight(v.template) <= $1)
        SELECT id FROM (SELECT * FROM fitting WHERE turn <= $2 ORDER BY turn LIMIT $3) AS found ORDER BY workspace_id, id";
    const SERVE_PROMPTS: &str = "SELECT serve_prompt_version(id) FROM unnest($1::uuid[]) AS id";
    const SERVE_PARTIALS: &str = "SELECT serve_partial_version(id) FROM unnest($1::uuid[]) AS id";
    const SERVED_PROMPTS: &str = "SELECT count(*) FROM prompt_versions WHERE id = ANY($1) AND is_served";
    const SERVED_PARTIALS: &str = "SELECT count(*) FROM partial_versions WHERE id = ANY($1) AND is_served";
    let (mut items, mut is_all) = (0, true);
    for (find, serve, served) in [(PARTIALS, SERVE_PARTIALS, SERVED_PARTIALS), (PROMPTS, SERVE_PROMPTS, SERVED_PROMPTS)]
    {
        let rows = tx.query(find, &[&MAX_SERVED_BYTES, &MAX_OF_WORKSPACE, &MAX_AT_ONCE]).await?;
        let ids: Vec<Uuid> = rows.iter().map(|row| row.try_get("id")).collect::<Result<_, _>>()?;
        if ids.is_empty() {
            continue;
        }
        tx.execute(serve, &[&ids]).await?;
        let count = tx.query_one(served, &[&ids]).await?.try_get::<_, i64>(0)?.unsigned_abs();
        items += count;
        // What was served made less room: the next look ends when nothing fits any more.
        is_all &= count == 0 || ids.len() < usize::try_from(MAX_OF_WORKSPACE)?;
    }
    Ok(JobRun { items, is_all })
}
