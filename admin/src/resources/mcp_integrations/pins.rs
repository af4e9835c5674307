//! Pins: what a server tells of its tools, prompts and itself is approved once, when it is first told. Models act on these
//! texts, so a server that tells something else later (a "rug pull") does not reach them before somebody approved it.
//! Resources are content and not pinned. What vanished is remembered, or a server could change a tool by taking it away
//! for a while.

use serde_json::{Value, json};
use shared::mcp::{Capability, Kind};
use std::collections::HashMap;
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// How many of an integration's vanished capabilities are remembered, and how many changes one audit record lists.
const REMEMBERED: i64 = 5000;
const LISTED: usize = 100;

type Hash = [u8; 32];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PinState {
    Approved,
    Changed,
}

impl PinState {
    const fn as_str(&self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Changed => "changed",
        }
    }
}

/// A capability that is told otherwise than it was approved, noticed now.
#[derive(Debug, PartialEq, Eq)]
pub struct PinChange {
    kind: &'static str,
    name: String,
    approved: Hash,
    current: Hash,
}

/// What is stored of a capability: the hash that was approved, and the one that was last told.
#[derive(Debug, Clone, Default)]
struct StoredPin {
    approved: Option<Hash>,
    current: Option<Hash>,
}

/// Whether a capability that is told so may be used, and whether that is news.
fn judge(kind: Kind, stored: &StoredPin, current: Hash) -> (PinState, bool) {
    match stored.approved {
        Some(approved) if kind.is_pinned() && approved != current => {
            (PinState::Changed, stored.current != Some(current))
        }
        _ => (PinState::Approved, false),
    }
}

/// Writes what a server offers and answers what waits for approval since now.
pub async fn store(
    db: &impl GenericClient,
    organisation: Uuid,
    integration: Uuid,
    offered: &[Capability],
) -> Result<Vec<PinChange>, tokio_postgres::Error> {
    const GONE: &str = "UPDATE mcp_capabilities SET vanished_at = now(), definition = NULL, last_updated_at = now()
        WHERE integration_id = $1 AND organisation_id = $2 AND definition IS NOT NULL
          AND (type, name) NOT IN (SELECT * FROM unnest($3::text[], $4::text[]))";
    const FORGET: &str = "DELETE FROM mcp_capabilities WHERE id IN (SELECT id FROM mcp_capabilities
        WHERE integration_id = $1 AND organisation_id = $2 AND vanished_at IS NOT NULL
        ORDER BY vanished_at DESC OFFSET $3)";
    const PUT: &str = "INSERT INTO mcp_capabilities AS c
            (organisation_id, integration_id, type, name, definition, definition_hash, pinned_hash, pin_state, plain_hash)
        VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8)
        ON CONFLICT (integration_id, type, name) DO UPDATE SET definition = EXCLUDED.definition,
            definition_hash = EXCLUDED.definition_hash, vanished_at = NULL, pin_state = EXCLUDED.pin_state,
            plain_hash = EXCLUDED.plain_hash,
            pinned_hash = CASE WHEN EXCLUDED.pin_state = 'approved' THEN EXCLUDED.pinned_hash ELSE c.pinned_hash END,
            last_updated_at = now()
        WHERE c.definition IS DISTINCT FROM EXCLUDED.definition OR c.pin_state <> EXCLUDED.pin_state
           OR c.definition_hash IS DISTINCT FROM EXCLUDED.definition_hash
           OR c.plain_hash IS DISTINCT FROM EXCLUDED.plain_hash";
    let known = known(db, organisation, integration).await?;
    let (kinds, names): (Vec<&str>, Vec<&str>) =
        offered.iter().map(|one| (one.kind.as_str(), one.name.as_str())).unzip();
    db.execute(GONE, &[&integration, &organisation, &kinds, &names]).await?;
    let put = db.prepare(PUT).await?;
    let mut changed = Vec::new();
    for one in offered {
        let current = one.hash();
        let stored = known.get(&(one.kind.as_str().to_owned(), one.name.clone())).cloned().unwrap_or_default();
        let (state, is_news) = judge(one.kind, &stored, current);
        let (definition, hash) = (Value::Object(one.definition.clone()), current.as_slice());
        let (kind, state, plain) = (one.kind.as_str(), state.as_str(), one.plain_hash());
        let values: [&(dyn ToSql + Sync); 8] =
            [&organisation, &integration, &kind, &one.name, &definition, &hash, &state, &plain.as_slice()];
        db.execute(&put, &values).await?;
        if let (true, Some(approved)) = (is_news, stored.approved) {
            changed.push(PinChange { kind: one.kind.as_str(), name: one.name.clone(), approved, current });
        }
    }
    db.execute(FORGET, &[&integration, &organisation, &REMEMBERED]).await?;
    Ok(changed)
}

/// By type and name, held until the transaction ends.
async fn known(
    db: &impl GenericClient,
    organisation: Uuid,
    integration: Uuid,
) -> Result<HashMap<(String, String), StoredPin>, tokio_postgres::Error> {
    const KNOWN: &str = "SELECT type, name, pinned_hash, definition_hash FROM mcp_capabilities
        WHERE integration_id = $1 AND organisation_id = $2 ORDER BY id FOR UPDATE";
    let mut known = HashMap::new();
    for row in db.query(KNOWN, &[&integration, &organisation]).await? {
        let hash = |name: &str| {
            let bytes: Option<&[u8]> = row.try_get(name)?;
            Ok::<_, tokio_postgres::Error>(bytes.and_then(|bytes| Hash::try_from(bytes).ok()))
        };
        let pin = StoredPin { approved: hash("pinned_hash")?, current: hash("definition_hash")? };
        known.insert((row.try_get("type")?, row.try_get("name")?), pin);
    }
    Ok(known)
}

/// Before and after, as the audit trail shows them.
pub fn describe_changes(changed: &[PinChange]) -> (Option<Value>, Option<Value>) {
    let side = |hash: fn(&PinChange) -> &Hash, state: &str| {
        let listed = changed.iter().take(LISTED).map(|one| {
            json!({ "type": one.kind, "name": one.name, "definition_hash": hex::encode(hash(one)), "pin_state": state })
        });
        json!({ "capabilities": listed.collect::<Vec<_>>(), "total": changed.len() })
    };
    (Some(side(|one| &one.approved, "approved")), Some(side(|one| &one.current, "changed")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_otherwise_waits_and_is_news_once() {
        let (a, b, c) = ([1; 32], [2; 32], [3; 32]);
        let pin = |approved, current| StoredPin { approved, current };
        for (kind, stored, current, expected) in [
            (Kind::Tool, pin(None, None), a, (PinState::Approved, false)),
            (Kind::Tool, pin(Some(a), Some(a)), a, (PinState::Approved, false)),
            (Kind::Tool, pin(Some(a), Some(a)), b, (PinState::Changed, true)),
            (Kind::Tool, pin(Some(a), Some(b)), b, (PinState::Changed, false)),
            (Kind::Tool, pin(Some(a), Some(b)), c, (PinState::Changed, true)),
            (Kind::Tool, pin(Some(a), Some(b)), a, (PinState::Approved, false)),
            (Kind::Prompt, pin(Some(a), Some(a)), b, (PinState::Changed, true)),
            (Kind::Instructions, pin(Some(a), Some(a)), b, (PinState::Changed, true)),
            (Kind::Resource, pin(Some(a), Some(a)), b, (PinState::Approved, false)),
        ] {
            assert_eq!(judge(kind, &stored, current), expected, "{kind:?} {stored:?}");
        }
    }

    #[test]
    fn the_trail_names_both_hashes_and_is_bounded() {
        let one = |n: usize| PinChange { kind: "tool", name: n.to_string(), approved: [1; 32], current: [2; 32] };
        let (before, after) = describe_changes(&(0..200).map(one).collect::<Vec<_>>());
        let (before, after) = (before.unwrap(), after.unwrap());
        assert_eq!(before["capabilities"].as_array().map(Vec::len), Some(100));
        assert_eq!((&after["total"], &after["capabilities"][0]["pin_state"]), (&json!(200), &json!("changed")));
        assert_eq!(before["capabilities"][0]["definition_hash"], "01".repeat(32));
        assert_eq!(after["capabilities"][0]["definition_hash"], "02".repeat(32));
    }
}
