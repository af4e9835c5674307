//! Ids that cannot be taken for one another: a UUID that knows what it is of, so that an organisation's id where a
//! workspace's belongs does not compile. In JSON, in MessagePack and in Postgres it is the UUID and nothing else.
//!
//! `uuid()` leads out of it, for places that take ids of anything; `from` leads in, for ids that come from outside.

use bytes::BytesMut;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::error::Error;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::str::FromStr;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

pub type OrganisationId = Id<OfOrganisation>;
pub type WorkspaceId = Id<OfWorkspace>;
/// Of an API key, or of a token that stands for one.
pub type ApiKeyId = Id<OfApiKey>;
pub type UserId = Id<OfUser>;
pub type IntegrationId = Id<OfIntegration>;
pub type ProviderId = Id<OfProvider>;
pub type ConfigId = Id<OfConfig>;
pub type PolicyId = Id<OfPolicy>;
pub type GuardrailId = Id<OfGuardrail>;

pub enum OfOrganisation {}
pub enum OfWorkspace {}
pub enum OfApiKey {}
pub enum OfUser {}
pub enum OfIntegration {}
pub enum OfProvider {}
pub enum OfConfig {}
pub enum OfPolicy {}
pub enum OfGuardrail {}

/// A UUID of one kind of thing.
pub struct Id<T>(Uuid, PhantomData<fn() -> T>);

impl<T> Id<T> {
    pub const fn new(uuid: Uuid) -> Self {
        Self(uuid, PhantomData)
    }

    pub const fn uuid(self) -> Uuid {
        self.0
    }

    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }
}

impl<T> From<Uuid> for Id<T> {
    fn from(uuid: Uuid) -> Self {
        Self::new(uuid)
    }
}

impl<T> FromStr for Id<T> {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self::new)
    }
}

// Derived ones would ask the same of `T`.
impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> Default for Id<T> {
    fn default() -> Self {
        Self::new(Uuid::nil())
    }
}

impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Id<T> {}

impl<T> Hash for Id<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T> PartialOrd for Id<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Id<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl<T> fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<T> fmt::Display for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl<T> Serialize for Id<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for Id<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Uuid::deserialize(deserializer).map(Self::new)
    }
}

impl<'a, T> FromSql<'a> for Id<T> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Uuid::from_sql(kind, raw).map(Self::new)
    }

    fn accepts(kind: &Type) -> bool {
        <Uuid as FromSql<'_>>::accepts(kind)
    }
}

impl<T> ToSql for Id<T> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.0.to_sql(kind, out)
    }

    fn accepts(kind: &Type) -> bool {
        <Uuid as ToSql>::accepts(kind)
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_uuid_wherever_it_is_written() {
        let uuid = Uuid::from_u128(0x0123_4567_89ab_cdef);
        let id = WorkspaceId::new(uuid);
        assert_eq!((id.to_string(), format!("{id:?}")), (uuid.to_string(), format!("{uuid:?}")));
        assert_eq!(serde_json::to_string(&id).unwrap(), serde_json::to_string(&uuid).unwrap());
        assert_eq!(serde_json::from_str::<WorkspaceId>(&format!("\"{uuid}\"")).unwrap(), id);
        assert_eq!(uuid.to_string().parse::<WorkspaceId>().unwrap(), id);
        let mut raw = BytesMut::new();
        let _ = id.to_sql(&Type::UUID, &mut raw).unwrap();
        assert_eq!(WorkspaceId::from_sql(&Type::UUID, &raw).unwrap(), id);
        assert!(WorkspaceId::default() < id);
    }
}
