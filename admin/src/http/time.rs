//! Times as they are written: RFC 3339 in UTC with milliseconds and `Z`, because one client decodes them strictly.

use crate::http::ApiError;
use chrono::{DateTime, Datelike as _, NaiveDate, NaiveDateTime, NaiveTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize, Serializer};
use std::error::Error;
use tokio_postgres::types::{FromSql, Type};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Time(pub DateTime<Utc>);

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'a> FromSql<'a> for Time {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        DateTime::from_sql(kind, raw).map(Self)
    }

    fn accepts(kind: &Type) -> bool {
        <DateTime<Utc> as FromSql>::accepts(kind)
    }
}

/// A time that was sent: RFC 3339, or without an offset (UTC), or a day (its beginning).
pub fn parsed(field: &str, text: &str) -> Result<DateTime<Utc>, ApiError> {
    let with_offset = || DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc());
    let plain = || text.parse::<NaiveDateTime>().ok().map(|time| time.and_utc());
    let day = || text.parse::<NaiveDate>().ok().map(|day| day.and_time(NaiveTime::MIN).and_utc());
    let found = with_offset().or_else(plain).or_else(day);
    // Postgres and clients end before chrono does.
    let found = found.filter(|time| (1970..=9999).contains(&time.year()));
    found.ok_or_else(|| ApiError::field(field, "must be a time as 2026-01-15T10:30:00Z"))
}

/// The `+` of an offset that was sent in a query as it is arrives as a space.
pub fn with_plus(text: &str) -> String {
    match text.rsplit_once(' ') {
        Some((time, offset)) if time.contains('T') => format!("{time}+{offset}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_milliseconds_and_a_z() {
        let time = DateTime::from_timestamp(1_768_473_000, 0).unwrap();
        assert_eq!(serde_json::to_string(&Time(time)).unwrap(), r#""2026-01-15T10:30:00.000Z""#);
    }

    #[test]
    fn times_are_read_with_an_offset_without_one_or_as_a_day() {
        for (text, expected) in [
            ("2026-01-15T10:30:00Z", Some("2026-01-15T10:30:00Z")),
            ("2026-01-15T10:30:00.5+02:00", Some("2026-01-15T08:30:00.5Z")),
            ("2026-01-15T10:30:00", Some("2026-01-15T10:30:00Z")),
            ("2026-01-15", Some("2026-01-15T00:00:00Z")),
            ("+12026-01-15", None),
            ("tomorrow", None),
            ("", None),
        ] {
            let expected = expected.map(|text| text.parse::<DateTime<Utc>>().unwrap());
            assert_eq!(parsed("expires_at", text).ok(), expected, "{text}");
        }
    }
}
