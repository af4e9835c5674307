//! Workspaces: where an organisation's people and applications work, apart from each other. Served at two paths that
//! are the same: the specification names one, the clients call the other.

pub mod archive;
mod docs;
pub mod members;
mod naming;
mod settings;

use crate::app::App;
use crate::crud::{self, Action, Answer, Resource, Routes, Verb, tenant_settings};
use crate::http::{ApiError, Field, Time, text};
use crate::identity::access::{SecuritySettings, security};
use crate::identity::{Call, tenancy};
use crate::limits::{self, UsageLimits};
use axum::Json;
use axum::extract::{Path, State};
use chrono::Utc;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::amount::Amount;
use shared::db::table::{Columns, Filter, OnDelete, RowError, SelectList, Table, Tenancy, row};
use shared::model::Status;
use tokio_postgres::Row;
use uuid::Uuid;

pub fn routes() -> Routes {
    ["/admin/workspaces", "/workspaces"].iter().fold(Routes::default(), |routes, base| {
        let item = format!("{base}/{{workspaceId}}");
        routes
            .get(base, crud::list::<Workspace>)
            .post(base, crud::create::<Workspace>)
            .get(&item, read_workspace)
            .put(&item, crud::update::<Workspace>)
            .delete(&item, archive::archive)
            .describe(docs::docs(base))
    })
}

#[derive(Serialize, Deserialize)]
pub struct Workspace {
    pub id: Uuid,
    slug: String,
    pub name: String,
    pub icon: Option<String>,
    description: Option<String>,
    pub is_default: bool,
    status: Status,
    defaults: Option<Value>,
    pub usage_limits: Option<Value>,
    /// What was used of the budget.
    #[serde(skip_serializing)]
    used: Option<Amount>,
    #[serde(skip_serializing)]
    unconfirmed: Option<Amount>,
    rate_limits: Option<Value>,
    /// Its own values; `effective` says which count.
    security_settings: Value,
    settings: Value,
    priority: i16,
    last_reset_at: Option<Time>,
    organisation_id: Uuid,
    created_by: Option<Uuid>,
    creation_source: String,
    scim_source_id: Option<String>,
    created_at: Time,
    last_updated_at: Time,
    #[serde(skip_serializing)]
    organisation_settings: Value,
    #[serde(skip_serializing)]
    organisation_security: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct WorkspaceChange {
    name: Option<String>,
    /// Chosen once, when the workspace is made.
    slug: Option<String>,
    icon: Field<String>,
    description: Field<String>,
    defaults: Field<settings::WorkspaceDefaults>,
    usage_limits: Field<Value>,
    rate_limits: Field<Value>,
    settings: Option<tenant_settings::SentTenantSettings>,
    security_settings: Option<Map<String, Value>>,
    priority: Option<i16>,
    reset_usage: Option<bool>,
}

impl Resource for Workspace {
    type Create = WorkspaceChange;
    type Update = WorkspaceChange;
    const OBJECT: &'static str = "workspace";
    const PATH: &'static str = "/admin/workspaces";
    const UNIQUE: &'static str = "name or slug";
    const TABLE: Table = Table {
        name: "workspaces",
        columns: SelectList::Sql(
            "id, slug, name, icon, description, is_default, status, defaults, usage_limits, rate_limits,
            security_settings, settings, priority, last_reset_at, organisation_id, created_by, creation_source,
            scim_source_id, created_at, last_updated_at,
            budget_used(organisation_id, 'workspace', id::text, usage_limits -> 0) AS used,
            budget_unconfirmed(organisation_id, 'workspace', id::text, usage_limits -> 0) AS unconfirmed,
            (SELECT o.settings FROM organisations o WHERE o.id = organisation_id) AS organisation_settings,
            (SELECT o.security_settings FROM organisations o WHERE o.id = organisation_id) AS organisation_security",
        ),
        slug: Some("slug"),
        tenancy: Tenancy::Workspace("id"),
        on_delete: OnDelete::Archive,
    };

    fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn workspace_id(&self) -> Option<Uuid> {
        Some(self.id)
    }

    async fn create(action: &Action<'_>, mut body: WorkspaceChange) -> Result<Columns, ApiError> {
        const ORGANISATION: &str = "SELECT settings, security_settings, metadata_schemas -> 'workspace' AS schema FROM organisations WHERE id = $1";
        let row = action.tx.query_one(ORGANISATION, &[&action.organisation_id()]).await?;
        let organisation =
            OrganisationRules { settings: row.try_get("settings")?, security: row.try_get("security_settings")? };
        let schema: Option<Value> = row.try_get("schema")?;
        settings::conform(&schema.unwrap_or_default(), &body.defaults)?;
        settings::find_guardrails(action, None, &mut body.defaults).await?;
        let name = body.name.take().ok_or_else(|| ApiError::field("name", "is required"))?;
        let (icon, name) = naming::split(text::name("name", name)?);
        let slug = match body.slug.take() {
            Some(slug) => text::slug("slug", slug)?,
            None => text::generated_slug("ws", &name, 6),
        };
        let columns = written(action, body, None, &organisation)?;
        let columns = if columns.names().any(|one| one == "icon") { columns } else { columns.set("icon", icon) };
        Ok(columns.set("name", name).set("slug", slug).set("created_by", action.call.caller.actor_id()))
    }

    async fn update(action: &Action<'_>, current: &Self, mut body: WorkspaceChange) -> Result<Columns, ApiError> {
        let caller = &action.call.caller;
        let is_person = caller.session.is_some();
        let is_organisations = caller.workspace_id().is_none() || is_person && caller.is_organisation_admin();
        if !is_organisations && (body.security_settings.is_some() || body.priority.is_some()) {
            return Err(ApiError::Forbidden(
                "What the roles of a workspace may do, and its priority, are set by the organisation",
            ));
        }
        if !is_organisations && !is_person && (body.name.is_some() || body.icon.is_sent() || body.settings.is_some()) {
            return Err(ApiError::Forbidden(
                "A workspace's own key may change its description, defaults and limits only",
            ));
        }
        settings::find_guardrails(action, Some(current.id), &mut body.defaults).await?;
        written(action, body, Some(current), &current.organisation())
    }

    fn filter(call: &Call) -> Result<Filter, ApiError> {
        let query = call.query();
        let mut filter = Filter::default().one_of("status", statuses(call)?);
        if let Some(part) = query.text("name") {
            filter = filter.and("strpos(concat_ws(' ', icon, name), ?) > 0", part.to_owned());
        }
        if let Some(name) = query.text("exact_name") {
            filter = filter.and("(name = ? OR concat_ws(' ', icon, name) = ?)", name.to_owned());
        }
        Ok(filter)
    }

    async fn after(&self, verb: Verb, action: &Action<'_>) -> Result<(), ApiError> {
        if verb == Verb::Create
            && let Some(users) = action.call.object()?.remove("users").filter(|users| !users.is_null())
        {
            members::add(action, self.id, members::sent(users)?, false).await?;
        }
        Ok(())
    }

    fn shown(&self, call: &Call) -> Value {
        let mut shown = crud::shown(Self::OBJECT, self);
        if call.query().text("name_format") != Some("plain") {
            shown["name"] = naming::joined(self.icon.as_deref(), &self.name).into();
        }
        shown["is_default"] = i64::from(self.is_default).into();
        shown["defaults"] = settings::shown_defaults(self.defaults.as_ref(), self.is_default);
        shown["usage_limits"] = self.budget().map_or(Value::Null, |limits| json!([limits.shown()]));
        shown["security_settings"] = self.effective_security().shown().into();
        shown["settings"] = tenant_settings::shown(&self.settings, &self.organisation_settings);
        shown
    }

    fn created(&self, call: &Call) -> Value {
        self.shown(call)
    }

    fn updated(&self, call: &Call) -> Value {
        self.shown(call)
    }
}

impl Workspace {
    fn budget(&self) -> Option<UsageLimits> {
        Some(UsageLimits::from_stored(self.usage_limits.as_ref()?, self.used)?.with_unconfirmed(self.unconfirmed))
    }

    pub fn effective_security(&self) -> SecuritySettings {
        self.organisation().effective_security(&self.security_settings)
    }

    fn organisation(&self) -> OrganisationRules {
        OrganisationRules { settings: self.organisation_settings.clone(), security: self.organisation_security.clone() }
    }
}

/// What the organisation says about its workspaces.
struct OrganisationRules {
    settings: Value,
    security: Value,
}

impl OrganisationRules {
    /// With the values that a workspace has of its own.
    fn effective_security(&self, own: &Value) -> SecuritySettings {
        security::effective(&self.security, own, &self.settings["workspace_overrides"])
    }
}

/// The workspace with its members. An archived one is shown to who asks for it by status and may list such.
async fn read_workspace(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let named = tenancy::named(&Workspace::TABLE, &name).ok_or(ApiError::NotFound(Workspace::OBJECT))?;
    let filter = tenancy::visible(&Workspace::TABLE, &call.caller, None).join(named).one_of("status", statuses(&call)?);
    let db = app.db.get().await?;
    let rows = Workspace::TABLE.find(&*db, &filter).await?;
    let row = rows.first().ok_or(ApiError::NotFound(Workspace::OBJECT))?;
    let workspace = Workspace::from_row(row)?;
    call.origin.tag(crud::tag_of(row)?);
    let mut shown = workspace.shown(&call);
    shown["users"] = members::load_members(&*db, &workspace).await?.into();
    Ok(Json(shown))
}

/// Which statuses a call asks for. Archived workspaces are for those who run the organisation.
fn statuses(call: &Call) -> Result<Vec<String>, ApiError> {
    let asked = call.query().choices("status", &["active", "archived"])?;
    if asked.iter().any(|status| status == "archived") && !call.caller.is_organisation_admin() {
        return Err(ApiError::Forbidden("Only owners, admins and admin keys may see archived workspaces"));
    }
    Ok(if asked.is_empty() { vec!["active".into()] } else { asked })
}

/// What was sent, as columns. `current` is none for a new workspace.
fn written(
    action: &Action<'_>,
    body: WorkspaceChange,
    current: Option<&Workspace>,
    organisation: &OrganisationRules,
) -> Result<Columns, ApiError> {
    for sent in [&body.usage_limits, &body.rate_limits] {
        limits::allowed(&action.app.features, sent.as_ref().value())?;
    }
    let (mut icon, mut name) = (body.icon.try_map(naming::checked_icon)?.sent().map(Option::flatten), None);
    if let Some(sent) = body.name {
        let (leading, rest) = naming::split(text::name("name", sent)?);
        icon = icon.or(leading.map(Some));
        name = Some(rest);
    }
    if body.priority.is_some_and(|priority| !(1..=100).contains(&priority)) {
        return Err(ApiError::field("priority", "must be from 1 to 100"));
    }
    let empty = json!({});
    let stored = |pick: fn(&Workspace) -> &Value| current.map_or(&empty, pick);
    let own_security = body.security_settings.map(|sent| {
        let (own, overrides) = (stored(|one| &one.security_settings), &organisation.settings["workspace_overrides"]);
        let after = settings::security(sent, own, overrides)?;
        let (before, after_change) = (organisation.effective_security(own), organisation.effective_security(&after));
        security::may_change(action.call.caller.may_act_as_owner(), &before, &after_change).map(|()| after)
    });
    let of_new = tenant_settings::of_new_workspace();
    let own = body.settings.map(|sent| sent.over(current.map_or(&of_new, |one| &one.settings)));
    let defaults = body
        .defaults
        .sent()
        .map(|sent| sent.map(|sent| sent.over(current.and_then(|one| one.defaults.as_ref()))).transpose());
    let columns = Columns::default()
        .set_if("name", name)
        .set_if("icon", icon)
        .set_if("description", body.description.try_map(|text| text::sized("description", text, 0..=1000))?.sent())
        .set_if("defaults", defaults.transpose()?)
        .set_if("rate_limits", body.rate_limits.sent().map(rates).transpose()?)
        .set_if("settings", own.transpose()?)
        .set_if("security_settings", own_security.transpose()?)
        .set_if("priority", body.priority);
    budget(columns, body.usage_limits, body.reset_usage.unwrap_or(false), current)
}

fn rates(sent: Option<Value>) -> Result<Option<Value>, ApiError> {
    let limits = limits::rate_limits(sent.unwrap_or_default(), &limits::USUAL_RATES)?;
    Ok((!limits.is_empty()).then(|| json!(limits)))
}

/// The budget: what replaces it, and whether its usage starts over.
fn budget(
    columns: Columns,
    sent: Field<Value>,
    resets: bool,
    current: Option<&Workspace>,
) -> Result<Columns, ApiError> {
    let stored = current.and_then(Workspace::budget);
    let now = Utc::now();
    let mut limits = match sent.sent() {
        Some(sent) => Some(limits::usage_limits(sent.unwrap_or_default(), stored.as_ref(), now)?),
        None => None,
    };
    if resets {
        limits = Some(limits.unwrap_or(stored).map(|limits| limits.reset(now)));
    }
    let columns = columns.set_if("usage_limits", limits.map(|limits| limits.map(|limits| json!([limits.stored()]))));
    Ok(if resets { columns.set("last_reset_at", now) } else { columns })
}
