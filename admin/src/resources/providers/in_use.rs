//! Who relies on a provider, or on the account behind it: configs that name it. A delete says so instead of leaving
//! them without a target.

use crate::crud::Action;
use crate::http::{ApiError, InUseBy};
use tokio_postgres::Row;
use uuid::Uuid;

/// As many as are listed; one is enough to refuse.
const MAX_LISTED: i64 = 100;

/// Whether a config names a provider, at any depth: as `@slug`, as a virtual key, or before a model's name. Every
/// workspace has its own slugs.
const NAMES: &str = "c.organisation_id = p.organisation_id AND c.workspace_id = p.workspace_id AND c.status = 'active'
    AND jsonb_path_exists(c.config::jsonb,
        '$.** ? (@.provider == $at || @.virtual_key == $slug || @.virtual_key == $at || @.virtualKey == $slug
                 || @.model starts with $model)',
        jsonb_build_object('slug', p.slug, 'at', '@' || p.slug, 'model', '@' || p.slug || '/'))";

/// The configs that name this provider.
pub async fn configs_naming(action: &Action<'_>, provider: Uuid) -> Result<Vec<InUseBy>, ApiError> {
    let find = format!(
        "SELECT DISTINCT c.id, c.slug AS name, c.workspace_id FROM configs c, providers p
         WHERE p.id = $1 AND p.organisation_id = $2 AND {NAMES} ORDER BY c.slug LIMIT {MAX_LISTED}"
    );
    let rows = action.tx.query(&find, &[&provider, &action.organisation_id()]).await?;
    rows.iter().map(|row| listed("config", row)).collect()
}

/// The providers that somebody made of an integration, and the configs that name any of its providers. Those that came
/// with access to it go with it.
pub async fn relying_on_integration(action: &Action<'_>, integration: Uuid) -> Result<Vec<InUseBy>, ApiError> {
    let made = format!(
        "SELECT id, slug AS name, workspace_id FROM providers
         WHERE integration_id = $1 AND organisation_id = $2 AND status <> 'archived' AND creation_mode = 'manual'
         ORDER BY slug LIMIT {MAX_LISTED}"
    );
    let named = format!(
        "SELECT DISTINCT c.id, c.slug AS name, c.workspace_id FROM configs c, providers p
         WHERE p.integration_id = $1 AND p.organisation_id = $2 AND p.status <> 'archived' AND {NAMES}
         ORDER BY c.slug LIMIT {MAX_LISTED}"
    );
    let (integration, organisation) = (&integration, &action.organisation_id());
    let made = action.tx.query(&made, &[integration, organisation]).await?;
    let named = action.tx.query(&named, &[integration, organisation]).await?;
    let made = made.iter().map(|row| listed("provider", row));
    made.chain(named.iter().map(|row| listed("config", row))).collect()
}

fn listed(object: &'static str, row: &Row) -> Result<InUseBy, ApiError> {
    Ok(InUseBy {
        object,
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        workspace_id: Some(row.try_get("workspace_id")?),
    })
}
