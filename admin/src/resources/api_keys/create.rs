//! A new key, of one of three kinds. What differs between them is whose it is, which scopes it can have and how long
//! it may live.

use super::defaults::{self, SentKeyDefaults};
use super::key_settings::KeySettings;
use super::{ApiKeyRow, authority, expiry, grant, issue, rotation_policy};
use crate::app::App;
use crate::crud::{self, Action, Answer, Change, Resource as _};
use crate::http::{ApiError, Field, json, text, time};
use crate::identity::{Call, tenancy};
use crate::limits;
use axum::Json;
use axum::extract::State;
use chrono::Utc;
use serde::Deserialize;
use serde_json::{Value, json};
use shared::db::table::Columns;
use shared::model::KeyKind;
use uuid::Uuid;

#[derive(Deserialize)]
struct NewKey {
    name: String,
    description: Option<String>,
    scopes: Option<Vec<String>>,
    organisation_id: Option<Uuid>,
    user_id: Option<Uuid>,
    #[serde(default)]
    rate_limits: Field<Value>,
    #[serde(default)]
    usage_limits: Field<Value>,
    #[serde(default)]
    defaults: Field<SentKeyDefaults>,
    alert_emails: Option<Vec<String>>,
    expires_at: Option<String>,
    rotation_policy: Option<Value>,
}

pub async fn organisation_service(State(app): State<App>, call: Call) -> Answer {
    create(&app, &call, KeyKind::OrganisationService).await
}

pub async fn workspace_service(State(app): State<App>, call: Call) -> Answer {
    create(&app, &call, KeyKind::WorkspaceService).await
}

pub async fn workspace_user(State(app): State<App>, call: Call) -> Answer {
    create(&app, &call, KeyKind::WorkspaceUser).await
}

async fn create(app: &App, call: &Call, kind: KeyKind) -> Answer {
    let body = call.object()?;
    let asked = crud::text_of(&body, "workspace_id")?;
    let new: NewKey = json::parse(Value::Object(body))?;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, app, call).await?;
    action.workspace_id = match kind {
        KeyKind::OrganisationService => None,
        KeyKind::WorkspaceService | KeyKind::WorkspaceUser | KeyKind::Jwt => {
            Some(crud::workspace_of_new(&action, asked.as_deref()).await?)
        }
    };
    let columns = written(&action, kind, new).await?;
    let columns = columns
        .set("kind", kind.as_str())
        .set("organisation_id", action.organisation_id())
        .set("workspace_id", action.workspace_id)
        .set("created_by", call.caller.actor_id());
    let (made, key) = issue::issue(&action.tx, &app.api_key_prefix, columns).await?;
    let change = Change { resource_id: made.id.to_string(), before: None, after: Some(made.shown(call)) };
    action.commit(change).await?;
    Ok(Json(json!({ "id": made.id, "key": key, "object": ApiKeyRow::OBJECT })))
}

async fn written(action: &Action<'_>, kind: KeyKind, new: NewKey) -> Result<Columns, ApiError> {
    for sent in [&new.usage_limits, &new.rate_limits] {
        limits::allowed(&action.app.features, sent.as_ref().value())?;
    }
    if new.organisation_id.is_some_and(|id| id != action.organisation_id()) {
        return Err(ApiError::field("organisation_id", "must be the caller's organisation"));
    }
    let now = Utc::now();
    let asked = new.expires_at.map(|text| time::parsed("expires_at", &text)).transpose()?;
    let rates = limits::rate_limits(new.rate_limits.value().unwrap_or_default(), &limits::KEY_RATES)?;
    let usage = limits::usage_limits(new.usage_limits.value().unwrap_or_default(), None, now)?;
    let columns = Columns::default()
        .set("name", text::sized("name", new.name, 1..=100)?)
        .set("description", new.description.map(|text| text::sized("description", text, 0..=200)).transpose()?)
        .set("scopes", grant::granted(new.scopes, kind, &action.call.caller, &[])?)
        .set("rate_limits", json!(rates))
        .set("usage_limits", usage.map(|limits| limits.stored()))
        .set("alert_emails", new.alert_emails.map(emails).transpose()?);
    let policy = new.rotation_policy.map(|sent| rotation_policy::checked(sent, now)).transpose()?;
    let place = place(action, kind).await?;
    let policy = policy.or_else(|| place.rotation_days.map(|days| rotation_policy::every(days, now)));
    let mut sent = new.defaults.value().unwrap_or_default();
    defaults::hold_config(action, action.workspace_id, &sent).await?;
    if kind == KeyKind::WorkspaceUser && sent.config_id == Field::Absent {
        sent.config_id = place.user_config.clone().map_or(Field::Absent, Field::Value);
    }
    let mut defaults = sent.over(&json!({}))?;
    if kind == KeyKind::WorkspaceUser {
        let metadata = place.metadata(defaults["metadata"].as_object());
        if !metadata.is_empty() {
            defaults["metadata"] = metadata.into();
        }
    }
    defaults::conform(action, &defaults).await?;
    let expiry = expiry::first(asked, place.lifetimes, now)?;
    let user = if kind == KeyKind::WorkspaceUser { Some(owner(action, new.user_id).await?) } else { None };
    Ok(columns
        .set("user_id", user)
        .set("rotation_policy", policy)
        .set("defaults", defaults)
        .set("expires_at", expiry.at)
        .set("expiry_enforced", expiry.is_enforced))
}

/// What the workspace says, held so that it stays true; keys of services are bound by nothing.
async fn place(action: &Action<'_>, kind: KeyKind) -> Result<KeySettings, ApiError> {
    match (kind, action.workspace_id) {
        (KeyKind::OrganisationService, _) => KeySettings::of_service(&action.tx, action.organisation_id(), kind).await,
        (_, None) => Err(ApiError::field("workspace_id", "is required")),
        (KeyKind::WorkspaceService, Some(workspace)) => {
            tenancy::hold(&action.tx, workspace).await?;
            KeySettings::of_service(&action.tx, action.organisation_id(), kind).await
        }
        (KeyKind::WorkspaceUser | KeyKind::Jwt, Some(workspace)) => {
            let held = KeySettings::held(&action.tx, action.organisation_id(), workspace).await?;
            let place = held.ok_or(ApiError::NotFound("workspace"))?;
            place.refuse_if_full()?;
            Ok(place)
        }
    }
}

/// At most twenty addresses; none at all is the same as an empty list.
pub fn emails(sent: Vec<String>) -> Result<Vec<String>, ApiError> {
    if sent.len() > 20 {
        return Err(ApiError::field("alert_emails", "must be at most 20 addresses"));
    }
    sent.iter().enumerate().map(|(n, address)| text::email(&format!("alert_emails[{n}]"), address)).collect()
}

/// Whose key it becomes: the caller's own, or somebody's in the workspace whose role is not above the caller's. A key
/// acts for its owner, so one for a higher role would be a way up.
async fn owner(action: &Action<'_>, asked: Option<Uuid>) -> Result<Uuid, ApiError> {
    const HOLD: &str = "SELECT FROM users WHERE id = $1 AND organisation_id = $2 AND status = 'active' FOR SHARE";
    let caller = &action.call.caller;
    let user = asked.or(caller.user_id()).ok_or_else(|| ApiError::field("user_id", "is required"))?;
    let nobody = || ApiError::field("user_id", "must be a member of the workspace");
    action.tx.query_opt(HOLD, &[&user, &action.organisation_id()]).await?.ok_or_else(nobody)?;
    let standing = authority::standing(action, user, action.workspace_id).await?;
    if standing.role.is_none() {
        return Err(nobody());
    }
    match authority::has_rank(caller, Some(&(user, standing))) {
        true => Ok(user),
        false => Err(ApiError::Forbidden("A key for this user can be made by those whose role is not below theirs")),
    }
}
