//! A replaced token of a session came back: a thief has it, or its owner has and a thief the newer one. The session ends
//! for both, and the trail of its organisation says when, from where, and whose it was.

use crate::app::App;
use crate::audit::{self, AuditRecord};
use crate::http::ApiError;
use crate::identity::call::RequestOrigin;
use crate::identity::caller::ReplayedSession;
use crate::resources::login::sessions;
use std::sync::Arc;

const WHY: &str =
    "A token of the session that was replaced before came back: the session ends for everybody who has one";

/// In a task of its own: whoever sends such a token must not keep the session alive by leaving before the answer.
pub async fn end(app: &App, origin: &Arc<RequestOrigin>, session: ReplayedSession) {
    let (app, origin) = (app.clone(), origin.clone());
    let ended = tokio::spawn(async move { ended(&app, &origin, session).await }).await;
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, session_id = %session.id, "a replayed session could not be ended"),
        Err(error) => tracing::error!(%error, session_id = %session.id, "a replayed session could not be ended"),
    }
}

/// The row and the end together, once: of two replays at the same time one finds the session.
async fn ended(app: &App, origin: &RequestOrigin, session: ReplayedSession) -> Result<(), ApiError> {
    let mut db = app.db.get().await?;
    let tx = db.transaction().await?;
    if sessions::end(&tx, session.organisation_id, session.user_id, session.id).await? {
        tracing::warn!(session_id = %session.id, user_id = %session.user_id, "a replaced token of a session came back");
        let row = AuditRecord {
            user_id: Some(session.user_id),
            resource_type: "sessions",
            action: "delete",
            resource_id: Some(session.id.to_string()),
            response_status_code: 401,
            error: Some(WHY.to_owned()),
            ..AuditRecord::for_visitor(origin, session.organisation_id)
        };
        audit::record(&tx, &row).await?;
    }
    Ok(tx.commit().await?)
}
