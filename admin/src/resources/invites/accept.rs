//! Accepting an invitation: the token is the credential. Person, memberships and keys come into being together, once.

use super::{Invite, KeyDetails, Seat};
use crate::app::App;
use crate::audit::{self, Record};
use crate::call::{Origin, Visit};
use crate::crud::{self, Answer, Resource as _};
use crate::error::ApiError;
use crate::http::{json, text, time};
use crate::resources::organisation::refuse_if_scim_only;
use crate::tenant_settings;
use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::api_key::{self, KeyHash};
use shared::model::KeyKind;
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Transaction};
use uuid::Uuid;

#[derive(Deserialize)]
struct Acceptance {
    token: String,
    first_name: Option<String>,
    last_name: Option<String>,
}

pub async fn accept(State(app): State<App>, Visit(origin): Visit) -> Answer {
    let body: Acceptance = json::read(Value::Object(json::object(&origin.body)?))?;
    let mut db = app.db.get().await?;
    let Some((organisation, invite)) = invited(&*db, &body.token).await? else { return Err(unknown()) };
    let tx = db.transaction().await?;
    let joined = join(&tx, &app, organisation, &invite, body).await;
    match joined {
        Ok((user, reply)) => {
            let mut record = Record::of_visitor(&origin, organisation);
            record.user_id = Some(user);
            record.resource_id = Some(invite.id.to_string());
            record.after = Some(json!({ "user_id": user, "email": invite.email, "role": invite.role }));
            audit::record(&tx, &record).await?;
            tx.commit().await?;
            Ok(Json(reply))
        }
        Err(refused) => {
            tx.rollback().await?;
            record_refusal(&*db, &origin, organisation, &invite, &refused).await?;
            Err(refused)
        }
    }
}

/// One answer for every token that opens nothing, so that none can be told from another.
fn unknown() -> ApiError {
    ApiError::field("token", "is not valid, or no longer")
}

async fn invited(db: &impl GenericClient, token: &str) -> Result<Option<(Uuid, Invite)>, ApiError> {
    let sql = format!("SELECT organisation_id, {} FROM user_invites WHERE token_hash = $1", Invite::TABLE.columns);
    let hash = KeyHash::of(token.as_bytes()).0.to_vec();
    let Some(row) = db.query_opt(&sql, &[&hash]).await? else { return Ok(None) };
    Ok(Some((row.try_get("organisation_id")?, Invite::from_row(&row)?)))
}

/// Makes the person and all that was promised to them; answers with their id and what to tell them.
async fn join(
    tx: &Transaction<'_>,
    app: &App,
    organisation: Uuid,
    invite: &Invite,
    body: Acceptance,
) -> Result<(Uuid, Value), ApiError> {
    // Decides between two who follow the same link at once, or one who follows and one who cancels or sends again.
    const TAKE: &str = "UPDATE user_invites SET status = 'accepted', accepted_at = now(), last_updated_at = now()
        WHERE id = $1 AND token_hash = $2 AND status = 'pending' AND expires_at > now()";
    const USER: &str = "INSERT INTO users (organisation_id, email, role, first_name, last_name)
                        VALUES ($1, $2, $3, $4, $5) RETURNING id";
    const JOINED: &str = "UPDATE user_invites SET user_id = $2 WHERE id = $1";
    let hash = KeyHash::of(body.token.as_bytes()).0.to_vec();
    if tx.execute(TAKE, &[&invite.id, &hash]).await? == 0 {
        return Err(unknown());
    }
    refuse_if_scim_only(tx, organisation).await?;
    let checked = |field: &str, name: Option<String>| name.map(|name| text::sized(field, name, 0..=255)).transpose();
    let first_name = checked("first_name", body.first_name)?.or_else(|| invite.first_name.clone());
    let last_name = checked("last_name", body.last_name)?.or_else(|| invite.last_name.clone());
    let values: [&(dyn ToSql + Sync); 5] = [&organisation, &invite.email, &invite.role, &first_name, &last_name];
    let user = crud::id_of(&tx.query_one(USER, &values).await.map_err(is_user_already)?)?;
    tx.execute(JOINED, &[&invite.id, &user]).await?;
    let mut keys = Vec::new();
    for seat in &invite.workspaces {
        keys.extend(sit(tx, app, organisation, user, seat, invite.key.as_ref()).await?);
    }
    Ok((user, json!({ "user_id": user, "organisation_id": organisation, "api_keys": keys })))
}

/// Takes a seat, and makes the key that belongs to it. A workspace that was archived meanwhile has none to offer.
async fn sit(
    tx: &Transaction<'_>,
    app: &App,
    organisation: Uuid,
    user: Uuid,
    seat: &Seat,
    details: Option<&KeyDetails>,
) -> Result<Option<Value>, ApiError> {
    const WORKSPACE: &str = "SELECT w.settings, o.settings AS organisation_settings,
               (SELECT count(*) FROM api_keys k
                WHERE k.workspace_id = w.id AND k.user_id IS NOT NULL AND k.status <> 'archived') AS user_keys
        FROM workspaces w JOIN organisations o ON o.id = w.organisation_id
        WHERE w.id = $1 AND w.organisation_id = $2 AND w.status = 'active' FOR UPDATE OF w";
    const MEMBER: &str =
        "INSERT INTO workspace_members (workspace_id, user_id, organisation_id, role) VALUES ($1, $2, $3, $4)";
    let Some(row) = tx.query_opt(WORKSPACE, &[&seat.workspace_id, &organisation]).await? else { return Ok(None) };
    tx.execute(MEMBER, &[&seat.workspace_id, &user, &organisation, &seat.role]).await?;
    let Some(details) = details else { return Ok(None) };
    let (own, shared): (Value, Value) = (row.try_get("settings")?, row.try_get("organisation_settings")?);
    let setting = |name: &str| tenant_settings::number(name, &own, &shared);
    let (most, existing) = (setting("user_api_key_count"), row.try_get::<_, i64>("user_keys")?);
    if most >= 0 && existing >= most {
        return Ok(None);
    }
    let asked = details.expiry.as_deref().and_then(|text| time::parsed("expiry", text).ok());
    let expiry = expiry(asked, setting("user_api_key_ttl"), setting("user_api_key_max_ttl"), Utc::now());
    let prefix = &app.api_key_prefix;
    issue(tx, prefix, organisation, user, seat.workspace_id, details, expiry).await.map(Some)
}

/// When the key ends: as promised, else as is usual here, and never later than allowed. True when the setting decided.
fn expiry(asked: Option<DateTime<Utc>>, usual: i64, longest: i64, now: DateTime<Utc>) -> (Option<DateTime<Utc>>, bool) {
    let after = |seconds: i64| (seconds > 0).then(|| now + TimeDelta::seconds(seconds));
    let wanted = asked.or_else(|| after(usual));
    match (wanted, after(longest)) {
        (Some(wanted), Some(latest)) if wanted > latest => (Some(latest), true),
        (None, Some(latest)) => (Some(latest), true),
        (wanted, _) => (wanted, asked.is_none() && wanted.is_some()),
    }
}

async fn issue(
    tx: &Transaction<'_>,
    prefix: &str,
    organisation: Uuid,
    user: Uuid,
    workspace: Uuid,
    details: &KeyDetails,
    (expires_at, is_enforced): (Option<DateTime<Utc>>, bool),
) -> Result<Value, ApiError> {
    const INSERT: &str = "INSERT INTO api_keys (organisation_id, workspace_id, user_id, kind, name, hash, mask, scopes,
            creation_mode, defaults, expires_at, expiry_enforced, created_by)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'auto', $9, $10, $11, $3) RETURNING id";
    let key = api_key::generate(prefix);
    let (hash, mask) = (KeyHash::of(key.as_bytes()).0.to_vec(), api_key::mask(&key));
    let name = details.name.as_deref().unwrap_or("Key of the invitation");
    let defaults = details.metadata.as_ref().map_or_else(|| json!({}), |metadata| json!({ "metadata": metadata }));
    let kind = KeyKind::WorkspaceUser.as_str();
    let values: [&(dyn ToSql + Sync); 11] = [
        &organisation,
        &workspace,
        &user,
        &kind,
        &name,
        &hash,
        &mask,
        &details.scopes,
        &defaults,
        &expires_at,
        &is_enforced,
    ];
    let id = crud::id_of(&tx.query_one(INSERT, &values).await?)?;
    Ok(json!({ "workspace_id": workspace, "id": id, "key": key }))
}

fn is_user_already(error: tokio_postgres::Error) -> ApiError {
    match ApiError::from(error) {
        ApiError::Conflict(_) => ApiError::Conflict("There is a user with this e-mail address already".into()),
        other => other,
    }
}

async fn record_refusal(
    db: &impl GenericClient,
    origin: &Origin,
    organisation: Uuid,
    invite: &Invite,
    refused: &ApiError,
) -> Result<(), ApiError> {
    let mut record = Record::of_visitor(origin, organisation);
    record.resource_id = Some(invite.id.to_string());
    record.response_status_code = refused.status().as_u16().into();
    record.error = Some(format!("{} {refused}", refused.code()));
    Ok(audit::record(db, &record).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_ends_as_promised_or_as_usual_and_never_too_late() {
        let now: DateTime<Utc> = "2026-01-05T10:30:00Z".parse().unwrap();
        let after = |seconds: i64| Some(now + TimeDelta::seconds(seconds));
        for (asked, usual, longest, expected) in [
            (None, 0, 0, (None, false)),
            (after(5), 0, 0, (after(5), false)),
            (None, 10, 0, (after(10), true)),
            (after(5), 10, 20, (after(5), false)),
            (after(30), 10, 20, (after(20), true)),
            (None, 0, 20, (after(20), true)),
        ] {
            assert_eq!(expiry(asked, usual, longest, now), expected, "{asked:?} {usual} {longest}");
        }
    }
}
