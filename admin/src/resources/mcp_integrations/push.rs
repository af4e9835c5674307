//! What a client learnt of a server by itself, in the body of a sync: it is stored as it was sent, and nobody is asked. It is
//! no word of the server's, so nothing is approved by it: the first that the server itself lists is (see `pins`).

use super::capabilities::{FIELDS, kind_of};
use crate::http::ApiError;
use crate::identity::Call;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use shared::mcp::{Capability, ServerInfo};
use std::collections::HashSet;
use tokio_postgres::GenericClient;
use uuid::Uuid;

const MAX_CAPABILITIES: usize = 5000;

#[derive(Default, Deserialize)]
#[serde(default)]
struct PushedBody {
    server_info: Option<Map<String, Value>>,
    capabilities: Option<Vec<Map<String, Value>>>,
}

/// What was sent; what was not stays as it is.
pub struct Pushed {
    pub info: Option<ServerInfo>,
    pub offered: Option<Vec<Capability>>,
}

impl Pushed {
    /// None where the server itself is to be asked.
    pub fn read(call: &Call) -> Result<Option<Self>, ApiError> {
        let PushedBody { server_info, capabilities } = call.body()?;
        if server_info.is_none() && capabilities.is_none() {
            return Ok(None);
        }
        let offered = capabilities.map(|sent| read_capabilities(&sent)).transpose()?;
        Ok(Some(Self { info: server_info.map(read_info), offered }))
    }

    pub async fn store(
        &self,
        db: &impl GenericClient,
        organisation: Uuid,
        integration: Uuid,
        metadata: Option<Value>,
    ) -> Result<(), tokio_postgres::Error> {
        const SYNCED: &str = "UPDATE mcp_integrations SET sync_status = 'synced', sync_error = NULL,
                sync_due_at = now() + interval '1 hour', last_synced_at = now(), metadata = coalesce($3, metadata)
            WHERE id = $1 AND organisation_id = $2";
        const GONE: &str = "UPDATE mcp_capabilities SET vanished_at = now(), definition = NULL, last_updated_at = now()
            WHERE integration_id = $1 AND organisation_id = $2 AND definition IS NOT NULL AND type <> 'instructions'
              AND (type, name) NOT IN (SELECT * FROM unnest($3::text[], $4::text[]))";
        const PUT: &str = "INSERT INTO mcp_capabilities AS c (organisation_id, integration_id, type, name, definition)
            VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (integration_id, type, name) DO UPDATE
                SET definition = EXCLUDED.definition, vanished_at = NULL, last_updated_at = now()
            WHERE c.definition IS DISTINCT FROM EXCLUDED.definition";
        db.execute(SYNCED, &[&integration, &organisation, &metadata]).await?;
        let Some(offered) = &self.offered else { return Ok(()) };
        let (kinds, names): (Vec<&str>, Vec<&str>) =
            offered.iter().map(|one| (one.kind.as_str(), one.name.as_str())).unzip();
        db.execute(GONE, &[&integration, &organisation, &kinds, &names]).await?;
        let put = db.prepare(PUT).await?;
        for one in offered {
            let definition = Value::Object(one.definition.clone());
            db.execute(&put, &[&organisation, &integration, &one.kind.as_str(), &one.name, &definition]).await?;
        }
        Ok(())
    }
}

fn read_capabilities(sent: &[Map<String, Value>]) -> Result<Vec<Capability>, ApiError> {
    if sent.len() > MAX_CAPABILITIES {
        return Err(ApiError::field("capabilities", format!("must list at most {MAX_CAPABILITIES}")));
    }
    let mut seen = HashSet::new();
    let mut offered = Vec::new();
    for (n, one) in sent.iter().enumerate() {
        let read = read_capability(one).map_err(|error| error.under(&format!("capabilities[{n}]")))?;
        if seen.insert((read.kind.as_str(), read.name.clone())) {
            offered.push(read);
        }
    }
    Ok(offered)
}

/// Fields may be called as servers call them or as our own lists do.
fn read_capability(sent: &Map<String, Value>) -> Result<Capability, ApiError> {
    let Some(kind) = sent.get("type").and_then(Value::as_str) else {
        return Err(ApiError::field("type", "is required"));
    };
    let kind = kind_of(kind)?;
    let mut entry = json!({ "name": sent.get("name") });
    for (shown, source) in FIELDS {
        let value = [source, shown].into_iter().find_map(|name| sent.get(name).filter(|value| !value.is_null()));
        if let Some(value) = value {
            entry[source] = value.clone();
        }
    }
    Capability::from_entry(kind, entry).map_err(|fault| ApiError::field("name", format!("cannot be stored: {fault}")))
}

fn read_info(sent: Map<String, Value>) -> ServerInfo {
    let either = |names: [&str; 2]| names.into_iter().find_map(|name| sent.get(name)).cloned().unwrap_or_default();
    let result = json!({
        "protocolVersion": either(["protocolVersion", "protocol_version"]),
        "instructions": either(["instructions", "instructions"]),
        "capabilities": either(["capabilities", "capability_flags"]),
        "serverInfo": {
            "name": either(["name", "server_name"]), "version": either(["version", "server_version"]),
            "title": either(["title", "title"]), "websiteUrl": either(["websiteUrl", "website_url"]),
            "icons": either(["icons", "icons"]),
        },
    });
    ServerInfo::from_result(&result)
}
