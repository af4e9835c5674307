//! Rejected tokens in the audit trail. Whoever can reach the service can send a token that names an organisation, so
//! each organisation's trail takes a bounded number of them; the rest is counted and logged.

use super::{Record, written};
use crate::app::App;
use crate::call::Origin;
use crate::credential::{Credential, credential};
use crate::error::ApiError;
use shared::jwt;
use std::time::Instant;
use uuid::Uuid;

/// Records that a token was refused; nothing when the caller came with something else.
pub async fn token(app: &App, origin: &Origin, organisation: Option<Uuid>, refused: &ApiError) {
    let Ok(Credential::Jwt(sent)) = credential(&origin.headers, &app.aliases) else { return };
    if matches!(refused, ApiError::Internal | ApiError::Unavailable) {
        return;
    }
    let organisation = match organisation {
        Some(id) => Some(id),
        None => only_organisation(app).await,
    };
    let Some(organisation) = organisation.filter(|id| app.tokens.may_record(*id, Instant::now())) else {
        app.metrics.unrecorded_tokens.inc();
        tracing::warn!(reason = %refused, client_ip = %origin.seen.client_ip, "a token was rejected");
        return;
    };
    let row = Record {
        resource_type: "jwt",
        action: "authenticate",
        resource_id: Some(jwt::mask(&String::from_utf8_lossy(sent))),
        response_status_code: refused.status().as_u16().into(),
        error: Some(format!("{} {refused}", refused.code()).replace('\0', "\u{fffd}")),
        ..Record::of_visitor(origin, organisation)
    };
    match written(app, &row).await {
        Ok(()) => origin.mark_recorded(),
        Err(error) => tracing::error!(%error, "a rejected token could not be written to the audit trail"),
    }
}

/// Where there is one organisation, a token that names none can only have meant it.
async fn only_organisation(app: &App) -> Option<Uuid> {
    let db = app.db.get().await.ok()?;
    match &db.query("SELECT id FROM organisations LIMIT 2", &[]).await.ok()?[..] {
        [only] => only.try_get("id").ok(),
        _ => None,
    }
}
