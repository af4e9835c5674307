//! Figures over time: for each slot of a period, for the whole of it, and both again for the values that most calls have.
//! One statement finds slots and whole, so that they are of the same moment.

use super::counted::{self, Counted, ValueOf};
use super::dimension::Dimension;
use super::measure::{self, Measure};
use super::period::{ORIGIN_SQL, Step};
use super::question::CallsAsked;
use super::slots::{CountedShape, Slots, TopCounted};
use crate::http::ApiError;
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde_json::Value;
use shared::db::table::Filter;
use shared::db::usage_slots::{ByValue, Figures, SlotDimension};
use std::collections::HashMap;
use tokio_postgres::{GenericClient, Row};

/// Values, in the order of the measures that were asked for; nothing happened in slots that are not there.
#[derive(Debug, Default)]
pub struct Series {
    pub whole: Vec<Value>,
    pub slots: HashMap<DateTime<Utc>, Vec<Value>>,
}

/// A graph is divided among so many values; what is left is one more.
pub const MAX_GROUPS: i64 = 10;

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

    /// From slots, if they have all that is asked for.
    pub async fn count(
        &self,
        db: &impl GenericClient,
        measures: &[Measure],
        shape: CountedShape,
    ) -> Result<Option<Counted>, ApiError> {
        match self.slots {
            Some(slots) => slots.count(db, self.filter, measures, shape).await,
            None => Ok(None),
        }
    }

    /// The commonest values of the same.
    async fn count_top(
        &self,
        db: &impl GenericClient,
        measures: &[Measure],
        shape: CountedShape,
    ) -> Result<Option<TopCounted>, ApiError> {
        match self.slots {
            Some(slots) => slots.count_top(db, self.filter, measures, shape, MAX_GROUPS as usize).await,
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
    let shape = CountedShape { grouped_by: SlotDimension::All, value: ValueOf::Nothing, step: Some(step) };
    if let Some(counted) = rows.count(db, measures, shape).await? {
        return Ok(Series { whole: counted.whole(measures), slots: counted.by_slot(measures).into_iter().collect() });
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
    let is_divided = measures.iter().any(|measure| measure.rolled.is_some_and(|one| one.divided_by().is_some()));
    if !is_divided {
        let (grouped_by, value) = dimension.slots;
        let shape = CountedShape { grouped_by, value, step: Some(step) };
        if let Some(top) = rows.count_top(db, measures, shape).await? {
            return Ok(divided_top(&top, measures));
        }
        if let Some(counted) = rows.count(db, measures, shape).await? {
            return Ok(divided_counted(&counted, measures));
        }
    }
    let (value, from, matching) = (dimension.sql, dimension.from, rows.filter.sql());
    let top = format!(
        "SELECT {value} AS value FROM {from} WHERE {matching} GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT {MAX_GROUPS}"
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

/// The commonest as they were counted; all others are what they leave of all calls.
fn divided_top(counted: &TopCounted, measures: &[Measure]) -> Vec<(Option<String>, Series)> {
    let values =
        |figures: &Figures| measures.iter().map(|measure| counted::value(measure, figures, 0)).collect::<Vec<_>>();
    let by_value = counted.top.by_value();
    let mut series: Vec<(Option<String>, Series)> = Vec::new();
    for name in &counted.names {
        let slots = counted.top.slots().filter_map(|(slot, of)| Some((slot, values(of.get(name)?))));
        let whole = by_value.get(name).map(&values).unwrap_or_default();
        series.push((Some(name.clone()), Series { whole, slots: slots.collect() }));
    }
    let Some(all) = &counted.all else { return series };
    let top: HashMap<DateTime<Utc>, &ByValue> = counted.top.slots().collect();
    let (mut whole, mut slots) = (Figures::default(), HashMap::new());
    for (slot, of_all) in all.slots() {
        let mut rest = of_all.values().fold(Figures::default(), |mut sum, figures| {
            sum.merge(figures);
            sum
        });
        top.get(&slot).into_iter().flat_map(|of| of.values()).for_each(|figures| rest.subtract(figures));
        if rest.requests > 0 {
            slots.insert(slot, values(&rest));
            whole.merge(&rest);
        }
    }
    series.push((None, Series { whole: values(&whole), slots }));
    series
}

/// The same of what was counted already: one look at every figure.
fn divided_counted(counted: &Counted, measures: &[Measure]) -> Vec<(Option<String>, Series)> {
    let mut top: Vec<(&String, u64)> = counted.requests().into_iter().collect();
    top.sort_unstable_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
    let has_rest = top.len() > MAX_GROUPS as usize;
    top.truncate(MAX_GROUPS as usize);
    // The rest is the last of them.
    let places: HashMap<&String, usize> = top.iter().enumerate().map(|(place, (value, _))| (*value, place)).collect();
    let mut wholes = vec![Figures::default(); top.len() + 1];
    let mut slots = vec![HashMap::new(); top.len() + 1];
    let values =
        |figures: &Figures| measures.iter().map(|measure| counted::value(measure, figures, 0)).collect::<Vec<_>>();
    for (slot, by_value) in counted.slots() {
        let mut sums = vec![Figures::default(); top.len() + 1];
        for (value, figures) in by_value {
            counted.merge(&mut sums[places.get(value).copied().unwrap_or(top.len())], figures);
        }
        for (place, sum) in sums.iter().enumerate().filter(|(_, sum)| sum.requests > 0) {
            counted.merge(&mut wholes[place], sum);
            slots[place].insert(slot, values(sum));
        }
    }
    let names = top.iter().map(|(value, _)| Some((*value).clone())).chain(has_rest.then_some(None));
    let series = wholes.iter().map(values).zip(slots).map(|(whole, slots)| Series { whole, slots });
    names.zip(series).collect()
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
    /// In a log.
    number: &'static str,
    /// Which calls have it.
    pub(super) calls: CallsAsked,
    /// What slots call it.
    dimension: SlotDimension,
}

/// Numbers and how often each occurs, by the beginning of a slot.
pub type Occurrences = HashMap<DateTime<Utc>, Vec<(i64, i64)>>;

pub const ERROR_CODES: Occurring =
    Occurring { number: "response_status_code", calls: CallsAsked::Failed, dimension: SlotDimension::StatusCode };
pub const RETRIES: Occurring =
    Occurring { number: "retry_success_count", calls: CallsAsked::Retried, dimension: SlotDimension::Retries };

/// How often each occurs, in each slot. `rows` are those that have it.
pub async fn occurrences(
    db: &impl GenericClient,
    rows: &CountedRows<'_>,
    step: Step,
    occurring: Occurring,
) -> Result<Occurrences, ApiError> {
    let shape = CountedShape { grouped_by: occurring.dimension, value: ValueOf::Own, step: Some(step) };
    if let Some(counted) = rows.count(db, &[measure::REQUESTS], shape).await? {
        let slots = counted.slots().map(|(slot, values)| (slot, numbers(values)));
        return Ok(slots.filter(|(_, numbers)| !numbers.is_empty()).collect());
    }
    let sql = format!(
        "SELECT {} AS slot, ({})::bigint AS number, count(*) AS count FROM {} WHERE {} GROUP BY 1, 2 ORDER BY 1, 2",
        slot(rows.time, step),
        occurring.number,
        rows.from,
        rows.filter.sql(),
    );
    let rows = db.query(&sql, &rows.filter.values()).await?;
    let mut found = Occurrences::new();
    for row in rows {
        found.entry(row.try_get("slot")?).or_default().push((row.try_get("number")?, row.try_get("count")?));
    }
    Ok(found)
}

/// Values that are whole numbers, and how often each occurs.
fn numbers(values: &ByValue) -> Vec<(i64, i64)> {
    let number = |(value, figures): (&String, &Figures)| {
        Some((value.parse::<i64>().ok()?, i64::try_from(figures.requests).ok()?))
    };
    let mut numbers: Vec<(i64, i64)> = values.iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers
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
        Some(super::row::number(*sum))
    })
}
