//! The one place where keys come into being: a secret is drawn, its hash stored, and the secret handed back once.

use super::key_settings::KeySettings;
use super::{ApiKeyRow, expiry, rotation_policy};
use crate::crud::{Resource as _, metadata_schema};
use crate::http::ApiError;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use shared::db::table::Columns;
use shared::identity::api_key::{self, KeyHash};
use shared::identity::scopes;
use shared::model::KeyKind;
use tokio_postgres::Transaction;
use uuid::Uuid;

/// Stores a key with these columns; the secret is known to the caller alone.
pub async fn issue(tx: &Transaction<'_>, prefix: &str, columns: Columns) -> Result<(ApiKeyRow, String), ApiError> {
    let secret = api_key::generate(prefix);
    let columns =
        columns.set("hash", KeyHash::from_key(secret.as_bytes()).0.to_vec()).set("mask", api_key::mask(&secret));
    let made = ApiKeyRow::from_row(&ApiKeyRow::TABLE.insert(tx, &columns).await?)?;
    Ok((made, secret))
}

/// Somebody who joins a workspace, and what they were promised.
pub struct NewMemberKey {
    pub organisation: Uuid,
    pub workspace: Uuid,
    pub user: Uuid,
    /// Who let them in.
    pub by: Uuid,
    pub promise: Option<PromisedKey>,
    /// Whether the secret will be shown to anybody.
    pub is_shown: bool,
}

pub struct PromisedKey {
    pub scopes: Vec<String>,
    pub name: Option<String>,
    pub expiry: Option<DateTime<Utc>>,
    pub metadata: Option<Map<String, Value>>,
}

/// The key that comes with joining: as promised, or because the organisation gives one to everybody. None where
/// neither is so, the workspace has no place left or is gone, or the key could not be as the metadata schema wants it:
/// that must not keep anybody from joining.
pub async fn for_joiner(
    tx: &Transaction<'_>,
    prefix: &str,
    joiner: NewMemberKey,
) -> Result<Option<(Uuid, String)>, ApiError> {
    let Some(place) = KeySettings::held(tx, joiner.organisation, joiner.workspace).await? else { return Ok(None) };
    let is_due = joiner.promise.is_some() || place.creates_keys;
    if !is_due || place.is_full() {
        return Ok(None);
    }
    let promise = joiner.promise.unwrap_or_else(|| PromisedKey {
        scopes: usual_scopes(),
        name: None,
        expiry: None,
        metadata: None,
    });
    let metadata = place.metadata(promise.metadata.as_ref());
    if !conforms(tx, joiner.organisation, &metadata).await? {
        tracing::info!(workspace_id = %joiner.workspace, "no key for who joined: its metadata would not fit the schema");
        return Ok(None);
    }
    let now = Utc::now();
    let expiry = expiry::promised(promise.expiry, place.lifetimes, now);
    let columns = Columns::default()
        .set("organisation_id", joiner.organisation)
        .set("workspace_id", joiner.workspace)
        .set("user_id", joiner.user)
        .set("kind", KeyKind::WorkspaceUser.as_str())
        .set("name", promise.name.unwrap_or_else(|| "Key upon joining".into()))
        .set("scopes", promise.scopes)
        .set("creation_mode", "auto")
        .set("defaults", defaults(metadata, place.user_config))
        .set("expires_at", expiry.at)
        .set("expiry_enforced", expiry.is_enforced)
        .set("rotation_policy", place.rotation_days.map(|days| rotation_policy::every(days, now)))
        .set("is_unclaimed", !joiner.is_shown)
        .set("created_by", joiner.by);
    let (made, secret) = issue(tx, prefix, columns).await?;
    Ok(Some((made.id, secret)))
}

/// A key that is a session's.
pub struct NewSessionKey {
    pub organisation: Uuid,
    pub workspace: Uuid,
    pub user: Uuid,
    pub session: Uuid,
    pub scopes: Vec<String>,
    pub ends_at: DateTime<Utc>,
}

/// Such keys of one person at once; for one more the oldest ends.
const MAX_OF_SESSIONS: i64 = 3;

/// With the config and the metadata that keys of people have in this workspace, and no longer than these may live: calls by
/// it are held to what calls by other keys are. It takes no place among the keys that a workspace may have.
pub async fn for_session(
    tx: &Transaction<'_>,
    prefix: &str,
    new: NewSessionKey,
) -> Result<(Uuid, String, DateTime<Utc>), ApiError> {
    const MAKE_ROOM: &str = "DELETE FROM api_keys WHERE id IN (
            SELECT id FROM api_keys WHERE user_id = $1 AND organisation_id = $2 AND session_id IS NOT NULL
            ORDER BY created_at DESC, id OFFSET $3)";
    let place = KeySettings::held(tx, new.organisation, new.workspace).await?;
    let place = place.ok_or(ApiError::NotFound("workspace"))?;
    let metadata = place.metadata(None);
    if !conforms(tx, new.organisation, &metadata).await? {
        return Err(ApiError::Conflict(
            "Keys need metadata here that the workspace does not give them; make a key by hand".into(),
        ));
    }
    let expiry = expiry::promised(Some(new.ends_at), place.lifetimes, Utc::now()).at.unwrap_or(new.ends_at);
    let columns = Columns::default()
        .set("organisation_id", new.organisation)
        .set("workspace_id", new.workspace)
        .set("user_id", new.user)
        .set("session_id", new.session)
        .set("kind", KeyKind::WorkspaceUser.as_str())
        .set("name", "Session key")
        .set("scopes", new.scopes)
        .set("creation_mode", "auto")
        .set("defaults", defaults(metadata, place.user_config))
        .set("expires_at", expiry)
        .set("expiry_enforced", true)
        .set("created_by", new.user);
    tx.execute(MAKE_ROOM, &[&new.user, &new.organisation, &(MAX_OF_SESSIONS - 1)]).await?;
    let (made, secret) = issue(tx, prefix, columns).await?;
    Ok((made.id, secret, expiry))
}

fn defaults(metadata: Map<String, Value>, config: Option<String>) -> Value {
    let mut defaults = Map::new();
    if !metadata.is_empty() {
        defaults.insert("metadata".into(), metadata.into());
    }
    if let Some(config) = config {
        defaults.insert("config_id".into(), config.into());
    }
    defaults.into()
}

/// What a key is able to do that an organisation gives to everybody who joins.
pub fn usual_scopes() -> Vec<String> {
    scopes::all_for(KeyKind::WorkspaceUser).into_iter().map(str::to_owned).collect()
}

/// As a reply shows it; without the secret where it is to be fetched by rotating the key.
pub fn shown(workspace: Uuid, user: Uuid, (id, key): &(Uuid, String), shows_secret: bool) -> Value {
    let mut shown = json!({ "workspace_id": workspace, "user_id": user, "id": id });
    if shows_secret {
        shown["key"] = json!(key);
    }
    shown
}

async fn conforms(tx: &Transaction<'_>, organisation: Uuid, metadata: &Map<String, Value>) -> Result<bool, ApiError> {
    const SCHEMA: &str = "SELECT metadata_schemas -> 'api_key' FROM organisations WHERE id = $1";
    let schema: Option<Value> = tx.query_one(SCHEMA, &[&organisation]).await?.try_get(0)?;
    Ok(metadata_schema::conforms(&schema.unwrap_or_default(), metadata).is_ok())
}
