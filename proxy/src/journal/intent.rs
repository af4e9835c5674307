//! What a call under a strict budget was promised. It is written before the call leaves, so that whatever becomes of this
//! process, the budget knows what the provider may bill. The record of the same request and attempt takes it away again.

use super::record::Undecodable;
use crate::limits::charge::Charges;
use serde::{Deserialize, Serialize};
use shared::model::id::OrganisationId;
use uuid::Uuid;

/// Written as MessagePack without field names. Fields are only ever added at the end, with a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Intent<'a> {
    /// The process that made the promise.
    pub boot: Uuid,
    /// `internal_trace_id` and `attempt` of the record.
    pub request_id: Uuid,
    pub attempt: u8,
    pub organisation_id: OrganisationId,
    #[serde(borrow)]
    pub charges: Charges<'a>,
    /// For each of those, in requests, tokens or nano-cents.
    pub amounts: Vec<u64>,
}

impl Intent<'_> {
    pub fn encode(&self, out: &mut Vec<u8>) {
        // Writing to memory cannot fail, and no field is of a kind that MessagePack lacks.
        let _ = rmp_serde::encode::write(out, self);
    }

    pub fn decode(bytes: &[u8]) -> Result<Intent<'_>, Undecodable> {
        rmp_serde::from_slice(bytes).map_err(|error| Undecodable::new(error, bytes, FIELDS))
    }
}

/// How many fields an intent has.
const FIELDS: u16 = 6;

#[cfg(test)]
mod tests {
    use super::super::Charge;
    use super::super::record::fields_of;
    use super::*;
    use crate::limits::CounterKind;

    #[test]
    fn an_intent_is_read_back_as_it_was_written() {
        let sort = CounterKind::from_words("policy", "cost", "total").unwrap();
        let charge = Charge { sort, scope_id: "p/é", starts_at: 5, lease: Some(Uuid::from_u128(3)) };
        let intent = Intent {
            boot: Uuid::from_u128(1),
            request_id: Uuid::from_u128(2),
            attempt: 1,
            organisation_id: Uuid::from_u128(9).into(),
            charges: [charge].into_iter().collect(),
            amounts: vec![u64::MAX],
        };
        let mut bytes = Vec::new();
        intent.encode(&mut bytes);
        assert_eq!(Intent::decode(&bytes).unwrap(), intent);
        assert!(matches!(Intent::decode(&bytes[..bytes.len() - 1]), Err(Undecodable::Malformed(_))));
        assert_eq!(fields_of(&bytes), Some(FIELDS));
        bytes[0] += 1;
        bytes.push(0);
        assert!(matches!(Intent::decode(&bytes), Err(Undecodable::Newer)));
    }
}
