//! The rows of kept files, always those of one workspace.

use super::managed::cut_page;
use super::query::ListQuery;
use super::{FileOwner, FilesAway, ManagedFile, PART_BYTES};
use crate::runtime::small_pool::{SmallPool, bounded};
use chrono::{DateTime, Utc};
use shared::log_store::file_folder;
use shared::settings::{Database, FileSettings};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};
use uuid::Uuid;

/// Connections at once.
pub(crate) const CONNECTIONS: usize = 4;
/// Uploads of a workspace at once.
const MAX_UPLOADS: i64 = 32;
/// Files of a workspace.
const MAX_FILES: i64 = 100_000;

const COLUMNS: &str = "id, filename, purpose, bytes, part_bytes, created_at, expires_at";
const IS_LIVE: &str = "organisation_id = $1 AND workspace_id = $2 AND status = 'processed'
    AND (expires_at IS NULL OR expires_at > now())";

/// Uploads of a workspace begin, grow and end one after the other, so that they cannot pass its quota together.
const IN_TURN: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1::uuid::text, 55))";

pub struct FileRows {
    pool: SmallPool,
    settings: FileSettings,
}

/// What is known of an upload when its last byte has come.
#[derive(Debug)]
pub struct FinishedUpload {
    pub filename: String,
    pub purpose: String,
    pub bytes: u64,
    pub expires_at: Option<DateTime<Utc>>,
}

#[derive(Debug)]
pub enum Finish {
    Stored(ManagedFile),
    OverQuota,
}

impl FileRows {
    pub fn new(database: Database, settings: FileSettings) -> Self {
        Self { pool: SmallPool::new(database, CONNECTIONS), settings }
    }

    /// Makes the row of an upload that begins; None when the workspace has no room for `announced` bytes more. They count
    /// from now on, and what was not announced as it comes (`hold`).
    pub async fn begin(&self, owner: FileOwner, key: Uuid, announced: u64) -> Result<Option<Uuid>, FilesAway> {
        const BEGIN: &str =
            "INSERT INTO managed_files (id, organisation_id, workspace_id, created_by, part_bytes, bytes)
            SELECT $3::uuid, $1::uuid, $2::uuid, $4::uuid, $5::bigint, $8::bigint
            FROM (SELECT count(*) FILTER (WHERE status = 'uploading') AS uploads, count(*) AS files,
                         coalesce(sum(bytes), 0)::bigint AS bytes
                  FROM managed_files WHERE organisation_id = $1::uuid AND workspace_id = $2::uuid) AS used
            WHERE used.uploads < $6::bigint AND used.files < $7::bigint AND used.bytes <= $9::bigint - $8::bigint";
        let (id, announced) = (Uuid::now_v7(), signed(announced));
        let mut lent = self.pool.lend(owner.tenant()).await?;
        let quota = self.quota();
        let work = async {
            let tx = lent.client.transaction().await?;
            tx.execute(IN_TURN, &[&owner.workspace]).await?;
            let values: [&(dyn ToSql + Sync); 9] = [
                &owner.organisation,
                &owner.workspace,
                &id,
                &key,
                &(PART_BYTES as i64),
                &MAX_UPLOADS,
                &MAX_FILES,
                &announced,
                &quota,
            ];
            let made = tx.execute(BEGIN, &values).await?;
            tx.commit().await?;
            Ok(made)
        };
        let made: u64 = bounded(work).await?;
        lent.give_back();
        Ok((made == 1).then_some(id))
    }

    /// Takes room for an upload under way: `wanted` bytes in all, or what is left if that is no less than `needed`. How
    /// much it has then; None when there is not enough.
    pub async fn hold(&self, owner: FileOwner, id: Uuid, needed: u64, wanted: u64) -> Result<Option<u64>, FilesAway> {
        const HOLD: &str = "UPDATE managed_files SET bytes = least($5::bigint, $6::bigint - used.bytes)
            FROM (SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM managed_files
                  WHERE organisation_id = $1 AND workspace_id = $2 AND id <> $3) AS used
            WHERE organisation_id = $1 AND workspace_id = $2 AND id = $3 AND status = 'uploading'
              AND used.bytes <= $6::bigint - $4::bigint RETURNING managed_files.bytes";
        let FileOwner { organisation, workspace } = owner;
        let (needed, wanted, quota) = (signed(needed), signed(wanted), self.quota());
        let mut lent = self.pool.lend(owner.tenant()).await?;
        let work = async {
            let tx = lent.client.transaction().await?;
            tx.execute(IN_TURN, &[&workspace]).await?;
            let row = tx.query_opt(HOLD, &[&organisation, &workspace, &id, &needed, &wanted, &quota]).await?;
            tx.commit().await?;
            row.map(|row| row.try_get::<_, i64>(0)).transpose()
        };
        let held: Option<i64> = bounded(work).await?;
        lent.give_back();
        Ok(held.map(i64::unsigned_abs))
    }

    /// The upload is over: from now on the file exists. One that was swept meanwhile does not come back.
    pub async fn finish(&self, owner: FileOwner, id: Uuid, upload: &FinishedUpload) -> Result<Finish, FilesAway> {
        const USED: &str = "SELECT coalesce(sum(bytes), 0)::bigint FROM managed_files
            WHERE organisation_id = $1 AND workspace_id = $2 AND id <> $3";
        let stored = format!(
            "UPDATE managed_files SET status = 'processed', filename = $4, purpose = $5, bytes = $6, expires_at = $7
             WHERE organisation_id = $1 AND workspace_id = $2 AND id = $3 AND status = 'uploading' RETURNING {COLUMNS}"
        );
        let FileOwner { organisation, workspace } = owner;
        let bytes = signed(upload.bytes);
        let mut lent = self.pool.lend(owner.tenant()).await?;
        let quota = self.quota();
        let work = async {
            let tx = lent.client.transaction().await?;
            tx.execute(IN_TURN, &[&workspace]).await?;
            let used: i64 = tx.query_one(USED, &[&organisation, &workspace, &id]).await?.try_get(0)?;
            if used.saturating_add(bytes) > quota {
                return Ok(None);
            }
            let (filename, purpose) = (&upload.filename, &upload.purpose);
            let row = tx
                .query_opt(&stored, &[&organisation, &workspace, &id, filename, purpose, &bytes, &upload.expires_at])
                .await?;
            tx.commit().await?;
            Ok(Some(row))
        };
        let done: Option<Option<Row>> = bounded(work).await?;
        lent.give_back();
        match done {
            None => Ok(Finish::OverQuota),
            Some(None) => Err(FilesAway::because("an upload took so long that it was swept")),
            Some(Some(row)) => file(&row).map(Finish::Stored).map_err(FilesAway::because),
        }
    }

    /// Of an upload that failed: its row goes, and its bytes are noted to go. One that was finished after all, and of
    /// which only the answer was lost, stays whole.
    pub async fn discard(&self, owner: FileOwner, id: Uuid) -> Result<(), FilesAway> {
        const DISCARD: &str = "WITH gone AS (DELETE FROM managed_files
                WHERE organisation_id = $1 AND workspace_id = $2 AND id = $3 AND status = 'uploading')
            INSERT INTO object_deletions (folder) SELECT $4::text
            WHERE NOT EXISTS (SELECT FROM managed_files WHERE id = $3 AND status = 'processed') ON CONFLICT DO NOTHING";
        let folder = file_folder(owner.organisation, owner.workspace, id);
        let lent = self.pool.lend(owner.tenant()).await?;
        bounded(lent.client.execute(DISCARD, &[&owner.organisation, &owner.workspace, &id, &folder])).await?;
        lent.give_back();
        Ok(())
    }

    pub async fn find(&self, owner: FileOwner, id: Uuid) -> Result<Option<ManagedFile>, FilesAway> {
        let find = format!("SELECT {COLUMNS} FROM managed_files WHERE {IS_LIVE} AND id = $3");
        let lent = self.pool.lend(owner.tenant()).await?;
        let row = bounded(lent.client.query_opt(&find, &[&owner.organisation, &owner.workspace, &id])).await?;
        lent.give_back();
        row.as_ref().map(file).transpose().map_err(FilesAway::because)
    }

    /// A page, and whether there is more after it.
    pub async fn list(&self, owner: FileOwner, query: &ListQuery) -> Result<(Vec<ManagedFile>, bool), FilesAway> {
        let (beyond, order) = if query.is_ascending { (">", "ASC") } else { ("<", "DESC") };
        let list = format!(
            "SELECT {COLUMNS} FROM managed_files WHERE {IS_LIVE} AND ($3::uuid IS NULL OR id {beyond} $3)
             AND ($4::text IS NULL OR purpose = $4) ORDER BY id {order} LIMIT $5"
        );
        let lent = self.pool.lend(owner.tenant()).await?;
        let rows =
            bounded(lent.client.query(
                &list,
                &[&owner.organisation, &owner.workspace, &query.after, &query.purpose, &(query.limit + 1)],
            ))
            .await?;
        lent.give_back();
        let files = rows.iter().map(file).collect::<Result<Vec<_>, _>>().map_err(FilesAway::because)?;
        Ok(cut_page(files, query.limit))
    }

    /// False when there is no such file.
    pub async fn delete(&self, owner: FileOwner, id: Uuid) -> Result<bool, FilesAway> {
        const DELETE: &str = "WITH gone AS (DELETE FROM managed_files
                WHERE organisation_id = $1 AND workspace_id = $2 AND id = $3 AND status = 'processed' RETURNING id),
            noted AS (INSERT INTO object_deletions (folder) SELECT $4::text FROM gone ON CONFLICT DO NOTHING)
            SELECT id FROM gone";
        let folder = file_folder(owner.organisation, owner.workspace, id);
        let lent = self.pool.lend(owner.tenant()).await?;
        let gone =
            bounded(lent.client.query_opt(DELETE, &[&owner.organisation, &owner.workspace, &id, &folder])).await?;
        lent.give_back();
        Ok(gone.is_some())
    }

    fn quota(&self) -> i64 {
        match self.settings.files_workspace_bytes {
            0 => i64::MAX,
            bytes => signed(bytes),
        }
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn file(row: &Row) -> Result<ManagedFile, Error> {
    Ok(ManagedFile {
        id: row.try_get("id")?,
        filename: row.try_get("filename")?,
        purpose: row.try_get("purpose")?,
        bytes: row.try_get::<_, i64>("bytes")?.unsigned_abs(),
        part_bytes: row.try_get::<_, i64>("part_bytes")?.unsigned_abs(),
        created_at: row.try_get("created_at")?,
        expires_at: row.try_get("expires_at")?,
    })
}
