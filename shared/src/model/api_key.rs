//! An API key as the proxy and the caller check need it. The key itself is never stored.

use super::id::{ApiKeyId, OrganisationId, UserId, WorkspaceId};
use super::limits::ObjectLimits;
use super::status::AccessStatus;
use crate::identity::KeyKind;
use crate::identity::api_key::KeyHash;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio_postgres::Row;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApiKey {
    pub id: ApiKeyId,
    pub organisation_id: OrganisationId,
    /// None for organisation keys.
    pub workspace_id: Option<WorkspaceId>,
    /// None for service keys.
    pub user_id: Option<UserId>,
    pub kind: KeyKind,
    pub hash: KeyHash,
    /// Behind a pointer because very many keys carry few different lists.
    pub scopes: Arc<[String]>,
    pub status: AccessStatus,
    pub expires_at: Option<DateTime<Utc>>,
    /// The secret before the last rotation. Behind a pointer because few keys have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Box<PreviousSecret>>,
    /// What its requests get unless they say otherwise. Behind a pointer because few keys have any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<Arc<KeyDefaults>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Arc<ObjectLimits>>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyDefaults {
    /// The id or slug of a config.
    #[serde(rename = "config_id", default)]
    pub config: Option<String>,
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// `false`: its requests use this config and no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_config_override: Option<bool>,
    /// `false`: answers to its requests do not tell what they cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_in_answers: Option<bool>,
}

impl KeyDefaults {
    pub fn locks_config(&self) -> bool {
        self.allow_config_override == Some(false)
    }

    pub fn hides_costs(&self) -> bool {
        self.cost_in_answers == Some(false)
    }
}

/// A secret that was replaced and still opens its key for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousSecret {
    pub hash: KeyHash,
    pub expires_at: DateTime<Utc>,
}

/// Why a key that is known cannot be used. One that is exhausted is alive: only inference is refused to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadKey {
    /// Its secret was replaced, and the transition is over.
    Rotated,
    Archived,
    Expired,
}

impl ApiKey {
    /// A suspended key opens nothing, as an archived one; only people are shown the difference.
    pub const COLUMNS: &str = "id, organisation_id, workspace_id, user_id, kind, hash, scopes,
                               CASE WHEN suspended_at IS NULL THEN status ELSE 'archived' END AS status, expires_at,
                               previous_hash, previous_expires_at, defaults, rate_limits, usage_limits";

    pub fn from_row(row: &Row) -> anyhow::Result<Self> {
        let hash: &[u8] = row.try_get("hash")?;
        let kind = match row.try_get("kind")? {
            "organisation-service" => KeyKind::OrganisationService,
            "workspace-service" => KeyKind::WorkspaceService,
            "workspace-user" => KeyKind::WorkspaceUser,
            other => anyhow::bail!("unknown kind of API key: {other}"),
        };
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            workspace_id: row.try_get("workspace_id")?,
            user_id: row.try_get("user_id")?,
            kind,
            hash: KeyHash(hash.try_into()?),
            scopes: row.try_get::<_, Vec<String>>("scopes")?.into(),
            status: row.try_get("status")?,
            expires_at: row.try_get("expires_at")?,
            previous: previous(row)?,
            defaults: defaults(row.try_get("defaults")?)?,
            limits: ObjectLimits::from_row(row)?,
        })
    }

    /// Whether a key that was found by this hash is alive. What is archived counts as archived, expired or not.
    pub fn check(&self, hash: &KeyHash, now: DateTime<Utc>) -> Result<(), DeadKey> {
        if !self.opens_with(hash, now) {
            return Err(DeadKey::Rotated);
        }
        if self.status == AccessStatus::Archived {
            return Err(DeadKey::Archived);
        }
        if self.is_expired(now) { Err(DeadKey::Expired) } else { Ok(()) }
    }

    /// Whether a secret with this hash opens the key now: the present one, or the one before while it is in transition.
    fn opens_with(&self, hash: &KeyHash, now: DateTime<Utc>) -> bool {
        let previous = || self.previous.as_ref().is_some_and(|one| one.hash == *hash && now < one.expires_at);
        self.hash == *hash || previous()
    }

    /// Whether the key may be used at this moment, whatever the expiry job has marked so far.
    pub fn is_expired(&self, now: DateTime<Utc>) -> bool {
        self.status == AccessStatus::Expired || self.expires_at.is_some_and(|end| end <= now)
    }
}

fn defaults(stored: Value) -> anyhow::Result<Option<Arc<KeyDefaults>>> {
    let mut defaults: KeyDefaults = serde_json::from_value(stored)?;
    // What holds anyway costs no memory.
    defaults.allow_config_override = defaults.allow_config_override.filter(|allows| !allows);
    defaults.cost_in_answers = defaults.cost_in_answers.filter(|tells| !tells);
    Ok((defaults != KeyDefaults::default()).then(|| Arc::new(defaults)))
}

fn previous(row: &Row) -> anyhow::Result<Option<Box<PreviousSecret>>> {
    let (hash, expires_at): (Option<&[u8]>, _) = (row.try_get("previous_hash")?, row.try_get("previous_expires_at")?);
    let (Some(hash), Some(expires_at)) = (hash, expires_at) else { return Ok(None) };
    Ok(Some(Box::new(PreviousSecret { hash: KeyHash(hash.try_into()?), expires_at })))
}
