//! Where the calls are that some feedback is about: on which days each of its traces may have some. Filters beside the slots of days
//! tell, so that the index of a day is asked for few traces instead of all. Days without, and days whose slots are stale, are
//! asked for all of them.

use super::period::Period;
use crate::http::ApiError;
use chrono::{DateTime, TimeDelta, Utc};
use futures::{TryStreamExt as _, pin_mut};
use shared::db::table::Filter;
use shared::db::usage_slots::{Retention, SlotSize, TRACES, TraceHash, day_of};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// Feedback whose traces are looked for one by one.
const FEW: usize = 5000;
/// A filter is read if it has fewer bytes than this for each trace that is looked for: asking the index takes as long.
const BYTES_WORTH_A_TRACE: usize = 500;
/// So many days are looked at together at least: planning takes as long as asking for the traces of them all on each.
const DAYS_TOGETHER: i64 = 4;
/// With more stretches than this, planning would take longer than asking for all.
const MAX_STRETCHES: usize = 100;

/// Traces of feedback, and the stretches of time in which each may have calls.
pub struct SoughtTraces {
    /// All of them, and behind them those of one stretch after the other.
    traces: Vec<String>,
    from: Vec<DateTime<Utc>>,
    until: Vec<DateTime<Utc>>,
    /// The first and the last place in `traces`, counted from one.
    first: Vec<i32>,
    last: Vec<i32>,
}

impl SoughtTraces {
    /// Of feedback that is given by this condition. None where there is so much of it that all logs are better read.
    pub async fn find(
        db: &impl GenericClient,
        tenant: &Filter,
        given: &Filter,
        period: Period,
    ) -> Result<Option<Self>, ApiError> {
        let sql = format!(
            "SELECT workspace_id, trace_id FROM (SELECT workspace_id, trace_id FROM feedback WHERE {} LIMIT {}) AS given
             ORDER BY trace_id",
            given.sql(),
            FEW + 1
        );
        let rows = db.query(&sql, &given.values()).await?;
        if rows.len() > FEW {
            return Ok(None);
        }
        let mut traces: Vec<String> = Vec::new();
        let mut by_workspace: HashMap<Uuid, Vec<(TraceHash, usize)>> = HashMap::new();
        for row in &rows {
            let (workspace, trace): (Uuid, &str) = (row.try_get("workspace_id")?, row.try_get("trace_id")?);
            if traces.last().is_none_or(|last| last != trace) {
                traces.push(trace.to_owned());
            }
            by_workspace.entry(workspace).or_default().push((TraceHash::new(trace), traces.len() - 1));
        }
        let known = KnownDays::read(db, tenant, period, &by_workspace, traces.len()).await?;
        Ok(Some(Self::new(traces, known.stretches(period))))
    }

    fn new(mut traces: Vec<String>, stretches: Vec<Stretch>) -> Self {
        let all = traces.len();
        let mut sought = Self { traces: Vec::new(), from: vec![], until: vec![], first: vec![], last: vec![] };
        for stretch in stretches {
            let first = match &stretch.traces {
                Some(places) => {
                    let (first, found) = (traces.len(), places.iter().filter_map(|place| traces.get(*place).cloned()));
                    let found: Vec<String> = found.collect();
                    traces.extend(found);
                    first
                }
                None => 0,
            };
            let last = if stretch.traces.is_some() { traces.len() } else { all };
            sought.from.push(stretch.from);
            sought.until.push(stretch.until);
            sought.first.push(first as i32 + 1);
            sought.last.push(last as i32);
        }
        Self { traces, ..sought }
    }

    /// Calls of all of them, or of all feedback's traces where there is too much of it, as a table. `values` are those after the
    /// first `n` of the statement, `given` is the condition on feedback.
    pub fn calls(sought: Option<&Self>, given: &str, columns: &str, condition: &str, n: usize) -> String {
        match sought {
            Some(sought) => sought.select(columns, condition, n),
            None => format!(
                "SELECT {columns} FROM request_logs
                 WHERE {condition} AND (workspace_id, trace_id) IN (SELECT workspace_id, trace_id FROM feedback WHERE {given})"
            ),
        }
    }

    fn select(&self, columns: &str, condition: &str, n: usize) -> String {
        let [from, until, first, last, traces] = [n + 1, n + 2, n + 3, n + 4, n + 5];
        // Each for itself: Postgres knows while it plans which days these are. It does not know how many traces, and asks the index.
        let stretch = |place: usize| {
            format!(
                "SELECT {columns} FROM request_logs WHERE {condition}
                 AND created_at >= (${from}::timestamptz[])[{place}] AND created_at < (${until}::timestamptz[])[{place}]
                 AND trace_id = ANY (ARRAY(SELECT unnest((${traces}::text[])[(${first}::int[])[{place}]:(${last}::int[])[{place}]])))"
            )
        };
        // There is one at least, so that columns have types.
        let stretches: Vec<String> = (1..=self.from.len().max(1)).map(stretch).collect();
        stretches.join(" UNION ALL ")
    }

    pub fn values(&self) -> [&(dyn ToSql + Sync); 5] {
        [&self.from, &self.until, &self.first, &self.last, &self.traces]
    }
}

/// Traces by their places; none for all.
#[derive(Debug, PartialEq, Eq)]
struct Stretch {
    from: DateTime<Utc>,
    until: DateTime<Utc>,
    traces: Option<BTreeSet<usize>>,
}

/// Days of which it is known which traces have calls, and those traces, by their places.
struct KnownDays {
    from: DateTime<Utc>,
    until: DateTime<Utc>,
    stale: BTreeSet<DateTime<Utc>>,
    traces: BTreeMap<DateTime<Utc>, BTreeSet<usize>>,
}

impl KnownDays {
    async fn read(
        db: &impl GenericClient,
        tenant: &Filter,
        period: Period,
        sought: &HashMap<Uuid, Vec<(TraceHash, usize)>>,
        count: usize,
    ) -> Result<Self, ApiError> {
        const STALE: &str = "SELECT DISTINCT date_trunc('day', slot, 'UTC') AS day FROM usage_stale
                             WHERE size <= $1 AND slot >= $2 AND slot < $3";
        let size = SlotSize::Day.minutes();
        // A day that is not over changes with every call.
        let (begin, until) = (Retention::read(db).await?.begin_of(SlotSize::Day), day_of(Utc::now()).min(period.until));
        let from = day_of(begin + SlotSize::Day.width() - TimeDelta::microseconds(1)).max(day_of(period.from));
        let mut known = Self { from, until, stale: BTreeSet::new(), traces: BTreeMap::new() };
        if sought.is_empty() || from >= until {
            return Ok(known);
        }
        for row in db.query(STALE, &[&size, &from, &(until + SlotSize::Day.width())]).await? {
            known.stale.insert(row.try_get("day")?);
        }
        let n = tenant.values().len();
        // Slots of another version may have no filter: where there are calls, any trace may have some.
        let filters = format!(
            "SELECT called.workspace_id, called.slot, filters.figures
             FROM (SELECT workspace_id, slot FROM usage_slots
                 WHERE {} AND size = ${} AND dimension = '' AND slot >= ${} AND slot < ${}) AS called
             LEFT JOIN usage_slots filters ON filters.workspace_id = called.workspace_id AND filters.size = ${}
                 AND filters.dimension = ${} AND filters.slot = called.slot AND octet_length(filters.figures) <= ${}",
            tenant.sql(),
            n + 1,
            n + 2,
            n + 3,
            n + 1,
            n + 4,
            n + 5,
        );
        let most = i32::try_from(BYTES_WORTH_A_TRACE * count).unwrap_or(i32::MAX);
        let mut values = tenant.values();
        values.extend([&size as &(dyn ToSql + Sync), &from, &until, &TRACES, &most]);
        let rows = db.query_raw(&filters, values).await?;
        pin_mut!(rows);
        while let Some(row) = rows.try_next().await? {
            let (workspace, filter): (Uuid, Option<&[u8]>) = (row.try_get("workspace_id")?, row.try_get("figures")?);
            let Some(sought) = sought.get(&workspace) else { continue };
            let found = sought.iter().filter(|(trace, _)| filter.is_none_or(|filter| trace.may_be_in(filter)));
            let found: Vec<usize> = found.map(|(_, place)| *place).collect();
            if !found.is_empty() {
                known.traces.entry(row.try_get("slot")?).or_default().extend(found);
            }
        }
        Ok(known)
    }

    /// The period in order, without days of which no trace has calls.
    fn stretches(&self, period: Period) -> Vec<Stretch> {
        let mut stretches: Vec<Stretch> = Vec::new();
        let together = TimeDelta::days(((self.until - self.from).num_days() / 30).max(DAYS_TOGETHER));
        let mut at = period.from;
        while at < period.until {
            let day = day_of(at);
            let is_known = day >= self.from && day < self.until && !self.stale.contains(&day);
            let end = match day {
                _ if day < self.from => self.from,
                _ if day >= self.until => period.until,
                _ => day + SlotSize::Day.width(),
            };
            let until = end.min(period.until);
            let traces = if is_known { self.traces.get(&day).cloned() } else { None };
            match (stretches.last_mut(), is_known) {
                (_, true) if traces.is_none() => {}
                (Some(Stretch { from, until: last, traces: Some(before) }), true) if until - *from <= together => {
                    *last = until;
                    before.extend(traces.unwrap_or_default());
                }
                (Some(Stretch { until: last, traces: None, .. }), false) if *last == at => *last = until,
                _ => stretches.push(Stretch { from: at, until, traces }),
            }
            at = until;
        }
        if stretches.len() > MAX_STRETCHES {
            return vec![Stretch { from: period.from, until: period.until, traces: None }];
        }
        stretches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> DateTime<Utc> {
        format!("2026-01-{text}Z").parse().unwrap()
    }

    fn known(stale: &[&str], traces: &[(&str, &[usize])]) -> KnownDays {
        KnownDays {
            from: time("10T00:00:00"),
            until: time("20T00:00:00"),
            stale: stale.iter().map(|day| time(day)).collect(),
            traces: traces.iter().map(|(day, places)| (time(day), places.iter().copied().collect())).collect(),
        }
    }

    fn shown(known: &KnownDays, from: &str, until: &str) -> Vec<String> {
        let stretches = known.stretches(Period { from: time(from), until: time(until) });
        let shown = |one: &Stretch| {
            format!("{} to {}: {:?}", one.from.format("%d %H:%M"), one.until.format("%d %H:%M"), one.traces)
        };
        stretches.iter().map(shown).collect()
    }

    #[test]
    fn days_are_asked_for_the_traces_that_they_may_have() {
        let days = known(&[], &[("11T00:00:00", &[1]), ("12T00:00:00", &[0, 1]), ("18T00:00:00", &[2])]);
        let expected = ["11 12:30 to 13 00:00: Some({0, 1})", "18 00:00 to 18 01:00: Some({2})"];
        assert_eq!(shown(&days, "11T12:30:00", "18T01:00:00"), expected);
        assert!(shown(&days, "13T00:00:00", "17T00:00:00").is_empty());
    }

    #[test]
    fn what_is_not_known_is_asked_for_all() {
        let days = known(&["14T00:00:00", "15T00:00:00"], &[("13T00:00:00", &[0]), ("16T00:00:00", &[1])]);
        let expected = [
            "05 00:00 to 10 00:00: None",
            "13 00:00 to 14 00:00: Some({0})",
            "14 00:00 to 16 00:00: None",
            "16 00:00 to 17 00:00: Some({1})",
            "20 00:00 to 25 00:00: None",
        ];
        assert_eq!(shown(&days, "05T00:00:00", "25T00:00:00"), expected);
        // What is known of a day that is stale counts for nothing.
        let stale = known(&["13T00:00:00"], &[("13T00:00:00", &[0])]);
        assert_eq!(shown(&stale, "13T00:00:00", "14T00:00:00"), ["13 00:00 to 14 00:00: None"]);
        let none = KnownDays { from: time("20T00:00:00"), until: time("10T00:00:00"), ..known(&[], &[]) };
        assert_eq!(shown(&none, "05T00:00:00", "25T00:00:00"), ["05 00:00 to 25 00:00: None"]);
    }

    #[test]
    fn places_of_traces_are_within_them() {
        let stretch = |traces| Stretch { from: time("10T00:00:00"), until: time("11T00:00:00"), traces };
        let traces = ["a", "b", "c"].map(str::to_owned).to_vec();
        let some = |places: &[usize]| stretch(Some(places.iter().copied().collect()));
        let sought = SoughtTraces::new(traces, vec![some(&[2]), stretch(None), some(&[0, 1])]);
        assert_eq!(sought.traces, ["a", "b", "c", "c", "a", "b"]);
        assert_eq!((sought.first, sought.last), (vec![4, 1, 5], vec![4, 3, 6]));
    }
}
