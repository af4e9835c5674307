//! A new key, of one of three kinds. What differs between them is whose it is, which scopes it can have and how long
//! it may live.

use super::defaults::{self, Defaults};
use super::expiry::{self, Lifetimes};
use super::{Key, grant, rotation_policy};
use crate::access::Role;
use crate::action::{Action, Change};
use crate::app::App;
use crate::call::Call;
use crate::crud::{self, Answer, Resource as _};
use crate::error::ApiError;
use crate::http::{Field, json, text, time};
use crate::{limits, tenancy, tenant_settings};
use axum::Json;
use axum::extract::State;
use chrono::Utc;
use serde::Deserialize;
use serde_json::{Value, json};
use shared::api_key::{self, KeyHash};
use shared::model::KeyKind;
use shared::table::Columns;
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
    defaults: Field<Defaults>,
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
    let new: NewKey = json::read(Value::Object(body))?;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, app, call).await?;
    action.workspace_id = match kind {
        KeyKind::OrganisationService => None,
        KeyKind::WorkspaceService | KeyKind::WorkspaceUser => {
            tenancy::asked(&action.tx, &call.caller, asked.as_deref()).await?
        }
    };
    let key = api_key::generate(&app.api_key_prefix);
    let columns = written(&action, kind, new).await?;
    let columns = columns
        .set("hash", KeyHash::of(key.as_bytes()).0.to_vec())
        .set("mask", api_key::mask(&key))
        .set("kind", kind.as_str())
        .set("organisation_id", action.organisation_id())
        .set("workspace_id", action.workspace_id)
        .set("created_by", call.caller.actor_id());
    let made = Key::from_row(&Key::TABLE.insert(&action.tx, &columns).await?)?;
    let change = Change { resource_id: made.id.to_string(), before: None, after: Some(made.shown(call)) };
    action.commit(change).await?;
    Ok(Json(json!({ "id": made.id, "key": key, "object": Key::OBJECT })))
}

async fn written(action: &Action<'_>, kind: KeyKind, new: NewKey) -> Result<Columns, ApiError> {
    for sent in [&new.usage_limits, &new.rate_limits] {
        limits::allowed(action.app, sent.as_ref().value())?;
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
        .set("usage_limits", usage.map(|limits| limits.shown()))
        .set("alert_emails", new.alert_emails.map(emails).transpose()?)
        .set("rotation_policy", new.rotation_policy.map(|sent| rotation_policy::checked(sent, now)).transpose()?);
    let place = match action.workspace_id {
        Some(workspace) => Place::held(action, workspace, kind).await?,
        None if kind == KeyKind::OrganisationService => Place::default(),
        None => return Err(ApiError::field("workspace_id", "is required")),
    };
    let mut sent = new.defaults.value().unwrap_or_default();
    if kind == KeyKind::WorkspaceUser && sent.config_id == Field::Absent {
        sent.config_id = place.user_config.map_or(Field::Absent, Field::Value);
    }
    let defaults = sent.over(&json!({}))?;
    defaults::conform(action, &defaults).await?;
    let expiry = expiry::first(asked, place.lifetimes, now)?;
    let user = if kind == KeyKind::WorkspaceUser { Some(owner(action, new.user_id).await?) } else { None };
    Ok(columns
        .set("user_id", user)
        .set("defaults", defaults)
        .set("expires_at", expiry.at)
        .set("expiry_enforced", expiry.is_enforced))
}

/// At most twenty addresses; none at all is the same as an empty list.
pub fn emails(sent: Vec<String>) -> Result<Vec<String>, ApiError> {
    if sent.len() > 20 {
        return Err(ApiError::field("alert_emails", "must be at most 20 addresses"));
    }
    sent.iter().enumerate().map(|(n, address)| text::email(&format!("alert_emails[{n}]"), address)).collect()
}

/// What a workspace says about its keys.
#[derive(Default)]
pub struct Place {
    pub lifetimes: Lifetimes,
    user_config: Option<String>,
}

impl Place {
    /// Keeps the workspace from being archived meanwhile; and, for people's keys, others from counting at the same
    /// time, so that the last free place is given once.
    async fn held(action: &Action<'_>, workspace: Uuid, kind: KeyKind) -> Result<Self, ApiError> {
        const COUNT: &str = "SELECT count(*) FROM api_keys
                             WHERE organisation_id = $1 AND workspace_id = $2 AND kind = 'workspace-user'
                               AND status <> 'archived'";
        if kind != KeyKind::WorkspaceUser {
            tenancy::hold(&action.tx, workspace).await?;
            return Ok(Self::default());
        }
        let (place, most) = Self::read(action, workspace, "FOR NO KEY UPDATE OF w").await?;
        if most >= 0
            && action.tx.query_one(COUNT, &[&action.organisation_id(), &workspace]).await?.try_get::<_, i64>(0)? >= most
        {
            return Err(ApiError::invalid(format!("This workspace may have {most} keys of people, and has them")));
        }
        Ok(place)
    }

    /// For a key that exists.
    pub async fn of(action: &Action<'_>, key: &Key) -> Result<Self, ApiError> {
        match (key.kind, key.workspace_id) {
            (KeyKind::WorkspaceUser, Some(workspace)) => Ok(Self::read(action, workspace, "").await?.0),
            _ => Ok(Self::default()),
        }
    }

    async fn read(action: &Action<'_>, workspace: Uuid, lock: &str) -> Result<(Self, i64), ApiError> {
        let sql = format!(
            "SELECT w.settings, w.defaults ->> 'user_api_key_config' AS config, o.settings AS organisation
             FROM workspaces w JOIN organisations o ON o.id = w.organisation_id
             WHERE w.id = $1 AND w.status = 'active' {lock}"
        );
        let row = action.tx.query_opt(&sql, &[&workspace]).await?.ok_or(ApiError::NotFound("workspace"))?;
        let (own, shared): (Value, Value) = (row.try_get("settings")?, row.try_get("organisation")?);
        let setting = |name: &str| tenant_settings::number(name, &own, &shared);
        let lifetimes = Lifetimes { default: setting("user_api_key_ttl"), most: setting("user_api_key_max_ttl") };
        Ok((Self { lifetimes, user_config: row.try_get("config")? }, setting("user_api_key_count")))
    }
}

/// Whose key it becomes: the caller's own, or somebody's in the workspace whose role is not above the caller's. A key
/// acts for its owner, so one for a higher role would be a way up.
async fn owner(action: &Action<'_>, asked: Option<Uuid>) -> Result<Uuid, ApiError> {
    const OWNER: &str = "SELECT u.role AS organisation_role, m.role AS member_role FROM users u
        LEFT JOIN workspace_members m ON m.user_id = u.id AND m.workspace_id = $3
        WHERE u.id = $1 AND u.organisation_id = $2 AND u.status = 'active' FOR SHARE OF u";
    let caller = &action.call.caller;
    let user = asked.or(caller.user_id()).ok_or_else(|| ApiError::field("user_id", "is required"))?;
    let nobody = || ApiError::field("user_id", "must be a member of the workspace");
    let row = action.tx.query_opt(OWNER, &[&user, &action.organisation_id(), &action.workspace_id]).await?;
    let row = row.ok_or_else(nobody)?;
    let is_admin = matches!(row.try_get("organisation_role")?, "owner" | "admin");
    let member: Option<&str> = row.try_get("member_role")?;
    let role = if is_admin { Some(Role::Admin) } else { member.and_then(Role::parse) }.ok_or_else(nobody)?;
    match &caller.standing {
        None => Ok(user),
        Some(_) if caller.user_id() == Some(user) => Ok(user),
        Some(standing) if standing.role.is_some_and(|own| own > Role::Member && role <= own) => Ok(user),
        Some(_) => Err(ApiError::Forbidden("A key for this user can be made by those whose role is not below theirs")),
    }
}
