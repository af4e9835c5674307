//! When usage is set back to zero: on the first day of a week or month at midnight UTC, or every so many days. A first reset
//! that was asked for comes at its very time, and those every so many days after it at that time of the day.
//! Weeks of things begin on Sunday, weeks of policies on Monday.

use crate::http::{ApiError, time};
use chrono::{DateTime, Datelike as _, Days, NaiveDate, NaiveTime, SubsecRound as _, Utc, Weekday};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(expecting = "enum Period", rename_all = "lowercase")]
pub enum ResetPeriod {
    Weekly,
    Monthly,
}

/// How often; a number of days is counted from its first reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetSchedule {
    /// With the day on which weeks begin.
    Weekly(Weekday),
    Monthly,
    Days(u16),
}

impl ResetSchedule {
    /// At most one of the two may be given.
    pub fn checked(period: Option<ResetPeriod>, days: Option<i64>, week: Weekday) -> Result<Option<Self>, ApiError> {
        match (period, days) {
            (Some(_), Some(_)) => Err(ApiError::field("periodic_reset_days", "cannot stand beside periodic_reset")),
            (Some(ResetPeriod::Weekly), None) => Ok(Some(Self::Weekly(week))),
            (Some(ResetPeriod::Monthly), None) => Ok(Some(Self::Monthly)),
            (None, Some(days)) if (1..=365).contains(&days) => Ok(Some(Self::Days(days as u16))),
            (None, Some(_)) => Err(ApiError::field("periodic_reset_days", "must be from 1 to 365")),
            (None, None) => Ok(None),
        }
    }

    pub fn period(self) -> Option<ResetPeriod> {
        match self {
            Self::Weekly(_) => Some(ResetPeriod::Weekly),
            Self::Monthly => Some(ResetPeriod::Monthly),
            Self::Days(_) => None,
        }
    }

    pub fn days(self) -> Option<u16> {
        if let Self::Days(days) = self { Some(days) } else { None }
    }

    /// The first reset after `now`.
    pub fn next(self, now: DateTime<Utc>) -> DateTime<Utc> {
        let today = now.date_naive();
        let day = match self {
            Self::Weekly(week) => today.checked_add_days(Days::new(7 - days_into(today, week))),
            Self::Monthly => {
                let (year, month) =
                    if today.month() == 12 { (today.year() + 1, 1) } else { (today.year(), today.month() + 1) };
                NaiveDate::from_ymd_opt(year, month, 1)
            }
            Self::Days(days) => today.checked_add_days(Days::new(days.into())),
        };
        midnight(day.unwrap_or(today))
    }

    /// For a reset that was due at `due`, perhaps long ago: when the present period began, and when the next one does.
    pub fn caught_up(self, due: DateTime<Utc>, now: DateTime<Utc>) -> (DateTime<Utc>, DateTime<Utc>) {
        let today = now.date_naive();
        let began = match self {
            Self::Weekly(week) => today.checked_sub_days(Days::new(days_into(today, week))),
            Self::Monthly => today.with_day(1),
            Self::Days(days) => {
                let rounds = (now - due).num_days().max(0) / i64::from(days);
                let later = |rounds: i64| {
                    let days = Days::new(rounds.unsigned_abs() * u64::from(days));
                    due.checked_add_days(days).unwrap_or(due)
                };
                return (later(rounds), later(rounds + 1));
            }
        };
        // A first reset may have been put on any day, so the period may have begun after the week did.
        (began.map_or(due, midnight).max(due), self.next(now))
    }
}

/// The first reset: at the time that is asked for, or the next that the schedule has.
pub fn first(
    schedule: Option<ResetSchedule>,
    asked: Option<&str>,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, ApiError> {
    match (schedule, asked) {
        (None, Some(_)) => Err(ApiError::field("next_usage_reset_at", "needs periodic_reset or periodic_reset_days")),
        (Some(_), Some(text)) => {
            // As times are stored and shown.
            let asked = time::parsed("next_usage_reset_at", text)?.trunc_subsecs(3);
            if asked <= now {
                return Err(ApiError::field("next_usage_reset_at", "must be in the future"));
            }
            Ok(Some(asked))
        }
        (Some(schedule), None) => Ok(Some(schedule.next(now))),
        (None, None) => Ok(None),
    }
}

fn days_into(day: NaiveDate, week: Weekday) -> u64 {
    day.weekday().days_since(week).into()
}

/// Midnight at the beginning of the day.
fn midnight(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUNDAYS: ResetSchedule = ResetSchedule::Weekly(Weekday::Sun);
    const MONDAYS: ResetSchedule = ResetSchedule::Weekly(Weekday::Mon);

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn day(text: &str) -> DateTime<Utc> {
        at(&format!("{text}T00:00:00Z"))
    }

    #[test]
    fn resets_fall_on_first_days_and_whole_days() {
        for (schedule, now, expected) in [
            (SUNDAYS, "2026-01-15T10:30:00Z", "2026-01-18"),
            (SUNDAYS, "2026-01-18T00:00:00Z", "2026-01-25"),
            (MONDAYS, "2026-01-18T23:59:59Z", "2026-01-19"),
            (MONDAYS, "2026-01-19T00:00:00Z", "2026-01-26"),
            (ResetSchedule::Monthly, "2026-01-31T23:59:59Z", "2026-02-01"),
            (ResetSchedule::Monthly, "2026-12-01T00:00:00Z", "2027-01-01"),
            (ResetSchedule::Days(10), "2026-02-25T10:30:00Z", "2026-03-07"),
            (ResetSchedule::Days(1), "2026-02-25T00:00:00Z", "2026-02-26"),
        ] {
            assert_eq!(schedule.next(at(now)), day(expected), "{schedule:?} {now}");
        }
    }

    #[test]
    fn resets_that_were_missed_are_made_once_as_of_the_last_of_them() {
        for (schedule, due, now, began, next) in [
            (SUNDAYS, "2026-01-18", "2026-01-18T00:00:03Z", "2026-01-18", "2026-01-25"),
            (SUNDAYS, "2026-01-18", "2026-02-12T10:00:00Z", "2026-02-08", "2026-02-15"),
            // A first reset in the middle of a week.
            (SUNDAYS, "2026-01-21", "2026-01-22T10:00:00Z", "2026-01-21", "2026-01-25"),
            (MONDAYS, "2026-01-19", "2026-01-25T23:59:59Z", "2026-01-19", "2026-01-26"),
            (ResetSchedule::Monthly, "2026-02-01", "2026-02-28T23:59:59Z", "2026-02-01", "2026-03-01"),
            (ResetSchedule::Monthly, "2027-12-01", "2028-02-29T12:00:00Z", "2028-02-01", "2028-03-01"),
            (ResetSchedule::Days(30), "2026-01-31", "2026-01-31T00:00:00Z", "2026-01-31", "2026-03-02"),
            (ResetSchedule::Days(30), "2026-01-31", "2026-03-01T23:59:59Z", "2026-01-31", "2026-03-02"),
            (ResetSchedule::Days(7), "2026-01-01", "2026-01-29T08:00:00Z", "2026-01-29", "2026-02-05"),
            (ResetSchedule::Days(365), "2024-02-29", "2026-03-01T00:00:00Z", "2026-02-28", "2027-02-28"),
        ] {
            assert_eq!(schedule.caught_up(day(due), at(now)), (day(began), day(next)), "{schedule:?} {due} {now}");
        }
    }

    #[test]
    fn resets_every_so_many_days_keep_the_time_of_the_first() {
        let due = "2026-01-20T15:00:00.250Z";
        for (schedule, now, began, next) in [
            (ResetSchedule::Days(1), "2026-01-20T15:00:01Z", due, "2026-01-21T15:00:00.250Z"),
            (ResetSchedule::Days(1), "2026-01-22T14:59:59Z", "2026-01-21T15:00:00.250Z", "2026-01-22T15:00:00.250Z"),
            (ResetSchedule::Days(30), "2026-03-21T15:00:01Z", "2026-03-21T15:00:00.250Z", "2026-04-20T15:00:00.250Z"),
            (SUNDAYS, "2026-01-20T15:00:01Z", due, "2026-01-25T00:00:00Z"),
            (ResetSchedule::Monthly, "2026-01-20T15:00:01Z", due, "2026-02-01T00:00:00Z"),
        ] {
            assert_eq!(schedule.caught_up(at(due), at(now)), (at(began), at(next)), "{schedule:?} {now}");
        }
    }

    #[test]
    fn a_first_reset_comes_at_the_very_time_that_is_asked_for() {
        let now = at("2026-01-15T10:30:00Z");
        for (asked, expected) in [
            ("2026-01-15T12:30:01+02:00", Ok("2026-01-15T10:30:01Z")),
            ("2026-01-15T10:30:00.0009Z", Err(())),
            ("2026-01-15T10:29:59Z", Err(())),
            ("2026-01-15", Err(())),
            ("2026-01-16", Ok("2026-01-16T00:00:00Z")),
        ] {
            let first = first(Some(ResetSchedule::Days(7)), Some(asked), now);
            assert_eq!(first.map_err(|_| ()), expected.map(|time| Some(at(time))), "{asked}");
        }
    }
}
