//! One step of a running export: the next few thousand logs become one object in the log store, and its row says how far
//! it has got. Both happen in the job's transaction, so a step that was cut short is done again and nothing is twice.

use crate::app::App;
use crate::http::{ApiError, PageSizes, Query};
use crate::log_data::view::VisibleWorkspaces;
use crate::log_data::{ExportedLog, ExportedPart, LogData as _, LogSearch, LogView, PostgresLogs, filters};
use crate::logs::exports::fields::{self, FieldSource};
use crate::logs::exports::{ExportFormat, PER_FILE, files};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use serde_json::{Map, Value};
use shared::log_store::{self, Error, LogStore};
use shared::telemetry::{Brief, LogLimit};
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

/// Logs of one step.
const AT_ONCE: i64 = 5000;
/// Fewer when each is an object of its own.
const AT_ONCE_WITH_BODIES: i64 = 500;
/// A part is ended when it has become this long: what a step holds is one part and the bodies under way.
const PART_BYTES: usize = 4 << 20;
const BODIES_AT_ONCE: usize = 4;
/// The longest stored body that is read; more than is ever written.
const MAX_OF_BODY: usize = 64 << 20;

/// What a step needs of an export.
pub struct RunningExport {
    pub id: Uuid,
    organisation_id: Uuid,
    workspaces: VisibleWorkspaces,
    filters: Map<String, Value>,
    requested_data: Vec<String>,
    format: ExportFormat,
    own_data_of: Option<Uuid>,
    shows_metadata: bool,
    run: i32,
    started_at: DateTime<Utc>,
    exported: i64,
    parts: i32,
    last: Option<(DateTime<Utc>, Uuid)>,
}

/// Why a step could not be done.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// It never will be.
    #[error("{0}")]
    Export(String),
    #[error("{0}")]
    Store(#[from] Error),
    #[error("the database failed")]
    Database(#[from] tokio_postgres::Error),
    /// The logs could not be read; why is logged.
    #[error("{0}")]
    Logs(ApiError),
}

impl RunningExport {
    pub const COLUMNS: &str =
        "id, organisation_id, workspace_id, workspace_ids, filters, requested_data, format, own_data_of,
        shows_metadata, run, started_at, exported_records, parts, last_created_at, last_id";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let (at, id): (Option<DateTime<Utc>>, Option<Uuid>) =
            (row.try_get("last_created_at")?, row.try_get("last_id")?);
        let filters: Value = row.try_get("filters")?;
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            workspaces: VisibleWorkspaces::from_columns(row.try_get("workspace_id")?, row.try_get("workspace_ids")?),
            filters: filters.as_object().cloned().unwrap_or_default(),
            requested_data: fields::with_units(row.try_get("requested_data")?),
            format: ExportFormat::parse(row.try_get("format")?).unwrap_or(ExportFormat::Jsonl),
            own_data_of: row.try_get("own_data_of")?,
            shows_metadata: row.try_get("shows_metadata")?,
            run: row.try_get("run")?,
            started_at: row.try_get::<_, Option<DateTime<Utc>>>("started_at")?.unwrap_or_default(),
            exported: row.try_get("exported_records")?,
            parts: row.try_get("parts")?,
            last: at.zip(id),
        })
    }

    /// Does the next step and answers how many logs it was; the export is a success once there are no more.
    pub async fn step(&self, app: &App, tx: &Transaction<'_>) -> Result<u64, StepError> {
        let query = filters::of_json(&self.filters).map_err(refused)?;
        let page = ExportPage::asked(&query).map_err(refused)?;
        let most = self.most(page);
        let rows = if most > 0 { self.next(tx, &query, page, most).await? } else { Vec::new() };
        let part = self.written(&app.log_store, &rows).await?;
        let is_last = part.records == rows.len() && (rows.len() as i64) < most.max(1);
        let exported = self.exported + part.records as i64;
        if part.records > 0 || self.exported == 0 {
            self.store(app, tx, part.text, part.records).await?;
        }
        let last = part.records.checked_sub(1).and_then(|n| rows.get(n));
        self.note(tx, exported, last, is_last || page.is_filled_by(exported)).await?;
        Ok(part.records as u64)
    }

    /// A part never reaches into the next file.
    fn most(&self, page: ExportPage) -> i64 {
        let has_bodies = self.sources().any(|source| source == FieldSource::Body);
        let at_once = if has_bodies { AT_ONCE_WITH_BODIES } else { AT_ONCE };
        at_once.min(PER_FILE - self.exported % PER_FILE).min(page.left(self.exported))
    }

    fn sources(&self) -> impl Iterator<Item = FieldSource> {
        self.requested_data.iter().filter_map(|name| fields::field(name)).map(|field| field.source)
    }

    /// Newest first, from where the last step ended; what is logged after the start is not part of it.
    async fn next(
        &self,
        tx: &Transaction<'_>,
        query: &Query,
        page: ExportPage,
        most: i64,
    ) -> Result<Vec<ExportedLog>, StepError> {
        let view = LogView {
            organisation_id: self.organisation_id,
            workspaces: self.workspaces.clone(),
            user_id: self.own_data_of,
            shows_metadata: self.shows_metadata,
        };
        let which = LogSearch { view: &view, query, since: None };
        which.check().map_err(refused)?;
        let fields = self.columns();
        let part = ExportedPart {
            started_at: self.started_at,
            last: self.last,
            fields: &fields,
            size: most,
            skipped: page.skipped,
        };
        PostgresLogs(tx).exported(&which, &part).await.map_err(StepError::Logs)
    }

    /// The fields that rows have, in their places; none for those of bodies.
    fn columns(&self) -> Vec<Option<&'static str>> {
        let fields = self.requested_data.iter().filter_map(|name| fields::field(name));
        fields.map(|field| (field.source == FieldSource::Row).then_some(field.name)).collect()
    }

    /// The text of a part: as many of the rows as it has room for.
    async fn written(&self, store: &LogStore, rows: &[ExportedLog]) -> Result<ExportPart, StepError> {
        let is_new_file = self.exported % PER_FILE == 0;
        let mut part = ExportPart { text: String::new(), records: 0 };
        if is_new_file {
            part.text = self.format.head(&self.requested_data);
        }
        let bodies = self.sources().any(|source| source == FieldSource::Body);
        // Boxed, because the compiler cannot see that a closure over borrowed rows fits any lifetime.
        let values: Vec<BoxFuture<'_, _>> = rows.iter().map(|row| self.values(store, row, bodies).boxed()).collect();
        let mut fetched = stream::iter(values).buffered(BODIES_AT_ONCE);
        while let Some(values) = fetched.next().await {
            part.text += &self.format.line(&self.requested_data, values?);
            part.records += 1;
            if part.text.len() >= PART_BYTES {
                break;
            }
        }
        Ok(part)
    }

    async fn values(&self, store: &LogStore, row: &ExportedLog, bodies: bool) -> Result<Vec<Value>, StepError> {
        let unreadable = |_| StepError::Export("a log cannot be read".into());
        let mut values: Vec<Value> = serde_json::from_str(&row.fields).map_err(unreadable)?;
        if let Some(key) = row.body_key.as_deref().filter(|_| bodies) {
            let mut body = body(store, key).await?;
            for ((name, source), value) in self.requested_data.iter().zip(self.sources()).zip(&mut values) {
                if source == FieldSource::Body {
                    *value = body.get_mut(name).map(Value::take).unwrap_or_default();
                }
            }
        }
        Ok(values)
    }

    async fn store(&self, app: &App, tx: &Transaction<'_>, text: String, records: usize) -> Result<(), StepError> {
        const INSERT: &str = "INSERT INTO log_export_parts (export_id, file, part, records, bytes)
                              VALUES ($1, $2, $3, $4, $5)";
        let path = files::part_path(self.organisation_id, self.id, self.run, self.parts);
        let bytes = Bytes::from(text);
        let (file, records) = ((self.exported / PER_FILE) as i32, records as i32);
        let length = bytes.len() as i64;
        app.log_store.put(&path, bytes).await?;
        tx.execute(INSERT, &[&self.id, &file, &self.parts, &records, &length]).await?;
        Ok(())
    }

    async fn note(
        &self,
        tx: &Transaction<'_>,
        exported: i64,
        last: Option<&ExportedLog>,
        is_last: bool,
    ) -> Result<(), StepError> {
        const NOTE: &str = "UPDATE exports SET exported_records = $2, parts = parts + 1,
                last_created_at = coalesce($3, last_created_at), last_id = coalesce($4, last_id),
                next_step_at = clock_timestamp(), failures = 0, error = NULL, last_updated_at = now(),
                status = CASE WHEN $5 THEN 'success' ELSE status END,
                total_records = CASE WHEN $5 THEN $2 ELSE greatest(total_records, $2) END,
                total_is_capped = total_is_capped AND NOT $5
            WHERE id = $1";
        let (at, id) = last.map(|log| (log.created_at, log.id)).unzip();
        tx.execute(NOTE, &[&self.id, &exported, &at, &id, &is_last]).await?;
        Ok(())
    }
}

struct ExportPart {
    text: String,
    records: usize,
}

/// The body that a row points to. One that is gone or damaged is nothing: the rest of the log is worth exporting.
async fn body(store: &LogStore, key: &str) -> Result<Value, StepError> {
    let unreadable = |error: Error| {
        static UNREADABLE: LogLimit = LogLimit::new();
        if let Some(skipped) = UNREADABLE.pass() {
            tracing::warn!(%error, key = %Brief(key), skipped, "a stored body cannot be exported");
        }
        Value::Null
    };
    let packed = match store.body(key, MAX_OF_BODY).await {
        Ok(Some(packed)) => packed,
        Ok(None) => return Ok(Value::Null),
        Err(error @ (Error::TooLong | Error::Damaged | Error::Path)) => return Ok(unreadable(error)),
        Err(error) => return Err(error.into()),
    };
    // Unpacking a large body takes longer than a thread of the service may be held.
    let unpacked = tokio::task::spawn_blocking(move || {
        let json = log_store::unpack(&packed, MAX_OF_BODY)?;
        serde_json::from_slice(&json).map_err(|_| Error::Damaged)
    });
    Ok(unpacked.await.unwrap_or(Err(Error::Damaged)).unwrap_or_else(unreadable))
}

fn refused(error: ApiError) -> StepError {
    StepError::Export(error.to_string())
}

/// Which of the matching logs: all, or one page of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportPage {
    skipped: i64,
    most: Option<i64>,
}

impl ExportPage {
    const SIZES: PageSizes = PageSizes { default: PER_FILE, most: PER_FILE };

    /// All, unless a page is asked for by its size or its number.
    pub fn asked(query: &Query) -> Result<Self, ApiError> {
        let (size, skipped) = query.page(Self::SIZES)?;
        let is_asked =
            ["page_size", "pageSize", "current_page", "currentPage"].iter().any(|name| query.text(name).is_some());
        Ok(Self { skipped: if is_asked { skipped } else { 0 }, most: is_asked.then_some(size) })
    }

    fn left(self, exported: i64) -> i64 {
        self.most.map_or(i64::MAX, |most| (most - exported).max(0))
    }

    fn is_filled_by(self, exported: i64) -> bool {
        self.left(exported) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(query: &str) -> ExportPage {
        ExportPage::asked(&Query::parse(Some(query)).unwrap()).unwrap()
    }

    #[test]
    fn everything_is_exported_unless_a_page_is_asked_for() {
        for (query, skipped, most) in [
            ("", 0, None),
            ("page_size=100", 0, Some(100)),
            ("page_size=99999", 0, Some(50_000)),
            ("current_page=2", 100_000, Some(50_000)),
            ("currentPage=3&pageSize=10", 30, Some(10)),
        ] {
            assert_eq!(page(query), ExportPage { skipped, most }, "{query}");
        }
    }

    #[test]
    fn a_page_ends_when_it_is_full() {
        assert_eq!((page("page_size=10").left(4), page("page_size=10").left(11)), (6, 0));
        assert!(page("page_size=10").is_filled_by(10) && !page("page_size=10").is_filled_by(9));
        assert!(!page("").is_filled_by(i64::MAX - 1));
    }

    fn running(exported: i64, requested: &[&str]) -> RunningExport {
        RunningExport {
            id: Uuid::nil(),
            organisation_id: Uuid::nil(),
            workspaces: VisibleWorkspaces::All,
            filters: Map::new(),
            requested_data: requested.iter().map(|name| (*name).to_owned()).collect(),
            format: ExportFormat::Csv,
            own_data_of: None,
            shows_metadata: true,
            run: 1,
            started_at: Utc::now(),
            exported,
            parts: 0,
            last: None,
        }
    }

    #[test]
    fn a_step_ends_where_its_file_does() {
        for (exported, query, requested, most) in [
            (0, "", "id", 5000),
            (0, "", "request", 500),
            (49_900, "", "id", 100),
            (50_000, "", "id", 5000),
            (10, "page_size=30", "id", 20),
            (30, "page_size=30", "id", 0),
        ] {
            assert_eq!(running(exported, &[requested]).most(page(query)), most, "{exported} {query} {requested}");
        }
    }

    #[test]
    fn bodies_are_no_columns() {
        assert_eq!(running(0, &["id", "response", "cost"]).columns(), [Some("id"), None, Some("cost")]);
    }
}
