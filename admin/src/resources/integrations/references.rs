//! Secret references, as far as accounts need them: which one a name means, and where it may be used.

use crate::crud::Action;
use crate::http::{ApiError, text};
use crate::identity::tenancy;
use uuid::Uuid;

/// The reference of this id or slug, if the workspace may use it; an account of the organisation needs one that every
/// workspace may use. It cannot be deleted before the transaction ends.
pub async fn visible(action: &Action<'_>, name: &str, workspace: Option<Uuid>) -> Result<Option<Uuid>, ApiError> {
    const FIND: &str = "SELECT id FROM secret_references
        WHERE organisation_id = $1 AND (id = $2 OR slug = $3)
          AND (allow_all_workspaces OR $4 = ANY(allowed_workspaces)) FOR SHARE";
    if !text::is_slug(name) {
        return Ok(None);
    }
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&action.organisation_id(), &tenancy::id(name), &name, &workspace];
    let row = action.tx.query_opt(FIND, &values).await?;
    Ok(row.map(|row| row.try_get("id")).transpose()?)
}

/// The hosts that a reference may be sent to beside its provider's own.
pub async fn allowed_hosts(action: &Action<'_>, id: &str) -> Result<Vec<String>, ApiError> {
    const HOSTS: &str = "SELECT allowed_hosts FROM secret_references WHERE organisation_id = $1 AND id = $2";
    let row = action.tx.query_opt(HOSTS, &[&action.organisation_id(), &tenancy::id(id)]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or_default())
}
