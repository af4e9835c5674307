//! The time that figures are about, and the slots that a graph divides it into.

use super::filters;
use crate::http::{ApiError, Query};
use chrono::{DateTime, TimeDelta, Utc};

/// From `from` up to and without `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    pub from: DateTime<Utc>,
    pub until: DateTime<Utc>,
}

/// The width of a slot, in seconds, and as Postgres says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub seconds: i64,
    pub interval: &'static str,
}

/// A graph has at most so many points, unless even the widest slots are more.
const MAX_POINTS: i64 = 60;
/// Of the widest slots, as many as ten years have.
const MAX_DAYS: i64 = 3660;

static STEPS: &[Step] = &[
    Step { seconds: 60, interval: "1 minute" },
    Step { seconds: 300, interval: "5 minutes" },
    Step { seconds: 1800, interval: "30 minutes" },
    Step { seconds: 3600, interval: "1 hour" },
    Step { seconds: 21_600, interval: "6 hours" },
    Step { seconds: 86_400, interval: "1 day" },
];
const WIDEST: Step = Step { seconds: 604_800, interval: "7 days" };

/// Where slots are counted from: a Monday, so that weeks begin with one. 2001-01-01T00:00:00Z.
const ORIGIN: i64 = 978_307_200;
pub const ORIGIN_SQL: &str = "TIMESTAMPTZ '2001-01-01 00:00:00+00'";

impl Period {
    /// Since there are computers, and for longer than anybody asks.
    pub fn always() -> Self {
        Self { from: DateTime::UNIX_EPOCH, until: DateTime::UNIX_EPOCH + TimeDelta::days(8000 * 365) }
    }

    /// Both ends are needed: figures without a time would be about everything there is.
    pub fn asked(query: &Query) -> Result<Self, ApiError> {
        let [from, until] = filters::period(query)?;
        let needed = |name: &str| ApiError::field(name, "is required, as a time with its offset: 2026-01-15T10:30:00Z");
        let from = from.ok_or_else(|| needed("time_of_generation_min"))?;
        let until = until.ok_or_else(|| needed("time_of_generation_max"))?;
        if until - from > TimeDelta::days(MAX_DAYS) {
            return Err(ApiError::field(
                "time_of_generation_min",
                format!("must be at most {MAX_DAYS} days before time_of_generation_max"),
            ));
        }
        Ok(Self { from, until })
    }

    /// The same length of time, just before.
    pub fn previous(self) -> Self {
        Self { from: self.from - (self.until - self.from), until: self.from }
    }

    /// The narrowest slots that are not too many.
    pub fn step(self) -> Step {
        let fits = |step: &&Step| self.count(**step) <= MAX_POINTS;
        STEPS.iter().find(fits).copied().unwrap_or(WIDEST)
    }

    /// When each slot begins, also those that nothing happened in. The first may begin before the period does.
    pub fn slots(self, step: Step) -> impl Iterator<Item = DateTime<Utc>> {
        let first = slot_of(self.from, step);
        (0..self.count(step)).filter_map(move |n| DateTime::from_timestamp(first + n * step.seconds, 0))
    }

    fn count(self, step: Step) -> i64 {
        // The end is not part of the period.
        let last = slot_of(self.until - TimeDelta::nanoseconds(1), step);
        ((last - slot_of(self.from, step)) / step.seconds + 1).max(1)
    }
}

/// In seconds since 1970.
pub fn slot_of(time: DateTime<Utc>, step: Step) -> i64 {
    (time.timestamp() - ORIGIN).div_euclid(step.seconds) * step.seconds + ORIGIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Time;

    fn period(from: &str, until: &str) -> Period {
        let asked = format!("time_of_generation_min={from}&time_of_generation_max={until}");
        Period::asked(&Query::parse(Some(&asked)).unwrap()).unwrap()
    }

    #[test]
    fn slots_are_the_narrowest_that_are_not_too_many() {
        for (until, interval, points) in [
            ("2026-01-15T10:30:00Z", "1 minute", 1),
            ("2026-01-15T11:29:59.999Z", "1 minute", 60),
            ("2026-01-15T11:30:00Z", "5 minutes", 13),
            ("2026-01-16T10:30:00Z", "30 minutes", 49),
            ("2026-01-17T10:30:00Z", "1 hour", 49),
            ("2026-01-22T10:30:00Z", "6 hours", 29),
            ("2026-03-01T10:30:00Z", "1 day", 46),
            ("2026-04-15T10:30:00Z", "7 days", 14),
            ("2028-01-15T10:30:00Z", "7 days", 105),
        ] {
            let period = period("2026-01-15T10:30:00Z", until);
            let step = period.step();
            assert_eq!((step.interval, period.slots(step).count()), (interval, points), "{until}");
        }
    }

    #[test]
    fn slots_are_aligned_and_cover_the_period() {
        let days = period("2026-01-15T10:30:00Z", "2026-03-01T10:30:00Z");
        let slots: Vec<String> = days.slots(days.step()).map(|slot| Time(slot).to_string()).collect();
        assert_eq!(slots.first().unwrap(), "2026-01-15T00:00:00.000Z");
        assert_eq!(slots.last().unwrap(), "2026-03-01T00:00:00.000Z");
        let weeks = period("2026-01-15T10:30:00Z", "2026-06-01T00:00:00Z");
        let first = weeks.slots(weeks.step()).next().unwrap();
        assert_eq!(Time(first).to_string(), "2026-01-12T00:00:00.000Z", "a Monday");
    }

    #[test]
    fn the_end_is_part_of_no_further_slot() {
        let one =
            Period { from: "2026-01-15T10:00:00Z".parse().unwrap(), until: "2026-01-15T10:01:00Z".parse().unwrap() };
        assert_eq!(one.slots(one.step()).count(), 1);
        assert_eq!(one.previous().until, one.from);
    }

    #[test]
    fn both_ends_are_needed_and_a_time_has_an_end() {
        for query in [
            "",
            "time_of_generation_min=2026-01-15T10:30:00Z",
            "time_of_generation_max=2026-01-15T10:30:00Z",
            "time_of_generation_min=2026-01-16&time_of_generation_max=2026-01-15",
            "time_of_generation_min=1970-01-01&time_of_generation_max=2026-01-15",
        ] {
            let error = Period::asked(&Query::parse(Some(query)).unwrap()).unwrap_err();
            assert!(error.to_string().contains("time_of_generation"), "{query}: {error}");
        }
        let shifted = period("2026-01-15T10:30:00+02:00", "2026-01-15T11:30:00 02:00");
        assert_eq!(Time(shifted.from).to_string(), "2026-01-15T08:30:00.000Z", "a plus that came as a space too");
    }
}
