//! Figures over time: for each slot of a period, for the whole of it, and both again for the values that most calls have.
//! One statement finds slots and whole, so that they are of the same moment.

use super::dimension::Dimension;
use super::measure::{self, Measure};
use super::period::{ORIGIN_SQL, Period, Step};
use super::rolled;
use super::slots::{self, Parts, PartsShape, Slots};
use crate::http::ApiError;
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde_json::Value;
use shared::db::table::Filter;
use std::collections::HashMap;
use tokio_postgres::{GenericClient, Row};

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
    /// The same, if slots may have it.
    pub slots: Option<&'f Slots>,
}

impl<'f> CountedRows<'f> {
    /// Logs of calls. The filter holds the period.
    pub fn logs(filter: &'f Filter, slots: Option<&'f Slots>) -> Self {
        Self { from: "request_logs", time: "created_at", filter, slots }
    }

    /// Parts in slots, if they have all that is asked for.
    async fn parts(
        &self,
        db: &impl GenericClient,
        measures: &[Measure],
        shape: PartsShape<'f>,
    ) -> Result<Option<Parts<'f>>, ApiError> {
        match self.slots {
            Some(slots) => slots.parts(db, self.filter, measures, shape).await,
            None => Ok(None),
        }
    }
}

pub async fn series(
    db: &impl GenericClient,
    rows: &CountedRows<'_>,
    step: Step,
    measures: &[Measure],
) -> Result<Series, ApiError> {
    let divided_by = measures.iter().map(|measure| measure.divided_by).find(|name| !name.is_empty());
    let (of_logs, of_slots) = match divided_by {
        Some("user") => ("metadata ->> '_user'", "CASE WHEN value <> '' THEN substr(value, 2) END"),
        Some("status_code") => ("response_status_code::text", "value"),
        _ => ("''", "''"),
    };
    let shape = PartsShape { grouped_by: "", of_logs, of_slots, step: Some(step) };
    if let Some(parts) = rows.parts(db, measures, shape).await? {
        let sql = format!("{} {}", parts.sql(), rolled::select(rolled::BY_SLOT, measures));
        return Series::read(&db.query(&sql, &parts.values()).await?, measures.len());
    }
    let sql = format!(
        "SELECT slot, {} FROM (SELECT {} AS slot, * FROM {} WHERE {}) AS counted GROUP BY GROUPING SETS ((slot), ())",
        measure::columns(measures),
        slot(rows.time, step),
        rows.from,
        rows.filter.sql(),
    );
    Series::read(&db.query(&sql, &rows.filter.values()).await?, measures.len())
}

/// The series of each of the commonest values, commonest first, and of all the others together (`None`).
pub async fn divided(
    db: &impl GenericClient,
    rows: &CountedRows<'_>,
    step: Step,
    measures: &[Measure],
    dimension: &Dimension,
) -> Result<Vec<(Option<String>, Series)>, ApiError> {
    let is_divided = measures.iter().any(|measure| !measure.divided_by.is_empty());
    if let Some((grouped_by, of_slots)) = dimension.slots.filter(|_| !is_divided) {
        let shape = PartsShape { grouped_by, of_logs: dimension.sql, of_slots, step: Some(step) };
        if let Some(parts) = rows.parts(db, measures, shape).await? {
            return divided_parts(db, &parts, measures).await;
        }
    }
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
    let found = db.query(&sql, &values).await?;
    in_order(&found, top.clone(), measures.len())
}

/// The same from slots. Measures that are divided by something else are not asked of them.
async fn divided_parts(
    db: &impl GenericClient,
    parts: &Parts<'_>,
    measures: &[Measure],
) -> Result<Vec<(Option<String>, Series)>, ApiError> {
    let top = format!(
        "{} SELECT value FROM parts GROUP BY 1 ORDER BY sum(requests) DESC, 1 LIMIT {MOST_GROUPS}",
        parts.sql()
    );
    let mut values = parts.values();
    let top: Vec<String> =
        db.query(&top, &values).await?.iter().map(|row| row.try_get("value")).collect::<Result<_, _>>()?;
    values.push(&top);
    let named = parts.sql().replacen("WITH parts AS", "WITH all_parts AS", 1);
    let sql = format!(
        "{named}, parts AS MATERIALIZED (
             SELECT slot, CASE WHEN value = ANY (${n}) THEN value END AS value, {} FROM all_parts) {}",
        slots::FIGURES,
        rolled::select(rolled::BY_BOTH, measures),
        n = values.len(),
    );
    let found = db.query(&sql, &values).await?;
    in_order(&found, top.clone(), measures.len())
}

fn in_order(rows: &[Row], top: Vec<String>, measures: usize) -> Result<Vec<(Option<String>, Series)>, ApiError> {
    let mut found: HashMap<Option<String>, Series> = HashMap::new();
    for row in rows {
        let series = found.entry(row.try_get("value")?).or_default();
        let values = measure::values(row, measures)?;
        match row.try_get::<_, Option<DateTime<Utc>>>("slot")? {
            Some(slot) => drop(series.slots.insert(slot, values)),
            None => series.whole = values,
        }
    }
    let order = top.into_iter().map(Some).chain([None]);
    Ok(order.filter_map(|value| found.remove_entry(&value)).collect())
}

/// A whole number that calls may have.
#[derive(Debug, Clone, Copy)]
pub struct Occurring {
    /// In a log, and which logs have it.
    pub number: &'static str,
    pub which: &'static str,
    /// What slots call it, and which of them have it.
    pub dimension: &'static str,
    pub condition: &'static str,
}

pub const ERROR_CODES: Occurring = Occurring {
    number: "response_status_code",
    which: "NOT is_success",
    dimension: "status_code",
    condition: "errors > 0",
};
pub const RETRIES: Occurring = Occurring {
    number: "retry_success_count",
    which: "is_success AND retry_success_count > 0",
    dimension: "retries",
    condition: "true",
};

/// How often each occurs, in each slot. `filter` and `slots` are about those that have it.
pub async fn occurrences(
    db: &impl GenericClient,
    rows: &CountedRows<'_>,
    step: Step,
    occurring: Occurring,
) -> Result<HashMap<DateTime<Utc>, Vec<(i64, i64)>>, ApiError> {
    let number = format!("({})::text", occurring.number);
    let shape = PartsShape { grouped_by: occurring.dimension, of_logs: &number, of_slots: "value", step: Some(step) };
    let parts = match rows.slots {
        Some(slots) => slots.parts(db, rows.filter, &[measure::REQUESTS], shape).await?,
        None => None,
    };
    let rows = match parts {
        Some(parts) => {
            let sql = format!(
                "{} SELECT slot, value::bigint AS number, sum(requests)::bigint AS count FROM parts GROUP BY 1, 2 ORDER BY 1, 2",
                parts.sql()
            );
            db.query(&sql, &parts.values()).await?
        }
        None => {
            let sql = format!(
                "SELECT {} AS slot, ({})::bigint AS number, count(*) AS count FROM {}
                 WHERE {} GROUP BY 1, 2 ORDER BY 1, 2",
                slot(rows.time, step),
                occurring.number,
                rows.from,
                rows.filter.sql(),
            );
            db.query(&sql, &rows.filter.values()).await?
        }
    };
    let mut found: HashMap<DateTime<Utc>, Vec<(i64, i64)>> = HashMap::new();
    for row in rows {
        found.entry(row.try_get("slot")?).or_default().push((row.try_get("number")?, row.try_get("count")?));
    }
    Ok(found)
}

fn slot(time: &str, step: Step) -> String {
    format!("date_bin('{}', {time}, {ORIGIN_SQL})", step.interval)
}

impl Series {
    fn read(rows: &[Row], measures: usize) -> Result<Self, ApiError> {
        let mut series = Self::default();
        for row in rows {
            let values = measure::values(row, measures)?;
            match row.try_get::<_, Option<DateTime<Utc>>>("slot")? {
                Some(slot) => drop(series.slots.insert(slot, values)),
                None => series.whole = values,
            }
        }
        Ok(series)
    }

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
