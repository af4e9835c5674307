//! Figures over time: for each slot of a period, for the whole of it, and both again for the values that most calls have.
//! One statement finds slots and whole, so that they are of the same moment.

use super::dimension::Dimension;
use super::measure::{self, Measure};
use super::period::{ORIGIN_SQL, Period, Step};
use crate::http::ApiError;
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde_json::Value;
use shared::db::table::Filter;
use std::collections::HashMap;
use tokio_postgres::GenericClient;

/// Values, in the order of the measures that were asked for; nothing happened in slots that are not there.
#[derive(Debug, Default)]
pub struct Series {
    pub whole: Vec<Value>,
    pub slots: HashMap<DateTime<Utc>, Vec<Value>>,
}

/// A graph is divided among so many values; what is left is one more.
pub const MOST_GROUPS: i64 = 10;

/// What rows are counted, as SQL says it: a table with a time, and the condition on its rows.
pub struct CountedRows<'f> {
    pub from: &'static str,
    pub time: &'static str,
    pub filter: &'f Filter,
}

impl<'f> CountedRows<'f> {
    /// Logs of calls. The filter holds the period.
    pub fn logs(filter: &'f Filter) -> Self {
        Self { from: "request_logs", time: "created_at", filter }
    }
}

pub async fn series(
    db: &impl GenericClient,
    rows: &CountedRows<'_>,
    step: Step,
    measures: &[Measure],
) -> Result<Series, ApiError> {
    let sql = format!(
        "SELECT slot, {} FROM (SELECT {} AS slot, * FROM {} WHERE {}) AS counted GROUP BY GROUPING SETS ((slot), ())",
        measure::columns(measures),
        slot(rows.time, step),
        rows.from,
        rows.filter.sql(),
    );
    let mut series = Series::default();
    for row in db.query(&sql, &rows.filter.values()).await? {
        let values = measure::values(&row, measures.len())?;
        match row.try_get::<_, Option<DateTime<Utc>>>("slot")? {
            Some(slot) => drop(series.slots.insert(slot, values)),
            None => series.whole = values,
        }
    }
    Ok(series)
}

/// The series of each of the commonest values, commonest first, and of all the others together (`None`).
pub async fn divided(
    db: &impl GenericClient,
    rows: &CountedRows<'_>,
    step: Step,
    measures: &[Measure],
    dimension: &Dimension,
) -> Result<Vec<(Option<String>, Series)>, ApiError> {
    let (value, from, matching) = (dimension.sql, dimension.from, rows.filter.sql());
    let top = format!(
        "SELECT {value} AS value FROM {from} WHERE {matching} GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT {MOST_GROUPS}"
    );
    let mut values = rows.filter.values();
    let top: Vec<String> =
        db.query(&top, &values).await?.iter().map(|row| row.try_get("value")).collect::<Result<_, _>>()?;
    values.push(&top);
    let at_top = format!("CASE WHEN {value} = ANY (${n}) THEN {value} END", n = values.len());
    let sql = format!(
        "SELECT slot, value, {} FROM (SELECT {} AS slot, {at_top} AS value, * FROM {from} WHERE {matching}) AS counted
         GROUP BY GROUPING SETS ((slot, value), (value))",
        measure::columns(measures),
        slot(rows.time, step),
    );
    let mut found: HashMap<Option<String>, Series> = HashMap::new();
    for row in db.query(&sql, &values).await? {
        let series = found.entry(row.try_get("value")?).or_default();
        let values = measure::values(&row, measures.len())?;
        match row.try_get::<_, Option<DateTime<Utc>>>("slot")? {
            Some(slot) => drop(series.slots.insert(slot, values)),
            None => series.whole = values,
        }
    }
    let order = top.into_iter().map(Some).chain([None]);
    Ok(order.filter_map(|value| found.remove_entry(&value)).collect())
}

/// How often each whole number occurs, in each slot: status codes of errors, retries that it took.
pub async fn occurrences(
    db: &impl GenericClient,
    filter: &Filter,
    step: Step,
    number: &'static str,
    which: &'static str,
) -> Result<HashMap<DateTime<Utc>, Vec<(i64, i64)>>, ApiError> {
    let sql = format!(
        "SELECT {} AS slot, ({number})::bigint AS number, count(*) AS count FROM request_logs
         WHERE {} AND {which} GROUP BY 1, 2 ORDER BY 1, 2",
        slot("created_at", step),
        filter.sql(),
    );
    let mut found: HashMap<DateTime<Utc>, Vec<(i64, i64)>> = HashMap::new();
    for row in db.query(&sql, &filter.values()).await? {
        found.entry(row.try_get("slot")?).or_default().push((row.try_get("number")?, row.try_get("count")?));
    }
    Ok(found)
}

fn slot(time: &str, step: Step) -> String {
    format!("date_bin('{}', {time}, {ORIGIN_SQL})", step.interval)
}

impl Series {
    /// The values of a slot, and zeros where nothing happened.
    pub fn slot(&self, slot: DateTime<Utc>, count: usize) -> Vec<Value> {
        self.slots.get(&slot).cloned().unwrap_or_else(|| vec![Value::from(0); count])
    }
}

/// Adds up from slot to slot.
pub fn running_sums(values: impl Iterator<Item = Value>) -> impl Iterator<Item = Value> {
    values.scan(Decimal::ZERO, |sum, value| {
        let more = value.to_string().parse().or_else(|_| Decimal::from_scientific(&value.to_string()));
        *sum += more.unwrap_or_default();
        Some(crate::logs::row::number(*sum))
    })
}

/// A period as a condition on a time.
pub fn within(filter: Filter, period: Period) -> Filter {
    filter.and("created_at >= ?", period.from).and("created_at < ?", period.until)
}
