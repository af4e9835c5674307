//! Guardrails that defaults name, found before they are stored: a name that nothing has would let every request through
//! unchecked.

use crate::crud::Action;
use crate::http::{ApiError, FieldFault};
use crate::identity::tenancy;
use shared::model::guardrail::canonical_name;
use uuid::Uuid;

/// Of one list of defaults. Each runs on every request.
pub const MAX_DEFAULTS: usize = 100;
/// Slugs that are looked at for the nearest.
const MAX_KNOWN: i64 = 1000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedGuardrail {
    pub id: Uuid,
    pub slug: String,
}

/// The active guardrails of these ids or slugs, in their order and each once: of the organisation, and of the workspace
/// if there is one. They cannot be deleted before the transaction ends.
pub async fn find(
    action: &Action<'_>,
    workspace: Option<Uuid>,
    field: &str,
    names: &[String],
) -> Result<Vec<NamedGuardrail>, ApiError> {
    const FIND: &str = "SELECT id, slug FROM guardrails
        WHERE organisation_id = $1 AND (workspace_id IS NULL OR workspace_id = $2) AND status = 'active'
        AND (id = ANY($3) OR slug = ANY($4)) ORDER BY id FOR SHARE";
    if names.len() > MAX_DEFAULTS {
        return Err(ApiError::field(field, format!("must name at most {MAX_DEFAULTS} guardrails")));
    }
    let names: Vec<String> = names.iter().map(|name| canonical_name(name)).collect();
    let ids: Vec<Uuid> = names.iter().filter_map(|name| tenancy::id(name)).collect();
    let rows = action.tx.query(FIND, &[&action.organisation_id(), &workspace, &ids, &names]).await?;
    let rows = rows.iter().map(|row| Ok(NamedGuardrail { id: row.try_get("id")?, slug: row.try_get("slug")? }));
    let rows = rows.collect::<Result<Vec<_>, tokio_postgres::Error>>()?;
    let (mut found, mut unknown) = (Vec::<NamedGuardrail>::new(), Vec::new());
    for (n, name) in names.iter().enumerate() {
        match rows.iter().find(|row| row.slug == *name || Some(row.id) == tenancy::id(name)) {
            Some(row) if found.contains(row) => {}
            Some(row) => found.push(row.clone()),
            None => unknown.push((n, name.as_str())),
        }
    }
    if unknown.is_empty() { Ok(found) } else { Err(refusal(action, workspace, field, &unknown).await?) }
}

/// Every name that nothing has, with the nearest that something has.
async fn refusal(
    action: &Action<'_>,
    workspace: Option<Uuid>,
    field: &str,
    unknown: &[(usize, &str)],
) -> Result<ApiError, ApiError> {
    const KNOWN: &str = "SELECT slug FROM guardrails
        WHERE organisation_id = $1 AND (workspace_id IS NULL OR workspace_id = $2) AND status = 'active'
        ORDER BY created_at DESC LIMIT $3";
    let rows = action.tx.query(KNOWN, &[&action.organisation_id(), &workspace, &MAX_KNOWN]).await?;
    let known = rows.iter().map(|row| row.try_get("slug")).collect::<Result<Vec<&str>, _>>()?;
    let what = match workspace {
        Some(_) => "a guardrail of this workspace or of the organisation",
        None => "a guardrail of the organisation",
    };
    let faults =
        unknown.iter().map(|(n, name)| FieldFault::unknown(format!("{field}[{n}]"), name, what, known.iter().copied()));
    Ok(ApiError::Faults(faults.collect()))
}
