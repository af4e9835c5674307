//! The partials that a prompt names, and those that they name, read from the prompt's own workspace.

use super::render::blocking;
use crate::app::App;
use crate::http::ApiError;
use shared::prompt::template::Components;
use shared::prompt::{PartialSet, RenderError, VersionName, split_reference};
use std::collections::BTreeSet;
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// Partials inside partials; rendering refuses more as well.
const MAX_DEPTH: usize = 10;

/// As many as are looked for at once.
const MAX_PARTIALS: usize = 100;

/// Level by level. What does not exist stays out, and rendering says so.
pub async fn load(app: &App, workspace: Uuid, asked: &Components) -> Result<PartialSet, ApiError> {
    let (mut partials, mut known) = (PartialSet::default(), BTreeSet::new());
    if asked.partials.len() > MAX_PARTIALS {
        return Err(refused(RenderError::TooManyPartials));
    }
    for _ in 0..=MAX_DEPTH {
        let missing = partials.missing(asked);
        if missing.len() > MAX_PARTIALS {
            return Err(refused(RenderError::TooManyPartials));
        }
        // What was looked for in vain is missing still.
        let new: Vec<String> = missing.difference(&known).cloned().collect();
        if new.is_empty() {
            break;
        }
        known.extend(missing);
        let found = read_all(app, workspace, new, &partials).await?;
        partials = blocking(move || with(partials, found)).await?;
    }
    Ok(partials)
}

/// Those that exist, with their texts. No connection is held while they are parsed.
async fn read_all(
    app: &App,
    workspace: Uuid,
    names: Vec<String>,
    partials: &PartialSet,
) -> Result<Vec<(String, String)>, ApiError> {
    let db = app.db.get().await?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    for name in names {
        let Some(text) = read(&*db, workspace, &name).await? else { continue };
        bytes += text.len();
        if !partials.has_room(bytes) {
            return Err(refused(RenderError::TooManyPartials));
        }
        found.push((name, text));
    }
    Ok(found)
}

fn with(mut partials: PartialSet, found: Vec<(String, String)>) -> Result<PartialSet, ApiError> {
    for (name, text) in found {
        partials.insert(name, &text).map_err(refused)?;
    }
    Ok(partials)
}

async fn read(db: &impl GenericClient, workspace: Uuid, name: &str) -> Result<Option<String>, ApiError> {
    const FIND: &str = "SELECT v.template FROM prompt_partials p JOIN partial_versions v ON v.partial_id = p.id
        WHERE p.workspace_id = $1 AND p.slug = $2 AND p.status = 'active'
        AND CASE WHEN $3::int IS NOT NULL THEN v.number = $3 WHEN $4 THEN v.id = p.latest_version_id
                 ELSE v.id = p.version_id END";
    let (slug, version) = split_reference(name);
    let (number, is_latest) = match version {
        None | Some(VersionName::Default) => (None, false),
        Some(VersionName::Latest) => (None, true),
        Some(VersionName::Number(number)) => (Some(number), false),
        Some(VersionName::Id(_) | VersionName::Label(_)) => return Ok(None),
    };
    let row = db.query_opt(FIND, &[&workspace, &slug, &number, &is_latest]).await?;
    Ok(row.map(|row| row.try_get("template")).transpose()?)
}

/// Why a prompt cannot be rendered, said to whoever asked for it.
pub fn refused(error: RenderError) -> ApiError {
    match error {
        RenderError::Variable(fault) => ApiError::field(format!("variables.{}", fault.name), fault.problem.to_string()),
        other => ApiError::invalid(other.to_string()),
    }
}
