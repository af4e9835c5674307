//! What is counted, and how far it may go. A counter is one unit of one thing; its windows and periods are rows of
//! `usage_counters`, so that an expired window or a reset budget is nothing but another beginning.

use super::counter_kind::CounterKind;
use super::shards::ShareHandle;
pub use crate::request::limit_headers::{Micros, Unit};
use foldhash::quality::RandomState;
use sha2::{Digest as _, Sha256};
use shared::model::id::OrganisationId;
use std::hash::{BuildHasher as _, Hash, Hasher};
use std::sync::{Arc, LazyLock};

pub const SECOND: Micros = 1_000_000;

/// Longer ids are exchanged for their hash: values of metadata come from clients, and end in keys of tables.
pub const MAX_ID: usize = 256;

/// What is counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    ApiKey,
    Workspace,
    /// `<workspace id>/<slug>`
    Provider,
    /// `<integration id>/<workspace id>`
    Integration,
    /// `<workspace id>/<subject>`
    Token,
    /// `<policy id>/<value key>`
    Policy,
}

/// A window of a rate, aligned to UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Window {
    Minute,
    Hour,
    Day,
    /// From Monday on.
    Week,
    /// Too short to be worth a row of what was used: it is over before the journal is stored. Its leases say it all.
    Second,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    Rate(Window),
    Budget {
        /// Reserves the worst case and is never overspent.
        strict: bool,
        /// When its present period began (`last_reset_at`).
        since: Micros,
    },
}

/// One unit of one thing, in whichever window. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Counter(Arc<Inner>);

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    hash: u64,
    organisation: OrganisationId,
    sort: CounterKind,
    scope_id: Box<str>,
}

/// How far a counter may go.
#[derive(Debug, Clone)]
pub struct Limit {
    pub counter: Counter,
    pub cap: u64,
    pub kind: LimitKind,
    /// Counts and reports, and never refuses.
    pub dry_run: bool,
}

/// What a request wants of a limit. `u64::MAX` when nobody can say how much that is at most.
#[derive(Debug, Clone, Copy)]
pub struct LimitAsk<'l> {
    pub limit: &'l Limit,
    pub amount: u64,
    /// Where its share was found before, or is noted, by the same `Limits`.
    pub found: Option<&'l ShareHandle>,
}

impl Counter {
    pub fn new(
        organisation: OrganisationId,
        scope: Scope,
        scope_id: impl Into<String>,
        unit: Unit,
        kind: LimitKind,
    ) -> Self {
        /// By chance, so that nobody can choose values that fall together.
        static SPREAD: LazyLock<RandomState> = LazyLock::new(RandomState::default);
        let window = match kind {
            LimitKind::Rate(window) => Some(window),
            LimitKind::Budget { .. } => None,
        };
        let mut scope_id = scope_id.into();
        if scope_id.len() > MAX_ID || scope_id.contains('\0') {
            scope_id = shortened(&scope_id);
        }
        // Copied, not shrunk: that would keep what it has more than it needs, a hundred thousand times.
        let scope_id: Box<str> = scope_id.as_str().into();
        let kinds = [scope as u8, unit as u8, window.map_or(u8::MAX, |window| window as u8), 0];
        let hash = SPREAD.hash_one((organisation.uuid().as_u128(), u32::from_le_bytes(kinds), &*scope_id));
        Self(Arc::new(Inner { hash, organisation, sort: CounterKind { scope, unit, window }, scope_id }))
    }

    pub fn organisation(&self) -> OrganisationId {
        self.0.organisation
    }

    pub fn sort(&self) -> CounterKind {
        self.0.sort
    }

    pub fn scope_id(&self) -> &str {
        &self.0.scope_id
    }

    pub fn unit(&self) -> Unit {
        self.0.sort.unit
    }

    pub fn window(&self) -> Option<Window> {
        self.0.sort.window
    }

    pub(super) fn hash(&self) -> u64 {
        self.0.hash
    }
}

impl PartialEq for Counter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Counter {}

impl Hash for Counter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl LimitKind {
    /// When the window or period began that this moment falls in.
    pub fn starts_at(self, now: Micros) -> Micros {
        match self {
            Self::Rate(window) => now - (now - window.offset()).rem_euclid(window.length()),
            Self::Budget { since, .. } => since,
        }
    }

    /// When it ends; a budget does not by itself.
    pub fn ends_at(self, now: Micros) -> Option<Micros> {
        match self {
            Self::Rate(window) => Some(self.starts_at(now) + window.length()),
            Self::Budget { .. } => None,
        }
    }

    /// Whether a request passes only if all it may use is there. The default of budgets lets one pass while anything is.
    pub fn is_exact(self) -> bool {
        !matches!(self, Self::Budget { strict: false, .. })
    }
}

impl Window {
    pub const fn length(self) -> Micros {
        match self {
            Self::Minute => 60 * SECOND,
            Self::Hour => 3600 * SECOND,
            Self::Day => 86_400 * SECOND,
            Self::Week => 7 * 86_400 * SECOND,
            Self::Second => SECOND,
        }
    }

    /// When the first one began: 1970 began on a Thursday.
    const fn offset(self) -> Micros {
        match self {
            Self::Second | Self::Minute | Self::Hour | Self::Day => 0,
            Self::Week => 4 * 86_400 * SECOND,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Second => "second",
        }
    }
}

/// Its beginning, for people, and its hash, for telling it from others.
fn shortened(id: &str) -> String {
    let clean = id.replace('\0', "");
    let end = clean.floor_char_boundary(MAX_ID - 65);
    format!("{}#{}", &clean[..end], hex::encode(Sha256::digest(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(id: &str, kind: LimitKind) -> Counter {
        Counter::new(OrganisationId::default(), Scope::Policy, id, Unit::Requests, kind)
    }

    #[test]
    fn windows_are_aligned_to_utc_and_a_budget_begins_when_it_says() {
        let now = 1_700_000_123 * SECOND + 7;
        for (kind, starts, ends) in [
            (LimitKind::Rate(Window::Second), 1_700_000_123, Some(1_700_000_124)),
            (LimitKind::Rate(Window::Minute), 1_700_000_100, Some(1_700_000_160)),
            (LimitKind::Rate(Window::Hour), 1_699_999_200, Some(1_700_002_800)),
            (LimitKind::Rate(Window::Day), 1_699_920_000, Some(1_700_006_400)),
            (LimitKind::Rate(Window::Week), 1_699_833_600, Some(1_700_438_400)),
            (LimitKind::Budget { strict: false, since: 5 * SECOND }, 5, None),
        ] {
            assert_eq!((kind.starts_at(now) / SECOND, kind.ends_at(now).map(|end| end / SECOND)), (starts, ends));
        }
    }

    #[test]
    fn counters_are_equal_by_what_they_count_and_not_by_cap_or_period() {
        let (budget, later) =
            (LimitKind::Budget { strict: true, since: 1 }, LimitKind::Budget { strict: false, since: 2 });
        assert_eq!(counter("a", budget), counter("a", later));
        assert_ne!(counter("a", budget), counter("b", budget));
        assert_ne!(counter("a", budget), counter("a", LimitKind::Rate(Window::Day)));
        assert_ne!(counter("a", LimitKind::Rate(Window::Hour)), counter("a", LimitKind::Rate(Window::Day)));
    }

    #[test]
    fn ids_that_clients_made_long_or_odd_stay_short_and_apart() {
        let kind = LimitKind::Rate(Window::Day);
        let (one, other) = ("é".repeat(5000) + "1", "é".repeat(5000) + "2");
        for id in [&one, &other, "a\0b"] {
            let counter = counter(id, kind);
            assert!(counter.scope_id().len() <= MAX_ID && !counter.scope_id().contains('\0'));
        }
        assert_ne!(counter(&one, kind), counter(&other, kind));
        assert_ne!(counter("a\0b", kind), counter("ab", kind));
    }
}
