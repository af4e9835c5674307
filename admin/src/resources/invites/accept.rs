//! Accepting an invitation: the token is the credential. Person, memberships and keys come into being together, once.

use super::{Invite, KeyDetails, Seat};
use crate::app::App;
use crate::audit::{self, AuditRecord};
use crate::crud::{self, Answer, Resource as _};
use crate::http::{ApiError, json, text, time};
use crate::identity::call::{PublicCall, RequestOrigin};
use crate::resources::api_keys::issue::{self, NewMemberKey, PromisedKey};
use crate::resources::organisation::refuse_if_scim_only;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use shared::identity::api_key::KeyHash;
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Transaction};
use uuid::Uuid;

#[derive(Deserialize)]
struct Acceptance {
    token: String,
    first_name: Option<String>,
    last_name: Option<String>,
}

pub async fn accept(State(app): State<App>, PublicCall(origin): PublicCall) -> Answer {
    let body: Acceptance = json::parse_bytes(&origin.body)?;
    let mut db = app.db.get().await?;
    let Some((organisation, invite)) = invited(&*db, &body.token).await? else { return Err(unknown()) };
    let tx = db.transaction().await?;
    let joined = join(&tx, &app, organisation, &invite, body).await;
    match joined {
        Ok((user, reply)) => {
            let mut record = AuditRecord::for_visitor(&origin, organisation);
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
    let hash = KeyHash::from_key(token.as_bytes()).0.to_vec();
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
    let hash = KeyHash::from_key(body.token.as_bytes()).0.to_vec();
    if tx.execute(TAKE, &[&invite.id, &hash]).await? == 0 {
        return Err(unknown());
    }
    refuse_if_scim_only(tx, organisation).await?;
    let first_name = part_of_name("first_name", body.first_name)?.or_else(|| invite.first_name.clone());
    let last_name = part_of_name("last_name", body.last_name)?.or_else(|| invite.last_name.clone());
    let values: [&(dyn ToSql + Sync); 5] = [&organisation, &invite.email, &invite.role, &first_name, &last_name];
    let user = crud::id_of(&tx.query_one(USER, &values).await.map_err(is_user_already)?)?;
    tx.execute(JOINED, &[&invite.id, &user]).await?;
    let is_shown = may_show_keys(tx, organisation, invite).await?;
    let mut keys = Vec::new();
    for seat in &invite.workspaces {
        keys.extend(sit(tx, app, (organisation, user), seat, invite.key.as_ref(), is_shown).await?);
    }
    Ok((user, json!({ "user_id": user, "organisation_id": organisation, "api_keys": keys })))
}

/// Whether keys are shown to who follows the link. The inviter saw it too, and could follow it: keys that nobody
/// promised are shown only where the inviter could have made them.
async fn may_show_keys(tx: &Transaction<'_>, organisation: Uuid, invite: &Invite) -> Result<bool, ApiError> {
    const INVITER: &str = "SELECT FROM api_keys WHERE id = $1 AND organisation_id = $2
                           AND kind = 'organisation-service' AND 'workspace_user_api_keys.create' = ANY(scopes)";
    // What was promised was checked when it was.
    Ok(invite.key.is_some() || tx.query_opt(INVITER, &[&invite.invited_by, &organisation]).await?.is_some())
}

fn part_of_name(field: &str, name: Option<String>) -> Result<Option<String>, ApiError> {
    match name {
        Some(name) if name.contains('\0') => Err(ApiError::field(field, "must not contain the character NUL")),
        name => name.map(|name| text::sized(field, name, 0..=255)).transpose(),
    }
}

/// Takes a seat, and makes the key that belongs to it. A workspace that was archived meanwhile has none to offer.
async fn sit(
    tx: &Transaction<'_>,
    app: &App,
    (organisation, user): (Uuid, Uuid),
    seat: &Seat,
    details: Option<&KeyDetails>,
    is_shown: bool,
) -> Result<Option<Value>, ApiError> {
    const HOLD: &str = "SELECT FROM workspaces WHERE id = $1 AND organisation_id = $2 AND status = 'active'
                        FOR NO KEY UPDATE";
    const MEMBER: &str =
        "INSERT INTO workspace_members (workspace_id, user_id, organisation_id, role) VALUES ($1, $2, $3, $4)";
    let workspace = seat.workspace_id;
    if tx.query_opt(HOLD, &[&workspace, &organisation]).await?.is_none() {
        return Ok(None);
    }
    tx.execute(MEMBER, &[&workspace, &user, &organisation, &seat.role]).await?;
    let promise = details.map(promise);
    let joiner = NewMemberKey { organisation, workspace, user, by: user, promise, is_shown };
    let made = issue::for_joiner(tx, &app.api_key_prefix, joiner).await?;
    Ok(made.map(|made| issue::shown(workspace, user, &made, is_shown)))
}

pub(super) fn promise(details: &KeyDetails) -> PromisedKey {
    let metadata = details.metadata.as_ref();
    PromisedKey {
        scopes: details.scopes.clone(),
        name: details.name.clone().or_else(|| Some("Key of the invitation".into())),
        expiry: details.expiry.as_deref().and_then(|text| time::parsed("expiry", text).ok()),
        metadata: metadata.map(|all| all.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect()),
    }
}

fn is_user_already(error: tokio_postgres::Error) -> ApiError {
    match ApiError::from(error) {
        ApiError::Conflict(_) => ApiError::Conflict("There is a user with this e-mail address already".into()),
        other => other,
    }
}

async fn record_refusal(
    db: &impl GenericClient,
    origin: &RequestOrigin,
    organisation: Uuid,
    invite: &Invite,
    refused: &ApiError,
) -> Result<(), ApiError> {
    let mut record = AuditRecord::for_visitor(origin, organisation);
    record.resource_id = Some(invite.id.to_string());
    record.response_status_code = refused.status().as_u16().into();
    record.error = Some(format!("{} {refused}", refused.code()));
    Ok(audit::record(db, &record).await?)
}
