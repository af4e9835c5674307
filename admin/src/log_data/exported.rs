//! Logs as exports have them: some fields of each, one part after the other.

use super::question::LogSearch;
use crate::http::ApiError;
use chrono::{DateTime, Utc};
use shared::db::table::Filter;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, GenericClient, Row};
use uuid::Uuid;

/// Where an export stands, and what it takes of the next logs.
#[derive(Debug)]
pub struct ExportedPart<'p> {
    /// What is logged later is not part of it.
    pub started_at: DateTime<Utc>,
    /// The log that it ended with last.
    pub last: Option<(DateTime<Utc>, Uuid)>,
    /// Names of fields; none for those that are not in the row.
    pub fields: &'p [Option<&'static str>],
    pub size: i64,
    /// Logs that are left out before the first part.
    pub skipped: i64,
}

pub struct ExportedLog {
    pub id: Uuid,
    pub created_at: DateTime<Utc>,
    pub body_key: Option<String>,
    /// The values of the fields, as a JSON array.
    pub fields: String,
}

/// Fields that are not written as they are stored.
static WRITTEN: &[(&str, &str)] = &[
    ("created_at", r#"to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"#),
    ("cost", "trim_scale(cost)"),
    ("cost_unit", "'cent'"),
    ("workspace_slug", "(SELECT w.slug FROM workspaces w WHERE w.id = request_logs.workspace_id)"),
];

pub(super) async fn find(
    db: &impl GenericClient,
    which: &LogSearch<'_>,
    part: &ExportedPart<'_>,
) -> Result<Vec<ExportedLog>, ApiError> {
    let filter = which.filter()?;
    let (filter, skipped) = match part.last {
        None => (filter.and("created_at <= ?", part.started_at), part.skipped),
        Some((at, id)) => {
            let earlier = Filter::default().and("created_at < ?", at);
            let same = Filter::default().equals("created_at", at).and("id < ?", id);
            // Said twice: only the plain bound chooses days and a place in the index.
            (filter.and("created_at <= ?", at).join(Filter::any([earlier, same])), 0)
        }
    };
    let mut values = filter.values();
    let n = values.len();
    let sql = format!(
        "SELECT id, created_at, body_key, json_build_array({})::text AS fields FROM request_logs WHERE {}
         ORDER BY created_at DESC, id DESC LIMIT ${} OFFSET ${}",
        expressions(part.fields),
        filter.sql(),
        n + 1,
        n + 2
    );
    values.extend([&part.size as &(dyn ToSql + Sync), &skipped]);
    let rows = db.query(&sql, &values).await?;
    Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
}

fn expressions(fields: &[Option<&'static str>]) -> String {
    let written = |name: &'static str| WRITTEN.iter().find(|(field, _)| *field == name).map_or(name, |(_, sql)| *sql);
    fields.iter().map(|name| name.map_or("NULL", written)).collect::<Vec<_>>().join(", ")
}

fn read(row: &Row) -> Result<ExportedLog, Error> {
    Ok(ExportedLog {
        id: row.try_get("id")?,
        created_at: row.try_get("created_at")?,
        body_key: row.try_get("body_key")?,
        fields: row.try_get("fields")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_no_columns() {
        assert_eq!(expressions(&[Some("id"), None, Some("cost")]), "id, NULL, trim_scale(cost)");
    }
}
