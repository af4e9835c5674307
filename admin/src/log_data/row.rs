//! A row of `request_logs` as it is shown, under the published names. One table of its fields gives the columns that are
//! read, the answer and its description.

use super::{LogView, filters};
use crate::http::{ApiError, Time};
use crate::openapi::schema::{self, Schema};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde_json::{Map, Value, json};
use shared::log_store::BodyKey;
use tokio_postgres::{Error, GenericClient, Row};
use uuid::Uuid;

#[derive(Clone, Copy)]
enum ColumnKind {
    Id,
    Text(&'static str),
    /// Whole numbers of each size.
    Short,
    Int,
    Long,
    Flag,
    Json,
}

/// What is shown as it is stored; true when it can be null.
static FIELDS: &[(&str, ColumnKind, bool)] = &[
    ("organisation_id", ColumnKind::Id, false),
    ("organisation_name", ColumnKind::Text("Acme"), true),
    ("workspace_id", ColumnKind::Id, false),
    ("workspace_slug", ColumnKind::Text("ws-market-3f9a01"), true),
    ("api_key_id", ColumnKind::Id, true),
    ("user_id", ColumnKind::Id, true),
    ("virtual_key", ColumnKind::Text("openai-main"), true),
    ("ai_org", ColumnKind::Text("openai"), true),
    ("ai_model", ColumnKind::Text("gpt-4o-2024-08-06"), true),
    ("requested_model", ColumnKind::Text("gpt-4o"), true),
    ("config", ColumnKind::Text("pc-main-1f2e3d"), true),
    ("config_id", ColumnKind::Id, true),
    ("config_version_id", ColumnKind::Id, true),
    ("prompt_id", ColumnKind::Id, true),
    ("prompt_slug", ColumnKind::Text("pp-greeting-1f2e3d"), true),
    ("prompt_version_id", ColumnKind::Id, true),
    ("mode", ColumnKind::Text("single"), false),
    ("last_used_option_index", ColumnKind::Text("config.targets[1]"), true),
    ("request_url", ColumnKind::Text("/v1/chat/completions"), false),
    ("request_method", ColumnKind::Text("POST"), false),
    ("response_status_code", ColumnKind::Int, false),
    ("is_success", ColumnKind::Flag, false),
    ("error_code", ColumnKind::Text("AB01"), true),
    ("response_time", ColumnKind::Int, false),
    ("upstream_response_time", ColumnKind::Int, false),
    ("gateway_processing_time", ColumnKind::Int, false),
    ("time_to_first_token", ColumnKind::Int, true),
    ("request_parsing_time", ColumnKind::Int, true),
    ("pre_processing_time", ColumnKind::Int, true),
    ("cache_processing_time", ColumnKind::Int, true),
    ("response_parsing_time", ColumnKind::Int, true),
    ("req_units", ColumnKind::Long, false),
    ("res_units", ColumnKind::Long, false),
    ("total_units", ColumnKind::Long, false),
    ("cache_read_tokens", ColumnKind::Long, false),
    ("cache_write_tokens", ColumnKind::Long, false),
    ("reasoning_tokens", ColumnKind::Long, false),
    ("audio_input_tokens", ColumnKind::Long, false),
    ("audio_output_tokens", ColumnKind::Long, false),
    ("usage_estimated", ColumnKind::Flag, false),
    ("cost_currency", ColumnKind::Text("USD"), false),
    ("price_model", ColumnKind::Text("gpt-4o"), true),
    ("price_version", ColumnKind::Text("9f86d081884c7d65"), true),
    ("unit_prices", ColumnKind::Json, true),
    ("cache_status", ColumnKind::Text("DISABLED"), false),
    ("cache_type", ColumnKind::Text("simple"), true),
    ("retry_success_count", ColumnKind::Short, false),
    ("attempt", ColumnKind::Short, false),
    ("is_proxy_call", ColumnKind::Flag, false),
    ("trace_id", ColumnKind::Text("checkout-42"), false),
    ("span_id", ColumnKind::Text("step-1"), true),
    ("span_name", ColumnKind::Text("draft"), true),
    ("parent_span_id", ColumnKind::Text("step-0"), true),
    ("internal_trace_id", ColumnKind::Id, false),
    ("source", ColumnKind::Text("proxy"), false),
    ("runtime", ColumnKind::Text("node"), true),
    ("runtime_version", ColumnKind::Text("22.1.0"), true),
    ("sdk_version", ColumnKind::Text("1.9.0"), true),
    ("hook_results", ColumnKind::Json, true),
    ("dropped_params", ColumnKind::Json, true),
];

/// A log as it is shown, and what else is needed of it.
#[derive(Debug, Clone)]
pub struct FoundLog {
    pub id: Uuid,
    pub workspace_id: Uuid,
    pub trace_id: String,
    /// All of it but its bodies, as far as the view shows it.
    pub metrics: Value,
    /// US cents.
    pub cost: Option<Decimal>,
    /// Where its bodies lie.
    pub body_key: Option<String>,
}

impl FoundLog {
    /// Of a row that was selected by `columns`.
    pub(super) fn read(row: &Row, view: &LogView) -> Result<Self, Error> {
        Ok(Self {
            id: row.try_get("id")?,
            workspace_id: row.try_get("workspace_id")?,
            trace_id: row.try_get("trace_id")?,
            metrics: metrics(row, view)?,
            cost: row.try_get("cost")?,
            body_key: row.try_get("body_key")?,
        })
    }
}

/// One log, if there is one of this id in view.
pub(super) async fn find(db: &impl GenericClient, view: &LogView, id: Uuid) -> Result<Option<FoundLog>, ApiError> {
    let Some(by_id) = filters::by_id(id) else { return Ok(None) };
    let filter = view.filter().join(by_id);
    let sql = format!("SELECT {} FROM request_logs WHERE {}", columns(), filter.sql());
    let row = db.query_opt(&sql, &filter.values()).await?;
    Ok(row.map(|row| FoundLog::read(&row, view)).transpose()?)
}

/// The select list over `request_logs`.
pub(super) fn columns() -> String {
    let columns = FIELDS.iter().map(|(name, ..)| match *name {
        "organisation_name" => {
            "(SELECT o.name FROM organisations o WHERE o.id = request_logs.organisation_id) AS organisation_name"
        }
        "workspace_slug" => {
            "(SELECT w.slug FROM workspaces w WHERE w.id = request_logs.workspace_id) AS workspace_slug"
        }
        name => name,
    });
    let further = ["id", "created_at", "stream_mode", "cost", "cache_saved_cost", "metadata", "body_key"];
    columns.chain(further).collect::<Vec<_>>().join(", ")
}

/// All of a row but its bodies, as far as the view shows it.
fn metrics(row: &Row, view: &LogView) -> Result<Value, Error> {
    let id: Uuid = row.try_get("id")?;
    let mut shown = Map::new();
    shown.insert("id".into(), json!(id));
    shown.insert("object".into(), "log".into());
    shown.insert("created_at".into(), json!(row.try_get::<_, Time>("created_at")?));
    for (name, kind, _) in FIELDS {
        let value = match kind {
            ColumnKind::Id => json!(row.try_get::<_, Option<Uuid>>(name)?),
            ColumnKind::Text(_) => json!(row.try_get::<_, Option<&str>>(name)?),
            ColumnKind::Short => json!(row.try_get::<_, Option<i16>>(name)?),
            ColumnKind::Int => json!(row.try_get::<_, Option<i32>>(name)?),
            ColumnKind::Long => json!(row.try_get::<_, Option<i64>>(name)?),
            ColumnKind::Flag => json!(row.try_get::<_, Option<bool>>(name)?),
            ColumnKind::Json => row.try_get::<_, Option<Value>>(name)?.unwrap_or_default(),
        };
        shown.insert((*name).to_owned(), value);
    }
    for cents in ["cost", "cache_saved_cost"] {
        shown.insert(cents.into(), row.try_get::<_, Option<Decimal>>(cents)?.map_or(Value::Null, number));
    }
    shown.insert("cost_unit".into(), COST_UNIT.into());
    shown.insert("stream_mode".into(), u8::from(row.try_get::<_, bool>("stream_mode")?).into());
    let metadata: Value = if view.shows_metadata { row.try_get("metadata")? } else { json!({}) };
    let pairs = metadata.as_object().into_iter().flatten();
    let (names, values): (Vec<_>, Vec<_>) = pairs.map(|(name, value)| (name.clone(), written(value))).unzip();
    shown.insert("metadata.key".into(), names.into());
    shown.insert("metadata.value".into(), values.into());
    shown.insert("metadata".into(), metadata);
    let format = BodyKey::format(row.try_get("body_key")?);
    shown.insert("log_store_file_path_format".into(), format.into());
    Ok(Value::Object(shown))
}

/// What costs of calls are counted in, wherever one leaves; budgets are in dollars.
pub const COST_UNIT: &str = "cent";

/// How bodies are stored: as an object of their own, or in a pack with others.
pub const FORMATS: &[&str] = &["v1", "v2"];

/// Whole numbers are written without a fraction.
pub fn number(decimal: Decimal) -> Value {
    match decimal.is_integer().then(|| decimal.to_i64()).flatten() {
        Some(whole) => whole.into(),
        None => decimal.to_f64().into(),
    }
}

fn written(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// As the document shows it.
pub fn docs() -> Schema {
    let base = schema::object("LogMetrics")
        .need("id", schema::uuid())
        .need("object", schema::fixed("log"))
        .need("created_at", schema::time());
    let fields = FIELDS.iter().fold(base, |all, (name, kind, is_nullable)| {
        let field = match kind {
            ColumnKind::Id => schema::uuid(),
            ColumnKind::Text(example) => schema::any_text().eg(*example),
            ColumnKind::Short | ColumnKind::Int | ColumnKind::Long => schema::whole(-1..=i64::MAX),
            ColumnKind::Flag => schema::flag(),
            ColumnKind::Json => schema::anything(),
        };
        all.need(name, if *is_nullable && !matches!(kind, ColumnKind::Json) { field.or_null() } else { field })
    });
    fields
        .need("cost", schema::number(0).eg(0.025).or_null().says("US cents; null when no price is known."))
        .need(
            "cache_saved_cost",
            schema::number(0).eg(0.025).or_null().says("US cents that an answer from the cache saved; else null."),
        )
        .need("cost_unit", schema::fixed(COST_UNIT).says("What `cost` is counted in: hundredths of `cost_currency`."))
        .need("stream_mode", schema::bit())
        .need("metadata.key", schema::list(schema::any_text().eg("_user")))
        .need("metadata.value", schema::list(schema::any_text().eg("ada")))
        .need("metadata", schema::any_object().eg(json!({ "_user": "ada" })))
        .need("log_store_file_path_format", schema::choice(FORMATS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_numbers_and_whole_ones_have_no_fraction() {
        for (text, expected) in [("0", "0"), ("5.0000000000", "5"), ("0.0125", "0.0125")] {
            let decimal = Decimal::from_str_exact(text).unwrap();
            assert_eq!(number(decimal).to_string(), expected, "{text}");
        }
    }
}
