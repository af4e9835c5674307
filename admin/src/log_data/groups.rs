//! Figures by what calls have in common: one row for each value, the most telling first, page by page.

use super::counted::ValueOf;
use super::dimension::Dimension;
use super::measure::{self, Measure};
use super::said::{self, Said};
use super::series::CountedRows;
use super::slots::{CountedShape, Slots};
use super::{LogView, row};
use crate::http::ApiError;
use rust_decimal::Decimal;
use serde_json::Value;
use shared::db::table::Filter;
use shared::db::usage_slots::{ByValue, Figures, SlotDimension};
use std::collections::HashMap;
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;

/// Groups beyond so many are left out, after they were put in order.
pub const MOST: i64 = 10_000;

/// A page of groups.
#[derive(Debug)]
pub struct GroupQuestion<'q> {
    pub by: GroupBy<'q>,
    pub measures: &'q [Measure],
    pub order: Order,
    pub size: i64,
    pub offset: i64,
}

#[derive(Debug, Clone, Copy)]
pub enum GroupBy<'q> {
    Dimension(&'q Dimension),
    /// The value of this name, beside which feedback can be measured.
    Metadata(&'q str),
}

/// Calls, and what was thought of the trace of each.
const WITH_FEEDBACK: &str = "request_logs LEFT JOIN LATERAL (
    SELECT avg(f.weighted) AS said FROM feedback f
    WHERE f.workspace_id = request_logs.workspace_id AND f.trace_id = request_logs.trace_id) AS thoughts ON true";

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

pub async fn groups(
    db: &impl GenericClient,
    view: &LogView,
    filter: &Filter,
    slots: Option<&Slots>,
    query: &GroupQuestion<'_>,
) -> Result<Groups, ApiError> {
    if let Some(slots) = slots
        && let Some(groups) = from_slots(db, view, filter, slots, query).await?
    {
        return Ok(groups);
    }
    let mut values = filter.values();
    let (value, from) = match &query.by {
        GroupBy::Dimension(dimension) => (dimension.sql.to_owned(), dimension.from),
        GroupBy::Metadata(name) => {
            values.push(name);
            (format!("coalesce(metadata ->> ${}::text, '')", values.len()), WITH_FEEDBACK)
        }
    };
    let n = values.len();
    let order = query.order.sql();
    let grouped = format!(
        "SELECT {value} AS value, {} FROM {from} WHERE {} GROUP BY 1",
        measure::columns(query.measures),
        filter.sql(),
    );
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

/// None where only logs know.
async fn from_slots(
    db: &impl GenericClient,
    view: &LogView,
    filter: &Filter,
    slots: &Slots,
    query: &GroupQuestion<'_>,
) -> Result<Option<Groups>, ApiError> {
    match query.by {
        GroupBy::Dimension(dimension) => {
            let (grouped_by, value) = dimension.slots;
            let shape = CountedShape { grouped_by, value, step: None };
            let counted = slots.count(db, filter, query.measures, shape).await?;
            Ok(counted.map(|counted| query.page(&counted.by_value(), &HashMap::new())))
        }
        GroupBy::Metadata(name) => {
            let Some(found) = slots.by_metadata(db, filter, name).await? else { return Ok(None) };
            let said = said::by_metadata(db, view, slots.period(), filter, name).await?;
            Ok(Some(query.page(&found, &said)))
        }
    }
}

impl GroupQuestion<'_> {
    /// Of what was counted already. Only what orders groups is measured of all of them.
    fn page(&self, all: &ByValue, said: &HashMap<String, Said>) -> Groups {
        let measured = |measure: &Measure, value: &String, figures: &Figures| match measure.rolled {
            Some(rolled) => rolled.value(figures, 0),
            None => said.get(value).map_or(Decimal::ZERO, |said| said.measured(measure)),
        };
        let rank = |value: &String, figures: &Figures| match self.order.by {
            OrderBy::Value => Decimal::ZERO,
            OrderBy::Measure(n) => measured(&self.measures[n], value, figures),
        };
        let mut groups: Vec<(Decimal, &String, &Figures)> =
            all.iter().map(|(value, figures)| (rank(value, figures), value, figures)).collect();
        groups.sort_unstable_by(|one, other| match (self.order.by, self.order.is_descending) {
            (OrderBy::Value, true) => other.1.cmp(one.1),
            (OrderBy::Value, false) => one.1.cmp(other.1),
            (OrderBy::Measure(_), true) => other.0.cmp(&one.0).then(one.1.cmp(other.1)),
            (OrderBy::Measure(_), false) => one.0.cmp(&other.0).then(one.1.cmp(other.1)),
        });
        let is_capped = groups.len() as i64 > MOST;
        groups.truncate(MOST as usize);
        let values = |value: &String, figures: &Figures| {
            self.measures.iter().map(|one| row::number(measured(one, value, figures))).collect::<Vec<Value>>()
        };
        let (size, offset) =
            (usize::try_from(self.size).unwrap_or(0), usize::try_from(self.offset).unwrap_or(usize::MAX));
        let rows = groups.iter().skip(offset).take(size);
        let rows = rows.map(|(_, value, figures)| ((*value).clone(), values(value, figures)));
        Groups { rows: rows.collect(), total: groups.len() as i64, is_capped }
    }
}

/// The same measures over everything.
pub async fn totals(
    db: &impl GenericClient,
    rows: &CountedRows<'_>,
    measures: &[Measure],
) -> Result<Vec<Value>, ApiError> {
    let shape = CountedShape { grouped_by: SlotDimension::All, value: ValueOf::Nothing, step: None };
    if let Some(counted) = rows.count(db, measures, shape).await? {
        return Ok(counted.whole(measures));
    }
    let sql = format!("SELECT {} FROM {} WHERE {}", measure::columns(measures), rows.from, rows.filter.sql());
    let row = db.query_one(&sql, &rows.filter.values()).await?;
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
