//! Files of exports that may hold what was erased. Nobody can take a line out of them, so they go as a whole, and the
//! export says that it has to be started again.

use crate::http::ApiError;
use crate::logs::exports::files;
use chrono::{DateTime, Utc};
use tokio_postgres::GenericClient;
use uuid::Uuid;

const WHY: &str = "some of its logs were erased: start it again";

/// Stops the exports that were started after one of these logs was made, in their workspaces. Answers how many they were.
pub async fn empty(
    tx: &impl GenericClient,
    organisation: Uuid,
    workspaces: &Vec<Uuid>,
    times: &Vec<DateTime<Utc>>,
) -> Result<u64, ApiError> {
    const EMPTY: &str = "WITH emptied AS (
            UPDATE exports e SET status = 'stopped', error = $4, last_updated_at = now()
            WHERE organisation_id = $1 AND status IN ('success', 'in_progress') AND EXISTS (
                SELECT FROM unnest($2::uuid[], $3::timestamptz[]) AS log (workspace_id, created_at)
                WHERE log.created_at <= e.started_at AND (log.workspace_id = e.workspace_id
                    OR e.workspace_id IS NULL AND (e.workspace_ids IS NULL OR log.workspace_id = ANY(e.workspace_ids))))
            RETURNING id, run),
        parts AS (DELETE FROM log_export_parts WHERE export_id IN (SELECT id FROM emptied)),
        links AS (DELETE FROM log_export_links WHERE export_id IN (SELECT id FROM emptied))
        SELECT id, run FROM emptied";
    const NOTE: &str = "INSERT INTO object_deletions (folder) VALUES ($1) ON CONFLICT DO NOTHING";
    let emptied = tx.query(EMPTY, &[&organisation, workspaces, times, &WHY]).await?;
    for export in &emptied {
        let folder = files::run_folder(organisation, export.try_get("id")?, export.try_get("run")?);
        tx.execute(NOTE, &[&folder]).await?;
    }
    Ok(emptied.len() as u64)
}
