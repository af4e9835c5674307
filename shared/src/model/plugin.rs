//! A vendor behind guardrail checks, as the proxy needs it: with its organisation's credentials still sealed.

use super::id::OrganisationId;
use crate::secrets::seal::{Sealed, SealedPlace, Secret};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_postgres::Row;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plugin {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    /// The vendor, as the first part of its checks' ids.
    pub plugin: String,
    /// None when they were taken away.
    pub sealed: Option<Sealed>,
}

impl Plugin {
    pub const COLUMNS: &str = "id, organisation_id, plugin, sealed";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            plugin: row.try_get("plugin")?,
            sealed: row.try_get::<_, Option<&[u8]>>("sealed")?.map(Sealed::from),
        })
    }

    /// Where `sealed` belongs.
    pub fn place(&self) -> SealedPlace {
        Self::place_of(self.organisation_id.uuid(), self.id)
    }

    pub fn place_of(organisation: Uuid, id: Uuid) -> SealedPlace {
        SealedPlace { organisation, table: "plugins", row: id, field: "sealed" }
    }

    /// The fields of what was sealed; `None` for what is no object.
    pub fn credentials(opened: &Secret) -> Option<Map<String, Value>> {
        serde_json::from_slice(opened.expose()).ok()
    }
}
