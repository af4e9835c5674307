//! Plugins: the organisation's credentials with the vendors behind guardrail checks. They go in, are sealed, and are shown
//! as masks only. A change replaces them all, so that none that is kept can be led to another host.

mod credentials;

use crate::app::App;
use crate::crud::{self, Action, Answer, Change, Routes};
use crate::http::{ApiError, Field, FieldFault, PageSizes, Time};
use crate::identity::{Call, tenancy};
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use crate::resources::guardrails;
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use shared::db::table::{Columns, Filter, OnDelete, SelectList, Table, Tenancy, row};
use shared::model;
use uuid::Uuid;

pub fn routes() -> Routes {
    Routes::default().post("/plugins", create).put("/plugins/{id}", update).get("/plugins", list).describe(docs())
}

const PAGES: PageSizes = PageSizes { default: 100, most: 100 };

const TABLE: Table = Table {
    name: "plugins",
    columns: SelectList::Sql(
        "id, plugin, organisation_id, masks, sealed IS NOT NULL AS is_configured, created_at, last_updated_at",
    ),
    slug: None,
    tenancy: Tenancy::Organisation,
    on_delete: OnDelete::Delete,
};

#[derive(Deserialize)]
struct Plugin {
    id: Uuid,
    plugin: String,
    organisation_id: Uuid,
    masks: Value,
    is_configured: bool,
    created_at: Time,
    last_updated_at: Time,
}

#[derive(Deserialize)]
struct NewPlugin {
    /// The vendor's.
    id: String,
    credentials: Map<String, Value>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PluginChange {
    credentials: Field<Map<String, Value>>,
}

impl Plugin {
    fn shown(&self) -> Value {
        let credentials = match self.is_configured {
            true => credentials::shown(&self.masks),
            false => Value::Null,
        };
        json!({
            "id": self.plugin,
            "object": "plugin",
            "organisation_id": self.organisation_id,
            "credentials": credentials,
            "created_at": self.created_at,
            "last_updated_at": self.last_updated_at,
        })
    }
}

async fn create(State(app): State<App>, call: Call) -> Answer {
    let new: NewPlugin = call.body()?;
    let vendors = guardrails::plugins();
    if !vendors.contains(&new.id.as_str()) {
        let unknown = FieldFault::unknown("id", &new.id, "a vendor of guardrail checks", vendors);
        return Err(ApiError::Faults(vec![unknown]));
    }
    let fields = credentials::checked(new.credentials)?;
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let id = Uuid::new_v4();
    let columns = sealed(&action, id, &fields)
        .await?
        .set("id", id)
        .set("plugin", new.id.clone())
        .set("created_by", call.caller.actor_id())
        .set("organisation_id", action.organisation_id());
    let row = TABLE.insert(&action.tx, &columns).await.map_err(taken)?;
    let made: Plugin = row::read(&row)?;
    action.commit(Change { resource_id: new.id.clone(), before: None, after: Some(made.shown()) }).await?;
    Ok(Json(json!({ "id": new.id, "object": "plugin" })))
}

async fn update(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let change: PluginChange = call.body()?;
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    let filter = tenancy::visible(&TABLE, &call.caller, None).equals("plugin", name.clone());
    let rows = TABLE.lock(&action.tx, &filter).await?;
    let before: Plugin = row::read(rows.first().ok_or(ApiError::NotFound("plugin"))?)?;
    let columns = match change.credentials {
        Field::Absent => return Err(ApiError::invalid("Nothing to update")),
        Field::Null => Columns::default().set("masks", json!({})).set("sealed", None::<Vec<u8>>),
        Field::Value(sent) => sealed(&action, before.id, &credentials::checked(sent)?).await?,
    };
    let row = TABLE.update(&action.tx, before.id, &columns).await?.ok_or(ApiError::NotFound("plugin"))?;
    let after: Plugin = row::read(&row)?;
    let (before, after) = (Some(before.shown()), Some(after.shown()));
    action.commit(Change { resource_id: name, before, after }).await?;
    Ok(Json(json!({})))
}

async fn list(State(app): State<App>, call: Call) -> Answer {
    let page = call.query().page(PAGES)?;
    let db = app.db.get().await?;
    let filter: Filter = tenancy::visible(&TABLE, &call.caller, None);
    let found = TABLE.page(&*db, &filter, page).await?;
    let data =
        found.rows.iter().map(|row| Ok(row::read::<Plugin>(row)?.shown())).collect::<Result<Vec<_>, ApiError>>()?;
    Ok(crud::listed(found.total, data))
}

/// What is stored of credentials: themselves, sealed, and what may be shown of them.
async fn sealed(action: &Action<'_>, id: Uuid, fields: &Map<String, Value>) -> Result<Columns, ApiError> {
    let place = model::Plugin::place_of(action.organisation_id(), id);
    let text = zeroize::Zeroizing::new(Value::Object(fields.clone()).to_string());
    let sealed = action.app.sealer.seal(&action.tx, &place, text.as_bytes()).await?;
    Ok(Columns::default().set("masks", credentials::masks(fields)).set("sealed", sealed.to_vec()))
}

fn taken(error: tokio_postgres::Error) -> ApiError {
    match ApiError::from(error) {
        ApiError::Conflict(_) => {
            ApiError::Conflict("There are credentials of this vendor already; PUT replaces them".into())
        }
        other => other,
    }
}

fn docs() -> [Doc; 3] {
    let vendor = || schema::text(1..=64).eg("aiguard").says("The vendor, as the first part of its checks' ids.");
    let sent = || {
        schema::any_object()
            .eg(json!({ "apiKey": "ag-01234567890123456789" }))
            .says("What the vendor asks for, by field; sealed, and shown as masks.")
    };
    let shown = schema::any_object().eg(json!({ "masked_apiKey": "ag*****789" })).or_null();
    let plugin: Schema = schema::object("Plugin")
        .need("id", vendor())
        .need("object", schema::fixed("plugin"))
        .need("organisation_id", schema::uuid())
        .need("credentials", shown.says("A mask for each field; null when they were taken away."))
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time());
    let plugins = schema::object("PluginList")
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX))
        .need("data", schema::list(plugin));
    let made = schema::object("").need("id", vendor()).need("object", schema::fixed("plugin"));
    let new = schema::object("NewPlugin").need("id", vendor()).need("credentials", sent());
    let change = schema::object("PluginChange")
        .may("credentials", sent().or_null().says("Replaces all of them; null takes them away."));
    [
        Doc::post("/plugins", "Store the credentials of a vendor of guardrail checks")
            .body(new)
            .answer(made)
            .also(409)
            .also(503),
        Doc::put("/plugins/{id}", "Replace the credentials of a vendor of guardrail checks").body(change).also(503),
        Doc::get("/plugins", "List the vendors of guardrail checks whose credentials are stored")
            .pages(PAGES)
            .answer(plugins),
    ]
}
