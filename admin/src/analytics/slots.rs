//! When figures can be read from slots instead of logs: a question about everybody's calls that filters and groups by one thing at
//! most. Percentiles are then read from sketches. Everything else is counted from logs, and so is what slots do not cover, as
//! parts of the same sums.

use super::cover::{Piece, SlotState, cover};
use super::measure::Measure;
use super::period::{ORIGIN_SQL, Period, Step};
use crate::http::{ApiError, Query};
use crate::logs::{LogView, filters};
use chrono::{DateTime, Utc};
use shared::db::table::Filter;
use shared::db::usage_slots::{Kept, SlotSize};
use std::collections::BTreeSet;
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// What is asked, as far as slots can answer it.
pub struct Slots {
    tenant: Filter,
    period: Period,
    /// What is filtered by, and the values of which one must match.
    only: Option<(&'static str, Vec<String>)>,
    /// A condition on slots, beside those.
    condition: &'static str,
}

/// Filters that slots know, and what they call them.
static FILTERS: &[(&str, &str)] = &[
    ("virtual_keys", "provider"),
    ("configs", "config"),
    ("prompt_slug", "prompt"),
    ("cache_status", "cache_status"),
    ("ai_org_model", "service_model"),
    ("status_code", "status_code"),
    ("api_key_ids", "api_key"),
];

/// What every part has.
pub const FIGURES: &str = "requests, user_requests, errors, req_units, res_units, cost, simple_hits, semantic_hits, simple_saved, \
    semantic_saved, saved, response_time, hit_time, retried, fallen, first_seen, last_seen, buckets, counts";

/// Not about the calls.
const OTHERS: &[&str] = &["time_of_generation_min", "time_of_generation_max", "workspace_slug"];

/// More stale slots than this are not worth weaving between.
const MOST_STALE: i64 = 5000;

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
        Some(Self { tenant: view.tenant_filter(), period, only, condition: "true" })
    }

    /// Only slots of which this holds.
    pub fn holding(self, condition: &'static str) -> Self {
        Self { condition, ..self }
    }

    /// By what the slots must be divided that are read; none if that is more than one thing.
    fn dimension(&self, grouped_by: &'static str, measures: &[Measure]) -> Option<&'static str> {
        let needed = measures.iter().map(|measure| measure.divided_by).chain([grouped_by]);
        let needed = needed.chain(self.only.as_ref().map(|(name, _)| *name)).filter(|name| !name.is_empty());
        let needed: BTreeSet<&'static str> = needed.collect();
        match needed.len() {
            0 => Some(""),
            1 => needed.first().copied(),
            _ => None,
        }
    }

    /// The parts of the answer, if slots have it. `filter` is the condition on logs.
    pub async fn parts<'s>(
        &'s self,
        db: &impl GenericClient,
        filter: &'s Filter,
        measures: &[Measure],
        shape: PartsShape<'s>,
    ) -> Result<Option<Parts<'s>>, ApiError> {
        let Some(dimension) = self.dimension(shape.grouped_by, measures) else { return Ok(None) };
        if !measures.iter().all(|measure| measure.is_rolled()) {
            return Ok(None);
        }
        let Some(state) = state(db, self.period).await? else { return Ok(None) };
        let pieces = cover(self.period, shape.widest(), &state);
        if pieces.iter().all(|piece| piece.size.is_none()) {
            return Ok(None);
        }
        Ok(Some(Parts { slots: self, filter, dimension, shape, pieces: BoundPieces::of(&pieces) }))
    }
}

/// A filter as slots know it; none for values that they do not have.
fn known(name: &str, query: &Query) -> Option<(&'static str, Vec<String>)> {
    let (_, dimension) = FILTERS.iter().find(|(filter, _)| *filter == name)?;
    let values = query.list(name).into_iter().map(|value| match *dimension {
        "status_code" => value.parse::<i32>().ok().map(|code| code.to_string()),
        "api_key" => value.parse::<Uuid>().ok().map(|id| id.to_string()),
        // Configs can also be named by their id.
        "config" => Some(value).filter(|value| value.parse::<Uuid>().is_err()),
        "service_model" if !value.contains("__") => Some(format!("{value}__")),
        _ => Some(value),
    });
    Some((*dimension, values.collect::<Option<Vec<_>>>()?)).filter(|(_, values)| !values.is_empty())
}

/// Slots as they are at this moment; none if too many are stale.
async fn state(db: &impl GenericClient, period: Period) -> Result<Option<SlotState>, ApiError> {
    const STALE: &str = "SELECT DISTINCT size, slot FROM usage_stale
        WHERE slot > $1::timestamptz - interval '1 day' AND slot < $2 AND slot >= $3 LIMIT $4";
    // Compiling a statement over every day of logs takes longer than running it.
    db.batch_execute("SET LOCAL jit = off").await?;
    let kept = Kept::read(db).await?;
    let rows = db.query(STALE, &[&period.from, &period.until, &kept.begin(), &MOST_STALE]).await?;
    if rows.len() as i64 == MOST_STALE {
        return Ok(None);
    }
    let mut stale: [BTreeSet<DateTime<Utc>>; 3] = Default::default();
    for row in rows {
        let size: i16 = row.try_get("size")?;
        if let Some(place) = SlotSize::ALL.iter().position(|one| one.minutes() == size) {
            stale[place].insert(row.try_get("slot")?);
        }
    }
    Ok(Some(SlotState { kept, stale }))
}

/// What each part has beside its figures.
#[derive(Debug, Clone, Copy)]
pub struct PartsShape<'s> {
    /// What slots are divided by for it; empty if by nothing.
    pub grouped_by: &'static str,
    /// The value of a log and of a slot.
    pub of_logs: &'s str,
    pub of_slots: &'s str,
    /// Of a graph.
    pub step: Option<Step>,
}

impl PartsShape<'_> {
    fn widest(&self) -> SlotSize {
        match self.step.map(|step| step.seconds) {
            Some(..1800) => SlotSize::Minute,
            Some(1800..86_400) => SlotSize::HalfHour,
            _ => SlotSize::Day,
        }
    }
}

/// Pieces as Postgres takes them.
#[derive(Debug, Default)]
struct BoundPieces {
    sizes: Vec<i16>,
    from: Vec<DateTime<Utc>>,
    until: Vec<DateTime<Utc>>,
    logs_from: Vec<DateTime<Utc>>,
    logs_until: Vec<DateTime<Utc>>,
}

impl BoundPieces {
    fn of(pieces: &[Piece]) -> Self {
        let mut bound = Self::default();
        for piece in pieces {
            match piece.size {
                Some(size) => {
                    bound.sizes.push(size.minutes());
                    bound.from.push(piece.from);
                    bound.until.push(piece.until);
                }
                None => {
                    bound.logs_from.push(piece.from);
                    bound.logs_until.push(piece.until);
                }
            }
        }
        bound
    }
}

/// Slots and logs as rows of one form.
pub struct Parts<'s> {
    slots: &'s Slots,
    filter: &'s Filter,
    dimension: &'static str,
    shape: PartsShape<'s>,
    pieces: BoundPieces,
}

impl Parts<'_> {
    /// `WITH parts AS (…)`, its values being the first ones that are bound.
    pub fn sql(&self) -> String {
        let n = self.filter.values().len() + self.slots.tenant.values().len();
        let only = match &self.slots.only {
            Some(_) => format!("AND value = ANY(${})", n + 6),
            None => String::new(),
        };
        let slot = |time: &str| match self.shape.step {
            Some(step) => format!("date_bin('{}', {time}, {ORIGIN_SQL})", step.interval),
            None => "NULL::timestamptz".to_owned(),
        };
        format!(
            "WITH parts AS MATERIALIZED (
                 SELECT {} AS slot, {} AS value, {FIGURES}
                 FROM unnest(${}::smallint[], ${}::timestamptz[], ${}::timestamptz[]) AS piece (width, piece_from, piece_until)
                 JOIN usage_slots s ON s.size = width AND s.slot >= piece_from AND s.slot < piece_until
                 WHERE {} AND dimension = '{}' AND {} {only}
                 UNION ALL
                 SELECT {}, {}, 1, (metadata ->> '_user' IS NOT NULL)::int, (NOT is_success)::int, req_units, res_units,
                     coalesce(cost, 0), (cache_status = 'HIT')::int, (cache_status = 'SEMANTIC HIT')::int,
                     CASE WHEN cache_status = 'HIT' THEN coalesce(cache_saved_cost, 0) ELSE 0 END,
                     CASE WHEN cache_status = 'SEMANTIC HIT' THEN coalesce(cache_saved_cost, 0) ELSE 0 END,
                     coalesce(cache_saved_cost, 0), response_time,
                     CASE WHEN cache_status IN ('HIT', 'SEMANTIC HIT') THEN response_time ELSE 0 END,
                     (is_success AND retry_success_count > 0)::int, (is_success AND attempt > 0)::int, created_at, created_at,
                     ARRAY[latency_bucket(response_time)], ARRAY[1]
                 FROM unnest(${}::timestamptz[], ${}::timestamptz[]) AS piece (piece_from, piece_until)
                 JOIN request_logs ON created_at >= piece_from AND created_at < piece_until
                 WHERE {})",
            slot("s.slot"),
            self.shape.of_slots,
            n + 1,
            n + 2,
            n + 3,
            self.slots.tenant.sql_after(self.filter),
            self.dimension,
            self.slots.condition,
            slot("created_at"),
            self.shape.of_logs,
            n + 4,
            n + 5,
            self.filter.sql(),
        )
    }

    pub fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        let mut values = self.filter.values();
        values.extend(self.slots.tenant.values());
        let BoundPieces { sizes, from, until, logs_from, logs_until } = &self.pieces;
        values.extend([sizes as &(dyn ToSql + Sync), from, until, logs_from, logs_until]);
        if let Some((_, only)) = &self.slots.only {
            values.push(only);
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytics::measure as m;
    use crate::logs::view::VisibleWorkspaces;

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
            let found = slots.only.as_ref().map(|(name, values)| (*name, values.iter().map(String::as_str).collect()));
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
        assert_eq!(slots.dimension("", &[m::REQUESTS]), Some("status_code"));
        assert_eq!(slots.dimension("status_code", &[m::ERROR_CODES]), Some("status_code"));
        assert_eq!(slots.dimension("model", &[m::REQUESTS]), None);
        assert_eq!(slots.dimension("", &[m::USERS]), None);
        assert_eq!(asked("", None).unwrap().dimension("", &[m::USERS, m::REQUESTS]), Some("user"));
    }
}
