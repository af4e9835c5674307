//! Figures by what calls have in common: one row for each value, the most telling first, page by page.

use super::counted::{self, Counted, ValueOf};
use super::measure::{self, Measure};
use super::series::CountedRows;
use super::slots::{CountedShape, Slots};
use crate::http::ApiError;
use rust_decimal::Decimal;
use serde_json::Value;
use shared::db::table::Filter;
use shared::db::usage_slots::{Figures, SlotDimension};
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
    pub slots: Option<(&'q Slots, (SlotDimension, ValueOf))>,
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
    if let Some((slots, (grouped_by, value))) = query.slots {
        let shape = CountedShape { grouped_by, value, step: None };
        if let Some(counted) = slots.count(db, query.filter, query.measures, shape).await? {
            return Ok(query.page(&counted));
        }
    }
    let mut values = query.filter.values();
    values.extend(query.further.iter().copied());
    let n = values.len();
    let order = query.order.sql();
    let grouped = format!(
        "SELECT {} AS value, {} FROM {} WHERE {} GROUP BY 1",
        query.value,
        measure::columns(query.measures),
        query.from,
        query.filter.sql(),
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

impl GroupQuery<'_> {
    /// Of what was counted already. Only what orders groups is measured of all of them.
    fn page(&self, counted: &Counted) -> Groups {
        let all = counted.by_value();
        let rank = |figures: &Figures| match self.order.by {
            OrderBy::Value => Decimal::ZERO,
            OrderBy::Measure(n) => self.measures[n].rolled.map_or(Decimal::ZERO, |rolled| rolled.value(figures, 0)),
        };
        let mut groups: Vec<(Decimal, &String, &Figures)> =
            all.iter().map(|(value, figures)| (rank(figures), value, figures)).collect();
        groups.sort_unstable_by(|one, other| match (self.order.by, self.order.is_descending) {
            (OrderBy::Value, true) => other.1.cmp(one.1),
            (OrderBy::Value, false) => one.1.cmp(other.1),
            (OrderBy::Measure(_), true) => other.0.cmp(&one.0).then(one.1.cmp(other.1)),
            (OrderBy::Measure(_), false) => one.0.cmp(&other.0).then(one.1.cmp(other.1)),
        });
        let is_capped = groups.len() as i64 > MOST;
        groups.truncate(MOST as usize);
        let values = |figures: &Figures| {
            self.measures.iter().map(|measure| counted::value(measure, figures, 0)).collect::<Vec<Value>>()
        };
        let (size, offset) =
            (usize::try_from(self.size).unwrap_or(0), usize::try_from(self.offset).unwrap_or(usize::MAX));
        let rows = groups.iter().skip(offset).take(size).map(|(_, value, figures)| ((*value).clone(), values(figures)));
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
