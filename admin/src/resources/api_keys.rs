//! API keys of all kinds: those of the organisation, of a workspace's services, and of people. Each kind has scopes of
//! its own for being managed, so what a caller may do depends on the key in question. A key's secret is shown when it
//! is made and when it is rotated, and at no other time and to nobody else.

pub mod authority;
mod create;
mod defaults;
pub mod docs;
mod expiry;
mod grant;
pub mod issue;
mod key_settings;
mod lookup;
pub mod rotate;
mod rotation_policy;
mod update;

use crate::crud::{self, Action, Resource, Routes, Verb};
use crate::http::{ApiError, Time};
use crate::identity::Call;
use crate::limits::UsageLimits;
use serde::Serialize;
use serde_json::{Value, json};
use shared::amount::Amount;
use shared::db::table::{Columns, Filter, OnDelete, RowError, SelectList, Table, Tenancy};
use shared::model::{AccessStatus, KeyKind};
use tokio_postgres::Row;
use uuid::Uuid;

pub fn routes() -> Routes {
    Routes::default()
        .post("/api-keys/organisation/service", create::organisation_service)
        .post("/api-keys/workspace/service", create::workspace_service)
        .post("/api-keys/workspace/user", create::workspace_user)
        .get("/api-keys", crud::list::<ApiKeyRow>)
        .get("/api-keys/{id}", crud::read::<ApiKeyRow>)
        .put("/api-keys/{id}", crud::update::<ApiKeyRow>)
        .delete("/api-keys/{id}", crud::delete::<ApiKeyRow>)
        .post("/api-keys/{id}/rotate", rotate::rotate)
        .describe(docs::docs())
}

#[derive(Serialize)]
pub struct ApiKeyRow {
    id: Uuid,
    name: String,
    description: Option<String>,
    /// Masked.
    key: String,
    #[serde(rename = "type")]
    kind: KeyKind,
    organisation_id: Uuid,
    workspace_id: Option<Uuid>,
    user_id: Option<Uuid>,
    status: AccessStatus,
    creation_mode: String,
    rate_limits: Value,
    usage_limits: Option<Value>,
    /// What was used of the budget.
    #[serde(skip)]
    used: Option<Amount>,
    #[serde(skip)]
    unconfirmed: Option<Amount>,
    reset_usage: Option<i16>,
    expires_at: Option<Time>,
    expiry_enforced: bool,
    last_reset_at: Option<Time>,
    scopes: Vec<String>,
    defaults: Value,
    alert_emails: Option<Vec<String>>,
    rotation_policy: Option<Value>,
    last_rotated_at: Option<Time>,
    /// Whether nobody has seen the present secret: rotating shows a fresh one.
    is_unclaimed: bool,
    created_at: Time,
    last_updated_at: Time,
    #[serde(skip)]
    previous_expires_at: Option<Time>,
    /// Since when it is switched off.
    suspended_at: Option<Time>,
}

impl Resource for ApiKeyRow {
    /// Creation differs by kind and shows a secret; see `create.rs`.
    type Create = serde::de::IgnoredAny;
    type Update = update::KeyChange;
    const OBJECT: &'static str = "api-key";
    const PATH: &'static str = "/api-keys";
    const TABLE: Table = Table {
        name: "api_keys",
        columns: SelectList::Sql("id, name, description, mask, kind, organisation_id, workspace_id, user_id, status, creation_mode,
            rate_limits, usage_limits, reset_usage, expires_at, expiry_enforced, last_reset_at, scopes, defaults,
            alert_emails, rotation_policy, last_rotated_at, is_unclaimed, previous_expires_at, suspended_at, created_at, last_updated_at,
            budget_used(organisation_id, 'api_key', id::text, usage_limits) AS used,
            budget_unconfirmed(organisation_id, 'api_key', id::text, usage_limits) AS unconfirmed"),
        slug: None,
        tenancy: Tenancy::Workspace("workspace_id"),
        on_delete: OnDelete::Archive,
    };

    fn from_row(row: &Row) -> Result<Self, RowError> {
        Ok(Self {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            description: row.try_get("description")?,
            key: row.try_get("mask")?,
            kind: lookup::kind_of(row.try_get("kind")?),
            organisation_id: row.try_get("organisation_id")?,
            workspace_id: row.try_get("workspace_id")?,
            user_id: row.try_get("user_id")?,
            status: row.try_get("status")?,
            creation_mode: row.try_get("creation_mode")?,
            rate_limits: row.try_get("rate_limits")?,
            usage_limits: row.try_get("usage_limits")?,
            used: row.try_get("used")?,
            unconfirmed: row.try_get("unconfirmed")?,
            reset_usage: row.try_get("reset_usage")?,
            expires_at: row.try_get("expires_at")?,
            expiry_enforced: row.try_get("expiry_enforced")?,
            last_reset_at: row.try_get("last_reset_at")?,
            scopes: row.try_get("scopes")?,
            defaults: row.try_get("defaults")?,
            alert_emails: row.try_get("alert_emails")?,
            rotation_policy: row.try_get("rotation_policy")?,
            last_rotated_at: row.try_get("last_rotated_at")?,
            is_unclaimed: row.try_get("is_unclaimed")?,
            previous_expires_at: row.try_get("previous_expires_at")?,
            suspended_at: row.try_get("suspended_at")?,
            created_at: row.try_get("created_at")?,
            last_updated_at: row.try_get("last_updated_at")?,
        })
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn workspace_id(&self) -> Option<Uuid> {
        self.workspace_id
    }

    async fn create(_: &Action<'_>, _: Self::Create) -> Result<Columns, ApiError> {
        Err(ApiError::NotBuilt)
    }

    async fn update(action: &Action<'_>, current: &Self, body: update::KeyChange) -> Result<Columns, ApiError> {
        update::written(action, current, body).await
    }

    fn filter(call: &Call) -> Result<Filter, ApiError> {
        lookup::filter(call)
    }

    fn named(_: &Call, _: &str) -> Result<Filter, ApiError> {
        Ok(lookup::listed())
    }

    fn may_read(&self, call: &Call) -> Result<(), ApiError> {
        lookup::require(&call.caller, self, "read")
    }

    fn may_change(&self, call: &Call) -> Result<(), ApiError> {
        lookup::may_change(self, call)
    }

    async fn after(&self, _: Verb, action: &Action<'_>) -> Result<(), ApiError> {
        match authority::may_change(action, self.power()).await? {
            true => Ok(()),
            false => Err(ApiError::Forbidden("A person's key is changed by those whose role is not below theirs")),
        }
    }

    fn shown(&self, _: &Call) -> Value {
        let mut shown = crud::shown(Self::OBJECT, self);
        let limits = self.budget().map(|limits| limits.shown());
        shown["next_usage_reset_at"] = limits.as_ref().map_or(Value::Null, |one| one["next_usage_reset_at"].clone());
        shown["usage_limits"] = limits.unwrap_or_default();
        if self.suspended_at.is_some() {
            shown["status"] = update::SUSPENDED.into();
        }
        shown["expiry_enforced"] = i64::from(self.expiry_enforced).into();
        let may_override = self.defaults["allow_config_override"].as_bool().unwrap_or(true);
        shown["defaults"] = json!({
            "metadata": self.defaults["metadata"],
            "config_id": self.defaults["config_id"],
            "allow_config_override": may_override,
            "cost_in_answers": self.defaults["cost_in_answers"].as_bool().unwrap_or(true),
        });
        shown["allow_config_override"] = i64::from(may_override).into();
        shown["api_key_defaults_id"] = Value::Null;
        shown
    }
}

impl ApiKeyRow {
    /// What whoever has its secret is able to do.
    fn power(&self) -> authority::KeyPower<'_> {
        authority::KeyPower { kind: self.kind, scopes: &self.scopes, workspace: self.workspace_id, owner: self.user_id }
    }

    fn budget(&self) -> Option<UsageLimits> {
        Some(UsageLimits::from_stored(self.usage_limits.as_ref()?, self.used)?.with_unconfirmed(self.unconfirmed))
    }
}
