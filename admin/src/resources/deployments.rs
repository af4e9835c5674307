//! Gateway deployments: the proxies that an organisation runs, of which each may serve all its workspaces or some. A
//! deployment's proxies prove who they are by a token that is shown once.

mod placement;

use crate::app::App;
use crate::crud::{self, Action, Answer, Change, Resource, Routes};
use crate::http::{ApiError, Field, Time, text};
use crate::identity::Call;
use crate::openapi::{Doc, choices, schema};
use axum::Json;
use axum::extract::{Path, State};
use placement::{DeploymentSwitch, Kind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::db::table::{Columns, Filter, OnDelete, RowError, SelectList, Table, Tenancy, row};
use shared::identity::api_key::{self, KeyHash};
use tokio_postgres::Row;
use uuid::Uuid;

/// What tokens of deployments start with.
const TOKEN_PREFIX: &str = "gwd_";

pub fn routes() -> Routes {
    let item = format!("{}/{{id}}", Deployment::PATH);
    Routes::default()
        .get(Deployment::PATH, crud::list::<Deployment>)
        .post(Deployment::PATH, create)
        .get(&item, crud::read::<Deployment>)
        .put(&item, crud::update::<Deployment>)
        .delete(&item, crud::delete::<Deployment>)
        .post(&format!("{item}/rotate-token"), rotate_token)
        .describe(docs())
}

#[derive(Serialize, Deserialize)]
struct Deployment {
    id: Uuid,
    name: String,
    slug: String,
    #[serde(rename = "type")]
    kind: String,
    url: Option<String>,
    deployment_config: Value,
    allow_all_workspaces: bool,
    /// Slugs; none when all are allowed.
    workspaces: Vec<String>,
    is_default: i32,
    organisation_id: Uuid,
    status: DeploymentStatus,
    last_sync_at: Option<Time>,
    created_by: Option<Uuid>,
    created_at: Time,
    last_updated_at: Time,
}

/// As `deployment_status` in the database says.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DeploymentStatus {
    /// Its proxies report.
    Active,
    Inactive,
    Archived,
}

#[derive(Deserialize)]
struct NewDeployment {
    name: String,
    slug: Option<String>,
    #[serde(rename = "type")]
    kind: Kind,
    url: Option<String>,
    deployment_config: Option<Map<String, Value>>,
    allow_all_workspaces: Option<bool>,
    workspaces: Option<Vec<String>>,
    is_default: Option<DeploymentSwitch>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DeploymentChange {
    name: Option<String>,
    #[serde(rename = "type")]
    kind: Option<Kind>,
    url: Field<String>,
    deployment_config: Option<Map<String, Value>>,
    allow_all_workspaces: Option<bool>,
    workspaces: Option<Vec<String>>,
    is_default: Option<DeploymentSwitch>,
}

impl Resource for Deployment {
    type Create = NewDeployment;
    type Update = DeploymentChange;
    const OBJECT: &'static str = "deployment";
    const PATH: &'static str = "/deployments";
    const UNIQUE: &'static str = "slug";
    const TABLE: Table = Table {
        name: "deployments",
        columns: SelectList::Sql(
            "id, name, slug, type, url, deployment_config, allow_all_workspaces, is_default::int AS is_default, organisation_id,
            created_by, created_at, last_updated_at,
            ARRAY(SELECT w.slug FROM workspaces w WHERE w.id = ANY(workspace_ids) ORDER BY w.slug) AS workspaces,
            (SELECT s.last_sync_at FROM deployment_syncs s WHERE s.deployment_id = deployments.id) AS last_sync_at,
            deployment_status(deployments) AS status",
        ),
        slug: Some("slug"),
        tenancy: Tenancy::Organisation,
        on_delete: OnDelete::Archive,
    };

    fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    async fn create(action: &Action<'_>, body: NewDeployment) -> Result<Columns, ApiError> {
        let name = text::name("name", body.name)?;
        let slug = match body.slug {
            Some(slug) => text::slug("slug", slug)?,
            None => text::generated_slug("dp", &name, 20),
        };
        let allowed = placement::allowed(action, body.allow_all_workspaces, body.workspaces).await?;
        let (all, some) = allowed.unwrap_or((true, Vec::new()));
        let url = body.url.map(placement::checked_url).transpose()?;
        let is_default = body.is_default.is_some_and(|bit| bit.0);
        placement::room_for(action, body.kind, None).await?;
        if is_default {
            placement::unset_default(action).await?;
        }
        Ok(Columns::default()
            .set("name", name)
            .set("slug", slug)
            .set("type", body.kind.as_str())
            .set("url", url)
            .set("deployment_config", Value::Object(body.deployment_config.unwrap_or_default()))
            .set("allow_all_workspaces", all)
            .set("workspace_ids", some)
            .set("is_default", is_default)
            .set("created_by", action.call.caller.actor_id()))
    }

    async fn update(action: &Action<'_>, current: &Self, body: DeploymentChange) -> Result<Columns, ApiError> {
        let name = body.name.map(|name| text::name("name", name)).transpose()?;
        let url = body.url.try_map(placement::checked_url)?;
        let allowed = match (body.allow_all_workspaces, body.workspaces) {
            // What is restricted already stays so.
            (Some(false), None) if !current.allow_all_workspaces => None,
            (all, some) => placement::allowed(action, all, some).await?,
        };
        if let Some(kind) = body.kind.filter(|kind| kind.as_str() != current.kind) {
            placement::room_for(action, kind, Some(current.id)).await?;
        }
        if body.is_default.is_some_and(|bit| bit.0) {
            placement::unset_default(action).await?;
        }
        Ok(Columns::default()
            .set_if("name", name)
            .set_if("type", body.kind.map(Kind::as_str))
            .set_if("url", url.sent())
            .set_if("deployment_config", body.deployment_config.map(Value::Object))
            .set_if("allow_all_workspaces", allowed.as_ref().map(|(all, _)| *all))
            .set_if("workspace_ids", allowed.map(|(_, some)| some))
            .set_if("is_default", body.is_default.map(|bit| bit.0)))
    }

    fn filter(call: &Call) -> Result<Filter, ApiError> {
        let query = call.query();
        let mut filter = Filter::default();
        if let Some(part) = query.text("search") {
            filter = filter.and("strpos(lower(name || ' ' || slug), lower(?)) > 0", part.to_owned());
        }
        let kinds = query.choices("type", &Kind::ALL)?;
        if !kinds.is_empty() {
            filter = filter.one_of("type", kinds);
        }
        let statuses = query.choices("status", &["active", "inactive", "archived"])?;
        if !statuses.is_empty() {
            // Names the column itself as well, so that archived ones can be asked for.
            filter = filter.and("status IS NOT NULL AND deployment_status(deployments) = ANY(?)", statuses);
        }
        if let Some(workspace) = query.text("workspace_id") {
            filter = filter.and(SERVES, workspace.to_owned());
        }
        Ok(filter)
    }

    fn updated(&self, call: &Call) -> Value {
        self.shown(call)
    }
}

/// Which deployments a workspace may use, named by id or slug.
const SERVES: &str = "(allow_all_workspaces OR EXISTS (SELECT FROM workspaces w
    WHERE w.id = ANY(workspace_ids) AND (w.slug = ? OR w.id::text = lower(?))))";

/// As `crud` does it, and shows the token: once, and nobody stores it.
async fn create(State(app): State<App>, call: Call) -> Answer {
    let new: NewDeployment = call.body()?;
    let token = api_key::generate(TOKEN_PREFIX);
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let columns = Deployment::create(&action, new).await?;
    let columns = columns
        .set("organisation_id", action.organisation_id())
        .set("token_hash", KeyHash::from_key(token.as_bytes()).0.to_vec());
    let row = Deployment::TABLE.insert(&action.tx, &columns).await.map_err(crud::refused::<Deployment>)?;
    let made = Deployment::from_row(&row)?;
    let change = Change { resource_id: made.id.to_string(), before: None, after: Some(made.shown(&call)) };
    action.commit(change).await?;
    Ok(Json(json!({ "id": made.id, "slug": made.slug, "object": Deployment::OBJECT, "client_auth": token })))
}

/// A new token in place of the one before, which is nobody's from then on.
async fn rotate_token(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let token = api_key::generate(TOKEN_PREFIX);
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let current = crud::held::<Deployment>(&mut action, &name, None).await?;
    let columns = Columns::default().set("token_hash", KeyHash::from_key(token.as_bytes()).0.to_vec());
    let row = Deployment::TABLE.update(&action.tx, current.id, &columns).await.map_err(crud::refused::<Deployment>)?;
    let changed = Deployment::from_row(&row.ok_or(ApiError::NotFound(Deployment::OBJECT))?)?;
    let (before, after) = (Some(current.shown(&call)), Some(changed.shown(&call)));
    action.commit(Change { resource_id: current.id.to_string(), before, after }).await?;
    Ok(Json(json!({ "id": changed.id, "slug": changed.slug, "object": Deployment::OBJECT, "client_auth": token })))
}

fn docs() -> [Doc; 6] {
    let workspaces = schema::list(schema::name_of("ws-market-3f9a01"));
    let change = schema::object("DeploymentChange")
        .may("name", schema::text(1..=255).eg("Europe"))
        .may("type", schema::choice(&Kind::ALL))
        .may(
            "url",
            schema::text(1..=2048)
                .eg("https://gateway.example.com")
                .or_null()
                .says("Where it is reached: a note, which nothing follows."),
        )
        .may("deployment_config", schema::any_object().says("Notes of its operator; no proxy reads them."))
        .may("allow_all_workspaces", schema::flag().says("True when absent. True forgets the list of workspaces."))
        .may("workspaces", workspaces.clone().says("Ids or slugs of the only workspaces it serves."))
        .may(
            "is_default",
            schema::bit().says("A mark for people, which one of an organisation has; no request is led by it."),
        );
    let sent = schema::object("NewDeployment")
        .with(&change)
        .need("name", schema::text(1..=255).eg("Europe"))
        .need("type", schema::choice(&Kind::ALL))
        .may("slug", schema::slug().eg("europe").or_null())
        .eg(json!({ "name": "Europe", "slug": "europe", "type": "production", "url": "https://gateway.example.com" }));
    let shown = schema::shown("Deployment", "deployment")
        .need("name", schema::text(1..=255).eg("Europe"))
        .need("slug", schema::slug().eg("europe"))
        .need("type", schema::choice(&Kind::ALL))
        .need("url", schema::any_text().eg("https://gateway.example.com").or_null())
        .need("deployment_config", schema::any_object())
        .need("allow_all_workspaces", schema::flag())
        .need("workspaces", workspaces.says("Slugs; none when all are allowed."))
        .need("is_default", schema::bit())
        .need("organisation_id", schema::uuid())
        .need("status", schema::choice(&["inactive", "active", "archived"]).says("Active while its proxies report."))
        .need("last_sync_at", schema::time().or_null())
        .need("created_by", schema::uuid().or_null())
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time());
    let made = schema::object("")
        .need("id", schema::uuid())
        .need("slug", schema::slug().eg("europe"))
        .need("object", schema::fixed("deployment"))
        .need(
            "client_auth",
            schema::any_text().eg("gwd_…").says("GATEWAY_DEPLOYMENT_TOKEN of its proxies; shown once."),
        );
    let rotated = Doc::post("/deployments/{idOrSlug}/rotate-token", "Give a deployment a new token").details(
        "The token before opens nothing from then on: proxies that still have it serve nobody until they are started with the \
         new one.",
    );
    [
        rotated.answer(made.clone()).conditional(),
        Doc::list::<Deployment>(&shown)
            .search()
            .filter("type", choices(&Kind::ALL))
            .filter("status", choices(&["active", "inactive", "archived"]))
            .filter(
                "workspace_id",
                schema::name_of("ws-market-3f9a01").or_empty().says("Those that serve this workspace."),
            ),
        Doc::create::<Deployment>(sent).answer(made).untagged(),
        Doc::read::<Deployment>(&shown),
        Doc::update::<Deployment>(change).answer(shown.clone()),
        Doc::delete::<Deployment>(),
    ]
}
