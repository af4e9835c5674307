//! One target of one request, as the journal keeps it: what only the moment knows. Prices, names of tenants and
//! everything else that can be looked up later is worked out by whoever ships it.
//!
//! Written as MessagePack without field names. Fields are only ever added at the end, with a default, so that a
//! process can read what an older one left behind. One that meets more fields than it knows leaves the whole file to a
//! process that knows them: a row that is stored is never stored again, so what it does not say would be lost. Whoever
//! gives a field a new meaning (another mode, another sort of counter) adds a field as well, if only to say so.

mod fields;
mod packed;

use crate::limits::charge::Charges;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use shared::model::id::{ApiKeyId, ConfigId, IntegrationId, OrganisationId, UserId, WorkspaceId};
use uuid::Uuid;

/// A text of the bytes it was read from.
type RecordText<'a> = Option<&'a str>;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Record<'a> {
    /// UUIDv7; its time is the row's `created_at`.
    pub id: Uuid,
    /// Of the request; the same in all its records.
    pub internal_trace_id: Uuid,
    pub organisation_id: OrganisationId,
    pub workspace_id: WorkspaceId,
    pub api_key_id: ApiKeyId,
    pub user_id: Option<UserId>,
    #[serde(borrow)]
    pub virtual_key: RecordText<'a>,
    pub integration_id: Option<IntegrationId>,
    #[serde(borrow)]
    pub ai_org: RecordText<'a>,
    /// As it was asked for, and as the answer names it.
    #[serde(borrow)]
    pub requested_model: RecordText<'a>,
    #[serde(borrow)]
    pub answered_model: RecordText<'a>,
    #[serde(borrow)]
    pub config: RecordText<'a>,
    pub config_id: Option<ConfigId>,
    pub config_version_id: Option<Uuid>,
    pub mode: Mode,
    #[serde(borrow)]
    pub option: RecordText<'a>,
    pub method: &'a str,
    pub url: &'a str,
    pub status: u16,
    #[serde(borrow)]
    pub error_code: RecordText<'a>,
    /// Milliseconds.
    pub response_time: u32,
    pub upstream_time: u32,
    /// Our own time before the head of the answer.
    pub gateway_time: u32,
    pub first_token_time: Option<u32>,
    /// The provider's own words, as JSON; a stream may report it twice, and the later report wins.
    #[serde(borrow)]
    pub usage: Vec<&'a str>,
    /// Prompt and completion tokens as we guess them, for when the provider does not say.
    pub estimate: Option<(u64, u64)>,
    #[serde(borrow)]
    pub service_tier: RecordText<'a>,
    pub retries: i8,
    pub attempt: u8,
    pub is_stream: bool,
    pub is_relayed: bool,
    pub trace_id: &'a str,
    #[serde(borrow)]
    pub span_id: RecordText<'a>,
    #[serde(borrow)]
    pub span_name: RecordText<'a>,
    #[serde(borrow)]
    pub parent_span_id: RecordText<'a>,
    /// A JSON object; none when it is empty.
    #[serde(borrow)]
    pub metadata: RecordText<'a>,
    #[serde(borrow)]
    pub runtime: RecordText<'a>,
    #[serde(borrow)]
    pub runtime_version: RecordText<'a>,
    #[serde(borrow)]
    pub sdk_version: RecordText<'a>,
    /// Milliseconds from the start of the request until this target was turned to.
    #[serde(default)]
    pub turned_after: u32,
    /// What was said stands behind it in the file, and will be in the log store.
    #[serde(default)]
    pub has_body: bool,
    /// The counters of limits that it is charged to.
    #[serde(borrow, default)]
    pub charges: Charges<'a>,
    /// Milliseconds from the start of the request until its body was read and understood.
    #[serde(default)]
    pub parsed_after: Option<u32>,
    /// Names of parameters that the target was not told, as a JSON list; none when there are none.
    #[serde(borrow, default)]
    pub dropped_params: RecordText<'a>,
    /// What guardrails said, as JSON; none when there were none.
    #[serde(borrow, default)]
    pub hook_results: RecordText<'a>,
    /// The stored prompt that was run, and in which version.
    #[serde(default)]
    pub prompt_id: Option<Uuid>,
    #[serde(default)]
    pub prompt_version_id: Option<Uuid>,
    #[serde(borrow, default)]
    pub prompt_slug: RecordText<'a>,
    #[serde(default)]
    pub cache_status: CacheStatus,
    /// Which kind of cache was in effect.
    #[serde(borrow, default)]
    pub cache_type: RecordText<'a>,
    /// Milliseconds that it took to look for a kept answer.
    #[serde(default)]
    pub cache_time: u32,
}

/// What the cache did for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum CacheStatus {
    /// It was not asked.
    #[default]
    Disabled,
    Miss,
    Hit,
    /// An answer was replaced that may have been there.
    Refresh,
    SemanticMiss,
    SemanticHit,
}

impl CacheStatus {
    pub const ALL: [Self; 6] =
        [Self::Disabled, Self::Miss, Self::Hit, Self::Refresh, Self::SemanticMiss, Self::SemanticHit];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Disabled => "DISABLED",
            Self::Miss => "MISS",
            Self::Hit => "HIT",
            Self::Refresh => "REFRESH",
            Self::SemanticMiss => "SEMANTIC MISS",
            Self::SemanticHit => "SEMANTIC HIT",
        }
    }

    /// Whether no provider was asked.
    pub const fn is_hit(self) -> bool {
        matches!(self, Self::Hit | Self::SemanticHit)
    }
}

/// The strategy at the root of a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Mode {
    #[default]
    Single,
    Loadbalance,
    Fallback,
    Conditional,
}

impl Mode {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Loadbalance => "loadbalance",
            Self::Fallback => "fallback",
            Self::Conditional => "conditional",
        }
    }
}

impl Record<'_> {
    /// The time in the id, to the millisecond.
    pub fn created_at(&self) -> DateTime<Utc> {
        time_of(self.id)
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        fields::pack(self, out);
    }

    pub fn decode(bytes: &[u8]) -> Result<Record<'_>, Undecodable> {
        let known = fields::unpack(bytes).map(Ok);
        known.unwrap_or_else(|| rmp_serde::from_slice(bytes).map_err(|error| Undecodable::new(error, bytes, FIELDS)))
    }
}

/// How many fields a record has.
const FIELDS: u16 = 51;

/// How many these bytes say they have.
pub(super) fn fields_of(bytes: &[u8]) -> Option<u16> {
    /// What MessagePack begins a short array with, and one whose length has two bytes.
    const SHORT: u8 = 0x90;
    const ARRAY: u8 = 0xdc;
    match bytes {
        [ARRAY, high, low, ..] => Some(u16::from_be_bytes([*high, *low])),
        [short, ..] if short & 0xf0 == SHORT => Some(u16::from(short & 0x0f)),
        _ => None,
    }
}

/// Why bytes are no record, or no intent.
#[derive(Debug, thiserror::Error)]
pub enum Undecodable {
    #[error("a later version wrote it")]
    Newer,
    #[error(transparent)]
    Malformed(rmp_serde::decode::Error),
}

impl Undecodable {
    /// Of bytes that were read as something of this many fields.
    pub(super) fn new(error: rmp_serde::decode::Error, bytes: &[u8], fields: u16) -> Self {
        match fields_of(bytes) {
            Some(found) if found > fields => Self::Newer,
            _ => Self::Malformed(error),
        }
    }
}

/// The time in an id (UUIDv7), to the millisecond.
pub fn time_of(id: Uuid) -> DateTime<Utc> {
    let (seconds, nanos) = id.get_timestamp().map_or((0, 0), |time| time.to_unix());
    DateTime::from_timestamp(seconds.cast_signed(), nanos).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_as_it_was_written() {
        let record = Record {
            id: crate::request::request_id::new(
                std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_123),
            ),
            internal_trace_id: Uuid::from_u128(7),
            ai_org: Some("openai"),
            usage: vec![r#"{"prompt_tokens":1}"#],
            estimate: Some((3, 4)),
            mode: Mode::Conditional,
            retries: -1,
            metadata: Some(r#"{"_user":"é"}"#),
            cache_status: CacheStatus::SemanticHit,
            cache_type: Some("semantic"),
            cache_time: 3,
            ..Record::default()
        };
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        assert_eq!(Record::decode(&bytes).unwrap(), record);
        assert_eq!(record.created_at().timestamp_millis(), 1_700_000_000_123);
    }

    /// In both ways it is written and read.
    #[test]
    fn a_record_has_the_form_that_is_derived_from_its_fields() {
        let id = Uuid::from_u128(u128::MAX / 3);
        let (long, text) = ("y".repeat(300), Some("text"));
        let records = [
            Record::default(),
            Record {
                id,
                user_id: Some(UserId::new(id)),
                virtual_key: text,
                integration_id: Some(IntegrationId::new(id)),
                answered_model: Some(&long),
                config_id: Some(ConfigId::new(id)),
                config_version_id: Some(id),
                mode: Mode::Fallback,
                method: "POST",
                url: &long,
                status: 446,
                response_time: 70_000,
                first_token_time: Some(300),
                usage: vec!["{}", &long],
                estimate: Some((1, u64::MAX)),
                retries: -1,
                attempt: 200,
                is_stream: true,
                metadata: text,
                has_body: true,
                parsed_after: Some(1),
                prompt_id: Some(id),
                prompt_slug: text,
                cache_status: CacheStatus::SemanticMiss,
                cache_type: text,
                cache_time: 9,
                ..Record::default()
            },
        ];
        for record in records {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert_eq!(bytes, rmp_serde::to_vec(&record).unwrap());
            assert_eq!(fields::unpack(&bytes).as_ref(), Some(&record), "not left to the general reader");
            assert_eq!(rmp_serde::from_slice::<Record<'_>>(&bytes).unwrap(), record);
            bytes.push(0);
            assert_eq!(fields::unpack(&bytes), None, "something follows");
        }
    }

    #[test]
    fn what_is_no_record_is_an_error() {
        for bytes in [&b""[..], b"\x00", b"\xdc\xff\xff", &[0xff; 64]] {
            assert!(Record::decode(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_record_with_more_fields_is_a_later_versions_and_one_with_fewer_an_older_ones() {
        let mut bytes = Vec::new();
        Record { id: Uuid::from_u128(7), ..Record::default() }.encode(&mut bytes);
        assert_eq!(fields_of(&bytes), Some(FIELDS));
        let mut newer = bytes.clone();
        newer[1..3].copy_from_slice(&(FIELDS + 1).to_be_bytes());
        newer.push(0xc3);
        assert!(matches!(Record::decode(&newer), Err(Undecodable::Newer)));
        newer.pop();
        assert!(matches!(Record::decode(&newer), Err(Undecodable::Newer)), "whatever it is");
        bytes.truncate(bytes.len() - 1);
        bytes[1..3].copy_from_slice(&(FIELDS - 1).to_be_bytes());
        assert_eq!(Record::decode(&bytes).unwrap().id, Uuid::from_u128(7));
        bytes[3] = 0xc1;
        assert!(matches!(Record::decode(&bytes), Err(Undecodable::Malformed(_))));
    }
}
