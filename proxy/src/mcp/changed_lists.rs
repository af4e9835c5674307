//! Integrations whose lists told something else than was approved, on their way to admin: it asks the server for itself,
//! disables what changed and records it. A server that knows people tells nobody else, so there what a person was told is
//! disabled and recorded here. Requests only hand over; a task writes. Clients neither see nor call what changed meanwhile,
//! so nothing hangs on it being quick.

use parking_lot::Mutex;
use serde_json::Value;
use shared::mcp::Capability;
use shared::{db, settings};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio_postgres::Client;
use uuid::Uuid;

/// A server that tells everybody something else is asked no more often for it.
const PAUSE: Duration = Duration::from_secs(60);
/// Integrations that are remembered; beyond it all are forgotten.
const MAX_INTEGRATIONS: usize = 4096;

#[derive(Debug, Default)]
pub struct ChangedLists {
    noted: Mutex<HashMap<Uuid, NotedChange>>,
    arrived: Notify,
}

#[derive(Debug)]
struct NotedChange {
    at: Instant,
    /// What was told otherwise, as far as it could be read, until it is reported.
    listed: Option<Vec<Capability>>,
}

impl ChangedLists {
    pub fn note(&self, integration: Uuid, listed: Vec<Capability>, now: Instant) {
        let mut noted = self.noted.lock();
        if noted.get(&integration).is_some_and(|known| now.saturating_duration_since(known.at) < PAUSE) {
            return;
        }
        if noted.len() >= MAX_INTEGRATIONS {
            noted.clear();
        }
        noted.insert(integration, NotedChange { at: now, listed: Some(listed) });
        drop(noted);
        self.arrived.notify_one();
    }

    fn take(&self) -> Vec<(Uuid, Vec<Capability>)> {
        let mut noted = self.noted.lock();
        noted.iter_mut().filter_map(|(id, change)| Some((*id, change.listed.take()?))).collect()
    }

    /// Until told to stop. What is lost then is noticed again.
    pub async fn run(&self, database: &settings::Database, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = self.arrived.notified() => {}
                _ = stop.changed() => return,
            }
            let changed = self.take();
            if !changed.is_empty()
                && let Err(error) = report(database, &changed).await
            {
                tracing::warn!(%error, "MCP servers that tell something else could not be reported");
                self.noted.lock().retain(|id, _| !changed.iter().any(|(failed, _)| failed == id));
            }
        }
    }
}

async fn report(database: &settings::Database, changed: &[(Uuid, Vec<Capability>)]) -> anyhow::Result<()> {
    const DUE: &str = "UPDATE mcp_integrations SET sync_due_at = now()
        WHERE id = ANY($1) AND status = 'active' AND auth_type NOT IN ('oauth_auto', 'oauth') AND sync_due_at > now()";
    let client = db::connect(database).await?;
    let ids: Vec<Uuid> = changed.iter().map(|(id, _)| *id).collect();
    client.execute(DUE, &[&ids]).await?;
    for (integration, listed) in changed {
        for one in listed {
            disable(&client, *integration, one).await?;
        }
    }
    Ok(())
}

/// Of a server that knows people. What was approved a moment ago stays so.
async fn disable(client: &Client, integration: Uuid, listed: &Capability) -> Result<(), tokio_postgres::Error> {
    const DISABLE: &str = "WITH held AS (
            SELECT c.id, c.pinned_hash FROM mcp_capabilities c JOIN mcp_integrations i ON i.id = c.integration_id
            WHERE c.integration_id = $1 AND c.type = $2 AND c.name = $3 AND c.vanished_at IS NULL
              AND c.pinned_hash <> $5 AND c.definition_hash <> $5 AND c.plain_hash IS DISTINCT FROM $5
              AND i.status = 'active' AND i.auth_type IN ('oauth_auto', 'oauth')
            FOR UPDATE OF c
        ), changed AS (
            UPDATE mcp_capabilities c SET definition = $4, definition_hash = $5, plain_hash = $6, pin_state = 'changed',
                last_updated_at = now()
            FROM held WHERE c.id = held.id RETURNING c.organisation_id, held.pinned_hash
        )
        INSERT INTO audit_logs (organisation_id, user_type, method, uri, resource_type, action, resource_id,
            response_status_code, before, after)
        SELECT organisation_id, 'system', '', '', 'mcp_integrations', 'update', $1::uuid::text, 200,
            jsonb_build_object('total', 1, 'capabilities', jsonb_build_array(jsonb_build_object('type', $2::text,
                'name', $3::text, 'definition_hash', encode(pinned_hash, 'hex'), 'pin_state', 'approved'))),
            jsonb_build_object('total', 1, 'capabilities', jsonb_build_array(jsonb_build_object('type', $2::text,
                'name', $3::text, 'definition_hash', encode($5::bytea, 'hex'), 'pin_state', 'changed')))
        FROM changed";
    let (hash, plain, definition) = (listed.hash(), listed.plain_hash(), Value::Object(listed.definition.clone()));
    let kind = listed.kind.as_str();
    client
        .execute(DISABLE, &[&integration, &kind, &listed.name, &definition, &hash.as_slice(), &plain.as_slice()])
        .await
        .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use shared::mcp::Kind;

    #[test]
    fn a_change_is_told_once_a_minute() {
        let (lists, id, now) = (ChangedLists::default(), Uuid::from_u128(1), Instant::now());
        let listed = || vec![Capability::from_entry(Kind::Tool, json!({ "name": "pay" })).unwrap()];
        lists.note(id, listed(), now);
        lists.note(id, listed(), now);
        assert_eq!(lists.take(), [(id, listed())]);
        lists.note(id, listed(), now + PAUSE / 2);
        assert!(lists.take().is_empty());
        lists.note(id, listed(), now + PAUSE);
        assert_eq!(lists.take(), [(id, listed())]);
    }
}
