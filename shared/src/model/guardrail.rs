//! Guardrails as the proxy needs them: what their current version says, older versions that configs pin, and which of
//! them run on requests that name none.

mod actions;

pub use actions::{ActionFault, Feedback, GuardrailActions};

use super::id::{GuardrailId, OrganisationId, WorkspaceId};
use super::status::Status;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_postgres::Row;
use uuid::Uuid;

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Guardrail {
    pub id: GuardrailId,
    pub organisation_id: OrganisationId,
    /// None for those of the organisation, which all its workspaces may use.
    pub workspace_id: Option<WorkspaceId>,
    pub slug: String,
    pub status: Status,
    pub version_id: Uuid,
    /// `{checks: […], actions: {…}}`.
    pub content: Value,
}

impl Guardrail {
    pub const COLUMNS: &str = "id, organisation_id, workspace_id, slug, status, version_id, content";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            workspace_id: row.try_get("workspace_id")?,
            slug: row.try_get("slug")?,
            status: row.try_get("status")?,
            version_id: row.try_get("version_id")?,
            content: row.try_get("content")?,
        })
    }

    pub fn is_active(&self) -> bool {
        self.status == Status::Active
    }

    /// Whether requests of this workspace may use it.
    pub fn serves(&self, organisation: OrganisationId, workspace: WorkspaceId) -> bool {
        self.organisation_id == organisation && self.workspace_id.is_none_or(|own| own == workspace)
    }
}

/// Not the content: parameters of a check may hold credentials.
impl std::fmt::Debug for Guardrail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Guardrail({} {})", self.slug, self.version_id)
    }
}

/// What a guardrail said once. It never changes.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct GuardrailVersion {
    pub id: Uuid,
    pub organisation_id: OrganisationId,
    pub guardrail_id: GuardrailId,
    pub content: Value,
}

impl GuardrailVersion {
    pub const COLUMNS: &str = "id, organisation_id, guardrail_id, content";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            guardrail_id: row.try_get("guardrail_id")?,
            content: row.try_get("content")?,
        })
    }
}

impl std::fmt::Debug for GuardrailVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GuardrailVersion({} of {})", self.id, self.guardrail_id)
    }
}

/// Guardrails that run on every request and every answer, by id or slug and in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuardrailDefaults {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<String>,
}

impl GuardrailDefaults {
    /// From the columns `input_guardrails` and `output_guardrails`: lists of names, or of objects with an `id`.
    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let names = |column: &str| row.try_get::<_, Option<Value>>(column).map(|list| names(list.as_ref()));
        Ok(Self { input: names("input_guardrails")?, output: names("output_guardrails")? })
    }

    pub fn is_empty(&self) -> bool {
        self.input.is_empty() && self.output.is_empty()
    }
}

fn names(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|one| one.as_str().or_else(|| one["id"].as_str())).map(str::to_owned).collect()
}

/// The defaults of one workspace, and whether it is left out of its organisation's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkspaceGuardrails {
    #[serde(flatten)]
    pub own: GuardrailDefaults,
    pub excluded_from_input: bool,
    pub excluded_from_output: bool,
}

/// Slugs begin with `pg-`; some clients write `guard_` in its place.
pub fn canonical_name(name: &str) -> String {
    match name.strip_prefix("guard_") {
        Some(rest) => format!("pg-{rest}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_are_read_from_names_and_from_objects() {
        for (list, expected) in [
            (json!(["pg-a", "pg-b"]), vec!["pg-a", "pg-b"]),
            (json!([{ "id": "1", "slug": "pg-a" }, { "slug": "pg-b" }, 7]), vec!["1"]),
            (json!(null), vec![]),
            (json!("pg-a"), vec![]),
        ] {
            assert_eq!(names(Some(&list)), expected, "{list}");
        }
        assert!(names(None).is_empty());
    }

    #[test]
    fn a_copy_on_disk_of_an_older_release_has_no_defaults() {
        let read: WorkspaceGuardrails = serde_json::from_str("{}").unwrap();
        assert_eq!(read, WorkspaceGuardrails::default());
        let kept = WorkspaceGuardrails {
            own: GuardrailDefaults { input: vec!["pg-a".into()], output: vec![] },
            excluded_from_input: false,
            excluded_from_output: true,
        };
        let text = serde_json::to_string(&kept).unwrap();
        assert_eq!(serde_json::from_str::<WorkspaceGuardrails>(&text).unwrap(), kept, "{text}");
    }

    #[test]
    fn both_prefixes_of_slugs_name_the_same() {
        for (name, expected) in [("guard_pii-3f9a01", "pg-pii-3f9a01"), ("pg-x", "pg-x"), ("guardian", "guardian")] {
            assert_eq!(canonical_name(name), expected);
        }
    }

    #[test]
    fn a_workspaces_guardrail_serves_nobody_else() {
        let id = Uuid::from_u128;
        let guardrail = |workspace: Option<u128>| Guardrail {
            id: id(1).into(),
            organisation_id: id(2).into(),
            workspace_id: workspace.map(|one| id(one).into()),
            slug: "pg-a".into(),
            status: Status::Active,
            version_id: id(3),
            content: json!({ "actions": { "secret": "s3cret" } }),
        };
        for (own, organisation, workspace, serves) in [
            (None, 2, 5, true),
            (Some(5), 2, 5, true),
            (Some(5), 2, 6, false),
            (None, 9, 5, false),
            (Some(5), 9, 5, false),
        ] {
            let answer = guardrail(own).serves(id(organisation).into(), id(workspace).into());
            assert_eq!(answer, serves, "{own:?} {organisation} {workspace}");
        }
        assert!(!format!("{:?}", guardrail(None)).contains("s3cret"));
    }
}
