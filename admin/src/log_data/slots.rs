//! When figures can be read from slots instead of logs: a question about everybody's calls that filters and groups by one thing at
//! most. Percentiles are then read from sketches. Everything else is counted from logs, and so is what slots do not cover, into
//! the same sums.

use super::counted::{Counted, MAX_FIGURES, SlotCondition, ValueOf};
use super::cover::{Piece, SlotState, cover};
use super::measure::Measure;
use super::period::{Period, Step};
use super::{LogView, filters};
use crate::http::{ApiError, Query};
use chrono::{DateTime, TimeDelta, Utc};
use futures::{TryStreamExt as _, pin_mut};
use shared::db::table::Filter;
use shared::db::usage_slots::{
    self, ByValue, COLUMNS, CountedCall, Figures, Retention, SlotDimension, SlotSize, USER_NAME, ValueMap, Wanted,
};
use std::collections::BTreeSet;
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// What is asked, as far as slots can answer it.
pub struct Slots {
    tenant: Filter,
    period: Period,
    /// What is filtered by, and the values of which one must match.
    only: Option<(SlotDimension, Vec<String>)>,
    /// A condition on slots, beside those.
    condition: SlotCondition,
}

/// Filters that slots know, and what they call them.
static FILTERS: &[(&str, SlotDimension)] = &[
    ("virtual_keys", SlotDimension::Provider),
    ("configs", SlotDimension::Config),
    ("prompt_slug", SlotDimension::Prompt),
    ("cache_status", SlotDimension::CacheStatus),
    ("ai_org_model", SlotDimension::ServiceModel),
    ("status_code", SlotDimension::StatusCode),
    ("api_key_ids", SlotDimension::ApiKey),
];

/// Not about the calls.
const OTHERS: &[&str] = &["time_of_generation_min", "time_of_generation_max", "workspace_slug"];

/// More stale slots than this are not worth weaving between.
const MAX_STALE: i64 = 5000;
/// Nor are more stretches of logs than this, or longer ones: Postgres counts them sooner itself.
const MAX_STRETCHES: usize = 50;
const MAX_FROM_LOGS: TimeDelta = TimeDelta::days(2);

impl Slots {
    /// None where only logs know the answer.
    pub fn asked(view: &LogView, query: &Query, period: Period) -> Option<Self> {
        if view.user_id.is_some() {
            return None;
        }
        let names = filters::names();
        let mut used = names.iter().filter(|name| !OTHERS.contains(&name.as_str()) && query.text(name).is_some());
        let only = match (used.next(), used.next()) {
            (None, _) => None,
            (Some(name), None) => Some(known(name, query)?),
            _ => return None,
        };
        Some(Self { tenant: view.tenant_filter(), period, only, condition: SlotCondition::All })
    }

    /// Only slots of which this holds.
    pub fn holding(self, condition: SlotCondition) -> Self {
        Self { condition, ..self }
    }

    pub fn period(&self) -> Period {
        self.period
    }

    /// By what the slots must be divided that are read; none if that is more than one thing.
    fn dimension(&self, grouped_by: SlotDimension, measures: &[Measure]) -> Option<SlotDimension> {
        let needed = measures.iter().filter_map(|measure| measure.rolled?.divided_by()).chain([grouped_by]);
        let needed = needed.chain(self.only.as_ref().map(|(name, _)| *name)).filter(|one| *one != SlotDimension::All);
        let needed: BTreeSet<SlotDimension> = needed.collect();
        match needed.len() {
            0 => Some(SlotDimension::All),
            1 => needed.first().copied(),
            _ => None,
        }
    }

    /// The answer, if slots have it. `filter` is the condition on logs.
    pub async fn count(
        &self,
        db: &impl GenericClient,
        filter: &Filter,
        measures: &[Measure],
        shape: CountedShape,
    ) -> Result<Option<Counted>, ApiError> {
        let Some(plan) = self.plan(db, measures, shape).await? else { return Ok(None) };
        let only = self.only.as_ref().map(|(_, values)| values.as_slice());
        let mut counted = Counted::new(plan.dimension, shape.value, shape.step, measures).only(only, self.condition);
        let is_whole = self.add_slots(db, plan.dimension, &plan.pieces, &mut counted).await?
            && add_logs(db, filter, &plan.stretches, &mut counted).await?;
        Ok(is_whole.then_some(counted))
    }

    /// The answer for the commonest values, and for all calls together. None where values are not told apart by slots alone, or
    /// slots are too much to be held; `count` may still know.
    pub async fn count_top(
        &self,
        db: &impl GenericClient,
        filter: &Filter,
        measures: &[Measure],
        shape: CountedShape,
        most: usize,
    ) -> Result<Option<TopCounted>, ApiError> {
        // Whatever else a slot is divided by has few values, or calls that have several of them.
        let is_single = self.only.is_none() && shape.grouped_by != SlotDimension::Guardrail;
        if !is_single || self.condition != SlotCondition::All {
            return Ok(None);
        }
        let Some(plan) = self.plan(db, measures, shape).await? else { return Ok(None) };
        let Some(stored) = self.stored(db, plan.dimension, &plan.pieces).await? else { return Ok(None) };
        let counted = |value| Counted::new(plan.dimension, value, shape.step, measures);
        let mut from_logs = counted(shape.value);
        if !add_logs(db, filter, &plan.stretches, &mut from_logs).await? {
            return Ok(None);
        }
        let Some(requests) = requests_by_value(&stored, shape.value, &from_logs)? else { return Ok(None) };
        let mut names: Vec<(&String, u64)> = requests.iter().map(|(name, requests)| (name, *requests)).collect();
        names.sort_unstable_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        let is_more = names.len() > most;
        let names: Vec<String> = names.into_iter().take(most).map(|(name, _)| name.clone()).collect();
        let is_top = |name: &str| names.iter().any(|one| one == name);
        let mut top = counted(shape.value);
        for one in &stored {
            top.add_some(one.slot, one.workspace_id, &one.figures, is_top)?;
        }
        top.add_counted(&from_logs, is_top);
        let mut all = Counted::new(SlotDimension::All, ValueOf::Nothing, shape.step, measures);
        if is_more && !self.add_slots(db, SlotDimension::All, &plan.pieces, &mut all).await? {
            return Ok(None);
        }
        all.add_counted(&from_logs, |_| true);
        Ok(Some(TopCounted { names, top, all: is_more.then_some(all) }))
    }

    /// Figures by the value of a name of metadata, with its workspace where `value` says so, without percentiles; none where slots
    /// do not have them, or have too many.
    pub async fn by_metadata(
        &self,
        db: &impl GenericClient,
        filter: &Filter,
        name: &str,
        value: ValueOf,
    ) -> Result<Option<ByValue>, ApiError> {
        if name == USER_NAME {
            let value = if value.is_in_workspace() { ValueOf::UserInWorkspace } else { ValueOf::User };
            let shape = CountedShape { grouped_by: SlotDimension::User, value, step: None };
            let counted = self.count(db, filter, &[], shape).await?;
            return Ok(counted.map(|counted| counted.by_value().into_owned()));
        }
        let shape = CountedShape { grouped_by: SlotDimension::Metadata, value, step: None };
        if self.only.is_some() || self.condition != SlotCondition::All {
            return Ok(None);
        }
        let Some(plan) = self.plan(db, &[], shape).await? else { return Ok(None) };
        let mut found = ByValue::default();
        let asked = SlotRows::new(&plan.pieces);
        let rows = db.query_raw(&self.sql(plan.dimension), asked.values(&self.tenant)).await?;
        pin_mut!(rows);
        while let Some(row) = rows.try_next().await? {
            let workspace = value.workspace(row.try_get("workspace_id")?);
            let add = |own: &str, figures: &Figures| {
                add_to(&mut found, &value.shown(own, &workspace), |sum| sum.merge_sums(figures));
            };
            let is_whole = usage_slots::read_name(row.try_get("figures")?, row.try_get("slot")?, name, add)?;
            if !is_whole || found.len() > MAX_FIGURES {
                return Ok(None);
            }
        }
        // While admins of two versions run, some slots are not divided by metadata yet.
        let mut all = Counted::new(SlotDimension::All, ValueOf::Nothing, None, &[]);
        let is_known = self.add_slots(db, SlotDimension::All, &plan.pieces, &mut all).await?;
        if !is_known || requests_in(&found) != requests_in(&all.by_value()) {
            return Ok(None);
        }
        let is_whole = add_logs_by_name(db, filter, &plan.stretches, (name, value), &mut found).await?;
        Ok(is_whole.then_some(found))
    }

    /// Which slots and which stretches of logs have the answer; none if that is more than is worth it.
    async fn plan(
        &self,
        db: &impl GenericClient,
        measures: &[Measure],
        shape: CountedShape,
    ) -> Result<Option<SlotPlan>, ApiError> {
        let Some(dimension) = self.dimension(shape.grouped_by, measures) else { return Ok(None) };
        if !measures.iter().all(|measure| measure.rolled.is_some()) {
            return Ok(None);
        }
        let Some(mut state) = state(db, self.period).await? else { return Ok(None) };
        if dimension == SlotDimension::Metadata {
            state.retention = state.retention.with_logs();
        }
        let (stretches, pieces): (Vec<Piece>, Vec<Piece>) =
            cover(self.period, shape.widest(), &state).into_iter().partition(|piece| piece.size.is_none());
        let from_logs: TimeDelta = stretches.iter().map(|piece| piece.until - piece.from).sum();
        let is_much = stretches.len() > MAX_STRETCHES || from_logs > MAX_FROM_LOGS;
        // Where logs are gone, slots alone know.
        let are_logs_gone = state.retention.sealed_until.is_some_and(|sealed| self.period.from < sealed);
        let is_worth_it = !pieces.is_empty() && (!is_much || are_logs_gone);
        Ok(is_worth_it.then_some(SlotPlan { dimension, pieces, stretches }))
    }

    /// Slots to be read more than once. None when they are too much to be held.
    async fn stored(
        &self,
        db: &impl GenericClient,
        dimension: SlotDimension,
        pieces: &[Piece],
    ) -> Result<Option<Vec<StoredSlot>>, ApiError> {
        let asked = SlotRows::new(pieces);
        let rows = db.query_raw(&self.sql(dimension), asked.values(&self.tenant)).await?;
        pin_mut!(rows);
        let (mut stored, mut held) = (Vec::new(), 0);
        while let Some(row) = rows.try_next().await? {
            let figures = usage_slots::uncompressed(row.try_get("figures")?)?;
            let one = StoredSlot { slot: row.try_get("slot")?, workspace_id: row.try_get("workspace_id")?, figures };
            held += one.figures.len();
            if held > MAX_HELD {
                return Ok(None);
            }
            stored.push(one);
        }
        Ok(Some(stored))
    }

    fn sql(&self, dimension: SlotDimension) -> String {
        let n = self.tenant.values().len();
        format!(
            "SELECT s.workspace_id, s.slot, s.figures
             FROM unnest(${}::smallint[], ${}::timestamptz[], ${}::timestamptz[]) AS piece (width, piece_from, piece_until)
             JOIN usage_slots s ON s.size = width AND s.slot >= piece_from AND s.slot < piece_until
             WHERE {} AND dimension = '{}'",
            n + 1,
            n + 2,
            n + 3,
            self.tenant.sql(),
            dimension.name(),
        )
    }

    /// False when some of them do not have what is asked for.
    async fn add_slots(
        &self,
        db: &impl GenericClient,
        dimension: SlotDimension,
        pieces: &[Piece],
        counted: &mut Counted,
    ) -> Result<bool, ApiError> {
        let asked = SlotRows::new(pieces);
        let rows = db.query_raw(&self.sql(dimension), asked.values(&self.tenant)).await?;
        pin_mut!(rows);
        while let Some(row) = rows.try_next().await? {
            if !counted.add_slot(row.try_get("slot")?, row.try_get("workspace_id")?, row.try_get("figures")?)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What a question is answered from.
struct SlotPlan {
    dimension: SlotDimension,
    pieces: Vec<Piece>,
    stretches: Vec<Piece>,
}

/// The commonest values in order, figures of theirs, and of all calls where there are more values.
pub struct TopCounted {
    pub names: Vec<String>,
    pub top: Counted,
    pub all: Option<Counted>,
}

struct StoredSlot {
    slot: DateTime<Utc>,
    workspace_id: Uuid,
    figures: Vec<u8>,
}

/// Bytes of slots that are held for one answer, at most.
const MAX_HELD: usize = 96 << 20;

/// Values of a statement that selects slots.
struct SlotRows {
    sizes: Vec<i16>,
    from: Vec<DateTime<Utc>>,
    until: Vec<DateTime<Utc>>,
}

impl SlotRows {
    fn new(pieces: &[Piece]) -> Self {
        Self {
            sizes: pieces.iter().filter_map(|piece| Some(piece.size?.minutes())).collect(),
            from: pieces.iter().map(|piece| piece.from).collect(),
            until: pieces.iter().map(|piece| piece.until).collect(),
        }
    }

    fn values<'v>(&'v self, tenant: &'v Filter) -> Vec<&'v (dyn ToSql + Sync)> {
        let mut values = tenant.values();
        values.extend([&self.sizes as &(dyn ToSql + Sync), &self.from, &self.until]);
        values
    }
}

/// How many requests each value has; none when some slots do not say it.
fn requests_by_value(
    stored: &[StoredSlot],
    value: ValueOf,
    from_logs: &Counted,
) -> Result<Option<ValueMap<u64>>, ApiError> {
    let mut requests: ValueMap<u64> = ValueMap::default();
    for one in stored {
        let workspace = value.workspace(one.workspace_id);
        let count = |own: &str, more: u64| {
            let name = value.shown(own, &workspace);
            match requests.get_mut(&*name) {
                Some(sum) => *sum += more,
                None => drop(requests.insert(name.into_owned(), more)),
            }
            Wanted::Nothing
        };
        if !usage_slots::read_some(&one.figures, one.slot, count, |_, _| {})? {
            return Ok(None);
        }
    }
    for (name, more) in from_logs.requests() {
        *requests.entry(name.clone()).or_default() += more;
    }
    Ok(Some(requests))
}

/// False when there is too much of them.
async fn add_logs(
    db: &impl GenericClient,
    filter: &Filter,
    stretches: &[Piece],
    counted: &mut Counted,
) -> Result<bool, ApiError> {
    // A statement for each, so that Postgres looks at its day alone.
    let sql = stretch_sql(COLUMNS, filter);
    for stretch in stretches {
        let mut values = filter.values();
        values.extend([&stretch.from as &(dyn ToSql + Sync), &stretch.until]);
        let rows = db.query_raw(&sql, values).await?;
        pin_mut!(rows);
        while let Some(row) = rows.try_next().await? {
            if !counted.add_call(&CountedCall::read(&row)?) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The same by the value of a name of metadata, as it is told apart.
async fn add_logs_by_name(
    db: &impl GenericClient,
    filter: &Filter,
    stretches: &[Piece],
    (name, value): (&str, ValueOf),
    found: &mut ByValue,
) -> Result<bool, ApiError> {
    let columns = format!("{COLUMNS}, coalesce(metadata ->> ${}::text, '')", filter.values().len() + 3);
    let sql = stretch_sql(&columns, filter);
    for stretch in stretches {
        let mut values = filter.values();
        values.extend([&stretch.from as &(dyn ToSql + Sync), &stretch.until, &name]);
        let rows = db.query_raw(&sql, values).await?;
        pin_mut!(rows);
        while let Some(row) = rows.try_next().await? {
            let call = CountedCall::read(&row)?;
            let own: &str = row.try_get(row.len() - 1)?;
            let shown = value.shown(own, &value.workspace(call.workspace_id)).into_owned();
            add_to(found, &shown, |sum| sum.add_sums(&call));
            if found.len() > MAX_FIGURES {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Selects the logs of a stretch, whose ends are the two values after those of the filter.
fn stretch_sql(columns: &str, filter: &Filter) -> String {
    let n = filter.values().len();
    let (from, until) = (n + 1, n + 2);
    format!(
        "SELECT {columns} FROM request_logs WHERE {} AND created_at >= ${from} AND created_at < ${until}",
        filter.sql()
    )
}

fn requests_in(values: &ByValue) -> u64 {
    values.values().map(|figures| figures.requests).sum()
}

fn add_to(values: &mut ByValue, value: &str, add: impl FnOnce(&mut Figures)) {
    match values.get_mut(value) {
        Some(sum) => add(sum),
        None => add(values.entry(value.to_owned()).or_default()),
    }
}

/// A filter as slots know it; none for values that they do not have.
fn known(name: &str, query: &Query) -> Option<(SlotDimension, Vec<String>)> {
    let (_, dimension) = FILTERS.iter().find(|(filter, _)| *filter == name)?;
    let values = query.list(name).into_iter().map(|value| match dimension {
        SlotDimension::StatusCode => value.parse::<i32>().ok().map(|code| code.to_string()),
        SlotDimension::ApiKey => value.parse::<Uuid>().ok().map(|id| id.to_string()),
        // Configs can also be named by their id.
        SlotDimension::Config => Some(value).filter(|value| value.parse::<Uuid>().is_err()),
        SlotDimension::ServiceModel if !value.contains("__") => Some(format!("{value}__")),
        _ => Some(value),
    });
    Some((*dimension, values.collect::<Option<Vec<_>>>()?)).filter(|(_, values)| !values.is_empty())
}

/// Slots as they are at this moment; none if too many are stale.
async fn state(db: &impl GenericClient, period: Period) -> Result<Option<SlotState>, ApiError> {
    const STALE: &str = "SELECT DISTINCT size, slot FROM usage_stale
        WHERE slot > $1::timestamptz - interval '168 hours' AND slot < $2 AND (slot >= $3 OR size = $4) LIMIT $5";
    let retention = Retention::read(db).await?;
    let (begin, week) = (retention.begin_of(SlotSize::Day), SlotSize::Week.minutes());
    let rows = db.query(STALE, &[&period.from, &period.until, &begin, &week, &MAX_STALE]).await?;
    if rows.len() as i64 == MAX_STALE {
        return Ok(None);
    }
    let mut stale: [BTreeSet<DateTime<Utc>>; 4] = Default::default();
    for row in rows {
        let size: i16 = row.try_get("size")?;
        if let Some(place) = SlotSize::ALL.iter().position(|one| one.minutes() == size) {
            stale[place].insert(row.try_get("slot")?);
        }
    }
    Ok(Some(SlotState { retention, stale }))
}

/// What calls are told apart by.
#[derive(Debug, Clone, Copy)]
pub struct CountedShape {
    /// What slots are divided by for it.
    pub grouped_by: SlotDimension,
    pub value: ValueOf,
    /// Of a graph.
    pub step: Option<Step>,
}

impl CountedShape {
    /// No slot may be wider than one of the graph.
    fn widest(&self) -> SlotSize {
        match self.step.map(|step| step.seconds) {
            Some(..1800) => SlotSize::Minute,
            Some(1800..86_400) => SlotSize::HalfHour,
            Some(86_400..604_800) => SlotSize::Day,
            _ => SlotSize::Week,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::measure as m;
    use super::super::view::VisibleWorkspaces;
    use super::*;

    fn asked(query: &str, user_id: Option<Uuid>) -> Option<Slots> {
        let view =
            LogView { organisation_id: Uuid::nil(), workspaces: VisibleWorkspaces::All, user_id, shows_metadata: true };
        let period = Period { from: DateTime::UNIX_EPOCH, until: DateTime::UNIX_EPOCH };
        Slots::asked(&view, &Query::parse(Some(query)).unwrap(), period)
    }

    #[test]
    fn slots_answer_what_filters_by_one_thing_they_know() {
        for (query, only) in [
            ("workspace_slug=*", None),
            ("status_code=0200,429", Some(("status_code", vec!["200", "429"]))),
            ("ai_org_model=openai__gpt-4o,groq", Some(("service_model", vec!["openai__gpt-4o", "groq__"]))),
            ("configs=pc-1", Some(("config", vec!["pc-1"]))),
        ] {
            let slots = asked(query, None).unwrap_or_else(|| panic!("{query}"));
            let found =
                slots.only.as_ref().map(|(one, values)| (one.name(), values.iter().map(String::as_str).collect()));
            assert_eq!(found, only, "{query}");
        }
        for query in [
            "status_code=200&configs=pc-1",
            "configs=0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11",
            "ai_model=gpt-4o",
            "cost_min=1",
            "trace_id=t",
            "weighted_feedback_min=1",
        ] {
            assert!(asked(query, None).is_none(), "{query}");
        }
        assert!(asked("", Some(Uuid::nil())).is_none(), "of one's own calls");
    }

    #[test]
    fn slots_are_divided_by_one_thing() {
        let slots = asked("status_code=200", None).unwrap();
        let (all, code) = (SlotDimension::All, SlotDimension::StatusCode);
        assert_eq!(slots.dimension(all, &[m::REQUESTS]), Some(code));
        assert_eq!(slots.dimension(code, &[m::ERROR_CODES]), Some(code));
        assert_eq!(slots.dimension(SlotDimension::Model, &[m::REQUESTS]), None);
        assert_eq!(slots.dimension(all, &[m::USERS]), None);
        let everything = asked("", None).unwrap();
        assert_eq!(everything.dimension(all, &[m::USERS, m::REQUESTS]), Some(SlotDimension::User));
        assert_eq!(everything.dimension(all, &[m::REQUESTS]), Some(all));
    }

    #[test]
    fn no_slot_is_wider_than_one_of_the_graph() {
        for (seconds, widest) in [
            (60, SlotSize::Minute),
            (300, SlotSize::Minute),
            (1800, SlotSize::HalfHour),
            (21_600, SlotSize::HalfHour),
            (86_400, SlotSize::Day),
            (604_800, SlotSize::Week),
        ] {
            let step = Some(Step { seconds, interval: "" });
            let shape = CountedShape { grouped_by: SlotDimension::All, value: ValueOf::Nothing, step };
            assert_eq!(shape.widest(), widest, "{seconds}");
        }
    }
}
