//! Versions of prompts: found by number, id or label, and shown.

use super::render::blocking;
use super::{Asked, Prompt, VERSION_PAGES, find_version};
use crate::app::App;
use crate::crud::{self, Answer, RowLock};
use crate::http::{ApiError, Time};
use crate::identity::{Call, tenancy};
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use shared::db::table::row;
use shared::prompt::{DeclaredVariable, PromptBody, VersionName};
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

pub const NO_SUCH: ApiError = ApiError::NotFound("version");

#[derive(Deserialize)]
pub struct PromptVersion {
    pub id: Uuid,
    pub number: i32,
    pub template: String,
    pub parameters: Map<String, Value>,
    pub model: Option<String>,
    pub virtual_key: String,
    pub functions: Option<Value>,
    pub tools: Option<Value>,
    pub tool_choice: Option<Value>,
    pub template_metadata: Map<String, Value>,
    pub is_raw: bool,
    pub description: Option<String>,
    pub declared_variables: Option<Vec<DeclaredVariable>>,
    /// `[{id, name}]`, by name, with a `weight` where a label points to other versions too.
    labels: Vec<Value>,
    created_by: Option<Uuid>,
    created_at: Time,
}

const COLUMNS: &str =
    "v.id, v.number, v.template, v.parameters, v.model, v.virtual_key, v.functions, v.tools, v.tool_choice,
    v.template_metadata, v.is_raw, v.description, v.declared_variables, v.created_by, v.created_at,
    (SELECT coalesce(json_agg(json_strip_nulls(json_build_object('id', l.id, 'name', l.name,
        'weight', a.split_weights[array_position(a.split_versions, v.id)])) ORDER BY l.name), '[]')
     FROM prompt_version_labels a JOIN labels l ON l.id = a.label_id
     WHERE a.prompt_id = v.prompt_id AND (a.version_id = v.id OR v.id = ANY (a.split_versions))) AS labels";

pub async fn by_id(db: &impl GenericClient, prompt: Uuid, id: Uuid) -> Result<PromptVersion, ApiError> {
    let sql = format!("SELECT {COLUMNS} FROM prompt_versions v WHERE v.prompt_id = $1 AND v.id = $2");
    found(db.query_opt(&sql, &[&prompt, &id]).await?)
}

pub async fn by_number(db: &impl GenericClient, prompt: Uuid, number: i32) -> Result<PromptVersion, ApiError> {
    let sql = format!("SELECT {COLUMNS} FROM prompt_versions v WHERE v.prompt_id = $1 AND v.number = $2");
    found(db.query_opt(&sql, &[&prompt, &number]).await?)
}

fn found(row: Option<Row>) -> Result<PromptVersion, ApiError> {
    Ok(row::read(&row.ok_or(NO_SUCH)?)?)
}

impl PromptVersion {
    /// The parameters with the model among them, as they are read.
    fn shown_parameters(&self) -> Value {
        let mut parameters = self.parameters.clone();
        if let Some(model) = &self.model {
            parameters.insert("model".into(), model.as_str().into());
        }
        parameters.into()
    }

    pub fn body(&self) -> Result<PromptBody, ApiError> {
        let parsed = PromptBody::parse(&self.template, self.is_raw);
        parsed.map_err(|error| ApiError::field("string", error.to_string()))
    }

    fn status(&self, default: Uuid) -> &'static str {
        if self.id == default { "active" } else { "archived" }
    }

    fn label(&self, field: &str) -> Value {
        self.labels.first().map_or(Value::Null, |label| label[field].clone())
    }

    /// What differs between versions, field by field. The model stands in one place.
    pub fn content(&self) -> Value {
        json!({
            "string": self.template,
            "parameters": self.parameters,
            "model": self.model,
            "virtual_key": self.virtual_key,
            "functions": self.functions,
            "tools": self.tools,
            "tool_choice": self.tool_choice,
            "template_metadata": self.template_metadata,
            "is_raw_template": i32::from(self.is_raw),
            "declared_variables": self.declared_variables,
            "version_description": self.description,
        })
    }

    /// What a prompt shows of this version. Its template is parsed for it.
    pub fn fields(&self, default: Uuid) -> Result<Map<String, Value>, ApiError> {
        let fields = json!({
            "string": self.template,
            "parameters": self.shown_parameters(),
            "virtual_key": self.virtual_key,
            "model": self.model,
            "functions": self.functions,
            "tools": self.tools,
            "tool_choice": self.tool_choice,
            "template_metadata": self.template_metadata,
            "prompt_version": self.number,
            "prompt_version_id": self.id,
            "prompt_version_status": self.status(default),
            "prompt_version_description": self.description,
            "prompt_version_label_id": self.label("id"),
            "prompt_version_label_name": self.label("name"),
            "prompt_version_labels": self.labels,
            "is_raw_template": i32::from(self.is_raw),
            "declared_variables": self.declared_variables,
            "variable_components": self.body()?.components(),
        });
        match fields {
            Value::Object(fields) => Ok(fields),
            _ => Err(ApiError::Internal),
        }
    }

    /// As it stands in the list of versions.
    fn listed(&self, prompt: &Prompt) -> Value {
        json!({
            "id": self.id,
            "prompt_id": prompt.id,
            "prompt_template": {
                "string": self.template,
                "parameters": self.shown_parameters(),
                "model": self.model,
                "virtual_key": self.virtual_key,
                "functions": self.functions,
                "tools": self.tools,
                "tool_choice": self.tool_choice,
                "template_metadata": self.template_metadata,
                "is_raw_template": i32::from(self.is_raw),
                "declared_variables": self.declared_variables,
            },
            "prompt_version": self.number,
            "prompt_description": self.description,
            "label_id": self.label("id"),
            "labels": self.labels,
            "status": self.status(prompt.prompt_version_id),
            "created_by": self.created_by,
            "created_at": self.created_at,
            "object": "prompt",
        })
    }
}

/// Newest first.
pub async fn list_versions(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    const COUNT: &str = "SELECT count(*) FROM prompt_versions WHERE prompt_id = $1";
    let (size, offset) = call.query().page(VERSION_PAGES)?;
    let db = app.db.get().await?;
    let workspace = tenancy::asked(&*db, &call.caller, call.query().text("workspace_id")).await?;
    let prompt = crud::find::<Prompt>(&*db, &call, &name, workspace, RowLock::No).await?;
    let total: i64 = db.query_one(COUNT, &[&prompt.id]).await?.try_get(0)?;
    let sql = format!(
        "SELECT {COLUMNS} FROM prompt_versions v WHERE v.prompt_id = $1 ORDER BY v.number DESC LIMIT $2 OFFSET $3"
    );
    let rows = db.query(&sql, &[&prompt.id, &size, &offset]).await?;
    let data = rows.iter().map(|row| Ok(row::read::<PromptVersion>(row)?.listed(&prompt)));
    Ok(crud::listed(total, data.collect::<Result<_, ApiError>>()?))
}

/// One version, by its id or number.
pub async fn read_version(State(app): State<App>, call: Call, Path(names): Path<(String, String)>) -> Answer {
    let (prompt, version) = names;
    let db = app.db.get().await?;
    let (prompt, _) = find_version(&*db, &call, &prompt, Asked::default()).await?;
    let version = prompt.version(&*db, VersionName::parse(&version)).await?;
    drop(db);
    Ok(Json(blocking(move || prompt.shown_in(&call, &version)).await?))
}
