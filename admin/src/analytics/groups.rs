//! Figures by what calls have in common: one row for each value, the most telling first, page by page.

use super::dimension;
use super::measure::{self, Measure};
use super::rolled;
use super::series::CountedRows;
use super::slots::{PartsShape, Slots};
use crate::http::ApiError;
use serde_json::Value;
use shared::db::table::Filter;
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;

/// Groups beyond so many are left out, after they were put in order.
pub const MOST: i64 = 10_000;

pub struct GroupQuery<'q> {
    /// The value to group by, a text in SQL.
    pub value: &'q str,
    /// What is counted: `request_logs`, or that joined with something.
    pub from: &'q str,
    pub filter: &'q Filter,
    /// The same, if slots may have it, and what they call the value.
    pub slots: Option<(&'q Slots, (&'static str, &'static str))>,
    /// Values of `value` and `from`, bound after those of the filter.
    pub further: Vec<&'q (dyn ToSql + Sync)>,
    pub measures: &'q [Measure],
    pub order: Order,
    pub size: i64,
    pub offset: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    pub by: OrderBy,
    pub is_descending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderBy {
    Value,
    /// One of the measures, by its place.
    Measure(usize),
}

#[derive(Debug, Default)]
pub struct Groups {
    /// Values of groups, and their measures in the order that was asked for.
    pub rows: Vec<(String, Vec<Value>)>,
    pub total: i64,
    /// Whether there are more groups than are counted.
    pub is_capped: bool,
}

pub async fn groups(db: &impl GenericClient, query: &GroupQuery<'_>) -> Result<Groups, ApiError> {
    let parts = match query.slots {
        Some((slots, (grouped_by, of_slots))) => {
            let shape = PartsShape { grouped_by, of_logs: query.value, of_slots, step: None };
            slots.parts(db, query.filter, query.measures, shape).await?
        }
        None => None,
    };
    let mut values = match &parts {
        Some(parts) => parts.values(),
        None => query.filter.values(),
    };
    values.extend(query.further.iter().copied());
    let n = values.len();
    let order = query.order.sql();
    let grouped = match &parts {
        Some(parts) => format!("{} {}", parts.sql(), rolled::select(rolled::BY_VALUE, query.measures)),
        None => format!(
            "SELECT {} AS value, {} FROM {} WHERE {} GROUP BY 1",
            query.value,
            measure::columns(query.measures),
            query.from,
            query.filter.sql(),
        ),
    };
    let grouped = format!("SELECT * FROM ({grouped}) AS every ORDER BY {order} LIMIT {}", MOST + 1);
    // Counted apart from the page, so that a page beyond the last one knows how many there are.
    let sql = format!(
        "WITH grouped AS MATERIALIZED ({grouped}), counted AS (SELECT count(*) AS total FROM grouped)
         SELECT counted.total, page.* FROM counted
         LEFT JOIN (SELECT * FROM grouped ORDER BY {order} LIMIT ${} OFFSET ${}) AS page ON true ORDER BY {order}",
        n + 1,
        n + 2,
    );
    let size = query.size.min(MOST.saturating_sub(query.offset).max(0));
    values.extend([&size as &(dyn ToSql + Sync), &query.offset]);
    let mut groups = Groups::default();
    for row in db.query(&sql, &values).await? {
        let total: i64 = row.try_get("total")?;
        (groups.total, groups.is_capped) = (total.min(MOST), total > MOST);
        if let Some(value) = row.try_get("value")? {
            groups.rows.push((value, measure::values(&row, query.measures.len())?));
        }
    }
    Ok(groups)
}

/// The same measures over everything.
pub async fn totals(
    db: &impl GenericClient,
    rows: &CountedRows<'_>,
    measures: &[Measure],
) -> Result<Vec<Value>, ApiError> {
    let (of_logs, of_slots) =
        if measures.contains(&measure::ERROR_CODES) { (dimension::STATUS_CODE.sql, "value") } else { ("''", "''") };
    let shape = PartsShape { grouped_by: "", of_logs, of_slots, step: None };
    let parts = match rows.slots {
        Some(slots) if !measures.iter().any(|one| one.divided_by == "user") => {
            slots.parts(db, rows.filter, measures, shape).await?
        }
        _ => None,
    };
    let row = match parts {
        Some(parts) => {
            let sql = format!("{} {}", parts.sql(), rolled::select(rolled::WHOLE, measures));
            db.query_one(&sql, &parts.values()).await?
        }
        None => {
            let sql = format!("SELECT {} FROM {} WHERE {}", measure::columns(measures), rows.from, rows.filter.sql());
            db.query_one(&sql, &rows.filter.values()).await?
        }
    };
    Ok(measure::values(&row, measures.len())?)
}

impl Order {
    /// Equals are ordered by their value, so that pages do not overlap.
    fn sql(self) -> String {
        let direction = if self.is_descending { "DESC" } else { "ASC" };
        match self.by {
            OrderBy::Value => format!("value {direction}"),
            OrderBy::Measure(n) => format!("m{n} {direction}, value"),
        }
    }
}
