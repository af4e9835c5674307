//! Records that cannot be stored are kept where somebody can look at them, with whose they are as far as that can be read: they
//! expire and are erased like logs.

use super::super::record::Record;
use crate::request::text_bounds::cut;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use shared::db;
use tokio_postgres::Client;
use uuid::Uuid;

const MAX_REASON_LENGTH: usize = 1000;
/// No trace or name that can be erased is longer.
const MAX_NAME_LENGTH: usize = 1000;

/// Keeps a record that cannot be stored. False when it is there already.
pub async fn reject(client: &Client, segment: &str, record: &[u8], reason: &str) -> Result<bool, String> {
    const REJECT: &str =
        "INSERT INTO rejected_records (id, segment, record, reason, organisation_id, trace_id, user_name)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING";
    let reason = cut(reason, MAX_REASON_LENGTH).replace('\0', "");
    let owner = RecordOwner::read(record);
    let (organisation, trace) = (owner.organisation, owner.trace.as_deref());
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
        [&of_bytes(record), &segment, &record, &reason, &organisation, &trace, &owner.user.as_deref()];
    let added = client.execute(REJECT, &values).await;
    added.map(|rows| rows > 0).map_err(|error| db::explain(&error))
}

/// Whose a record is.
#[derive(Debug, Default, PartialEq, Eq)]
struct RecordOwner {
    organisation: Option<Uuid>,
    trace: Option<String>,
    user: Option<String>,
}

impl RecordOwner {
    fn read(record: &[u8]) -> Self {
        let Ok(record) = Record::decode(record) else { return Self::default() };
        let text = |text: &str| cut(text, MAX_NAME_LENGTH).replace('\0', "");
        Self {
            organisation: Some(record.organisation_id.uuid()),
            trace: Some(text(record.trace_id)),
            user: record.metadata.and_then(user_of).map(|user| text(&user)),
        }
    }
}

/// As whoever erases it writes it.
fn user_of(metadata: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        _user: Option<Value>,
    }
    match serde_json::from_str::<Named>(metadata).ok()?._user? {
        Value::String(name) => Some(name),
        other @ (Value::Number(_) | Value::Bool(_)) => Some(other.to_string()),
        _ => None,
    }
}

/// An id that the same record has again when it is sent again.
fn of_bytes(record: &[u8]) -> Uuid {
    let mut id = [0; 16];
    id.copy_from_slice(&Sha256::digest(record)[..16]);
    Uuid::from_bytes(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_record_is_read_where_it_can_be() {
        let of = |metadata| {
            let mut bytes = Vec::new();
            let organisation_id = Uuid::from_u128(7).into();
            Record { organisation_id, trace_id: "t\0race", metadata, ..Record::default() }.encode(&mut bytes);
            RecordOwner::read(&bytes)
        };
        let deep = format!(r#"{{"_user":"ada","x":{}{}}}"#, "[".repeat(500), "]".repeat(500));
        for (metadata, user) in [
            (Some(r#"{"x":1,"_user":"ada"}"#), Some("ada")),
            (Some(r#"{"_user":7}"#), Some("7")),
            (Some(r#"{"_user":null}"#), None),
            (Some("{"), None),
            (Some(deep.as_str()), Some("ada")),
            (None, None),
        ] {
            let owner = of(metadata);
            assert_eq!((owner.organisation, owner.trace.as_deref()), (Some(Uuid::from_u128(7)), Some("trace")));
            assert_eq!(owner.user.as_deref(), user, "{metadata:?}");
        }
        assert_eq!(RecordOwner::read(b"no record"), RecordOwner::default());
    }
}
