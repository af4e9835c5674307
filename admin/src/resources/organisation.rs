//! The organisation of the caller, the one object that nobody creates or deletes here: its name, its settings, its
//! security settings, how its people sign in, and what metadata must look like.

mod auth_settings;
mod defaults;
mod docs;
mod exclusions;
mod security_settings;
mod settings;

use crate::app::App;
use crate::crud::{Action, Answer, Change, Routes, RowLock, metadata_schema, unchanged};
use crate::http::{ApiError, Field, Time, etag, text};
use crate::identity::Call;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use shared::db::table::row;
use shared::settings::Retention;
use tokio_postgres::GenericClient;
use uuid::Uuid;

pub fn routes() -> Routes {
    Routes::default()
        .get("/admin/organisation", read_organisation)
        .put("/admin/organisation", update)
        .get("/admin/organisation/defaults", defaults::read_defaults)
        .put("/admin/organisation/defaults", defaults::update)
        .get("/admin/organisation/security-settings", security_settings::read_security_settings)
        .put("/admin/organisation/security-settings", security_settings::update)
        .get("/admin/organisation/auth-settings", auth_settings::read_auth_settings)
        .put("/admin/organisation/auth-settings", auth_settings::update)
        .get("/workspace-exclusions/input-guardrails", exclusions::read_input)
        .get("/workspace-exclusions/output-guardrails", exclusions::read_output)
        .put("/workspace-exclusions/input-guardrails", exclusions::update_input)
        .put("/workspace-exclusions/output-guardrails", exclusions::update_output)
        .describe(exclusions::docs())
        .describe(docs::docs())
}

/// Whether people are managed by the identity provider alone.
pub async fn is_scim_only(db: &impl GenericClient, organisation: Uuid) -> Result<bool, ApiError> {
    const SETTING: &str = "SELECT settings -> 'scim_only_user_management' = 'true' FROM organisations WHERE id = $1";
    let row = db.query_one(SETTING, &[&organisation]).await?;
    Ok(row.try_get::<_, Option<bool>>(0)?.unwrap_or(false))
}

/// Refuses a change to people while they are managed by the identity provider alone.
pub async fn refuse_if_scim_only(db: &impl GenericClient, organisation: Uuid) -> Result<(), ApiError> {
    if is_scim_only(db, organisation).await? {
        return Err(ApiError::Forbidden("Users of this organisation are managed through SCIM only"));
    }
    Ok(())
}

#[derive(Deserialize)]
pub(super) struct Organisation {
    id: Uuid,
    name: String,
    owner_id: Option<Uuid>,
    default_workspace_id: Option<Uuid>,
    /// What was set; what was not has its default when shown.
    settings: Value,
    security_settings: Value,
    metadata_schemas: Value,
    auth_settings: Value,
    defaults: Value,
    created_at: Time,
    last_updated_at: Time,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OrganisationChange {
    name: Option<String>,
    settings: Option<settings::SettingsChange>,
    metadata_schemas: Option<SchemasChange>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SchemasChange {
    api_key: Field<Value>,
    workspace: Field<Value>,
}

impl Organisation {
    /// `RowLock::ForUpdate` keeps other changes waiting, so that a merge into a stored object loses nothing.
    async fn load(db: &impl GenericClient, id: Uuid, lock: RowLock) -> Result<Self, ApiError> {
        const HELD: &str = "SELECT FROM organisations WHERE id = $1 FOR UPDATE";
        const LOAD: &str = "SELECT o.id, o.name, o.settings, o.security_settings, o.metadata_schemas, o.auth_settings,
                o.defaults, o.created_at, o.last_updated_at, w.id AS default_workspace_id,
                (SELECT u.id FROM users u WHERE u.organisation_id = o.id AND u.role = 'owner' AND u.status = 'active'
                 ORDER BY u.created_at, u.id LIMIT 1) AS owner_id
            FROM organisations o LEFT JOIN workspaces w ON w.organisation_id = o.id AND w.is_default
            WHERE o.id = $1";
        if lock == RowLock::ForUpdate {
            db.execute(HELD, &[&id]).await?;
        }
        Ok(row::read(&db.query_one(LOAD, &[&id]).await?)?)
    }

    /// For a change: held until it ends, and as the caller saw it if they said how.
    async fn hold(action: &Action<'_>) -> Result<Self, ApiError> {
        let held = Self::load(&action.tx, action.organisation_id(), RowLock::ForUpdate).await?;
        unchanged::require(action, held.id, held.last_updated_at).await?;
        Ok(held)
    }

    /// With what the operator set for all organisations.
    fn shown(&self, retention: &Retention) -> Value {
        json!({
            "id": self.id,
            "object": "organisation",
            "name": self.name,
            "owner_id": self.owner_id,
            "default_workspace_id": self.default_workspace_id,
            "settings": settings::shown(&self.settings),
            "metadata_schemas": {
                "api_key": self.metadata_schemas["api_key"],
                "workspace": self.metadata_schemas["workspace"],
            },
            "log_retention_display": retention.shown_log_days(),
            "metrics_retention_display": retention.shown_metrics_days(),
            "created_at": self.created_at,
            "last_updated_at": self.last_updated_at,
        })
    }
}

/// The caller's organisation as it is now.
async fn current(app: &App, call: &Call) -> Result<Organisation, ApiError> {
    let db = app.db.get().await?;
    let found = Organisation::load(&*db, call.caller.organisation_id(), RowLock::No).await?;
    call.origin.tag(etag::tag(found.id, found.last_updated_at));
    Ok(found)
}

async fn read_organisation(State(app): State<App>, call: Call) -> Answer {
    Ok(Json(current(&app, &call).await?.shown(&app.retention)))
}

async fn update(State(app): State<App>, call: Call) -> Answer {
    const UPDATE: &str = "UPDATE organisations SET name = $2, settings = $3, metadata_schemas = $4,
                                 last_updated_at = now() WHERE id = $1";
    let change: OrganisationChange = call.body()?;
    if change.name.is_none() && change.settings.is_none() && change.metadata_schemas.is_none() {
        return Err(ApiError::invalid("Nothing to update"));
    }
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let id = action.organisation_id();
    let before = Organisation::hold(&action).await?;
    let name = change.name.map(|name| text::name("name", name)).transpose()?;
    let stored = match change.settings {
        Some(change) => settings::changed(&before.settings, change).map_err(|error| error.under("settings"))?,
        None => before.settings.clone(),
    };
    let schemas = schemas_changed(&before.metadata_schemas, change.metadata_schemas.unwrap_or_default())?;
    action.tx.execute(UPDATE, &[&id, name.as_ref().unwrap_or(&before.name), &stored, &schemas]).await?;
    security_settings::copy_opened(&action, &before, &stored).await?;
    let after = Organisation::load(&action.tx, id, RowLock::No).await?.shown(&app.retention);
    let change =
        Change { resource_id: id.to_string(), before: Some(before.shown(&app.retention)), after: Some(after.clone()) };
    action.commit(change).await?;
    Ok(Json(after))
}

fn schemas_changed(stored: &Value, change: SchemasChange) -> Result<Value, ApiError> {
    let mut schemas = stored.as_object().cloned().unwrap_or_default();
    for (name, schema) in [("api_key", change.api_key), ("workspace", change.workspace)] {
        let field = format!("metadata_schemas.{name}");
        let schema = schema.try_map(|schema| metadata_schema::checked(schema).map_err(|error| error.under(&field)))?;
        merge(&mut schemas, name, schema);
    }
    Ok(Value::Object(schemas))
}

/// Absent keeps what is stored, null forgets it.
fn merge<T: Into<Value>>(stored: &mut Map<String, Value>, name: &str, field: Field<T>) {
    match field {
        Field::Absent => {}
        Field::Null => {
            stored.shift_remove(name);
        }
        Field::Value(value) => {
            stored.insert(name.to_owned(), value.into());
        }
    }
}
