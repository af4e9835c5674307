//! What a client sends of a version, and the version that it becomes: new, changed in some fields (`patch`), or replaced.

use super::render::blocking;
use super::version::PromptVersion;
use crate::crud::Action;
use crate::http::{ApiError, Field, text};
use crate::identity::tenancy;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use shared::prompt::variables::{MAX_DECLARED, MAX_NAME};
use shared::prompt::{DeclaredVariable, PromptBody};
use std::collections::BTreeSet;
use uuid::Uuid;

/// Bytes of a template, and of each JSON field as text.
const MAX_TEMPLATE: usize = 1 << 20;
const MAX_PARAMETERS: usize = 256 << 10;
const MAX_TOOLS: usize = 1 << 20;

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct PromptFields {
    pub name: Option<String>,
    pub collection_id: Option<String>,
    patch: Option<bool>,
    string: Option<String>,
    parameters: Option<Map<String, Value>>,
    model: Option<String>,
    virtual_key: Option<String>,
    functions: Field<Value>,
    tools: Field<Value>,
    tool_choice: Field<Value>,
    version_description: Field<String>,
    #[serde(alias = "prompt_metadata")]
    template_metadata: Option<Map<String, Value>>,
    is_raw_template: Option<Value>,
    declared_variables: Field<Vec<DeclaredVariable>>,
}

impl PromptFields {
    pub fn is_patch(&self) -> bool {
        self.patch == Some(true)
    }

    /// Whether this change adds a version. Without `patch` a version is sent whole.
    pub fn makes_version(&self) -> Result<bool, ApiError> {
        let has_core = self.string.is_some() || self.parameters.is_some() || self.model.is_some();
        let has_rest = self.functions.is_sent()
            || self.tools.is_sent()
            || self.tool_choice.is_sent()
            || self.template_metadata.is_some()
            || self.is_raw_template.is_some()
            || self.declared_variables.is_sent();
        if self.is_patch() {
            return Ok(has_core || has_rest || self.changes_latest());
        }
        if !has_core {
            return match has_rest {
                true => Err(ApiError::invalid("Send `patch: true`, or string, parameters and a model as well")),
                false => Ok(false),
            };
        }
        let has_model = self.model.is_some() || self.parameters.as_ref().is_some_and(|all| all.contains_key("model"));
        for (field, is_there) in
            [("string", self.string.is_some()), ("parameters", self.parameters.is_some()), ("model", has_model)]
        {
            if !is_there {
                return Err(ApiError::field(field, "is required: a version is sent whole, or with `patch: true`"));
            }
        }
        Ok(true)
    }

    /// Whether it has what can be corrected in the latest version without making another.
    pub fn changes_latest(&self) -> bool {
        self.virtual_key.is_some() || self.version_description.is_sent()
    }
}

/// The content of a version that is to be stored.
pub struct Draft {
    template: String,
    parameters: Map<String, Value>,
    model: Option<String>,
    virtual_key: String,
    functions: Option<Value>,
    tools: Option<Value>,
    tool_choice: Option<Value>,
    template_metadata: Map<String, Value>,
    is_raw: bool,
    description: Option<String>,
    declared_variables: Option<Vec<DeclaredVariable>>,
    partials: Vec<String>,
}

impl Draft {
    /// The first version of a prompt.
    pub fn new(mut sent: PromptFields) -> Result<Self, ApiError> {
        let needed = |field: &str| ApiError::field(field, "is required");
        let virtual_key = sent.virtual_key.take().ok_or_else(|| needed("virtual_key"))?;
        let template = sent.string.take().ok_or_else(|| needed("string"))?;
        let empty = Self {
            template,
            parameters: Map::new(),
            model: None,
            virtual_key,
            functions: None,
            tools: None,
            tool_choice: None,
            template_metadata: Map::new(),
            is_raw: false,
            description: None,
            declared_variables: None,
            partials: Vec::new(),
        };
        empty.with(sent)
    }

    /// The latest version with what was sent over it.
    pub fn over(latest: PromptVersion, sent: PromptFields) -> Result<Self, ApiError> {
        let stored = Self {
            template: latest.template,
            parameters: latest.parameters,
            model: latest.model,
            virtual_key: latest.virtual_key,
            functions: latest.functions,
            tools: latest.tools,
            tool_choice: latest.tool_choice,
            template_metadata: latest.template_metadata,
            is_raw: latest.is_raw,
            description: latest.description,
            declared_variables: latest.declared_variables,
            partials: Vec::new(),
        };
        stored.with(sent)
    }

    /// What was sent and nothing else; but a version that is only corrected, and its provider, stay.
    pub fn in_full(latest: PromptVersion, mut sent: PromptFields) -> Result<Self, ApiError> {
        if sent.string.is_none() {
            return Self::over(latest, sent);
        }
        sent.virtual_key.get_or_insert(latest.virtual_key);
        Self::new(sent)
    }

    fn with(mut self, sent: PromptFields) -> Result<Self, ApiError> {
        let mut model = sent.model;
        if let Some(mut parameters) = sent.parameters {
            let own = parameters.shift_remove("model");
            if let Some(own) = own.filter(|_| model.is_none()) {
                let own = own.as_str().ok_or_else(|| ApiError::field("parameters.model", "must be a string"))?;
                model = Some(own.to_owned());
            }
            self.parameters = parameters;
        }
        if let Some(model) = model {
            self.model = Some(text::sized("model", model, 1..=255)?);
        }
        self.template = sent.string.unwrap_or(self.template);
        self.virtual_key = sent.virtual_key.unwrap_or(self.virtual_key);
        self.functions = sent.functions.sent().unwrap_or(self.functions);
        self.tools = sent.tools.sent().unwrap_or(self.tools);
        self.tool_choice = sent.tool_choice.sent().unwrap_or(self.tool_choice);
        self.template_metadata = sent.template_metadata.unwrap_or(self.template_metadata);
        let description =
            sent.version_description.try_map(|text| text::sized("version_description", text, 0..=1000))?;
        self.description = description.sent().unwrap_or(self.description);
        self.is_raw = switch(sent.is_raw_template)?.unwrap_or(self.is_raw);
        let declared = sent.declared_variables.try_map(checked_declarations)?;
        self.declared_variables = declared.sent().unwrap_or(self.declared_variables);
        Ok(self)
    }

    /// Within bounds, its template well formed, its provider as a slug. Templates of strangers take their time, so they are
    /// parsed on a thread that nobody waits for.
    pub async fn checked(self, action: &Action<'_>, workspace: Uuid) -> Result<Self, ApiError> {
        let mut draft = blocking(move || self.parsed()).await?;
        draft.virtual_key = provider_slug(action, workspace, &draft.virtual_key).await?;
        Ok(draft)
    }

    fn parsed(mut self) -> Result<Self, ApiError> {
        within("string", self.template.len(), MAX_TEMPLATE)?;
        for (field, value) in [("parameters", &self.parameters), ("template_metadata", &self.template_metadata)] {
            within(field, serde_json::to_string(value).map_or(usize::MAX, |text| text.len()), MAX_PARAMETERS)?;
        }
        for (field, value) in
            [("functions", &self.functions), ("tools", &self.tools), ("tool_choice", &self.tool_choice)]
        {
            within(field, value.as_ref().map_or(0, |value| value.to_string().len()), MAX_TOOLS)?;
        }
        let body = PromptBody::parse(&self.template, self.is_raw);
        let body = body.map_err(|error| ApiError::field("string", error.to_string()))?;
        self.partials = body.components().partials.into_iter().collect();
        Ok(self)
    }

    pub async fn insert(self, action: &Action<'_>, prompt: Uuid, number: i32) -> Result<Uuid, ApiError> {
        const INSERT: &str = "INSERT INTO prompt_versions (id, organisation_id, prompt_id, number, template, parameters,
            model, virtual_key, functions, tools, tool_choice, template_metadata, is_raw, description, partials, created_by,
            declared_variables) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
        let (id, organisation, by) = (Uuid::new_v4(), action.organisation_id(), action.call.caller.actor_id());
        let (parameters, metadata) = (Value::Object(self.parameters), Value::Object(self.template_metadata));
        let declared = self.declared_variables.map(|all| json!(all));
        action
            .tx
            .execute(
                INSERT,
                &[
                    &id,
                    &organisation,
                    &prompt,
                    &number,
                    &self.template,
                    &parameters,
                    &self.model,
                    &self.virtual_key,
                    &self.functions,
                    &self.tools,
                    &self.tool_choice,
                    &metadata,
                    &self.is_raw,
                    &self.description,
                    &self.partials,
                    &by,
                    &declared,
                ],
            )
            .await?;
        Ok(id)
    }

    /// Sets what may change in a version: its provider and its description.
    pub async fn correct(self, action: &Action<'_>, version: Uuid) -> Result<(), ApiError> {
        const CORRECT: &str = "UPDATE prompt_versions SET virtual_key = $3, description = $4
                               WHERE id = $1 AND organisation_id = $2";
        let organisation = action.organisation_id();
        action.tx.execute(CORRECT, &[&version, &organisation, &self.virtual_key, &self.description]).await?;
        Ok(())
    }
}

fn within(field: &str, bytes: usize, most: usize) -> Result<(), ApiError> {
    if bytes <= most { Ok(()) } else { Err(ApiError::field(field, format!("must not be larger than {most} bytes"))) }
}

/// Names that a template could have, each once.
fn checked_declarations(sent: Vec<DeclaredVariable>) -> Result<Vec<DeclaredVariable>, ApiError> {
    if sent.len() > MAX_DECLARED {
        return Err(ApiError::field("declared_variables", format!("must be at most {MAX_DECLARED}")));
    }
    let mut known = BTreeSet::new();
    for (place, DeclaredVariable { name, .. }) in sent.iter().enumerate() {
        let refused = |message: String| Err(ApiError::field(format!("declared_variables[{place}].name"), message));
        let is_written =
            name.split('.').all(|part| !part.is_empty()) && name.trim() == name && !name.contains(['{', '}']);
        if name.len() > MAX_NAME || !is_written {
            return refused(format!("must be 1 to {MAX_NAME} bytes, as the template names it: `name`, `user.name`"));
        }
        if !known.insert(name) {
            return refused("must not be declared twice".into());
        }
    }
    Ok(sent)
}

/// 0 and 1, as the interface has it; true and false from those who think it a flag.
fn switch(sent: Option<Value>) -> Result<Option<bool>, ApiError> {
    match sent.as_ref().map(|value| (value.as_bool(), value.as_u64())) {
        None => Ok(None),
        Some((Some(flag), _)) => Ok(Some(flag)),
        Some((None, Some(bit @ (0 | 1)))) => Ok(Some(bit == 1)),
        Some(_) => Err(ApiError::field("is_raw_template", "must be 0 or 1")),
    }
}

/// The slug of the provider that is named by `slug`, `@slug` or id. It is looked up again when the prompt is run, so a
/// slug may be of one that does not exist yet; whoever saves it is told.
async fn provider_slug(action: &Action<'_>, workspace: Uuid, sent: &str) -> Result<String, ApiError> {
    const FIND: &str = "SELECT slug FROM providers WHERE organisation_id = $1 AND workspace_id = $2
                        AND status <> 'archived' AND (id = $3 OR slug = $4)";
    let name = sent.strip_prefix('@').unwrap_or(sent);
    let id = tenancy::id(name);
    if !text::is_slug(name) {
        return Err(ApiError::field("virtual_key", "must be the slug or the id of a provider"));
    }
    let row = action.tx.query_opt(FIND, &[&action.organisation_id(), &workspace, &id, &name]).await?;
    match row {
        Some(row) => Ok(row.try_get("slug")?),
        None if id.is_some() => Err(ApiError::field("virtual_key", "is the id of no provider of this workspace")),
        None => {
            action.call.origin.warn(format!("virtual_key: this workspace has no provider @{name} yet"));
            Ok(name.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_made_by_a_patch_or_by_all_of_it() {
        for (body, expected) in [
            (json!({ "name": "x" }), Some(false)),
            (json!({ "parameters": null, "name": "x" }), Some(false)),
            (json!({ "virtual_key": "a", "version_description": "d" }), Some(false)),
            (json!({ "patch": true }), Some(false)),
            (json!({ "patch": true, "version_description": null }), Some(true)),
            (json!({ "patch": true, "string": "a" }), Some(true)),
            (json!({ "patch": true, "tools": null }), Some(true)),
            (json!({ "string": "a", "parameters": {}, "model": "m" }), Some(true)),
            (json!({ "string": "a", "parameters": { "model": "m" } }), Some(true)),
            (json!({ "string": "a", "parameters": {} }), None),
            (json!({ "patch": false, "string": "a" }), None),
            (json!({ "model": "m" }), None),
            (json!({ "tools": [] }), None),
            (json!({ "declared_variables": [] }), None),
            (json!({ "patch": true, "declared_variables": null }), Some(true)),
        ] {
            let fields: PromptFields = serde_json::from_value(body.clone()).unwrap();
            assert_eq!(fields.makes_version().ok(), expected, "{body}");
        }
    }

    #[test]
    fn variables_are_declared_by_names_that_a_template_could_have() {
        let many: Vec<Value> = (0..201).map(|n| json!({ "name": format!("v{n}") })).collect();
        for (sent, refused) in [
            (json!([]), None),
            (json!([{ "name": "a" }, { "name": "user.name", "type": "string", "required": true }]), None),
            (json!([{ "name": "a" }, { "name": "a" }]), Some("declared_variables[1].name")),
            (json!([{ "name": "" }]), Some("declared_variables[0].name")),
            (json!([{ "name": "a..b" }]), Some("declared_variables[0].name")),
            (json!([{ "name": " a" }]), Some("declared_variables[0].name")),
            (json!([{ "name": "{{a}}" }]), Some("declared_variables[0].name")),
            (json!([{ "name": "a".repeat(256) }]), Some("declared_variables[0].name")),
            (json!(many), Some("declared_variables")),
        ] {
            let checked = checked_declarations(serde_json::from_value(sent.clone()).unwrap());
            let field = checked.err().map(|error| match error {
                ApiError::Invalid { field, .. } => field.unwrap_or_default(),
                other => other.to_string(),
            });
            assert_eq!(field.as_deref(), refused, "{sent}");
        }
    }

    #[test]
    fn the_model_comes_from_its_field_or_from_the_parameters() {
        for (body, model) in [
            (json!({ "model": "a", "parameters": { "model": "b", "n": 1 } }), "a"),
            (json!({ "parameters": { "model": "b", "n": 1 } }), "b"),
        ] {
            let mut body = body;
            body["string"] = "x".into();
            body["virtual_key"] = "v".into();
            let draft = Draft::new(serde_json::from_value(body.clone()).unwrap()).unwrap();
            assert_eq!(draft.model.as_deref(), Some(model), "{body}");
            assert_eq!(Value::Object(draft.parameters), json!({ "n": 1 }), "{body}");
        }
    }
}
