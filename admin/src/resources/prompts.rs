//! Prompts: templates of requests under a slug, kept in versions. A change adds a version; what is served by default
//! changes only when one is published (`makeDefault`), and labels point to versions beside that.

mod comparison;
mod docs;
mod draft;
mod label_docs;
mod label_targets;
mod labels;
mod line_diff;
mod partial_docs;
mod partial_set;
mod partials;
mod publish;
mod render;
mod version;

use self::draft::{Draft, PromptFields};
use self::version::PromptVersion;
use super::collections;
use crate::app::App;
use crate::crud::{self, Action, Answer, Change, Resource, Routes, RowLock, text_of};
use crate::http::{ApiError, PageSizes, Time, json, text};
use crate::identity::{Call, tenancy};
use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::db::table::{Columns, Filter, OnDelete, RowError, SelectList, Table, Tenancy, row};
use shared::model::Status;
use shared::prompt::{VersionName, split_reference};
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

/// More versions of one prompt or partial than anybody can look through.
const MAX_VERSIONS: i32 = 1000;
/// Of lists of versions, which may be large.
const VERSION_PAGES: PageSizes = PageSizes { default: 10, most: 10 };

pub fn routes() -> Routes {
    Routes::default()
        .get("/prompts", crud::list::<Prompt>)
        .post("/prompts", create_prompt)
        .get("/prompts/{promptId}", read_prompt)
        .put("/prompts/{promptId}", crud::update::<Prompt>)
        .delete("/prompts/{promptId}", crud::delete::<Prompt>)
        .put("/prompts/{promptId}/makeDefault", publish::make_default::<Prompt>)
        .get("/prompts/{promptId}/versions", version::list_versions)
        .get("/prompts/{promptId}/versions/diff", comparison::compare_versions)
        .get("/prompts/{promptId}/versions/{versionId}", version::read_version)
        .put("/prompts/{promptId}/versions/{versionId}", labels::label_version)
        .get("/prompts/{promptId}/labels", labels::list_labels)
        .put("/prompts/{promptId}/labels/{labelId}", labels::point_label)
        .delete("/prompts/{promptId}/labels/{labelId}", labels::remove_label)
        .post("/prompts/{promptId}/render", render::render_prompt)
        .describe(docs::docs())
        .describe(label_docs::docs())
        .merge(partials::routes())
}

#[derive(Serialize, Deserialize)]
pub struct Prompt {
    id: Uuid,
    slug: String,
    name: String,
    collection_id: Uuid,
    /// Of the default version.
    model: Option<String>,
    status: Status,
    prompt_owning_workspace_id: Uuid,
    /// The default version.
    prompt_version_id: Uuid,
    latest_version: i32,
    #[serde(skip_serializing)]
    latest_version_id: Uuid,
    /// What can be corrected in the latest version.
    #[serde(skip_serializing)]
    latest_virtual_key: Option<String>,
    #[serde(skip_serializing)]
    latest_description: Option<String>,
    created_at: Time,
    last_updated_at: Time,
}

impl Resource for Prompt {
    type Create = PromptFields;
    type Update = PromptFields;
    const OBJECT: &'static str = "prompt";
    const PATH: &'static str = "/prompts";
    const UNIQUE: &'static str = "slug";
    const TABLE: Table = Table {
        name: "prompts",
        columns: SelectList::Sql(
            "id, slug, name, collection_id, (SELECT v.model FROM prompt_versions v WHERE v.id = prompts.version_id) AS model,
            status, workspace_id AS prompt_owning_workspace_id, version_id AS prompt_version_id, latest_version,
            latest_version_id,
            (SELECT v.virtual_key FROM prompt_versions v WHERE v.id = prompts.latest_version_id) AS latest_virtual_key,
            (SELECT v.description FROM prompt_versions v WHERE v.id = prompts.latest_version_id) AS latest_description,
            created_at, last_updated_at",
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
        Some(self.prompt_owning_workspace_id)
    }

    /// The prompt with its first version, which is its default.
    async fn create(action: &Action<'_>, mut body: PromptFields) -> Result<Columns, ApiError> {
        let name = body.name.take().ok_or_else(|| ApiError::field("name", "is required"))?;
        let name = text::name("name", name)?;
        let (id, collection) = (Uuid::new_v4(), body.collection_id.take());
        let collection = collections::chosen(action, action.workspace_id, collection.as_deref()).await?;
        let draft = Draft::new(body)?.checked(action, collection.workspace_id).await?;
        let version = draft.insert(action, id, 1).await?;
        Ok(Columns::default()
            .set("id", id)
            .set("slug", text::generated_slug("pp", &name, 12))
            .set("name", name)
            .set("collection_id", collection.id)
            .set("version_id", version)
            .set("latest_version_id", version)
            .set("created_by", action.call.caller.actor_id()))
    }

    /// A new version, or a change of what stands beside the versions.
    async fn update(action: &Action<'_>, current: &Self, mut body: PromptFields) -> Result<Columns, ApiError> {
        let workspace = current.prompt_owning_workspace_id;
        let mut columns =
            Columns::default().set_if("name", body.name.take().map(|name| text::name("name", name)).transpose()?);
        if let Some(collection) = body.collection_id.take() {
            let collection = collections::chosen(action, Some(workspace), Some(&collection)).await?;
            columns = columns.set("collection_id", collection.id);
        }
        let makes_version = body.makes_version()?;
        if !makes_version && !body.changes_latest() {
            return Ok(columns);
        }
        let latest = current.version(&action.tx, VersionName::Latest).await?;
        let id = latest.id;
        let draft = if body.is_patch() { Draft::over(latest, body)? } else { Draft::in_full(latest, body)? };
        let draft = draft.checked(action, workspace).await?;
        if !makes_version {
            draft.correct(action, id).await?;
            return Ok(columns.set("latest_version", current.latest_version));
        }
        let number = next_number(current.latest_version)?;
        let version = draft.insert(action, current.id, number).await?;
        Ok(columns.set("latest_version", number).set("latest_version_id", version))
    }

    fn filter(call: &Call) -> Result<Filter, ApiError> {
        // Nothing is shared between workspaces.
        let is_shared = !call.query().choices("type", &["shared"])?.is_empty();
        let filter = in_collection(call);
        Ok(if is_shared { filter.holds("false") } else { filter })
    }

    fn shown(&self, _: &Call) -> Value {
        let mut shown = crud::shown(Self::OBJECT, self);
        shown["access_level"] = "workspace".into();
        shown
    }

    /// A correction makes no version, so the trail tells what it changed.
    fn recorded(&self, call: &Call) -> Value {
        let mut recorded = self.shown(call);
        recorded["latest"] = json!({
            "version_id": self.latest_version_id,
            "virtual_key": self.latest_virtual_key,
            "version_description": self.latest_description,
        });
        recorded
    }

    fn created(&self, _: &Call) -> Value {
        json!({ "id": self.id, "slug": self.slug, "version_id": self.prompt_version_id, "object": Self::OBJECT })
    }

    fn updated(&self, call: &Call) -> Value {
        let mut reply = json!({ "id": self.id, "slug": self.slug });
        let sent = call.body::<PromptFields>();
        if sent.is_ok_and(|sent| sent.makes_version().unwrap_or(false)) {
            reply["prompt_version_id"] = json!(self.latest_version_id);
        }
        reply
    }
}

impl Prompt {
    /// A version of this prompt and no other's; of several that a label points to, the heaviest.
    pub async fn version(&self, db: &impl GenericClient, name: VersionName<'_>) -> Result<PromptVersion, ApiError> {
        let id = match name {
            VersionName::Default => self.prompt_version_id,
            VersionName::Latest => self.latest_version_id,
            VersionName::Id(id) => id,
            VersionName::Number(number) => return version::by_number(db, self.id, number).await,
            VersionName::Label(label) => return label_targets::served(db, self.id, label, None).await,
        };
        version::by_id(db, self.id, id).await
    }

    /// The prompt as it is in one version.
    pub fn shown_in(&self, call: &Call, version: &PromptVersion) -> Result<Value, ApiError> {
        let mut shown = self.shown(call);
        if let Value::Object(fields) = &mut shown {
            fields.extend(version.fields(self.prompt_version_id)?);
        }
        Ok(shown)
    }
}

/// As `crud::create`, but a collection decides the workspace, too.
async fn create_prompt(State(app): State<App>, call: Call) -> Answer {
    let body = call.object()?;
    let asked = text_of(&body, "workspace_id")?;
    let new: PromptFields = json::parse(Value::Object(body))?;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let mut workspace = tenancy::asked(&action.tx, &call.caller, asked.as_deref()).await?;
    if workspace.is_none() {
        workspace = Some(match &new.collection_id {
            Some(name) => collections::chosen(&action, None, Some(name)).await?.workspace_id,
            None => crud::workspace_of_new(&action, None).await?,
        });
    }
    action.workspace_id = workspace;
    if let Some(workspace) = workspace {
        tenancy::hold(&action.tx, workspace).await?;
    }
    let columns = Prompt::create(&action, new).await?;
    let columns = columns.set("organisation_id", action.organisation_id()).set("workspace_id", workspace);
    let row = Prompt::TABLE.insert(&action.tx, &columns).await.map_err(crud::refused::<Prompt>)?;
    let made = Prompt::from_row(&row)?;
    let change = Change { resource_id: made.id.to_string(), before: None, after: Some(made.recorded(&call)) };
    let reply = made.created(&call);
    action.commit(change).await?;
    Ok(Json(reply))
}

/// The version that the path or the query names; without one, the default.
async fn read_prompt(State(app): State<App>, call: Call, Path(reference): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let (prompt, version) = find_version(&*db, &call, &reference, Asked::default()).await?;
    drop(db);
    Ok(Json(render::blocking(move || prompt.shown_in(&call, &version)).await?))
}

/// What a call says beside its path.
#[derive(Debug, Clone, Copy, Default)]
struct Asked<'a> {
    workspace: Option<&'a str>,
    /// Whom a label chooses a version for that points to several.
    user_or_trace: Option<&'a str>,
}

/// The prompt and the version that `slug@version` names, `?version=` without an `@`.
async fn find_version(
    db: &impl GenericClient,
    call: &Call,
    reference: &str,
    asked: Asked<'_>,
) -> Result<(Prompt, PromptVersion), ApiError> {
    let (name, version) = split_reference(reference);
    let version = version.or_else(|| call.query().text("version").map(VersionName::parse));
    let workspace = asked.workspace.or_else(|| call.query().text("workspace_id"));
    let workspace = tenancy::asked(db, &call.caller, workspace).await?;
    let prompt = crud::find::<Prompt>(db, call, name, workspace, RowLock::No).await?;
    let version = match version.unwrap_or(VersionName::Default) {
        VersionName::Label(label) => label_targets::served(db, prompt.id, label, asked.user_or_trace).await?,
        other => prompt.version(db, other).await?,
    };
    Ok((prompt, version))
}

fn next_number(latest: i32) -> Result<i32, ApiError> {
    match latest < MAX_VERSIONS {
        true => Ok(latest + 1),
        false => Err(ApiError::Conflict(format!("There may be at most {MAX_VERSIONS} versions"))),
    }
}

/// By name and collection, as lists of prompts and partials are narrowed.
fn in_collection(call: &Call) -> Filter {
    let query = call.query();
    let filter = query.text("search").map_or_else(Filter::default, |text| Filter::default().contains("name", text));
    let Some(name) = query.text("collection_id") else { return filter };
    match tenancy::id(name) {
        Some(id) => filter.equals("collection_id", id),
        // A condition has one value, so both stand in a list.
        None => filter.and(
            "collection_id IN (SELECT c.id FROM collections c
             WHERE c.organisation_id = (?::text[])[1]::uuid AND c.slug = (?::text[])[2])",
            vec![call.caller.organisation_id().to_string(), name.to_owned()],
        ),
    }
}
