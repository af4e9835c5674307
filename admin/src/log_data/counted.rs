//! Figures by slot of a graph and by value, added up from slots and logs alike, and the measures of them.

use super::measure::Measure;
use super::period::{Step, slot_of};
use super::rolled::Rolled;
use super::row;
use chrono::{DateTime, Utc};
use serde_json::Value;
use shared::db::table::RowError;
use shared::db::usage_slots::{self, ByValue, CountedCall, Figures, SlotDimension, ValueMap, Wanted};
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
    /// Both, the workspace first (`split_workspace`).
    OwnInWorkspace,
    UserInWorkspace,
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
pub const MAX_FIGURES: usize = 300_000;

pub struct Counted {
    dimension: SlotDimension,
    value: ValueOf,
    only: Option<HashSet<String>>,
    condition: SlotCondition,
    step: Option<Step>,
    has_percentiles: bool,
    /// Nothing but requests of users is asked for, which is the first thing that slots say of one.
    is_of_requests: bool,
    /// By the beginning of a slot of the graph, in seconds since 1970; without a graph there is one.
    slots: BTreeMap<i64, ByValue>,
    held: usize,
    /// Instead of those, where values are told apart only to say how many there are.
    different: Option<Different>,
}

/// Values by number, and which of them each slot has.
#[derive(Debug, Default)]
struct Different {
    numbers: ValueMap<usize>,
    slots: BTreeMap<i64, DifferentSlot>,
}

/// One slot of a graph, or all of them.
#[derive(Debug, Default)]
struct DifferentSlot {
    figures: Figures,
    /// A bit for each value: users that have a name, or statuses of failed calls.
    seen: Vec<u64>,
}

impl Counted {
    pub fn new(dimension: SlotDimension, value: ValueOf, step: Option<Step>, measures: &[Measure]) -> Self {
        let rolled = || measures.iter().filter_map(|measure| measure.rolled);
        Self {
            dimension,
            value,
            only: None,
            condition: SlotCondition::All,
            step,
            has_percentiles: rolled().any(|one| one.is_percentile()),
            is_of_requests: dimension == SlotDimension::User && rolled().all(Rolled::is_of_requests),
            slots: BTreeMap::new(),
            held: 0,
            different: rolled().any(|one| one.divided_by().is_some()).then(Different::default),
        }
    }

    /// Only these values, and only where this holds.
    pub fn only(self, values: Option<&[String]>, condition: SlotCondition) -> Self {
        Self { only: values.map(|values| values.iter().cloned().collect()), condition, ..self }
    }

    /// Adds a stored slot. False when it does not have what is asked for, or there is too much of it.
    pub fn add_slot(&mut self, slot: DateTime<Utc>, workspace: Uuid, stored: &[u8]) -> Result<bool, RowError> {
        self.add_some(slot, workspace, stored, |_| true)
    }

    /// The same, of values that are wanted alone.
    pub fn add_some(
        &mut self,
        slot: DateTime<Utc>,
        workspace: Uuid,
        stored: &[u8],
        wants: impl Fn(&str) -> bool,
    ) -> Result<bool, RowError> {
        let (dimension, value, only, condition, has_percentiles) =
            (self.dimension, self.value, self.only.as_ref(), self.condition, self.has_percentiles);
        let workspace = value.workspace(workspace);
        let wanted = if has_percentiles { Wanted::Everything } else { Wanted::Sums };
        let wants = |own: &str, _| {
            let is_asked = only.is_none_or(|only| only.contains(own)) && wants(&value.shown(own, &workspace));
            if is_asked { wanted } else { Wanted::Nothing }
        };
        let (at, before) = (at(slot, self.step), self.held);
        let is_of_requests = self.is_of_requests && condition == SlotCondition::All;
        let is_whole = match &mut self.different {
            Some(different) if is_of_requests => {
                let sums = different.slots.entry(at).or_default();
                let count = |own: &str, requests: u64| {
                    if wants(own, requests) != Wanted::Nothing {
                        sums.figures.requests += requests;
                        sums.figures.user_requests += if own.is_empty() { 0 } else { requests };
                        sums.add(Some(own).filter(|name| !name.is_empty()), &mut different.numbers);
                    }
                    Wanted::Nothing
                };
                usage_slots::read_some(stored, slot, count, |_, _| {})?
            }
            Some(different) => {
                let sums = different.slots.entry(at).or_default();
                usage_slots::read_some(stored, slot, wants, |own, figures| {
                    if condition.holds(own, figures) {
                        sums.add(different_value(dimension, own, figures), &mut different.numbers);
                        merge(&mut sums.figures, figures, has_percentiles);
                    }
                })?
            }
            None => {
                let by_value = self.slots.entry(at).or_default();
                let held = by_value.len();
                let is_whole = usage_slots::read_some(stored, slot, wants, |own, figures| {
                    if !condition.holds(own, figures) {
                        return;
                    }
                    let name = value.shown(own, &workspace);
                    match by_value.get_mut(&*name) {
                        Some(sum) => merge(sum, figures, has_percentiles),
                        None => merge(by_value.entry(name.into_owned()).or_default(), figures, has_percentiles),
                    }
                })?;
                self.held = before + by_value.len() - held;
                is_whole
            }
        };
        Ok(is_whole && self.is_bounded())
    }

    /// Adds a call of a log that the filter found. False when there is too much of it.
    pub fn add_call(&mut self, call: &CountedCall<'_>) -> bool {
        let (dimension, value) = (self.dimension, self.value);
        let workspace = value.workspace(call.workspace_id);
        let at = at(call.created_at, self.step);
        match &mut self.different {
            Some(different) => {
                let sums = different.slots.entry(at).or_default();
                dimension.each(call, |own| {
                    let mut figures = Figures::default();
                    figures.add_call(call);
                    sums.add(different_value(dimension, &own, &figures), &mut different.numbers);
                    sums.figures.merge(&figures);
                });
            }
            None => {
                let by_value = self.slots.entry(at).or_default();
                let before = by_value.len();
                dimension.each(call, |own| {
                    by_value.entry(value.shown(&own, &workspace).into_owned()).or_default().add_call(call);
                });
                self.held += by_value.len() - before;
            }
        }
        self.is_bounded()
    }

    /// Adds what was counted elsewhere, by slot of the same graph.
    pub fn add_counted(&mut self, other: &Self, wants: impl Fn(&str) -> bool) {
        for (at, values) in &other.slots {
            let by_value = self.slots.entry(*at).or_default();
            for (own, figures) in values.iter().filter(|(own, _)| wants(own)) {
                let name = if self.value == ValueOf::Nothing { "" } else { own.as_str() };
                by_value.entry(name.to_owned()).or_default().merge(figures);
            }
        }
    }

    fn is_bounded(&self) -> bool {
        self.held + self.different.as_ref().map_or(0, |one| one.numbers.len() + one.slots.len()) <= MAX_FIGURES
    }

    /// The measures of all.
    pub fn whole(&self, measures: &[Measure]) -> Vec<Value> {
        match &self.different {
            Some(different) => {
                let mut whole = DifferentSlot::default();
                different.slots.values().for_each(|slot| whole.merge(slot));
                whole.values(measures)
            }
            None => values(measures, &self.sum(self.slots.values().flat_map(|one| one.values())), 0),
        }
    }

    /// The measures of each slot that something happened in, in order.
    pub fn by_slot(&self, measures: &[Measure]) -> Vec<(DateTime<Utc>, Vec<Value>)> {
        match &self.different {
            Some(different) => different.slots.iter().map(|(at, slot)| (time(*at), slot.values(measures))).collect(),
            None => {
                let sums = self.slots.iter().map(|(at, values)| (time(*at), self.sum(values.values())));
                sums.map(|(at, sum)| (at, values(measures, &sum, 0))).collect()
            }
        }
    }

    /// All slots together, by value.
    pub fn by_value(&self) -> Cow<'_, ByValue> {
        if let (1, Some(only)) = (self.slots.len(), self.slots.values().next()) {
            return Cow::Borrowed(only);
        }
        let mut all = ByValue::default();
        for (value, figures) in self.slots.values().flatten() {
            match all.get_mut(value) {
                Some(sum) => merge(sum, figures, self.has_percentiles),
                None => merge(all.entry(value.clone()).or_default(), figures, self.has_percentiles),
            }
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

    fn sum<'f>(&self, values: impl Iterator<Item = &'f Figures>) -> Figures {
        let mut sum = Figures::default();
        values.for_each(|figures| merge(&mut sum, figures, self.has_percentiles));
        sum
    }
}

impl DifferentSlot {
    fn add(&mut self, value: Option<&str>, numbers: &mut ValueMap<usize>) {
        let Some(value) = value else { return };
        let number = match numbers.get(value) {
            Some(number) => *number,
            None => {
                let next = numbers.len();
                numbers.insert(value.to_owned(), next);
                next
            }
        };
        if self.seen.len() <= number / 64 {
            self.seen.resize(number / 64 + 1, 0);
        }
        self.seen[number / 64] |= 1 << (number % 64);
    }

    fn merge(&mut self, other: &Self) {
        self.figures.merge(&other.figures);
        if self.seen.len() < other.seen.len() {
            self.seen.resize(other.seen.len(), 0);
        }
        self.seen.iter_mut().zip(&other.seen).for_each(|(mine, theirs)| *mine |= theirs);
    }

    fn values(&self, measures: &[Measure]) -> Vec<Value> {
        values(measures, &self.figures, self.seen.iter().map(|bits| u64::from(bits.count_ones())).sum())
    }
}

/// The value as one of those that are counted, if it is: users that have a name, statuses of failed calls.
fn different_value<'v>(dimension: SlotDimension, value: &'v str, figures: &Figures) -> Option<&'v str> {
    match dimension {
        SlotDimension::User => Some(value).filter(|name| !name.is_empty()),
        SlotDimension::StatusCode => Some(value).filter(|_| figures.errors > 0),
        _ => None,
    }
}

/// Measures of some figures; `different` is how many values there are of what is told apart.
fn values(measures: &[Measure], figures: &Figures, different: u64) -> Vec<Value> {
    measures.iter().map(|measure| value(measure, figures, different)).collect()
}

/// A measure of some figures.
pub fn value(measure: &Measure, figures: &Figures, different: u64) -> Value {
    measure.rolled.map_or_else(|| 0.into(), |rolled| row::number(rolled.value(figures, different)))
}

impl ValueOf {
    pub(super) fn shown<'v>(self, own: &'v str, workspace: &'v str) -> Cow<'v, str> {
        match self {
            Self::Nothing => Cow::Borrowed(""),
            Self::Own => Cow::Borrowed(own),
            // Slots have a letter before it.
            Self::User => Cow::Borrowed(own.get(1..).unwrap_or_default()),
            Self::Workspace => Cow::Borrowed(workspace),
            Self::OwnInWorkspace => Cow::Owned([workspace, own].concat()),
            Self::UserInWorkspace => Cow::Owned([workspace, own.get(1..).unwrap_or_default()].concat()),
        }
    }

    /// The same value, with its workspace; none for what is no value of its own.
    pub(super) fn in_workspace(self) -> Option<Self> {
        match self {
            Self::Own => Some(Self::OwnInWorkspace),
            Self::User => Some(Self::UserInWorkspace),
            Self::Nothing | Self::Workspace | Self::OwnInWorkspace | Self::UserInWorkspace => None,
        }
    }

    /// Whether values of two workspaces differ.
    pub(super) fn is_in_workspace(self) -> bool {
        matches!(self, Self::Workspace | Self::OwnInWorkspace | Self::UserInWorkspace)
    }

    /// The workspace as a text, where it is shown.
    pub(super) fn workspace(self, id: Uuid) -> String {
        if self.is_in_workspace() { id.to_string() } else { String::new() }
    }
}

/// The workspace, and the value in it, of what was counted by both.
pub(super) fn split_workspace(name: &str) -> (&str, &str) {
    name.split_at_checked(uuid::fmt::Hyphenated::LENGTH).unwrap_or((name, ""))
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
        let slots: Vec<_> = counted.by_slot(&measures).into_iter().map(|(_, values)| values).collect();
        assert_eq!(slots, [vec![json!(1), json!(1), json!(1), json!(1)], vec![json!(2), json!(1), json!(3), json!(3)]]);
    }

    #[test]
    fn a_group_has_the_name_that_is_shown() {
        let nil = Uuid::nil().to_string();
        let ada = format!("{nil}ada");
        assert_eq!(split_workspace(&ada), (nil.as_str(), "ada"));
        for (value, names) in [
            (ValueOf::User, vec!["", "ada"]),
            (ValueOf::Own, vec!["", "uada"]),
            (ValueOf::UserInWorkspace, vec![nil.as_str(), &ada]),
        ] {
            let mut counted = Counted::new(SlotDimension::User, value, None, &[m::REQUESTS]);
            counted.add_call(&call(Some("ada"), 1));
            counted.add_call(&call(None, 1));
            let mut found: Vec<String> = counted.by_value().keys().cloned().collect();
            found.sort();
            assert_eq!(found, names);
        }
    }
}
