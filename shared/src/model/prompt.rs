//! Prompts and partials as the proxy needs them to run one: which version is served by default, which ones have labels,
//! and what a version says.

use super::status::Status;
use crate::db::table::row::{self, RowError};
use crate::id::{OrganisationId, WorkspaceId};
use crate::prompt::{DeclaredVariable, split};
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
    /// Variables that are checked before they are filled in. Copies on disk of before do not have it.
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

/// A label on a version of a prompt, or on several by weight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptLabel {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    pub prompt_id: Uuid,
    pub label_id: Uuid,
    /// The only one, or the heaviest of a split.
    pub version_id: Uuid,
    /// The versions of a split with the weights of each; none where the label points to one.
    #[serde(default)]
    pub split_versions: Option<Vec<Uuid>>,
    #[serde(default)]
    pub split_weights: Option<Vec<u32>>,
}

impl PromptLabel {
    pub const COLUMNS: &str = "id, organisation_id, prompt_id, label_id, version_id, split_versions, split_weights";

    pub fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
    }

    /// The version that it means for this user or trace.
    pub fn version_for(&self, user_or_trace: &str) -> Uuid {
        let (Some(versions), Some(weights)) = (&self.split_versions, &self.split_weights) else {
            return self.version_id;
        };
        let parts: Vec<(Uuid, u32)> = versions.iter().copied().zip(weights.iter().copied()).collect();
        let key = split::sticky_key(self.prompt_id, self.label_id, user_or_trace);
        split::choose(&parts, &key).unwrap_or(self.version_id)
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_label_means_one_version_or_one_of_a_split() {
        let id = Uuid::from_u128;
        let (one, two) = (id(1), id(2));
        let label = |split: Value| -> PromptLabel {
            let mut row = json!({
                "id": id(9), "organisation_id": id(8), "prompt_id": id(7), "label_id": id(6), "version_id": one,
            });
            if let (Value::Object(row), Value::Object(split)) = (&mut row, split) {
                row.extend(split);
            }
            serde_json::from_value(row).unwrap()
        };
        let alone = label(json!({}));
        let all = label(json!({ "split_versions": [one, two], "split_weights": [0, 5] }));
        let half = label(json!({ "split_versions": [one, two], "split_weights": [5, 5] }));
        let met: Vec<Uuid> = (0..50).map(|n| half.version_for(&n.to_string())).collect();
        assert!(met.contains(&one) && met.contains(&two), "{met:?}");
        for n in 0..50 {
            let who = n.to_string();
            assert_eq!((alone.version_for(&who), all.version_for(&who)), (one, two), "{who}");
        }
    }
}
