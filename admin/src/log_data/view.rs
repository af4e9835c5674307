//! Whose logs a caller sees: those of its organisation, there of the workspaces it may ask for, and of those only what
//! came through its own keys where the data visibility settings say so.

use super::filters;
use crate::http::{ApiError, Query};
use crate::identity::access::{Standing, WorkspaceRole};
use crate::identity::{Caller, tenancy};
use serde_json::{Value, json};
use shared::db::table::Filter;
use std::collections::BTreeSet;
use tokio_postgres::GenericClient;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogView {
    pub organisation_id: Uuid,
    pub workspaces: VisibleWorkspaces,
    /// Only what came through the keys of this person.
    pub user_id: Option<Uuid>,
    pub shows_metadata: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VisibleWorkspaces {
    All,
    One(Uuid),
    Some(Vec<Uuid>),
}

/// How many workspaces can be asked for by name.
const MAX_NAMES: usize = 100;

impl LogView {
    /// Everything that the caller may see.
    pub fn whole(caller: &Caller) -> Result<Self, ApiError> {
        Self::for_caller(caller, caller.workspace_id().map_or(VisibleWorkspaces::All, VisibleWorkspaces::One))
    }

    /// What the caller sees when it asks for workspaces, by slugs or ids with commas or by `*`, as an admin key
    /// does that names none; a workspace's key always sees its own.
    pub async fn asked(db: &impl GenericClient, caller: &Caller, names: Option<&str>) -> Result<Self, ApiError> {
        Self::for_caller(caller, VisibleWorkspaces::asked(db, caller, names).await?)
    }

    /// The same for figures, which people may see who may not see logs. Refuses people whose role may not see figures,
    /// whichever scope led them here.
    pub async fn counted(db: &impl GenericClient, caller: &Caller, names: Option<&str>) -> Result<Self, ApiError> {
        let workspaces = VisibleWorkspaces::asked(db, caller, names).await?;
        Self::where_allowed(caller, workspaces, may_count).ok_or(ApiError::Forbidden("Your role may not see analytics"))
    }

    /// The caller's view of workspaces that it was found to have a right to. Refuses people whose role may not see logs at
    /// all: one can reach a log by the scopes of an application, too.
    pub fn for_caller(caller: &Caller, workspaces: VisibleWorkspaces) -> Result<Self, ApiError> {
        let may = |standing: &Standing| allows(standing, "ViewLogs");
        Self::where_allowed(caller, workspaces, may).ok_or(ApiError::Forbidden("Your role may not see logs"))
    }

    /// What lets the caller see some of the workspaces. Who acts in all of theirs sees all those that let them, and none
    /// that they named and that does not.
    fn where_allowed(caller: &Caller, workspaces: VisibleWorkspaces, may: impl Fn(&Standing) -> bool) -> Option<Self> {
        let Some(own) = caller.own_workspaces.as_deref() else {
            let standings: Vec<&Standing> = caller.standing.as_deref().into_iter().collect();
            return standings.iter().all(|one| may(one)).then(|| Self::of(caller, workspaces, &standings));
        };
        let named: Option<Vec<Uuid>> = match workspaces {
            VisibleWorkspaces::All => None,
            VisibleWorkspaces::One(id) => Some(vec![id]),
            VisibleWorkspaces::Some(ids) => Some(ids),
        };
        let is_meant = |id: Uuid| named.as_ref().is_none_or(|named| named.contains(&id));
        let seen: Vec<_> = own.iter().filter(|one| is_meant(one.id) && may(&one.standing)).collect();
        let are_all_seen = named.as_ref().is_none_or(|named| named.len() == seen.len());
        let standings: Vec<&Standing> = seen.iter().map(|one| &one.standing).collect();
        let workspaces = match seen.as_slice() {
            [one] => VisibleWorkspaces::One(one.id),
            several => VisibleWorkspaces::Some(several.iter().map(|one| one.id).collect()),
        };
        (are_all_seen && !seen.is_empty()).then(|| Self::of(caller, workspaces, &standings))
    }

    /// Of several workspaces the narrowest decides: whose calls are seen, and whether with metadata.
    fn of(caller: &Caller, workspaces: VisibleWorkspaces, standings: &[&Standing]) -> Self {
        let may = |what: &str| standings.iter().all(|standing| allows(standing, what));
        Self {
            organisation_id: caller.organisation_id(),
            workspaces,
            user_id: if may("ViewAllData") { None } else { caller.user_id().or(Some(Uuid::nil())) },
            shows_metadata: may("ViewLogMetadata"),
        }
    }

    /// The rows of `request_logs` in this view.
    pub fn filter(&self) -> Filter {
        match self.user_id {
            Some(user) => self.tenant_filter().equals("user_id", user),
            None => self.tenant_filter(),
        }
    }

    /// Rows of any table that belong to the workspaces in view.
    pub fn tenant_filter(&self) -> Filter {
        let filter = Filter::default().equals("organisation_id", self.organisation_id);
        match &self.workspaces {
            VisibleWorkspaces::All => filter,
            VisibleWorkspaces::One(id) => filter.equals("workspace_id", *id),
            VisibleWorkspaces::Some(ids) => filter.one_of("workspace_id", ids.clone()),
        }
    }

    /// Those of them that a query asks for.
    pub fn narrowed(&self, query: &Query) -> Result<Filter, ApiError> {
        self.checked(query)?;
        Ok(self.filter().join(filters::conditions(query)?))
    }

    /// Which workspaces an answer is about; null when it is all.
    pub async fn shown_workspaces(&self, db: &impl GenericClient) -> Result<Value, ApiError> {
        const NAMES: &str =
            "SELECT id, slug, name FROM workspaces WHERE organisation_id = $1 AND id = ANY($2) ORDER BY slug";
        let ids = match &self.workspaces {
            VisibleWorkspaces::All => return Ok(Value::Null),
            VisibleWorkspaces::One(id) => vec![*id],
            VisibleWorkspaces::Some(ids) => ids.clone(),
        };
        let rows = db.query(NAMES, &[&self.organisation_id, &ids]).await?;
        let shown = rows.iter().map(|row| {
            let (id, slug, name): (Uuid, &str, &str) = (row.try_get("id")?, row.try_get("slug")?, row.try_get("name")?);
            Ok(json!({ "id": id, "slug": slug, "name": name }))
        });
        shown.collect::<Result<Vec<Value>, tokio_postgres::Error>>().map(Value::from).map_err(ApiError::from)
    }

    /// What somebody may not see they may not search by either.
    pub fn checked(&self, query: &Query) -> Result<(), ApiError> {
        match query.text("metadata") {
            Some(_) => self.may_use_metadata(),
            None => Ok(()),
        }
    }

    pub fn may_use_metadata(&self) -> Result<(), ApiError> {
        if self.shows_metadata { Ok(()) } else { Err(ApiError::Forbidden("Your role may not see metadata of logs")) }
    }
}

impl VisibleWorkspaces {
    /// As a table has them that can hold one, several or all (`workspace_id`, `workspace_ids`).
    pub fn from_columns(one: Option<Uuid>, several: Option<Vec<Uuid>>) -> Self {
        match (one, several) {
            (Some(id), _) => Self::One(id),
            (None, Some(ids)) => Self::Some(ids),
            (None, None) => Self::All,
        }
    }

    pub fn columns(&self) -> (Option<Uuid>, Option<Vec<Uuid>>) {
        match self {
            Self::All => (None, None),
            Self::One(id) => (Some(*id), None),
            Self::Some(ids) => (None, Some(ids.clone())),
        }
    }

    /// In whatever order they were named.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, Self::All) => true,
            (Self::All, _) | (_, Self::All) => false,
            (one, other) => one.ids() == other.ids(),
        }
    }

    /// None of all of them.
    fn ids(&self) -> BTreeSet<Uuid> {
        match self {
            Self::All => BTreeSet::new(),
            Self::One(id) => BTreeSet::from([*id]),
            Self::Some(ids) => ids.iter().copied().collect(),
        }
    }

    async fn asked(db: &impl GenericClient, caller: &Caller, names: Option<&str>) -> Result<Self, ApiError> {
        Ok(match (caller.workspace_id(), names) {
            (Some(own), _) => Self::One(own),
            // Sums that silently lack every team but one are worse than long ones.
            (None, None | Some("*")) => Self::All,
            (None, Some(names)) => named(db, caller, names).await?,
        })
    }
}

/// Whether the security settings let this person do something with logs.
fn allows(standing: &Standing, what: &str) -> bool {
    let who = match standing.role {
        // Owners set the settings, and none shuts them out.
        _ if standing.organisation_role == "owner" => return true,
        _ if standing.is_organisation_admin() => "organisationAdmins",
        Some(WorkspaceRole::Admin) => return true,
        Some(WorkspaceRole::Manager) => "managers",
        Some(WorkspaceRole::Member) => "members",
        None => return false,
    };
    // Nothing narrows an organisation's administrators to their own data.
    (who == "organisationAdmins" && what == "ViewAllData") || standing.settings.is_on(&format!("{who}{what}"))
}

/// Whether a person sees all logs (`ViewLogs`) or figures (`ViewAnalytics`) of everybody, as a key does that acts for
/// nobody.
pub fn sees_everything(standing: &Standing, what: &str) -> bool {
    let sees = if what == "ViewAnalytics" { may_count(standing) } else { allows(standing, what) };
    sees && allows(standing, "ViewAllData") && allows(standing, "ViewLogMetadata")
}

/// Nothing keeps figures from administrators, of the organisation or the workspace.
fn may_count(standing: &Standing) -> bool {
    standing.is_organisation_admin() || allows(standing, "ViewAnalytics")
}

/// Workspaces by slug or id. Archived ones too: their logs outlive them. For who acts in all of theirs, no others exist.
async fn named(db: &impl GenericClient, caller: &Caller, names: &str) -> Result<VisibleWorkspaces, ApiError> {
    const FIND: &str = "SELECT id, slug FROM workspaces
                        WHERE organisation_id = $1 AND (id = ANY($2) OR slug = ANY($3))
                          AND ($4::uuid[] IS NULL OR id = ANY($4)) LIMIT 200";
    let names: Vec<&str> = names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if names.len() > MAX_NAMES {
        return Err(ApiError::field("workspace_slug", format!("must name at most {MAX_NAMES} workspaces")));
    }
    let ids: Vec<Uuid> = names.iter().filter_map(|name| tenancy::id(name)).collect();
    let own = caller.own_workspace_ids();
    let rows = db.query(FIND, &[&caller.organisation_id(), &ids, &names, &own]).await?;
    let mut found: Vec<(Uuid, String)> = Vec::with_capacity(rows.len());
    for row in &rows {
        found.push((row.try_get("id")?, row.try_get("slug")?));
    }
    let is_found = |name: &&str| found.iter().any(|(id, slug)| slug == name || tenancy::id(name) == Some(*id));
    if found.is_empty() || !names.iter().all(is_found) {
        return Err(ApiError::no_such("workspace_slug", "workspace"));
    }
    Ok(match found.as_slice() {
        [(id, _)] => VisibleWorkspaces::One(*id),
        found => VisibleWorkspaces::Some(found.iter().map(|(id, _)| *id).collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::access::security;
    use serde_json::json;

    #[test]
    fn the_settings_of_a_role_decide_what_its_people_see() {
        let settings = json!({
            "membersViewAllData": false, "managersViewLogs": false, "membersViewLogMetadata": false,
            "organisationAdminsViewLogMetadata": false,
        });
        let settings = security::effective(&settings, &json!({}), &json!({}));
        let allowed = |organisation_role: &str, role: Option<&str>| {
            let standing = Standing::new(organisation_role, role, settings.clone());
            ["ViewLogs", "ViewAllData", "ViewLogMetadata"].map(|what| allows(&standing, what))
        };
        assert_eq!(allowed("owner", None), [true, true, true]);
        assert_eq!(allowed("admin", None), [true, true, false]);
        assert_eq!(allowed("member", Some("admin")), [true, true, true]);
        assert_eq!(allowed("member", Some("manager")), [false, true, true]);
        assert_eq!(allowed("member", Some("member")), [true, false, false]);
        assert_eq!(allowed("member", None), [false, false, false], "who is not in the workspace sees nothing");
    }

    #[test]
    fn figures_are_for_those_whom_the_settings_let_see_them() {
        let settings = json!({ "membersViewAnalytics": false, "managersViewAnalytics": false });
        let off = security::effective(&settings, &json!({}), &json!({}));
        let on = security::effective(&json!({}), &json!({}), &json!({}));
        for (organisation_role, role, seen) in [
            ("owner", None, true),
            ("admin", None, true),
            ("member", Some("admin"), true),
            ("member", Some("manager"), false),
            ("member", Some("member"), false),
        ] {
            assert_eq!(may_count(&Standing::new(organisation_role, role, off.clone())), seen, "{role:?}");
            assert!(may_count(&Standing::new(organisation_role, role, on.clone())), "{role:?}");
        }
        assert!(!may_count(&Standing::new("member", None, on)), "who is not in the workspace sees nothing");
    }

    #[test]
    fn every_view_is_of_one_organisation() {
        for (workspaces, user_id, expected) in [
            (VisibleWorkspaces::All, None, "organisation_id = $1"),
            (VisibleWorkspaces::One(Uuid::nil()), None, "organisation_id = $1 AND workspace_id = $2"),
            (VisibleWorkspaces::Some(vec![]), None, "organisation_id = $1 AND workspace_id = ANY($2)"),
            (
                VisibleWorkspaces::One(Uuid::nil()),
                Some(Uuid::nil()),
                "organisation_id = $1 AND workspace_id = $2 AND user_id = $3",
            ),
        ] {
            let view = LogView { organisation_id: Uuid::nil(), workspaces, user_id, shows_metadata: true };
            assert_eq!(view.filter().sql(), expected);
        }
    }

    #[test]
    fn workspaces_are_stored_as_they_were_asked_for() {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        for workspaces in [VisibleWorkspaces::All, VisibleWorkspaces::One(a), VisibleWorkspaces::Some(vec![a, b])] {
            let (one, several) = workspaces.columns();
            assert_eq!(VisibleWorkspaces::from_columns(one, several), workspaces);
        }
    }

    #[test]
    fn who_may_not_see_metadata_may_not_search_by_it() {
        let view = |shows_metadata| LogView {
            organisation_id: Uuid::nil(),
            workspaces: VisibleWorkspaces::All,
            user_id: None,
            shows_metadata,
        };
        let query = Query::parse(Some("metadata={\"_user\":\"ada\"}")).unwrap();
        assert!(view(true).narrowed(&query).is_ok());
        assert!(matches!(view(false).narrowed(&query), Err(ApiError::Forbidden(_))));
    }
}
