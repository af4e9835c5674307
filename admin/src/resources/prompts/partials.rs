//! Partials: pieces of templates that prompts put in by `{{>slug}}`, kept in versions as prompts are.

use super::render::blocking;
use super::{VERSION_PAGES, in_collection, next_number, partial_docs, publish};
use crate::app::App;
use crate::crud::{self, Action, Answer, Resource, Routes, RowLock};
use crate::http::{ApiError, Field, InUseBy, Time, text};
use crate::identity::{Call, tenancy};
use crate::resources::collections;
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::db::table::{Columns, Filter, OnDelete, RowError, SelectList, Table, Tenancy, row};
use shared::model::Status;
use shared::prompt::template::Template;
use shared::prompt::{VersionName, split_reference};
use shared::routes::Scopes;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

pub fn routes() -> Routes {
    Routes::default()
        .get("/prompts/partials", crud::list::<Partial>)
        .post("/prompts/partials", crud::create::<Partial>)
        .get("/prompts/partials/{id}", read_partial)
        .put("/prompts/partials/{id}", crud::update::<Partial>)
        .delete("/prompts/partials/{id}", crud::delete::<Partial>)
        .get("/prompts/partials/{id}/versions", list_versions)
        .put("/prompts/partials/{id}/makeDefault", publish::make_default::<Partial>)
        .describe(partial_docs::docs())
}

#[derive(Serialize, Deserialize)]
pub struct Partial {
    id: Uuid,
    slug: String,
    name: String,
    collection_id: Uuid,
    workspace_id: Uuid,
    status: Status,
    /// The default version.
    prompt_partial_version_id: Uuid,
    latest_version: i32,
    #[serde(skip_serializing)]
    latest_version_id: Uuid,
    created_at: Time,
    last_updated_at: Time,
}

#[derive(Deserialize)]
pub struct PartialVersion {
    pub id: Uuid,
    number: i32,
    pub template: String,
    description: Option<String>,
    created_by: Option<Uuid>,
    created_at: Time,
}

const COLUMNS: &str = "id, number, template, description, created_by, created_at";

#[derive(Deserialize)]
pub struct NewPartial {
    name: String,
    string: String,
    collection_id: Option<String>,
    version_description: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct PartialChange {
    name: Option<String>,
    string: Option<String>,
    #[serde(alias = "version_description")]
    description: Field<String>,
    status: Option<Status>,
}

impl Resource for Partial {
    type Create = NewPartial;
    type Update = PartialChange;
    const OBJECT: &'static str = "partial";
    const PATH: &'static str = "/prompts/partials";
    const UNIQUE: &'static str = "slug";
    const TABLE: Table = Table {
        name: "prompt_partials",
        columns: SelectList::Sql(
            "id, slug, name, collection_id, workspace_id, status, version_id AS prompt_partial_version_id, latest_version,
            latest_version_id, created_at, last_updated_at",
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

    async fn create(action: &Action<'_>, body: NewPartial) -> Result<Columns, ApiError> {
        let name = text::name("name", body.name)?;
        let id = Uuid::new_v4();
        let collection = collections::chosen(action, action.workspace_id, body.collection_id.as_deref()).await?;
        let version = insert_version(action, id, 1, body.string, body.version_description).await?;
        Ok(Columns::default()
            .set("id", id)
            .set("slug", text::generated_slug("pl", &name, 12))
            .set("name", name)
            .set("collection_id", collection.id)
            .set("version_id", version)
            .set("latest_version_id", version)
            .set("created_by", action.call.caller.actor_id()))
    }

    /// A new text is a new version; a description alone is the latest one's.
    async fn update(action: &Action<'_>, current: &Self, body: PartialChange) -> Result<Columns, ApiError> {
        const DESCRIBE: &str = "UPDATE partial_versions SET description = $2 WHERE id = $1";
        if body.status == Some(Status::Archived) {
            // A delete in other words.
            let needs = Scopes::Any(&["prompts.delete"]);
            if !needs.are_met_by(&action.call.caller.scopes) {
                return Err(ApiError::MissingScope { needs });
            }
            let by = current.used_by(action).await?;
            if !by.is_empty() {
                return Err(ApiError::InUse { object: Self::OBJECT, by });
            }
        }
        let columns = Columns::default()
            .set_if("name", body.name.map(|name| text::name("name", name)).transpose()?)
            .set_if("status", body.status.map(Status::as_str));
        if let Some(string) = body.string {
            let number = next_number(current.latest_version)?;
            let version = insert_version(action, current.id, number, string, body.description.value()).await?;
            return Ok(columns.set("latest_version", number).set("latest_version_id", version));
        }
        let Some(description) = body.description.sent() else { return Ok(columns) };
        let description = description.map(checked_description).transpose()?;
        action.tx.execute(DESCRIBE, &[&current.latest_version_id, &description]).await?;
        Ok(columns.set("latest_version", current.latest_version))
    }

    fn filter(call: &Call) -> Result<Filter, ApiError> {
        Ok(in_collection(call))
    }

    /// Prompts of which a version that can be asked for by default or by a label has it, and other partials.
    async fn used_by(&self, action: &Action<'_>) -> Result<Vec<InUseBy>, ApiError> {
        const PROMPTS: &str = "SELECT p.id, p.slug AS name, p.workspace_id FROM prompts p
            WHERE p.organisation_id = $1 AND p.workspace_id = $2 AND p.status = 'active' AND EXISTS (
                SELECT FROM prompt_versions v, unnest(v.partials) AS named
                WHERE v.prompt_id = p.id AND split_part(named, '@', 1) = $3 AND (v.id = p.version_id OR EXISTS (
                    SELECT FROM prompt_version_labels a
                    WHERE a.prompt_id = p.id AND (a.version_id = v.id OR v.id = ANY (a.split_versions)))))
            ORDER BY p.slug LIMIT 100";
        const PARTIALS: &str = "SELECT p.id, p.slug AS name, p.workspace_id FROM prompt_partials p
            WHERE p.organisation_id = $1 AND p.workspace_id = $2 AND p.status = 'active' AND p.slug <> $3 AND EXISTS (
                SELECT FROM partial_versions v, unnest(v.partials) AS named
                WHERE v.id = p.version_id AND split_part(named, '@', 1) = $3)
            ORDER BY p.slug LIMIT 100";
        let organisation = action.organisation_id();
        let prompts = action.tx.query(PROMPTS, &[&organisation, &self.workspace_id, &self.slug]).await?;
        let partials = action.tx.query(PARTIALS, &[&organisation, &self.workspace_id, &self.slug]).await?;
        let prompts = prompts.iter().map(|row| user("prompt", row));
        prompts.chain(partials.iter().map(|row| user(Self::OBJECT, row))).collect()
    }

    fn created(&self, _: &Call) -> Value {
        let (id, version) = (self.id, self.prompt_partial_version_id);
        json!({ "id": id, "slug": self.slug, "version_id": version, "object": Self::OBJECT })
    }

    fn updated(&self, call: &Call) -> Value {
        let is_versioned = call.object().is_ok_and(|body| body.get("string").is_some_and(Value::is_string));
        match is_versioned {
            true => json!({ "id": self.id, "slug": self.slug, "prompt_partial_version_id": self.latest_version_id }),
            false => json!({}),
        }
    }
}

impl Partial {
    /// A version of this partial and no other's. Labels are for prompts.
    pub async fn version(&self, db: &impl GenericClient, name: VersionName<'_>) -> Result<PartialVersion, ApiError> {
        let by = |condition: &str| {
            format!("SELECT {COLUMNS} FROM partial_versions WHERE partial_id = $1 AND {condition} = $2")
        };
        let row = match name {
            VersionName::Default => db.query_opt(&by("id"), &[&self.id, &self.prompt_partial_version_id]).await?,
            VersionName::Latest => db.query_opt(&by("id"), &[&self.id, &self.latest_version_id]).await?,
            VersionName::Id(id) => db.query_opt(&by("id"), &[&self.id, &id]).await?,
            VersionName::Number(number) => db.query_opt(&by("number"), &[&self.id, &number]).await?,
            VersionName::Label(_) => None,
        };
        Ok(row::read(&row.ok_or(ApiError::NotFound("version"))?)?)
    }

    fn version_status(&self, version: Uuid) -> &'static str {
        if version == self.prompt_partial_version_id { "active" } else { "archived" }
    }
}

/// The text is parsed before it is stored, on a thread that nobody waits for.
async fn insert_version(
    action: &Action<'_>,
    partial: Uuid,
    number: i32,
    string: String,
    description: Option<String>,
) -> Result<Uuid, ApiError> {
    const INSERT: &str = "INSERT INTO partial_versions (id, organisation_id, partial_id, number, template, description,
                          partials, created_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let parsed = move || {
        let template = Template::parse(&string).map_err(|error| ApiError::field("string", error.to_string()))?;
        let named: Vec<String> = template.components().partials.into_iter().collect();
        Ok((string, named))
    };
    let (string, named) = blocking(parsed).await?;
    let description = description.map(checked_description).transpose()?;
    let (id, organisation, by) = (Uuid::new_v4(), action.organisation_id(), action.call.caller.actor_id());
    action.tx.execute(INSERT, &[&id, &organisation, &partial, &number, &string, &description, &named, &by]).await?;
    Ok(id)
}

fn checked_description(sent: String) -> Result<String, ApiError> {
    text::sized("version_description", sent, 0..=1000)
}

fn user(object: &'static str, row: &Row) -> Result<InUseBy, ApiError> {
    let workspace_id = Some(row.try_get("workspace_id")?);
    Ok(InUseBy { object, id: row.try_get("id")?, name: row.try_get("name")?, workspace_id })
}

async fn read_partial(State(app): State<App>, call: Call, Path(reference): Path<String>) -> Answer {
    let (name, version) = split_reference(&reference);
    let version = version.or_else(|| call.query().text("version").map(VersionName::parse));
    let db = app.db.get().await?;
    let partial = seen(&*db, &call, name).await?;
    let version = partial.version(&*db, version.unwrap_or(VersionName::Default)).await?;
    let mut shown = partial.shown(&call);
    shown["string"] = version.template.into();
    shown["version"] = version.number.into();
    shown["version_description"] = json!(version.description);
    shown["prompt_partial_version_id"] = json!(version.id);
    shown["prompt_partial_version_status"] = partial.version_status(version.id).into();
    Ok(Json(shown))
}

/// Newest first.
async fn list_versions(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    const COUNT: &str = "SELECT count(*) FROM partial_versions WHERE partial_id = $1";
    let (size, offset) = call.query().page(VERSION_PAGES)?;
    let db = app.db.get().await?;
    let partial = seen(&*db, &call, &name).await?;
    let total: i64 = db.query_one(COUNT, &[&partial.id]).await?.try_get(0)?;
    let sql =
        format!("SELECT {COLUMNS} FROM partial_versions WHERE partial_id = $1 ORDER BY number DESC LIMIT $2 OFFSET $3");
    let rows = db.query(&sql, &[&partial.id, &size, &offset]).await?;
    let data = rows.iter().map(|row| {
        let version: PartialVersion = row::read(row)?;
        Ok(json!({
            "prompt_partial_id": partial.id,
            "prompt_partial_version_id": version.id,
            "slug": partial.slug,
            "version": version.number,
            "string": version.template,
            "description": version.description,
            "prompt_version_status": partial.version_status(version.id),
            "created_by": version.created_by,
            "created_at": version.created_at,
            "object": Partial::OBJECT,
        }))
    });
    Ok(crud::listed(total, data.collect::<Result<_, ApiError>>()?))
}

async fn seen(db: &impl GenericClient, call: &Call, name: &str) -> Result<Partial, ApiError> {
    let workspace = tenancy::asked(db, &call.caller, call.query().text("workspace_id")).await?;
    crud::find::<Partial>(db, call, name, workspace, RowLock::No).await
}
