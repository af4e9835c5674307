//! Times as they are written: RFC 3339 in UTC with milliseconds and `Z`, because one client decodes them strictly.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};
use std::error::Error;
use tokio_postgres::types::{FromSql, Type};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_milliseconds_and_a_z() {
        let time = DateTime::from_timestamp(1_768_473_000, 0).unwrap();
        assert_eq!(serde_json::to_string(&Time(time)).unwrap(), r#""2026-01-15T10:30:00.000Z""#);
    }
}
