//! The partials that a prompt names, and those that they name, read from the prompt's own workspace.

use crate::http::ApiError;
use shared::prompt::{PartialSet, PromptBody, RenderError, VersionName, split_reference};
use std::collections::BTreeSet;
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// Partials inside partials; rendering refuses more as well.
const DEEPEST: usize = 10;

/// As many as are looked for at once.
const MOST: usize = 100;

/// Level by level. What does not exist stays out, and rendering says so.
pub async fn load(db: &impl GenericClient, workspace: Uuid, body: &PromptBody) -> Result<PartialSet, ApiError> {
    let (mut partials, mut absent) = (PartialSet::default(), BTreeSet::new());
    let components = body.components();
    for _ in 0..=DEEPEST {
        let missing = partials.missing(&components);
        if missing.len() > MOST {
            return Err(refused(RenderError::TooManyPartials));
        }
        for name in missing {
            if absent.contains(&name) {
                continue;
            }
            match read(db, workspace, &name).await? {
                Some(text) => partials.insert(name, &text).map_err(refused)?,
                None => {
                    absent.insert(name);
                }
            }
        }
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
    ApiError::invalid(error.to_string())
}
