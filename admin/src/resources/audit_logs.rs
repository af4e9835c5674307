//! Reading the audit trail. It is written whether or not this is switched off (`AUDIT_LOGS_ENABLED`).

mod names;
mod visible;

use crate::app::App;
use crate::audit::words;
use crate::crud::{Answer, Routes};
use crate::http::{ApiError, FieldFault, PageSizes, Query, Time, time};
use crate::identity::{Call, tenancy};
use crate::openapi::schema::{self, Schema};
use crate::openapi::{Doc, choices};
use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::db::table::{Filter, OnDelete, SelectList, Table, Tenancy, row};
use std::collections::BTreeSet;
use std::net::IpAddr;
use uuid::Uuid;

pub fn routes() -> Routes {
    Routes::default().get("/audit-logs", list).describe([docs()])
}

fn docs() -> Doc {
    let text = |example: &str| schema::any_text().eg(example);
    let maybe = |example: &str| schema::any_text().eg(example).or_null();
    let record = schema::object("AuditLog")
        .need("id", schema::uuid())
        .need("timestamp", schema::time())
        .need("method", text("POST"))
        .need("uri", text("/v1/labels"))
        .need("request_id", schema::uuid().or_null())
        .need("request_body", maybe("{\"name\":\"candidate\"}"))
        .need("query_params", maybe("{}"))
        .need("request_headers", maybe("{}"))
        .need("user_id", schema::uuid().or_null())
        .need("user_email", maybe("ada@example.com").says("The person's address now."))
        .need("user_type", schema::choice(&["api_key", "user", "system"]))
        .need("api_key_id", schema::uuid().or_null())
        .need("api_key_name", maybe("ci").says("The key's name now."))
        .need("organisation_id", schema::uuid())
        .need("workspace_id", schema::uuid().or_null())
        .need("workspace_name", maybe("Market").says("The workspace's name now."))
        .need("response_status_code", schema::whole(100..=599).eg(200))
        .need("resource_type", text("labels"))
        .need("resource_id", maybe("0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11"))
        .need("action", text("create"))
        .need("client_ip", maybe("192.0.2.7"))
        .need("country", maybe("DE"))
        .need("error", schema::any_text().or_null().eg(Value::Null))
        .need("before", schema::anything())
        .need("after", schema::anything().eg(json!({ "name": "candidate" })))
        .need("sequence", schema::whole(1..=i64::MAX).or_null().says("Its place in the hash chain."))
        .need("hash", maybe("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"));
    let page = schema::object("AuditLogList")
        .need("object", schema::fixed("analytics-graph"))
        .need("total", schema::whole(0..=i64::MAX))
        .need("records", schema::list(record));
    let doc = Doc::get("/audit-logs", "List what was done, by whom")
        .details(
            "By a session of who runs a workspace: what was done there. Where security settings keep something from its \
             managers, they read no request and no `before` and `after`.",
        )
        .pages(PageSizes::USUAL).answer(page);
    let filters = [
        ("start_time", schema::moment().says("30 days before the end unless given.")),
        ("end_time", schema::moment().says("Now unless given.")),
        ("method", schema::choice(METHODS).or_empty().eg("POST").says("In upper or lower case.")),
        ("uri", text("/labels").says("Part of the path.")),
        ("request_id", schema::uuid().or_empty()),
        ("user_id", schema::uuid().or_empty()),
        ("user_type", choices(&["user", "api_key", "system"])),
        ("workspace_id", text("ws-market-3f9a01").says("Id or slug.")),
        ("organisation_id", schema::uuid().or_empty().says("If sent, the caller's own.")),
        ("response_status_code", text("200").matching("^([1-5][0-9]{2})?$")),
        ("resource_type", words(words::resource_types()).eg("labels")),
        ("resource_id", text("0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11").says("Of one object.")),
        ("action", words(words::actions()).eg("create")),
        ("client_ip", text("192.0.2.7")),
        ("country", text("DE").matching("^([A-Za-z]{2})?$").says("Two letters, in upper or lower case.")),
    ];
    filters.into_iter().fold(doc, |doc, (name, schema)| doc.filter(name, schema))
}

fn words(known: BTreeSet<&'static str>) -> Schema {
    schema::choice(&known.into_iter().collect::<Vec<_>>()).or_empty()
}

const TABLE: Table = Table {
    name: "audit_logs",
    columns: SelectList::Sql(
        "id, created_at AS timestamp, method, uri, request_id, request_body::text AS request_body,
              query_params::text AS query_params, request_headers::text AS request_headers, user_id, user_type,
              api_key_id, organisation_id, workspace_id, response_status_code, resource_type, resource_id, action,
              host(client_ip) AS client_ip, country, error, before, after, sequence, encode(hash, 'hex') AS hash",
    ),
    slug: None,
    tenancy: Tenancy::Organisation,
    on_delete: OnDelete::Archive,
};

/// Of requests; what the gateway does by itself has none.
const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// What is shown when no time is asked for.
const USUAL_DAYS: i64 = 30;

/// A record as it is shown. The parts of the request are texts that hold JSON: that is how clients know them.
#[derive(Serialize, Deserialize)]
struct AuditLog {
    id: Uuid,
    timestamp: Time,
    method: String,
    uri: String,
    request_id: Option<Uuid>,
    request_body: Option<String>,
    query_params: Option<String>,
    request_headers: Option<String>,
    user_id: Option<Uuid>,
    #[serde(skip_deserializing)]
    user_email: Option<String>,
    user_type: String,
    api_key_id: Option<Uuid>,
    #[serde(skip_deserializing)]
    api_key_name: Option<String>,
    organisation_id: Uuid,
    workspace_id: Option<Uuid>,
    #[serde(skip_deserializing)]
    workspace_name: Option<String>,
    response_status_code: i32,
    resource_type: String,
    resource_id: Option<String>,
    action: String,
    client_ip: Option<String>,
    country: Option<String>,
    error: Option<String>,
    before: Option<Value>,
    after: Option<Value>,
    /// Its place in the hash chain, by which `gateway-admin audit verify` names it; null until it is chained.
    sequence: Option<i64>,
    hash: Option<String>,
}

async fn list(State(app): State<App>, call: Call) -> Answer {
    let page = call.query().page(PageSizes::USUAL)?;
    let filter = visible::rows(&call.caller).join(filter(call.query(), call.caller.organisation_id(), Utc::now())?);
    let _turn = app.log_queries.enter(call.caller.organisation_id()).await?;
    let db = app.db.get().await?;
    let found = TABLE.page(&*db, &filter, page).await?;
    let mut records = found.rows.iter().map(row::read::<AuditLog>).collect::<Result<Vec<_>, _>>()?;
    names::add(&*db, call.caller.organisation_id(), &mut records).await?;
    visible::conceal(&call.caller, &mut records);
    // The odd name is the published one.
    Ok(Json(json!({ "records": records, "total": found.total, "object": "analytics-graph" })))
}

fn filter(query: &Query, organisation: Uuid, now: DateTime<Utc>) -> Result<Filter, ApiError> {
    if query.uuid("organisation_id")?.is_some_and(|asked| asked != organisation) {
        return Err(ApiError::NotFound("organisation"));
    }
    let (from, until) = period(query, now)?;
    let mut filter = Filter::default().and("created_at >= ?", from).and("created_at < ?", until);
    for column in ["user_id", "request_id"] {
        if let Some(id) = query.uuid(column)? {
            filter = filter.equals(column, id);
        }
    }
    for (column, known) in [("resource_type", words::resource_types()), ("action", words::actions())] {
        if let Some(word) = query.text(column) {
            filter = filter.equals(column, among(column, word, known)?);
        }
    }
    if let Some(method) = query.text("method") {
        filter = filter.equals("method", among("method", &method.to_ascii_uppercase(), METHODS.iter().copied())?);
    }
    if let Some(id) = query.text("resource_id") {
        filter = filter.equals("resource_id", id.to_owned());
    }
    if let Some(country) = query.text("country") {
        if country.len() != 2 || !country.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err(ApiError::field("country", "must be a country's two letters, as DE"));
        }
        filter = filter.equals("country", country.to_ascii_uppercase());
    }
    if let Some(kind) = query.choices("user_type", &["user", "api_key", "system"])?.into_iter().next() {
        filter = filter.equals("user_type", kind);
    }
    if let Some(part) = query.text("uri") {
        filter = filter.contains("uri", part);
    }
    if let Some(status) = query.text("response_status_code") {
        let status: Option<i32> = status.parse().ok().filter(|code| (100..=599).contains(code));
        let status = status.ok_or_else(|| ApiError::field("response_status_code", "must be a status as 200"))?;
        filter = filter.equals("response_status_code", status);
    }
    if let Some(address) = query.text("client_ip") {
        let address: Result<IpAddr, _> = address.parse();
        let address = address.map_err(|_| ApiError::field("client_ip", "must be an IP address"))?;
        filter = filter.equals("client_ip", address);
    }
    if let Some(name) = query.text("workspace_id") {
        // Also of an archived workspace, or one that is gone: the trail outlives what it names.
        filter = match tenancy::id(name) {
            Some(id) => filter.equals("workspace_id", id),
            None => filter.and(
                "workspace_id = (SELECT w.id FROM workspaces w
                                 WHERE w.organisation_id = audit_logs.organisation_id AND w.slug = ?)",
                name.to_owned(),
            ),
        };
    }
    Ok(filter)
}

fn among(field: &str, sent: &str, known: impl IntoIterator<Item = &'static str>) -> Result<String, ApiError> {
    let known: Vec<&str> = known.into_iter().collect();
    match known.contains(&sent) {
        true => Ok(sent.to_owned()),
        false => Err(ApiError::Faults(vec![FieldFault::not_among(field, sent, &known)])),
    }
}

/// From the first moment to before the last. Times are shown in milliseconds, so the end covers the whole of its own:
/// what a client saw last it can ask for.
fn period(query: &Query, now: DateTime<Utc>) -> Result<(DateTime<Utc>, DateTime<Utc>), ApiError> {
    let asked = |name: &str| query.text(name).map(|text| time::parsed(name, &time::with_plus(text))).transpose();
    let until = asked("end_time")?.unwrap_or(now);
    let from = asked("start_time")?.unwrap_or(until - TimeDelta::days(USUAL_DAYS));
    if until < from {
        return Err(ApiError::field("end_time", "must not be before start_time"));
    }
    Ok((from, until + TimeDelta::milliseconds(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> Result<(String, String), String> {
        let now = "2026-03-31T00:00:00Z".parse().unwrap();
        let (from, until) = period(&Query::parse(Some(query)).unwrap(), now).map_err(|error| error.to_string())?;
        Ok((Time(from).to_string(), Time(until).to_string()))
    }

    #[test]
    fn a_period_is_thirty_days_unless_asked_for() {
        for (query, from, until) in [
            ("", "2026-03-01T00:00:00.000Z", "2026-03-31T00:00:00.001Z"),
            ("start_time=2026-03-30", "2026-03-30T00:00:00.000Z", "2026-03-31T00:00:00.001Z"),
            ("end_time=2026-01-31", "2026-01-01T00:00:00.000Z", "2026-01-31T00:00:00.001Z"),
            (
                "start_time=2026-01-01T02:00:00+02:00&end_time=2026-01-01T00:00:00Z",
                "2026-01-01T00:00:00.000Z",
                "2026-01-01T00:00:00.001Z",
            ),
            (
                "start_time=2026-01-01T02:00:00%2B02:00&end_time=2026-01-02",
                "2026-01-01T00:00:00.000Z",
                "2026-01-02T00:00:00.001Z",
            ),
        ] {
            assert_eq!(asked(query), Ok((from.to_owned(), until.to_owned())), "{query}");
        }
        for query in ["start_time=x", "end_time=yesterday", "start_time=2026-02-01&end_time=2026-01-01"] {
            assert!(asked(query).is_err(), "{query}");
        }
    }

    #[test]
    fn every_filter_of_the_contract_becomes_a_condition_and_wrong_values_are_named() {
        let id = Uuid::nil();
        let sql = |query: &str| {
            let query = Query::parse(Some(query)).unwrap();
            filter(&query, id, Utc::now()).map(|filter| filter.sql()).map_err(|error| error.to_string())
        };
        for (query, condition) in [
            ("method=post", "method = $3"),
            ("uri=/Labels", "strpos(lower(uri), lower($3)) > 0"),
            ("request_id=0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11", "request_id = $3"),
            ("user_id=0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11", "user_id = $3"),
            ("user_type=api_key", "user_type = $3"),
            ("workspace_id=0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11", "workspace_id = $3"),
            ("workspace_id=ws-main", "w.slug = $3"),
            ("response_status_code=403", "response_status_code = $3"),
            ("resource_type=labels", "resource_type = $3"),
            ("resource_id=0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11", "resource_id = $3"),
            ("action=create", "action = $3"),
            ("client_ip=::1", "client_ip = $3"),
            ("country=de", "country = $3"),
            ("organisation_id=00000000-0000-0000-0000-000000000000", "created_at < $2"),
        ] {
            let sql = sql(query).unwrap();
            assert!(sql.starts_with("created_at >= $1 AND created_at < $2") && sql.contains(condition), "{sql}");
        }
        for (query, field) in [
            ("user_type=robot", "user_type"),
            ("resource_type=auth_settings", "resource_type"),
            ("action=created", "action"),
            ("method=fetch", "method"),
            ("country=Germany", "country"),
            ("user_id=me", "user_id"),
            ("request_id=1", "request_id"),
            ("response_status_code=ok", "response_status_code"),
            ("client_ip=here", "client_ip"),
            ("organisation_id=mine", "organisation_id"),
            ("organisation_id=0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11", "There is no such organisation"),
        ] {
            let refused = sql(query).unwrap_err();
            assert!(refused.starts_with(field), "{query}: {refused}");
        }
    }
}
