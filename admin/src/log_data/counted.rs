//! Figures by slot of a graph and by value, added up from slots and logs alike, and the measures of them.

use super::measure::Measure;
use super::period::{Step, slot_of};
use super::row;
use chrono::{DateTime, Utc};
use serde_json::Value;
use shared::db::table::RowError;
use shared::db::usage_slots::{self, ByValue, CountedCall, Detail, Figures, SlotDimension};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use uuid::Uuid;

/// What calls are told apart by, beside the slot of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueOf {
    Nothing,
    /// The value as slots have it.
    Own,
    /// The name of a user; empty for none.
    User,
    Workspace,
}

/// Which values and figures of slots count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotCondition {
    All,
    /// Those with failed calls.
    Failed,
    /// Those of users that have a name.
    Named,
}

/// Figures that are held for one answer, at most. A question about more is left to Postgres, which has a disk.
const MOST_FIGURES: usize = 300_000;

pub struct Counted {
    dimension: SlotDimension,
    value: ValueOf,
    only: Option<HashSet<String>>,
    condition: SlotCondition,
    step: Option<Step>,
    has_percentiles: bool,
    /// By the beginning of a slot of the graph, in seconds since 1970; without a graph there is one.
    slots: BTreeMap<i64, ByValue>,
    held: usize,
}

/// One slot of a graph, or all of them.
#[derive(Debug, Default)]
struct Sum {
    figures: Figures,
    /// Users that have a name, and statuses of failed calls.
    users: u64,
    error_codes: u64,
}

impl Counted {
    pub fn new(dimension: SlotDimension, value: ValueOf, step: Option<Step>, measures: &[Measure]) -> Self {
        let rolled = || measures.iter().filter_map(|measure| measure.rolled);
        Self {
            dimension,
            // To count what is different it must be told apart.
            value: if rolled().any(|one| one.divided_by().is_some()) { ValueOf::Own } else { value },
            only: None,
            condition: SlotCondition::All,
            step,
            has_percentiles: rolled().any(|one| one.is_percentile()),
            slots: BTreeMap::new(),
            held: 0,
        }
    }

    /// Only these values, and only where this holds.
    pub fn only(self, values: Option<&[String]>, condition: SlotCondition) -> Self {
        Self { only: values.map(|values| values.iter().cloned().collect()), condition, ..self }
    }

    /// Adds a stored slot. False when it does not have what is asked for, or there is too much of it.
    pub fn add_slot(&mut self, slot: DateTime<Utc>, workspace: Uuid, stored: &[u8]) -> Result<bool, RowError> {
        let (value, only, condition, has_percentiles) =
            (self.value, self.only.as_ref(), self.condition, self.has_percentiles);
        let workspace = if value == ValueOf::Workspace { workspace.to_string() } else { String::new() };
        let by_value = self.slots.entry(at(slot, self.step)).or_default();
        let before = by_value.len();
        let detail = if has_percentiles { Detail::Sketches } else { Detail::Sums };
        let is_whole = usage_slots::read(stored, slot, detail, |own, figures| {
            let is_asked = only.is_none_or(|only| only.contains(own)) && condition.holds(own, figures);
            if !is_asked {
                return;
            }
            let name = value.shown(own, &workspace);
            match by_value.get_mut(name) {
                Some(sum) => merge(sum, figures, has_percentiles),
                None => merge(by_value.entry(name.to_owned()).or_default(), figures, has_percentiles),
            }
        })?;
        self.held += by_value.len() - before;
        Ok(is_whole && self.held <= MOST_FIGURES)
    }

    /// Adds a call of a log that the filter found. False when there is too much of it.
    pub fn add_call(&mut self, call: &CountedCall<'_>) -> bool {
        let value = self.value;
        let workspace = if value == ValueOf::Workspace { call.workspace_id.to_string() } else { String::new() };
        let by_value = self.slots.entry(at(call.created_at, self.step)).or_default();
        let before = by_value.len();
        self.dimension.each(call, |own| {
            by_value.entry(value.shown(&own, &workspace).to_owned()).or_default().add_call(call);
        });
        self.held += by_value.len() - before;
        self.held <= MOST_FIGURES
    }

    /// The measures of all.
    pub fn whole(&self, measures: &[Measure]) -> Vec<Value> {
        self.sum(self.slots.values().flatten()).values(measures)
    }

    /// The measures of each slot that something happened in, in order.
    pub fn by_slot(&self, measures: &[Measure]) -> impl Iterator<Item = (DateTime<Utc>, Vec<Value>)> {
        self.slots.iter().map(|(slot, values)| (time(*slot), self.sum(values.iter()).values(measures)))
    }

    /// All slots together, by value.
    pub fn by_value(&self) -> Cow<'_, ByValue> {
        if let (1, Some((_, only))) = (self.slots.len(), self.slots.first_key_value()) {
            return Cow::Borrowed(only);
        }
        let mut all = ByValue::default();
        for (value, figures) in self.slots.values().flatten() {
            all.entry(value.clone()).or_default().merge(figures);
        }
        Cow::Owned(all)
    }

    /// How many requests each value has, in all slots together.
    pub fn requests(&self) -> HashMap<&String, u64> {
        let mut requests = HashMap::new();
        for (value, figures) in self.slots.values().flatten() {
            *requests.entry(value).or_default() += figures.requests;
        }
        requests
    }

    /// Adds some figures to others, as far as they are asked for.
    pub fn merge(&self, sum: &mut Figures, more: &Figures) {
        merge(sum, more, self.has_percentiles);
    }

    /// The figures of one slot after the other, by value.
    pub fn slots(&self) -> impl Iterator<Item = (DateTime<Utc>, &ByValue)> {
        self.slots.iter().map(|(slot, values)| (time(*slot), values))
    }

    fn sum<'f>(&self, values: impl Iterator<Item = (&'f String, &'f Figures)>) -> Sum {
        let mut sum = Sum::default();
        let (mut users, mut codes) = (HashSet::new(), HashSet::new());
        for (value, figures) in values {
            merge(&mut sum.figures, figures, self.has_percentiles);
            if self.dimension == SlotDimension::User && !value.is_empty() {
                users.insert(value);
            }
            if self.dimension == SlotDimension::StatusCode && figures.errors > 0 {
                codes.insert(value);
            }
        }
        Sum { users: users.len() as u64, error_codes: codes.len() as u64, ..sum }
    }
}

impl Sum {
    fn values(&self, measures: &[Measure]) -> Vec<Value> {
        let different = |measure: &Measure| match measure.rolled.and_then(|rolled| rolled.divided_by()) {
            Some(SlotDimension::StatusCode) => self.error_codes,
            _ => self.users,
        };
        measures.iter().map(|measure| value(measure, &self.figures, different(measure))).collect()
    }
}

/// A measure of some figures.
pub fn value(measure: &Measure, figures: &Figures, different: u64) -> Value {
    measure.rolled.map_or_else(|| 0.into(), |rolled| row::number(rolled.value(figures, different)))
}

impl ValueOf {
    fn shown<'v>(self, own: &'v str, workspace: &'v str) -> &'v str {
        match self {
            Self::Nothing => "",
            Self::Own => own,
            // Slots have a letter before it.
            Self::User => own.get(1..).unwrap_or_default(),
            Self::Workspace => workspace,
        }
    }
}

impl SlotCondition {
    fn holds(self, value: &str, figures: &Figures) -> bool {
        match self {
            Self::All => true,
            Self::Failed => figures.errors > 0,
            Self::Named => !value.is_empty(),
        }
    }
}

fn merge(sum: &mut Figures, more: &Figures, has_percentiles: bool) {
    if has_percentiles { sum.merge(more) } else { sum.merge_sums(more) }
}

fn at(time: DateTime<Utc>, step: Option<Step>) -> i64 {
    step.map_or(0, |step| slot_of(time, step))
}

fn time(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::measure as m;
    use super::*;
    use serde_json::json;

    fn call(user: Option<&str>, minute: u32) -> CountedCall<'_> {
        CountedCall {
            organisation_id: Uuid::nil(),
            workspace_id: Uuid::nil(),
            created_at: format!("2026-01-15T10:{minute:02}:30Z").parse().unwrap(),
            ai_org: None,
            ai_model: None,
            provider: None,
            config: None,
            prompt_slug: None,
            prompt_version_id: None,
            api_key_id: None,
            user,
            cache_status: "MISS",
            status_code: 200,
            is_success: true,
            response_time: 100,
            retries: 0,
            attempt: 0,
            req_units: 1,
            res_units: 2,
            cost: 10_000_000_000,
            saved: 0,
            guardrails: Vec::new(),
        }
    }

    #[test]
    fn users_are_told_apart_in_each_slot_and_in_all() {
        let step = Step { seconds: 60, interval: "1 minute" };
        let measures = [m::USERS, m::REQUESTS_PER_USER, m::REQUESTS, m::COST];
        let mut counted = Counted::new(SlotDimension::User, ValueOf::Nothing, Some(step), &measures);
        for (user, minute) in [(Some("ada"), 1), (Some("ada"), 2), (Some("bob"), 2), (None, 2)] {
            assert!(counted.add_call(&call(user, minute)));
        }
        assert_eq!(counted.whole(&measures), [json!(2), json!(1.5), json!(4), json!(4)]);
        let slots: Vec<_> = counted.by_slot(&measures).map(|(_, values)| values).collect();
        assert_eq!(slots, [vec![json!(1), json!(1), json!(1), json!(1)], vec![json!(2), json!(1), json!(3), json!(3)]]);
    }

    #[test]
    fn a_group_has_the_name_that_is_shown() {
        for (value, names) in [(ValueOf::User, vec!["", "ada"]), (ValueOf::Own, vec!["", "uada"])] {
            let mut counted = Counted::new(SlotDimension::User, value, None, &[m::REQUESTS]);
            counted.add_call(&call(Some("ada"), 1));
            counted.add_call(&call(None, 1));
            let mut found: Vec<String> = counted.by_value().keys().cloned().collect();
            found.sort();
            assert_eq!(found, names);
        }
    }
}
