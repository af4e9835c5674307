//! Who relies on a guardrail. What runs by default cannot lose it: that would let through what it was to stop. A config
//! that names one which is gone goes on without it, so such a delete has to be forced.

use crate::crud::Action;
use crate::http::{ApiError, InUseBy};
use serde_json::json;
use tokio_postgres::Row;
use uuid::Uuid;

/// As many as are listed; one is enough to refuse.
const MAX_LISTED: i64 = 100;

/// Refuses while the organisation or a workspace has it among its defaults. The row is locked, and whoever names it there
/// holds it too, so nobody comes in between.
pub async fn refuse_defaults(action: &Action<'_>, id: Uuid, slug: &str) -> Result<(), ApiError> {
    const ORGANISATION: &str = "SELECT id, name, NULL::uuid AS workspace_id FROM organisations
        WHERE id = $1 AND (defaults -> 'input_guardrails' @> $2 OR defaults -> 'output_guardrails' @> $2)";
    const WORKSPACES: &str = "SELECT id, slug AS name, id AS workspace_id FROM workspaces
        WHERE organisation_id = $1 AND status = 'active'
        AND (defaults -> 'input_guardrails' ?| $2 OR defaults -> 'output_guardrails' ?| $2) ORDER BY slug LIMIT $3";
    let organisation = action.organisation_id();
    let whole = action.tx.query(ORGANISATION, &[&organisation, &json!([{ "id": id }])]).await?;
    let names = [id.to_string(), slug.to_owned()];
    let parts = action.tx.query(WORKSPACES, &[&organisation, &names.as_slice(), &MAX_LISTED]).await?;
    let whole = whole.iter().map(|row| listed("organisation", row));
    let by = whole.chain(parts.iter().map(|row| listed("workspace", row))).collect::<Result<Vec<_>, _>>()?;
    if by.is_empty() { Ok(()) } else { Err(ApiError::DefaultOf { object: "guardrail", by }) }
}

/// The configs that name it, at any depth and in any of the lists of checks.
pub async fn configs_naming(
    action: &Action<'_>,
    id: Uuid,
    slug: &str,
    workspace: Option<Uuid>,
) -> Result<Vec<InUseBy>, ApiError> {
    const CONFIGS: &str = "SELECT id, slug AS name, workspace_id FROM configs
        WHERE organisation_id = $1 AND ($2::uuid IS NULL OR workspace_id = $2) AND status = 'active'
        AND jsonb_path_exists(config::jsonb, '$.** ? (@ == $slug || @ == $id || @ == $alias)', $3)
        ORDER BY slug LIMIT $4";
    let alias = slug.strip_prefix("pg-").map_or_else(|| slug.to_owned(), |rest| format!("guard_{rest}"));
    let names = json!({ "slug": slug, "id": id, "alias": alias });
    let rows = action.tx.query(CONFIGS, &[&action.organisation_id(), &workspace, &names, &MAX_LISTED]).await?;
    rows.iter().map(|row| listed("config", row)).collect()
}

fn listed(object: &'static str, row: &Row) -> Result<InUseBy, ApiError> {
    Ok(InUseBy {
        object,
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        workspace_id: row.try_get("workspace_id")?,
    })
}
