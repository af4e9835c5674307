//! Where the files of an export lie, and the links by which they are fetched without a key.

use crate::app::App;
use crate::http::ApiError;
use crate::logs::exports::{ExportFormat, PER_FILE};
use axum::body::Body;
use bytes::Bytes;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use shared::identity::api_key::{self, KeyHash};
use shared::log_store::{Error, LogStore};
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// How long a link is good for.
pub const LINK_HOURS: i32 = 1;

/// The folder of everything that an export ever made.
pub fn folder(organisation: Uuid, export: Uuid) -> String {
    format!("exports/{organisation}/{export}")
}

/// The folder of one of its runs.
pub fn run_folder(organisation: Uuid, export: Uuid, run: i32) -> String {
    format!("{}/{run}", folder(organisation, export))
}

pub fn part_path(organisation: Uuid, export: Uuid, run: i32, part: i32) -> String {
    format!("{}/{part:06}", run_folder(organisation, export, run))
}

/// How many files so many logs fill. One even without any: it says that there are none.
pub fn count(records: i64) -> i64 {
    (records.max(1) - 1) / PER_FILE + 1
}

/// Gives out a link to each file of a run.
pub async fn links(
    app: &App,
    db: &impl GenericClient,
    export: Uuid,
    run: i32,
    files: i64,
) -> Result<Vec<String>, ApiError> {
    const INSERT: &str = "INSERT INTO log_export_links (token_hash, export_id, run, expires_at)
                          VALUES ($1, $2, $3, now() + make_interval(hours => $4))";
    let token = api_key::generate("");
    db.execute(INSERT, &[&KeyHash::from_key(token.as_bytes()).0.as_slice(), &export, &run, &LINK_HOURS]).await?;
    let link = |file| format!("{}/v1/logs/exports/{export}/files/{file}?token={token}", app.public_url);
    Ok((1..=files).map(link).collect())
}

/// A file that a link opens.
pub struct ExportFile {
    pub format: ExportFormat,
    pub name: String,
    pub bytes: i64,
    parts: Vec<String>,
}

/// None when the link is not good, or no longer, or there is no such file.
pub async fn opened(
    db: &impl GenericClient,
    export: Uuid,
    file: i32,
    token: &str,
) -> Result<Option<ExportFile>, ApiError> {
    const FIND: &str = "SELECT e.organisation_id, e.run, e.format, p.part, p.bytes
        FROM log_export_links l JOIN exports e ON e.id = l.export_id AND e.run = l.run AND e.status = 'success'
        JOIN log_export_parts p ON p.export_id = e.id
        WHERE l.token_hash = $1 AND l.expires_at > now() AND e.id = $2 AND p.file = $3 ORDER BY p.part";
    let rows = db.query(FIND, &[&KeyHash::from_key(token.as_bytes()).0.as_slice(), &export, &(file - 1)]).await?;
    let Some(first) = rows.first() else { return Ok(None) };
    let (organisation, run): (Uuid, i32) = (first.try_get("organisation_id")?, first.try_get("run")?);
    let format = ExportFormat::parse(first.try_get("format")?).ok_or(ApiError::Internal)?;
    let name = format!("logs-{export}-{file}.{}", format.as_str());
    let mut found = ExportFile { format, name, bytes: 0, parts: Vec::new() };
    for row in &rows {
        found.bytes += row.try_get::<_, i64>("bytes")?;
        found.parts.push(part_path(organisation, export, run, row.try_get("part")?));
    }
    Ok(Some(found))
}

impl ExportFile {
    /// Its bytes, part after part as they are read.
    pub fn body(self, store: LogStore) -> Body {
        let parts = stream::iter(self.parts.into_iter().map(Ok)).and_then(move |path| {
            let store = store.clone();
            async move {
                let found = store.read(&path).await?;
                let (_, bytes) = found.ok_or(Error::NotFound)?;
                Ok::<_, Error>(bytes)
            }
        });
        let bytes = parts.try_flatten().inspect_err(|error| tracing::error!(%error, "an export breaks off"));
        Body::from_stream(bytes.map(|piece: Result<Bytes, Error>| piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_export_run_and_part_has_a_place_of_its_own() {
        let id = Uuid::nil();
        assert_eq!(part_path(id, id, 2, 7), format!("exports/{id}/{id}/2/000007"));
        assert!(part_path(id, id, 2, 7).starts_with(&format!("{}/", run_folder(id, id, 2))));
    }

    #[test]
    fn a_file_holds_fifty_thousand_logs_and_there_is_always_one() {
        for (records, files) in [(0, 1), (1, 1), (50_000, 1), (50_001, 2), (200_000, 4)] {
            assert_eq!(count(records), files, "{records}");
        }
    }
}
