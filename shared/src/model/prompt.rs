//! Prompts and partials as the proxy needs them to run one: which version is served by default, which ones have labels,
//! and what a version says.

use super::id::{OrganisationId, WorkspaceId};
use super::status::Status;
use crate::db::table::row::{self, RowError};
use crate::prompt::DeclaredVariable;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_postgres::Row;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    pub workspace_id: WorkspaceId,
    pub slug: String,
    pub status: Status,
    /// The one that was published.
    pub version_id: Uuid,
    pub latest_version_id: Uuid,
    /// Numbers of versions begin at 1 and none is left out.
    pub latest_version: i32,
    /// Another whenever the row changed, which it does with every change of what its versions say.
    pub revision: String,
}

impl Prompt {
    pub const COLUMNS: &str = "id, organisation_id, workspace_id, slug, status, version_id, latest_version_id, \
                               latest_version, changed_xid::text AS revision";

    pub fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
    }

    pub fn is_active(&self) -> bool {
        self.status == Status::Active
    }
}

/// What a prompt says in one version.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptVersion {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    pub prompt_id: Uuid,
    pub number: i32,
    pub template: String,
    /// Parameters of the model, and default values of variables.
    pub parameters: Map<String, Value>,
    pub model: Option<String>,
    /// The slug of the provider that is asked, if there is one of this name when it runs.
    pub virtual_key: String,
    pub functions: Option<Value>,
    pub tools: Option<Value>,
    pub tool_choice: Option<Value>,
    /// Whether the template is a whole body.
    pub is_raw: bool,
    /// Variables that are checked before they are filled in.
    #[serde(default)]
    pub declared_variables: Option<Vec<DeclaredVariable>>,
}

impl PromptVersion {
    pub const COLUMNS: &str = "id, organisation_id, prompt_id, number, template, parameters, model, virtual_key, \
                               functions, tools, tool_choice, is_raw, declared_variables";

    pub fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
    }
}

/// Not the template, which may hold what is nobody else's to read.
impl std::fmt::Debug for PromptVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PromptVersion({} of {})", self.number, self.prompt_id)
    }
}

/// Where a label of a prompt points to: one version, or several by weight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptLabel {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    pub prompt_id: Uuid,
    pub label_id: Uuid,
    /// Of several, the heaviest.
    pub version_id: Uuid,
    #[serde(default)]
    pub split: Option<Vec<SplitVersion>>,
}

/// One of the versions that a label is split between.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SplitVersion {
    pub version_id: Uuid,
    pub version: i32,
    pub weight: u32,
}

impl PromptLabel {
    pub const COLUMNS: &str = "id, organisation_id, prompt_id, label_id, version_id, \
        (SELECT json_agg(json_build_object('version_id', v.id, 'version', v.number, 'weight', part.weight)) \
         FROM unnest(split_versions, split_weights) AS part (version_id, weight) \
         JOIN prompt_versions v ON v.id = part.version_id) AS split";

    pub fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
    }
}

/// The name of a label, in a workspace or in all of an organisation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Label {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    pub workspace_id: Option<WorkspaceId>,
    pub name: String,
    pub status: Status,
}

impl Label {
    pub const COLUMNS: &str = "id, organisation_id, workspace_id, name, status";

    pub fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    pub workspace_id: WorkspaceId,
    pub slug: String,
    pub status: Status,
    pub version_id: Uuid,
    pub latest_version_id: Uuid,
    pub latest_version: i32,
}

impl Partial {
    pub const COLUMNS: &str =
        "id, organisation_id, workspace_id, slug, status, version_id, latest_version_id, latest_version";

    pub fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
    }

    pub fn is_active(&self) -> bool {
        self.status == Status::Active
    }
}

/// What a partial says in one version. It never changes.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct PartialVersion {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    pub partial_id: Uuid,
    pub number: i32,
    pub template: String,
}

impl PartialVersion {
    pub const COLUMNS: &str = "id, organisation_id, partial_id, number, template";

    pub fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
    }
}

impl std::fmt::Debug for PartialVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PartialVersion({} of {})", self.number, self.partial_id)
    }
}
