//! Rejected tokens in the audit trail. Anybody who can reach the service can send a token that names an organisation,
//! so each organisation's trail takes a bounded number of rows for them; the rest is counted and written as one row.

use super::{AuditRecord, written};
use crate::app::App;
use crate::http::ApiError;
use crate::identity::call::RequestOrigin;
use crate::identity::credential::{Credential, credential};
use shared::identity::jwt;
use shared::identity::jwt::failures::Failure;
use shared::telemetry::{Brief, LogLimit};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Between two looks for what was added up.
const GATHER: Duration = Duration::from_secs(1);

/// Records that a token was refused; nothing when the caller came with something else.
pub async fn token(app: &App, origin: &RequestOrigin, organisation: Option<Uuid>, refused: &ApiError) {
    let Ok(Credential::Jwt(sent)) = credential(&origin.headers, &app.aliases) else { return };
    if matches!(refused, ApiError::Internal | ApiError::Unavailable) {
        return;
    }
    let organisation = match organisation {
        Some(id) => Some(id),
        None => only_organisation(app).await,
    };
    let Some(organisation_id) = organisation else {
        app.metrics.unrecorded_tokens.inc();
        static NOBODYS: LogLimit = LogLimit::new();
        if let Some(skipped) = NOBODYS.pass() {
            let (reason, client_ip) = (Brief(refused), origin.seen.client_ip);
            tracing::warn!(%reason, %client_ip, skipped, "a token of no organisation was rejected");
        }
        return;
    };
    let mask = jwt::mask(&String::from_utf8_lossy(sent));
    let row = AuditRecord {
        resource_type: "jwt",
        action: "authenticate",
        resource_id: Some(mask.clone()),
        response_status_code: refused.status().as_u16().into(),
        error: Some(format!("{} {refused}", refused.code()).replace('\0', "\u{fffd}")),
        ..AuditRecord::for_visitor(origin, organisation_id)
    };
    origin.mark_recorded();
    // A statement of its own, or the lock would be held while the row is written.
    let may_write = app.tokens.failures.lock().may_write(organisation_id, Instant::now());
    if may_write && written(app, &row).await.is_ok() {
        return;
    }
    if let ApiError::Token(rejection) = refused {
        app.tokens.failures.lock().add(Failure {
            organisation_id,
            rejection: rejection.clone(),
            mask,
            method: row.method.to_owned(),
            path: row.uri,
            request_id: row.request_id,
            client_ip: row.client_ip,
        });
    }
}

/// Records that an identity provider's word of a logout was not believed. Whoever knows an organisation's id can send one,
/// so these rows come out of the same bound; what gets none is counted.
pub async fn logout_token(app: &App, origin: &RequestOrigin, organisation: Uuid, refused: &ApiError) {
    if matches!(refused, ApiError::Internal | ApiError::Unavailable) {
        return;
    }
    let may_write = app.tokens.failures.lock().may_write(organisation, Instant::now());
    let row = AuditRecord {
        response_status_code: refused.status().as_u16().into(),
        error: Some(format!("{} {refused}", refused.code()).replace('\0', "\u{fffd}")),
        ..AuditRecord::for_visitor(origin, organisation)
    };
    if !may_write || written(app, &row).await.is_err() {
        app.metrics.unrecorded_tokens.inc();
    }
}

/// Writes what was added up, once a second, until it is dropped.
pub async fn write_token_failures(app: App) {
    loop {
        tokio::time::sleep(GATHER).await;
        write_now(&app, false).await;
    }
}

/// Writes what is still there when the service ends.
pub async fn write_last_token_failures(app: &App) {
    write_now(app, true).await;
}

async fn write_now(app: &App, is_last: bool) {
    let rows = app.tokens.failures.lock().take(Instant::now(), is_last);
    if rows.is_empty() {
        return;
    }
    let db = app.db.get().await.ok();
    for row in rows {
        let is_written = match &db {
            Some(db) => row.insert(&**db).await.is_ok(),
            None => false,
        };
        if !is_written {
            tracing::warn!(error = row.error(), "rejected tokens could not be written to the audit trail yet");
            app.tokens.failures.lock().put_back(row);
        }
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
