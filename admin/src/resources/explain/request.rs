//! Finding a request of the past: the rows of all targets it tried, and the config it followed. Only what the caller's
//! view has is found.

use crate::http::ApiError;
use crate::identity::tenancy;
use crate::log_data::{LogData as _, LogView, PostgresLogs};
use rust_decimal::Decimal;
use serde_json::Value;
use shared::config::{ConfigNode, Strictness, parse_config};
use shared::settings::config_limits::ConfigLimits;
use tokio_postgres::{Client, GenericClient};
use uuid::Uuid;

/// Also said of what others may see.
const NOT_THERE: &str = "request; logs arrive within seconds of its end";

/// A request as its logs tell it.
pub struct LoggedRequest {
    /// One for each target that was tried, in their order; never empty.
    pub attempts: Vec<LoggedAttempt>,
    organisation_id: Uuid,
}

pub struct LoggedAttempt {
    /// The row, as logs show it.
    pub log: Value,
    pub cost: Option<Decimal>,
}

impl LoggedRequest {
    /// The log of the whole request: it is written when the request ends, under the id that the client saw.
    pub fn last(&self) -> Option<&LoggedAttempt> {
        let last = self.attempts.last()?;
        let is_whole = last.log["id"] == last.log["internal_trace_id"] || last.log["source"] != "proxy";
        is_whole.then_some(last)
    }
}

/// The version of a config that a request followed.
pub struct ConfigVersion {
    pub number: i32,
    pub config: Option<ConfigNode>,
}

/// By the id of any of its logs, or by a trace that has no other request.
pub async fn find(db: &Client, view: &LogView, asked: &str) -> Result<LoggedRequest, ApiError> {
    let found = PostgresLogs(db).request(view, asked).await?;
    let mut attempts: Vec<LoggedAttempt> =
        found.into_iter().map(|log| LoggedAttempt { log: log.metrics, cost: log.cost }).collect();
    attempts.sort_by_key(|attempt| attempt.log["attempt"].as_i64());
    let Some(first) = attempts.first() else { return Err(ApiError::NotFound(NOT_THERE)) };
    if attempts.iter().any(|other| other.log["internal_trace_id"] != first.log["internal_trace_id"]) {
        return Err(ApiError::field(
            "request_id",
            "names a trace of several requests: ask for one of them by its own id, as GET /logs?trace_id= lists them",
        ));
    }
    Ok(LoggedRequest { attempts, organisation_id: view.organisation_id })
}

/// None when the request followed no saved config, or that one is gone.
pub async fn version(
    db: &impl GenericClient,
    request: &LoggedRequest,
    limits: &ConfigLimits,
) -> Result<Option<ConfigVersion>, ApiError> {
    const FIND: &str = "SELECT number, content FROM config_versions
                        WHERE organisation_id = $1 AND config_id = $2 AND id = $3";
    let id_of = |name: &str| request.attempts.first().and_then(|one| one.log[name].as_str()).and_then(tenancy::id);
    let (Some(config), Some(version)) = (id_of("config_id"), id_of("config_version_id")) else { return Ok(None) };
    let Some(row) = db.query_opt(FIND, &[&request.organisation_id, &config, &version]).await? else { return Ok(None) };
    let content: Value = row.try_get("content")?;
    // Rules may have become stricter since it was saved.
    let config = parse_config(&content, Strictness::Inline, limits).ok();
    Ok(Some(ConfigVersion { number: row.try_get("number")?, config }))
}
