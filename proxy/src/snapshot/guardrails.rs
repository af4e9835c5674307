//! Guardrails: how requests find them, and which run without being named. What belongs to another workspace is not found,
//! as if it did not exist.

use super::Snapshot;
use super::collection::Tracked;
use shared::model::guardrail::canonical_name;
use shared::model::id::{GuardrailId, OrganisationId, WorkspaceId};
use shared::model::{Guardrail, GuardrailVersion, Plugin, Workspace};
use std::sync::Arc;
use tokio_postgres::Row;
use uuid::Uuid;

/// Configs name a guardrail by slug or id, defaults of the organisation by id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GuardrailKey {
    Id(GuardrailId),
    Slug(OrganisationId, String),
}

impl Tracked for Guardrail {
    type Key = GuardrailKey;
    const TABLE: &'static str = "guardrails";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id.uuid()
    }

    fn key(&self) -> GuardrailKey {
        GuardrailKey::Id(self.id)
    }

    fn other_keys(&self) -> Vec<GuardrailKey> {
        vec![GuardrailKey::Slug(self.organisation_id, self.slug.clone())]
    }

    fn is_live(&self) -> bool {
        self.is_active()
    }
}

impl Tracked for GuardrailVersion {
    type Key = Uuid;
    const TABLE: &'static str = "guardrail_versions";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Uuid {
        self.id
    }
}

/// A vendor's credentials by organisation and vendor.
impl Tracked for Plugin {
    type Key = (OrganisationId, String);
    const TABLE: &'static str = "plugins";
    const COLUMNS: &'static str = Self::COLUMNS;

    fn from_row(row: &Row) -> anyhow::Result<Self> {
        Ok(Self::from_row(row)?)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn key(&self) -> Self::Key {
        (self.organisation_id, self.plugin.clone())
    }
}

/// The guardrails of a workspace's requests beside those that their config names: first the organisation's, then its own.
#[derive(Debug, Default)]
pub struct DefaultGuardrails {
    pub input: Vec<Arc<Guardrail>>,
    pub output: Vec<Arc<Guardrail>>,
    /// Names that nothing has: whoever set them was told so, unless they were set by an older release.
    pub missing: Vec<String>,
}

impl Snapshot {
    /// An active guardrail that requests of this workspace may use, by id or slug.
    pub fn guardrail(
        &self,
        organisation: OrganisationId,
        workspace: WorkspaceId,
        name: &str,
    ) -> Option<Arc<Guardrail>> {
        let by_id = name.parse().ok().and_then(|id| self.guardrails.find(&GuardrailKey::Id(id)));
        let by_slug = || self.guardrails.find(&GuardrailKey::Slug(organisation, canonical_name(name)));
        let found = by_id.or_else(by_slug);
        found.filter(|guardrail| guardrail.is_active() && guardrail.serves(organisation, workspace))
    }

    /// What one version of a guardrail says, which a config pins.
    pub fn guardrail_version(&self, guardrail: &Guardrail, version: Uuid) -> Option<Arc<GuardrailVersion>> {
        self.guardrail_versions.find(&version).filter(|found| found.guardrail_id == guardrail.id)
    }

    /// Whether something runs by default, which costs one lookup and no memory. The workspace is as the request found it.
    pub fn has_default_guardrails(&self, workspace: &Workspace) -> bool {
        !workspace.guardrails.own.is_empty()
            || self.organisation_is(&workspace.organisation_id, |whole| !whole.guardrails.is_empty())
    }

    /// How often rows changed, besides the workspace's own, that say what runs by default.
    pub fn default_guardrail_changes(&self) -> u64 {
        self.organisations.changes() + self.guardrails.changes()
    }

    /// `None` where nothing runs by default.
    pub fn default_guardrails(&self, workspace: &Workspace) -> Option<DefaultGuardrails> {
        let whole = self.organisation(&workspace.organisation_id);
        let whole = whole.as_ref().map(|whole| &whole.guardrails).filter(|defaults| !defaults.is_empty());
        let part = &workspace.guardrails;
        if whole.is_none() && part.own.is_empty() {
            return None;
        }
        let (organisation, workspace) = (workspace.organisation_id, workspace.id);
        let mut found = DefaultGuardrails::default();
        let shared_input = whole.filter(|_| !part.excluded_from_input).map(|all| &all.input);
        let shared_output = whole.filter(|_| !part.excluded_from_output).map(|all| &all.output);
        let input = shared_input.into_iter().flatten().chain(&part.own.input);
        let output = shared_output.into_iter().flatten().chain(&part.own.output);
        for (names, side) in [(Vec::from_iter(input), &mut found.input), (Vec::from_iter(output), &mut found.output)] {
            for name in names {
                match self.guardrail(organisation, workspace, name) {
                    Some(guardrail) if side.iter().any(|one| one.id == guardrail.id) => {}
                    Some(guardrail) => side.push(guardrail),
                    None if found.missing.contains(name) => {}
                    None => found.missing.push(name.clone()),
                }
            }
        }
        Some(found)
    }

    /// Versions of guardrails that are gone find nobody any more.
    pub(super) fn forget_orphaned_versions(&self) {
        let is_orphan =
            |version: &GuardrailVersion| self.guardrails.find(&GuardrailKey::Id(version.guardrail_id)).is_none();
        let versions = self.guardrail_versions.all();
        let gone: Vec<Uuid> = versions.iter().filter(|version| is_orphan(version)).map(|version| version.id).collect();
        if !gone.is_empty() {
            self.guardrail_versions.merge(&gone, Vec::new());
        }
    }

    /// The sealed credentials of the vendor behind a check.
    pub fn plugin(&self, organisation: OrganisationId, plugin: &str) -> Option<Arc<Plugin>> {
        self.plugins.find(&(organisation, plugin.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use shared::model::Organisation;
    use shared::model::guardrail::GuardrailDefaults;

    fn id(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    fn guardrail(n: u128, organisation: u128, workspace: Option<u128>, status: &str) -> Guardrail {
        let row = json!({
            "id": id(n), "organisation_id": id(organisation), "workspace_id": workspace.map(id),
            "slug": format!("pg-{n}"), "status": status, "version_id": id(100 + n), "content": {},
        });
        serde_json::from_value(row).unwrap()
    }

    fn workspace(n: u128, guardrails: serde_json::Value) -> Workspace {
        let row = json!({
            "id": id(n), "organisation_id": id(1), "slug": format!("ws-{n}"), "status": "active", "guardrails": guardrails,
        });
        serde_json::from_value(row).unwrap()
    }

    /// An organisation with two workspaces: the first has guardrails of its own, the second is excluded from requests'.
    fn snapshot() -> Snapshot {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let organisation = Organisation {
            id: id(1).into(),
            guardrails: GuardrailDefaults { input: names(&[&id(10).to_string()]), output: names(&["pg-10"]) },
            ..Organisation::default()
        };
        let workspaces = vec![
            workspace(2, json!({ "input": ["pg-11", "pg-10", "pg-gone", "pg-13"], "output": ["guard_11"] })),
            workspace(3, json!({ "excluded_from_input": true })),
        ];
        let guardrails = vec![
            guardrail(10, 1, None, "active"),
            guardrail(11, 1, Some(2), "active"),
            guardrail(12, 9, None, "active"),
            guardrail(13, 1, None, "archived"),
        ];
        let version = json!({ "id": id(110), "organisation_id": id(1), "guardrail_id": id(10), "content": {} });
        Snapshot::with_rows(Vec::new(), workspaces).with_organisations(vec![organisation]).with_guardrails(
            guardrails,
            vec![serde_json::from_value(version).unwrap()],
            Vec::new(),
        )
    }

    #[test]
    fn a_guardrail_is_found_by_slug_or_id_where_it_may_be_used() {
        let snapshot = snapshot();
        let ten = id(10).to_string();
        for (organisation, workspace, name, found) in [
            (1, 2, "pg-10", true),
            (1, 3, "pg-10", true),
            (1, 3, ten.as_str(), true),
            (1, 2, "guard_11", true),
            (1, 3, "pg-11", false),
            (1, 2, "pg-12", false),
            (9, 2, ten.as_str(), false),
            (1, 2, "pg-13", false),
            (1, 2, "", false),
        ] {
            let answer = snapshot.guardrail(id(organisation).into(), id(workspace).into(), name);
            assert_eq!(answer.is_some(), found, "{organisation} {workspace} {name}");
        }
    }

    #[test]
    fn a_version_belongs_to_its_guardrail() {
        let snapshot = snapshot();
        let find = |name: &str| snapshot.guardrail(id(1).into(), id(2).into(), name).unwrap();
        assert!(snapshot.guardrail_version(&find("pg-10"), id(110)).is_some());
        assert!(snapshot.guardrail_version(&find("pg-11"), id(110)).is_none());
        assert!(snapshot.guardrail_version(&find("pg-10"), id(111)).is_none());
    }

    #[test]
    fn what_was_archived_leaves_the_memory_and_its_versions_with_it() {
        let snapshot = snapshot();
        let archived = serde_json::to_string(&guardrail(10, 1, None, "archived")).unwrap();
        let mut incoming =
            snapshot.collections().into_iter().find(|one| one.table() == "guardrails").unwrap().incoming();
        incoming.line(&archived).unwrap();
        incoming.merge();
        snapshot.forget_orphaned_versions();
        assert!(snapshot.guardrail(id(1).into(), id(2).into(), "pg-10").is_none());
        let rows: Vec<usize> =
            snapshot.rows().filter(|(table, _)| table.starts_with("guardrail")).map(|(_, n)| n).collect();
        assert_eq!(rows, [3, 0], "the others stay");
    }

    #[test]
    fn defaults_are_the_organisations_and_then_the_workspaces_each_once() {
        let snapshot = snapshot();
        let row = |workspace: u128| snapshot.workspace(&id(workspace).into()).unwrap();
        let defaults = |workspace: u128| snapshot.default_guardrails(&row(workspace)).unwrap();
        let slugs = |list: &[Arc<Guardrail>]| list.iter().map(|one| one.slug.clone()).collect::<Vec<_>>();
        let own = defaults(2);
        assert_eq!(
            (slugs(&own.input), slugs(&own.output)),
            (vec!["pg-10".into(), "pg-11".into()], vec!["pg-10".into(), "pg-11".into()])
        );
        assert_eq!(own.missing, ["pg-gone", "pg-13"]);
        let excluded = defaults(3);
        assert_eq!((slugs(&excluded.input), slugs(&excluded.output)), (vec![], vec!["pg-10".into()]));
        let others = Workspace { organisation_id: id(9).into(), guardrails: Default::default(), ..(*row(2)).clone() };
        assert!(snapshot.default_guardrails(&others).is_none(), "another organisation has none");
    }
}
