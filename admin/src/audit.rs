//! The audit trail: who did what to which object, when, from where, and what came of it. A change is recorded in its
//! own transaction (see `crud::Action`), a refused attempt by the gate in one of its own. Rows are only ever added,
//! and chained by hashes (`chain.rs`, the job `chain_audit`), so that `verify.rs` finds it when somebody did otherwise.

pub mod chain;
pub mod mask;
mod object_in_path;
mod token;
pub mod verify;
pub mod words;

pub use mask::masked;
pub use token::{logout_token, token, write_last_token_failures, write_token_failures};

use crate::app::App;
use crate::http::ApiError;
use crate::identity::Caller;
use crate::identity::call::RequestOrigin;
use axum::http::StatusCode;
use serde_json::Value;
use shared::model::id::Id;
use shared::model::{ApiKey, KeyKind};
use shared::routes::AuditName;
use shared::telemetry::{Brief, LogLimit};
use std::net::IpAddr;
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// One line of the trail. Jobs fill it by hand, requests by `for_caller`.
#[derive(Debug, Default)]
pub struct AuditRecord {
    pub organisation_id: Uuid,
    pub workspace_id: Option<Uuid>,
    /// The person, or else the key; none when the gateway acted by itself.
    pub user_id: Option<Uuid>,
    /// `user`, `api_key` or `system`.
    pub user_type: &'static str,
    pub api_key_id: Option<Uuid>,
    pub method: &'static str,
    pub uri: String,
    pub query_params: Value,
    pub request_headers: Value,
    pub request_body: Option<Value>,
    pub request_id: Option<Uuid>,
    pub client_ip: Option<IpAddr>,
    pub country: Option<String>,
    pub resource_type: &'static str,
    pub action: &'static str,
    pub resource_id: Option<String>,
    pub response_status_code: i32,
    pub error: Option<String>,
    pub before: Option<Value>,
    pub after: Option<Value>,
}

impl AuditRecord {
    /// A request that succeeded; a failure adds its status and error.
    pub fn for_caller(origin: &RequestOrigin, caller: &Caller) -> Self {
        Self::for_key(origin, &caller.key)
    }

    fn for_key(origin: &RequestOrigin, key: &ApiKey) -> Self {
        let is_token = key.kind == KeyKind::Jwt;
        Self {
            workspace_id: key.workspace_id.map(Id::uuid),
            user_id: Some(key.user_id.map_or(key.id.uuid(), Id::uuid)),
            user_type: if key.user_id.is_some() || is_token { "user" } else { "api_key" },
            api_key_id: (!is_token && !origin.is_by_session).then_some(key.id.uuid()),
            ..Self::for_visitor(origin, key.organisation_id.uuid())
        }
    }

    /// A request by somebody without a key, as who accepts an invitation.
    pub fn for_visitor(origin: &RequestOrigin, organisation_id: Uuid) -> Self {
        let name = origin.operation.audit.unwrap_or(AuditName { resource_type: "other", action: "manage" });
        Self {
            organisation_id,
            user_type: "user",
            method: origin.operation.method.as_str(),
            uri: shortened(origin.uri.path()),
            query_params: mask::query(&origin.uri),
            request_headers: mask::headers(&origin.headers),
            request_body: mask::body(&origin.body),
            request_id: Some(origin.seen.request_id),
            client_ip: Some(origin.seen.client_ip),
            country: origin.seen.country.clone(),
            resource_type: name.resource_type,
            action: name.action,
            resource_id: object_in_path::named_in_path(origin.operation, &origin.uri),
            response_status_code: 200,
            ..Self::default()
        }
    }

    /// Something that the gateway does by itself: an expired key, a due rotation.
    pub fn by_system(organisation_id: Uuid, resource_type: &'static str, action: &'static str) -> Self {
        Self {
            organisation_id,
            user_type: "system",
            resource_type,
            action,
            response_status_code: 200,
            ..Self::default()
        }
    }
}

/// Adds a row; part of the caller's transaction if `db` is one.
pub async fn record(db: &impl GenericClient, record: &AuditRecord) -> Result<(), tokio_postgres::Error> {
    const INSERT: &str =
        "INSERT INTO audit_logs (organisation_id, workspace_id, user_id, user_type, api_key_id, method,
            uri, query_params, request_headers, request_body, request_id, client_ip, country, resource_type, action,
            resource_id, response_status_code, error, before, after)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)";
    let values: [&(dyn ToSql + Sync); 20] = [
        &record.organisation_id,
        &record.workspace_id,
        &record.user_id,
        &record.user_type,
        &record.api_key_id,
        &record.method,
        &record.uri,
        &record.query_params,
        &record.request_headers,
        &record.request_body,
        &record.request_id,
        &record.client_ip,
        &record.country,
        &record.resource_type,
        &record.action,
        &record.resource_id,
        &record.response_status_code,
        &record.error,
        &record.before,
        &record.after,
    ];
    db.execute(INSERT, &values).await.map(|_| ())
}

/// Records what came of a write that no `Action` recorded: a refusal, with its reason. Reads are not recorded, and dry
/// runs only where the caller may not do what they tried.
pub async fn attempt(app: &App, origin: &RequestOrigin, key: &ApiKey, status: StatusCode, refused: Option<&ApiError>) {
    let is_forbidden = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if origin.operation.audit.is_none() || origin.is_recorded() || origin.is_dry_run && !is_forbidden {
        return;
    }
    let mut row = AuditRecord::for_key(origin, key);
    row.response_status_code = status.as_u16().into();
    match refused {
        // Postgres cannot store NUL, and no error must escape the trail by containing one.
        Some(error) => row.error = Some(format!("{} {error}", error.code()).replace('\0', "\u{fffd}")),
        // The change is made and its handler forgot its trace; half a record is better than none.
        None => tracing::error!(operation = origin.operation.path, "a change was not recorded by its handler"),
    }
    if let Err(error) = written(app, &row).await {
        static UNWRITTEN: LogLimit = LogLimit::new();
        if let Some(skipped) = UNWRITTEN.pass() {
            let uri = Brief(&row.uri);
            tracing::error!(%error, %uri, skipped, "an attempt could not be written to the audit trail");
        }
    }
}

async fn written(app: &App, row: &AuditRecord) -> Result<(), ApiError> {
    let db = app.db.get().await?;
    Ok(record(&*db, row).await?)
}

fn shortened(path: &str) -> String {
    path.chars().filter(|c| *c != '\0').take(2048).collect()
}
