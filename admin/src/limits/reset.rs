//! When usage is next set back to zero. Weeks begin on Sunday, months on their first day, all at midnight UTC.

use chrono::{DateTime, Datelike as _, Days, NaiveDate, NaiveTime, Utc};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Period {
    Weekly,
    Monthly,
}

/// How often; a number of days is counted from its first reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    Every(Period),
    Days(u16),
}

/// The first reset after `now`.
pub fn next(schedule: Schedule, now: DateTime<Utc>) -> DateTime<Utc> {
    let today = now.date_naive();
    let day = match schedule {
        Schedule::Every(Period::Weekly) => {
            let days = 7 - u64::from(today.weekday().num_days_from_sunday());
            today.checked_add_days(Days::new(days))
        }
        Schedule::Every(Period::Monthly) => {
            let (year, month) =
                if today.month() == 12 { (today.year() + 1, 1) } else { (today.year(), today.month() + 1) };
            NaiveDate::from_ymd_opt(year, month, 1)
        }
        Schedule::Days(days) => today.checked_add_days(Days::new(days.into())),
    };
    midnight(day.unwrap_or(today))
}

/// Midnight at the beginning of the day.
pub fn midnight(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resets_fall_on_sundays_first_days_and_whole_days() {
        for (schedule, now, expected) in [
            (Schedule::Every(Period::Weekly), "2026-01-15T10:30:00Z", "2026-01-18"),
            (Schedule::Every(Period::Weekly), "2026-01-18T00:00:00Z", "2026-01-25"),
            (Schedule::Every(Period::Monthly), "2026-01-31T23:59:59Z", "2026-02-01"),
            (Schedule::Every(Period::Monthly), "2026-12-01T00:00:00Z", "2027-01-01"),
            (Schedule::Days(10), "2026-02-25T10:30:00Z", "2026-03-07"),
            (Schedule::Days(1), "2026-02-25T00:00:00Z", "2026-02-26"),
        ] {
            let found = next(schedule, now.parse().unwrap());
            assert_eq!(found, format!("{expected}T00:00:00Z").parse::<DateTime<Utc>>().unwrap(), "{schedule:?} {now}");
        }
    }
}
