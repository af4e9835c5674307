//! Which objects a call may touch. Every statement about an object carries this filter, so an object of another
//! organisation (or of another workspace, for a workspace's key) is answered as if it did not exist.

use crate::http::{ApiError, text};
use crate::identity::Caller;
use shared::db::table::{Filter, Table, Tenancy};
use tokio_postgres::{GenericClient, Transaction};
use uuid::Uuid;

/// The rows of a table that the caller may see. `workspace` narrows an organisation's view to one workspace.
pub fn visible(table: &Table, caller: &Caller, workspace: Option<Uuid>) -> Filter {
    let filter = Filter::default().equals("organisation_id", caller.organisation_id());
    let filter = match caller.own_workspace_ids() {
        Some(own) => among(table, filter, own),
        None => filter,
    };
    let workspace = caller.workspace_id().or(workspace);
    match (table.tenancy, workspace) {
        (Tenancy::Organisation, _) | (_, None) => filter,
        (Tenancy::Workspace(column), Some(id)) => filter.equals(column, id),
        (Tenancy::OneOrSeveral, Some(id)) => filter.equals("workspace_id", id),
        (Tenancy::Either, Some(id)) => filter.and("(workspace_id = ? OR workspace_id IS NULL)", id),
    }
}

/// For somebody who acts in all their workspaces: rows of these, and of no other.
fn among(table: &Table, filter: Filter, own: Vec<Uuid>) -> Filter {
    match table.tenancy {
        Tenancy::Organisation => filter,
        Tenancy::Workspace(column) => filter.one_of(column, own),
        Tenancy::OneOrSeveral => filter.one_of("workspace_id", own),
        Tenancy::Either => filter.and("(workspace_id = ANY(?) OR workspace_id IS NULL)", own),
    }
}

/// The row that a path names: by id, or by slug where the table has one. None when it can name no row.
pub fn named(table: &Table, name: &str) -> Option<Filter> {
    match (id(name), table.slug) {
        (Some(id), _) => Some(Filter::default().equals("id", id)),
        (None, Some(slug)) if text::is_slug(name) => Some(Filter::default().equals(slug, name.to_owned())),
        (None, _) => None,
    }
}

/// Only the usual form of a UUID is an id; 32 hex digits without dashes may be a slug.
pub fn id(text: &str) -> Option<Uuid> {
    (text.len() == 36).then(|| text.parse().ok()).flatten()
}

/// The workspace that a call asks for by id or slug. A caller bound to a workspace may name its own only; others get
/// 404 for what does not exist in their organisation or is archived.
pub async fn asked(db: &impl GenericClient, caller: &Caller, name: Option<&str>) -> Result<Option<Uuid>, ApiError> {
    const OTHER: ApiError = ApiError::Forbidden("This credential belongs to another workspace");
    let Some(name) = name else { return Ok(caller.workspace_id()) };
    let found = match caller.workspace_id() {
        Some(own) if id(name) == Some(own) => return Ok(Some(own)),
        _ => find_workspace(db, caller.organisation_id(), name).await?,
    };
    match (caller.workspace_id(), found) {
        (Some(own), found) => {
            if found == Some(own) {
                Ok(found)
            } else {
                Err(OTHER)
            }
        }
        (None, Some(found)) if caller.own_workspace_ids().is_none_or(|own| own.contains(&found)) => Ok(Some(found)),
        (None, _) => Err(ApiError::no_such("workspace_id", "workspace")),
    }
}

/// Keeps a workspace from being archived until the transaction ends, so that nothing new is left behind in one.
pub async fn hold(tx: &Transaction<'_>, workspace: Uuid) -> Result<(), ApiError> {
    const HOLD: &str = "SELECT FROM workspaces WHERE id = $1 AND status = 'active' FOR SHARE";
    match tx.query_opt(HOLD, &[&workspace]).await? {
        Some(_) => Ok(()),
        None => Err(ApiError::NotFound("workspace")),
    }
}

/// The workspace that every organisation has from its first moment.
pub async fn default_workspace(db: &impl GenericClient, organisation: Uuid) -> Result<Uuid, ApiError> {
    const FIND: &str = "SELECT id FROM workspaces WHERE organisation_id = $1 AND is_default";
    let row = db.query_opt(FIND, &[&organisation]).await?.ok_or(ApiError::NotFound("workspace"))?;
    Ok(row.try_get("id")?)
}

/// An active workspace of the organisation, by id or slug.
pub async fn find_workspace(db: &impl GenericClient, organisation: Uuid, name: &str) -> Result<Option<Uuid>, ApiError> {
    const FIND: &str = "SELECT id FROM workspaces
                        WHERE organisation_id = $1 AND (id = $2 OR slug = $3) AND status = 'active'";
    if !text::is_slug(name) {
        return Ok(None);
    }
    let row = db.query_opt(FIND, &[&organisation, &id(name), &name]).await?;
    Ok(row.map(|row| row.try_get("id")).transpose()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::db::table::{OnDelete, SelectList};

    #[test]
    fn a_path_names_a_row_by_id_or_by_slug_where_there_is_one() {
        let by = |slug: Option<&'static str>, name: &str| {
            let table = Table {
                name: "t",
                columns: SelectList::Sql("id"),
                slug,
                tenancy: Tenancy::Organisation,
                on_delete: OnDelete::Delete,
            };
            named(&table, name).map(|filter| filter.sql())
        };
        const ID: &str = "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11";
        assert_eq!(by(None, ID).as_deref(), Some("id = $1"));
        assert_eq!(by(Some("slug"), ID).as_deref(), Some("id = $1"));
        assert_eq!(by(Some("slug"), "pc-main-1f2e3d").as_deref(), Some("slug = $1"));
        assert_eq!(by(Some("slug"), &ID.replace('-', "")).as_deref(), Some("slug = $1"));
        for name in ["", "a b", "a\0", "ä", &"x".repeat(256)] {
            assert_eq!(by(Some("slug"), name), None, "{name:?}");
        }
        assert_eq!(by(None, "pc-main-1f2e3d"), None);
    }
}
