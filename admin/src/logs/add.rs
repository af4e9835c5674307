//! Reported calls become rows, by the way that the proxies' rows take (`db::request_logs`): inserted, rolled up and
//! counted in one transaction. Their bodies are stored before, so that no row promises what is not there.

use super::account::{self, LogAccount, LogAccounts};
use super::custom::CustomLog;
use super::price::{self, PriceQuery, PricedUsage};
use super::{logged_body, mask};
use crate::app::App;
use crate::http::ApiError;
use crate::identity::Caller;
use chrono::{DateTime, Utc};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use rand::RngExt as _;
use serde_json::{Map, Value, json};
use shared::db::request_logs;
use shared::model::log_id::log_id;
use std::sync::Arc;
use std::time::SystemTime;
use uuid::Uuid;

/// What is staged; every column without a default of its own.
const COLUMNS: &str = "id, created_at, organisation_id, workspace_id, api_key_id, user_id, virtual_key, ai_org, ai_model, \
    requested_model, config, prompt_slug, mode, request_url, request_method, response_status_code, response_time, req_units, res_units, \
    cache_read_tokens, cache_write_tokens, reasoning_tokens, audio_input_tokens, audio_output_tokens, usage, cost, \
    price_model, unit_prices, price_version, retry_success_count, attempt, stream_mode, trace_id, span_id, span_name, \
    parent_span_id, internal_trace_id, metadata, source, body_key";

/// Objects that are written at the same time.
const AT_ONCE: usize = 8;

/// Stores the logs and answers their ids, in the order they came.
pub async fn add(app: &App, caller: &Caller, logs: Vec<CustomLog>, keeps_bodies: bool) -> Result<Vec<Uuid>, ApiError> {
    let workspace = caller.workspace_id().ok_or(ApiError::WrongKeyKind)?;
    let began = SystemTime::now();
    let place = LogPlace { organisation: caller.organisation_id(), workspace, now: milliseconds_of(began) };
    let mut accounts = LogAccounts::new(place.organisation, workspace);
    let ids = ascending_ids(began, logs.len());
    let mut made = Vec::with_capacity(logs.len());
    for log in logs {
        let [answered, requested] = models(&log);
        let account = accounts.find(&app.db, &log, requested.or(answered)).await?;
        made.push((log, account));
    }
    let store = |((log, account), id): ((CustomLog, Option<Arc<LogAccount>>), Uuid)| async move {
        let account = account.as_deref();
        let priced = priced(app, &log, account).await;
        let key =
            if keeps_bodies { Some(logged_body::store(app, place.at(id), body(&log, id, place)).await?) } else { None };
        Ok::<_, ApiError>(row(&log, StoredLog { id, place, account, body_key: key }, caller, priced))
    };
    let rows: Vec<Value> = stream::iter(made.into_iter().zip(ids)).map(store).buffered(AT_ONCE).try_collect().await?;
    let ids = rows.iter().filter_map(|row| row["id"].as_str()?.parse().ok()).collect();
    let count = rows.len() as u64;
    let mut db = app.db.get().await?;
    request_logs::days::make_day(&*db, place.now.date_naive()).await?;
    let tx = db.transaction().await?;
    tx.batch_execute(&request_logs::stage(COLUMNS, "DROP")).await?;
    request_logs::fill_from_json(&tx, COLUMNS, rows).await?;
    request_logs::add_staged(&tx, COLUMNS, count).await?;
    tx.commit().await?;
    Ok(ids)
}

/// Whose logs they are, and of when.
#[derive(Clone, Copy)]
struct LogPlace {
    organisation: Uuid,
    workspace: Uuid,
    now: DateTime<Utc>,
}

/// Where one of them stands.
struct StoredLog<'a> {
    id: Uuid,
    place: LogPlace,
    account: Option<&'a LogAccount>,
    body_key: Option<String>,
}

impl LogPlace {
    fn at(self, id: Uuid) -> String {
        shared::log_store::body_path(self.organisation, self.workspace, self.now, id)
    }
}

/// Ids hold milliseconds, and a row has the time of its id.
fn milliseconds_of(time: SystemTime) -> DateTime<Utc> {
    let time = DateTime::<Utc>::from(time);
    DateTime::from_timestamp_millis(time.timestamp_millis()).unwrap_or(time)
}

/// Ids of logs that came together: they sort in the order in which the logs came.
fn ascending_ids(time: SystemTime, count: usize) -> Vec<Uuid> {
    let mut ids: Vec<Uuid> = (0..count).map(|_| log_id(time, rand::rng().random())).collect();
    ids.sort_unstable();
    ids
}

/// As the answer names the model, and as it was asked for.
fn models(log: &CustomLog) -> [Option<&str>; 2] {
    [named_in(&log.response_body), named_in(&log.request_body).map(account::own_name)]
}

/// Of a stream, kept as the list of its events, the first says it.
fn named_in(body: &Value) -> Option<&str> {
    let body = body.as_array().and_then(|events| events.first()).unwrap_or(body);
    let places = [&body["model"], &body["modelVersion"], &body["response"]["model"]];
    places.into_iter().find_map(Value::as_str).filter(|name| !name.is_empty() && name.len() <= 255)
}

async fn priced(app: &App, log: &CustomLog, account: Option<&LogAccount>) -> PricedUsage {
    let models: Vec<&str> = models(log).into_iter().flatten().collect();
    let asked = PriceQuery { provider: service(log, account), models: &models, account };
    price::priced(&app.model_configs, &asked, &log.response_body).await
}

fn service<'l>(log: &'l CustomLog, account: Option<&'l LogAccount>) -> Option<&'l str> {
    account.map(|account| account.service.as_str()).or(log.provider.as_deref())
}

fn row(log: &CustomLog, stored: StoredLog<'_>, caller: &Caller, priced: PricedUsage) -> Value {
    let StoredLog { id, place, account, body_key } = stored;
    let [answered, requested] = models(log);
    let usage = &priced.usage;
    let cached = usage.cache_read.saturating_add(usage.cache_read_audio).saturating_add(usage.cache_read_image);
    json!({
        "id": id,
        "created_at": place.now,
        "organisation_id": place.organisation,
        "workspace_id": place.workspace,
        "api_key_id": caller.key.id,
        "user_id": caller.user_id(),
        "virtual_key": account.map(|account| &account.slug),
        "ai_org": service(log, account),
        "ai_model": answered.or(requested),
        "requested_model": requested.filter(|requested| answered.is_some_and(|answered| answered != *requested)),
        "mode": "single",
        "request_url": log.url,
        "request_method": log.method,
        "response_status_code": log.status,
        "response_time": log.response_time,
        "req_units": count(usage.prompt_tokens()),
        "res_units": count(usage.completion_tokens()),
        "cache_read_tokens": count(cached),
        "cache_write_tokens": count(usage.cache_write),
        "reasoning_tokens": count(usage.reasoning),
        "audio_input_tokens": count(usage.audio_input.saturating_add(usage.cache_read_audio)),
        "audio_output_tokens": count(usage.audio_output),
        "usage": priced.reported,
        "cost": priced.cost.map(|cost| cost.to_string()),
        "price_model": priced.price_model,
        "unit_prices": priced.unit_prices,
        "price_version": priced.price_version,
        "retry_success_count": 0,
        "attempt": 0,
        "stream_mode": log.is_stream,
        "trace_id": log.trace_id.clone().unwrap_or_else(|| Uuid::new_v4().to_string()),
        "span_id": log.span_id,
        "span_name": log.span_name,
        "parent_span_id": log.parent_span_id,
        "internal_trace_id": id,
        "metadata": log.metadata,
        "source": "custom",
        "body_key": body_key,
    })
}

/// Absurd figures must not make sums overflow.
fn count(tokens: u64) -> u64 {
    tokens.min(1 << 40)
}

/// What the log store keeps.
fn body(log: &CustomLog, id: Uuid, place: LogPlace) -> Value {
    let headers = |headers: &Map<String, Value>| mask::headers(headers.clone());
    json!({
        "_id": id,
        "organisation_id": place.organisation,
        "workspace_id": place.workspace,
        "created_at": crate::http::Time(place.now),
        "request": {
            "url": log.url, "method": log.method, "headers": headers(&log.request_headers), "body": log.request_body,
        },
        "response": {
            "status": log.status, "headers": headers(&log.response_headers), "body": log.response_body,
            "responseTime": log.response_time, "lastUsedOptionJsonPath": null,
        },
        "log_format": "v1",
    })
}
