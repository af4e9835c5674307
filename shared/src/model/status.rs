//! Where rows are in their lives, as their column `status` says. A text that is none of these makes its row unreadable:
//! nobody can know what such a row may still do.

use chrono::{DateTime, Utc};
use serde::de::IntoDeserializer as _;
use serde::de::value::{Error as UnknownName, StrDeserializer};
use serde::{Deserialize, Serialize};
use std::error::Error;
use tokio_postgres::types::{FromSql, Type};

/// Of workspaces, integrations, configs, deployments, policies, people and labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Active,
    Archived,
}

/// Of what gives access: API keys and providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessStatus {
    Active,
    /// Its budget is used up. Counters decide about requests; this is for lists.
    Exhausted,
    Expired,
    Archived,
}

impl Status {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Archived => "archived",
        }
    }
}

impl AccessStatus {
    /// What something that is not archived is at this moment, given its end and whether its budget is used up.
    pub fn at(now: DateTime<Utc>, ends: Option<DateTime<Utc>>, is_exhausted: bool) -> Self {
        match is_exhausted {
            _ if ends.is_some_and(|end| end <= now) => Self::Expired,
            true => Self::Exhausted,
            false => Self::Active,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Exhausted => "exhausted",
            Self::Expired => "expired",
            Self::Archived => "archived",
        }
    }
}

impl<'a> FromSql<'a> for Status {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        from_text(kind, raw)
    }

    fn accepts(kind: &Type) -> bool {
        <&str as FromSql<'_>>::accepts(kind)
    }
}

impl<'a> FromSql<'a> for AccessStatus {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        from_text(kind, raw)
    }

    fn accepts(kind: &Type) -> bool {
        <&str as FromSql<'_>>::accepts(kind)
    }
}

/// The variant that serde finds under this name.
fn from_text<'a, T: Deserialize<'a>>(kind: &Type, raw: &'a [u8]) -> Result<T, Box<dyn Error + Sync + Send>> {
    let name: StrDeserializer<'_, UnknownName> = <&str>::from_sql(kind, raw)?.into_deserializer();
    Ok(T::deserialize(name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_by_its_name_and_what_is_unknown_is_an_error_that_names_it() {
        for status in [AccessStatus::Active, AccessStatus::Exhausted, AccessStatus::Expired, AccessStatus::Archived] {
            let read = AccessStatus::from_sql(&Type::TEXT, status.as_str().as_bytes()).unwrap();
            assert_eq!((read, serde_json::to_value(status).unwrap()), (status, status.as_str().into()));
        }
        for status in [Status::Active, Status::Archived] {
            assert_eq!(Status::from_sql(&Type::TEXT, status.as_str().as_bytes()).unwrap(), status);
        }
        let unknown = Status::from_sql(&Type::TEXT, b"expired").unwrap_err().to_string();
        assert!(unknown.contains("`expired`"), "{unknown}");
    }
}
