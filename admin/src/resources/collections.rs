//! Collections: folders for prompts and partials. Each workspace has a default one from its first moment (the database
//! makes it), which cannot be deleted; others can when they are empty.

use crate::app::App;
use crate::crud::{self, Action, Answer, Resource, Routes, RowLock, Verb};
use crate::http::{ApiError, InUseBy, Time, text};
use crate::identity::{Call, tenancy};
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::db::table::{Columns, OnDelete, RowError, SelectList, Table, Tenancy, row};
use shared::model::Status;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

/// As many as a collection shows of those inside it.
const MAX_CHILDREN: i64 = 1000;

pub fn routes() -> Routes {
    Routes::default()
        .get("/collections", crud::list::<Collection>)
        .post("/collections", crud::create::<Collection>)
        .get("/collections/{id}", read_collection)
        .put("/collections/{id}", crud::update::<Collection>)
        .delete("/collections/{id}", crud::delete::<Collection>)
        .describe(docs())
}

fn docs() -> [Doc; 5] {
    let name = || schema::text(1..=255).eg("Support");
    let details = details();
    let parent = || schema::uuid().or_null().says("The collection that it stands in; null at the top.");
    let item = schema::shown("Collection", "collection")
        .need("name", name())
        .need("slug", schema::slug().eg("cl-support-3f9a01"))
        .need("workspace_id", schema::uuid())
        .need("parent_collection_id", parent())
        .need("is_default", schema::bit().says("1 for the one that prompts go to that name none."))
        .need("collection_details", details.clone())
        .archivable();
    let child = schema::object("ChildCollection")
        .need("id", schema::uuid())
        .need("name", name())
        .need("last_updated_at", schema::time())
        .need("collection_details", details);
    let whole = schema::object("WholeCollection")
        .with(&item)
        .need("child_collections", schema::list(child).says("Those that stand in it, by name; 1000 at most."));
    let sent = schema::object("NewCollection").need("name", name()).may(
        "parent_collection_id",
        schema::name_of("cl-support-3f9a01").or_null().says("Id or slug of the collection to put it in."),
    );
    let change = schema::object("CollectionChange").may("name", name().or_null());
    let made = schema::object("").need("id", schema::uuid()).need("slug", schema::slug().eg("cl-support-3f9a01"));
    [
        Doc::list::<Collection>(&item).search(),
        Doc::create::<Collection>(sent).answer(made.need("object", schema::fixed("collection"))),
        Doc::read::<Collection>(&whole),
        Doc::update::<Collection>(change),
        Doc::delete::<Collection>().details("The default one cannot be deleted, others only when empty.").also(409),
    ]
}

fn details() -> Schema {
    let count = |says: &str| schema::whole(0..=i64::MAX).says(says);
    let time = |says: &str| schema::time().or_null().says(says);
    schema::object("CollectionDetails")
        .need("child_collections_count", count("How many collections stand in it."))
        .need("prompts_count", count("How many prompts it has."))
        .need("child_collections_last_updated_at", time("When one of its collections was changed last."))
        .need("prompts_last_updated_at", time("When one of its prompts was changed last."))
        .says("What it holds.")
}

#[derive(Serialize, Deserialize)]
pub struct Collection {
    id: Uuid,
    name: String,
    slug: String,
    workspace_id: Uuid,
    parent_collection_id: Option<Uuid>,
    is_default: u8,
    status: Status,
    created_at: Time,
    last_updated_at: Time,
    #[serde(skip_serializing)]
    child_collections_count: i64,
    #[serde(skip_serializing)]
    child_collections_last_updated_at: Option<Time>,
    #[serde(skip_serializing)]
    prompts_count: i64,
    #[serde(skip_serializing)]
    prompts_last_updated_at: Option<Time>,
}

#[derive(Deserialize)]
pub struct NewCollection {
    name: String,
    parent_collection_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct CollectionChange {
    name: Option<String>,
}

impl Resource for Collection {
    type Create = NewCollection;
    type Update = CollectionChange;
    const OBJECT: &'static str = "collection";
    const PATH: &'static str = "/collections";
    const UNIQUE: &'static str = "slug";
    const TABLE: Table = Table {
        name: "collections",
        columns: SelectList::Sql(
            "id, name, slug, workspace_id, parent_collection_id, is_default::int AS is_default, status, created_at,
            last_updated_at,
            (SELECT count(*) FROM collections c WHERE c.parent_collection_id = collections.id AND c.status = 'active')
                AS child_collections_count,
            (SELECT max(c.last_updated_at) FROM collections c
             WHERE c.parent_collection_id = collections.id AND c.status = 'active') AS child_collections_last_updated_at,
            (SELECT count(*) FROM prompts p WHERE p.collection_id = collections.id AND p.status = 'active')
                AS prompts_count,
            (SELECT max(p.last_updated_at) FROM prompts p
             WHERE p.collection_id = collections.id AND p.status = 'active') AS prompts_last_updated_at",
        ),
        slug: Some("slug"),
        tenancy: Tenancy::Workspace("workspace_id"),
        on_delete: OnDelete::Archive,
    };

    fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn workspace_id(&self) -> Option<Uuid> {
        Some(self.workspace_id)
    }

    async fn create(action: &Action<'_>, body: NewCollection) -> Result<Columns, ApiError> {
        let name = text::name("name", body.name)?;
        let parent = match body.parent_collection_id {
            None => None,
            Some(parent) => Some(chosen(action, action.workspace_id, Some(&parent)).await?.id),
        };
        Ok(Columns::default()
            .set("slug", text::generated_slug("cl", &name, 12))
            .set("name", name)
            .set("parent_collection_id", parent))
    }

    async fn update(_: &Action<'_>, _: &Self, body: CollectionChange) -> Result<Columns, ApiError> {
        Ok(Columns::default().set_if("name", body.name.map(|name| text::name("name", name)).transpose()?))
    }

    /// The default collection is there as long as its workspace is.
    async fn used_by(&self, _: &Action<'_>) -> Result<Vec<InUseBy>, ApiError> {
        if self.is_default == 1 { Err(ApiError::NotFound(Self::OBJECT)) } else { Ok(Vec::new()) }
    }

    async fn after(&self, verb: Verb, action: &Action<'_>) -> Result<(), ApiError> {
        const HOLDS: &str = "SELECT EXISTS (SELECT FROM prompts WHERE collection_id = $1 AND status = 'active')
            OR EXISTS (SELECT FROM prompt_partials WHERE collection_id = $1 AND status = 'active')
            OR EXISTS (SELECT FROM collections WHERE parent_collection_id = $1 AND status = 'active')";
        if verb == Verb::Delete && action.tx.query_one(HOLDS, &[&self.id]).await?.try_get(0)? {
            return Err(ApiError::Conflict("This collection is not empty".into()));
        }
        Ok(())
    }

    fn shown(&self, _: &Call) -> Value {
        let mut shown = crud::shown(Self::OBJECT, self);
        shown["collection_details"] = self.details();
        shown
    }

    fn created(&self, _: &Call) -> Value {
        json!({ "id": self.id, "slug": self.slug, "object": Self::OBJECT })
    }
}

impl Collection {
    fn details(&self) -> Value {
        json!({
            "child_collections_count": self.child_collections_count,
            "prompts_count": self.prompts_count,
            "child_collections_last_updated_at": self.child_collections_last_updated_at,
            "prompts_last_updated_at": self.prompts_last_updated_at,
        })
    }
}

/// The collection with those that stand in it.
async fn read_collection(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let workspace = tenancy::asked(&*db, &call.caller, call.query().text("workspace_id")).await?;
    let found = crud::find::<Collection>(&*db, &call, &name, workspace, RowLock::No).await?;
    let mut shown = found.shown(&call);
    shown["child_collections"] = children(&*db, &found).await?.into();
    Ok(Json(shown))
}

async fn children(db: &impl GenericClient, parent: &Collection) -> Result<Vec<Value>, ApiError> {
    let sql = format!(
        "SELECT {} FROM collections WHERE workspace_id = $1 AND parent_collection_id = $2 AND status = 'active'
         ORDER BY name, id LIMIT {MAX_CHILDREN}",
        Collection::TABLE.columns
    );
    let rows = db.query(&sql, &[&parent.workspace_id, &parent.id]).await?;
    let children = rows.iter().map(|row| {
        let child = Collection::from_row(row)?;
        let (name, changed) = (&child.name, child.last_updated_at);
        Ok(json!({ "id": child.id, "name": name, "last_updated_at": changed, "collection_details": child.details() }))
    });
    children.collect()
}

/// Where a prompt, a partial or a collection is put.
pub struct ChosenCollection {
    pub id: Uuid,
    pub workspace_id: Uuid,
}

/// The collection that is named by id or slug, or else the default one of the workspace. It cannot be archived until the
/// transaction ends.
pub async fn chosen(
    action: &Action<'_>,
    workspace: Option<Uuid>,
    name: Option<&str>,
) -> Result<ChosenCollection, ApiError> {
    const FIND: &str = "SELECT id, workspace_id FROM collections
        WHERE organisation_id = $1 AND ($2::uuid IS NULL OR workspace_id = $2) AND status = 'active'
        AND CASE WHEN $3 THEN id = $4 OR slug = $5 ELSE is_default END FOR SHARE";
    if workspace.is_none() && name.is_none() {
        return Err(ApiError::field("workspace_id", "is required"));
    }
    let (is_named, id) = (name.is_some(), name.and_then(tenancy::id));
    let slug = name.unwrap_or_default();
    let row = action.tx.query_opt(FIND, &[&action.organisation_id(), &workspace, &is_named, &id, &slug]).await?;
    let row = row.ok_or(ApiError::NotFound(Collection::OBJECT))?;
    Ok(ChosenCollection { id: row.try_get("id")?, workspace_id: row.try_get("workspace_id")? })
}
