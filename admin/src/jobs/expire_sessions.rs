//! Deletes what people left behind who signed in: sessions that time has ended, links, logins and ids of assertions that
//! nobody can use any more; and counts of days that are over. None of them would be accepted; this only makes room.

use super::{Job, JobRun};
use futures::FutureExt as _;
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job =
    Job { name: "expire_sessions", every: Duration::from_secs(10 * 60), work: |_, tx| work(tx).boxed() };

const AT_ONCE: u64 = 10_000;

async fn work(tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    const EXPIRE: [&str; 7] = [
        "DELETE FROM sessions WHERE id IN (
            SELECT s.id FROM sessions s JOIN organisations o ON o.id = s.organisation_id
            WHERE s.created_at < now() - make_interval(secs =>
                    coalesce((o.auth_settings #>> '{session_settings,max_session_ttl}')::float8, 86400))
               OR s.last_used_at < now() - make_interval(secs =>
                    coalesce((o.auth_settings #>> '{session_settings,idle_timeout}')::float8, 28800))
            LIMIT 10000)",
        // How many somebody was mailed is counted a while longer than they live.
        "DELETE FROM login_links WHERE hash IN (
            SELECT hash FROM login_links WHERE created_at < now() - interval '1 hour' LIMIT 10000)",
        "DELETE FROM login_attempts WHERE state_hash IN (
            SELECT state_hash FROM login_attempts WHERE expires_at < now() LIMIT 10000)",
        "DELETE FROM owner_links WHERE (user_id, issuer) IN (
            SELECT user_id, issuer FROM owner_links WHERE expires_at < now() LIMIT 10000)",
        "DELETE FROM feedback_days WHERE (workspace_id, day) IN (
            SELECT workspace_id, day FROM feedback_days WHERE day < current_date - 2 LIMIT 10000)",
        "DELETE FROM api_keys WHERE id IN (
            SELECT id FROM api_keys WHERE session_id IS NOT NULL AND expires_at < now() LIMIT 10000)",
        "DELETE FROM login_replays WHERE hash IN (
            SELECT hash FROM login_replays WHERE expires_at < now() - interval '1 hour' LIMIT 10000)",
    ];
    let (mut items, mut is_all) = (0, true);
    for statement in EXPIRE {
        let deleted = tx.execute(statement, &[]).await?;
        items += deleted;
        is_all &= deleted < AT_ONCE;
    }
    Ok(JobRun { items, is_all })
}
