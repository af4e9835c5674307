//! Feedback: what people thought of an answer, by the trace it belongs to. Applications send it with the key they call
//! models with; it may come before the log, so no log is looked for. How much a workspace sends in a day is bounded:
//! whoever may call a model may send it, and it is kept.

use crate::app::App;
use crate::crud::{Answer, Routes};
use crate::http::{ApiError, json, text};
use crate::identity::{Call, tenancy};
use crate::openapi::{Doc, schema};
use axum::Json;
use axum::extract::{Path, State};
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

pub fn routes() -> Routes {
    Routes::default().post("/feedback", create).put("/feedback/{id}", update).describe(docs())
}

/// Most in one request.
const MAX_FEEDBACK: usize = 1000;
const MAX_TRACE: usize = 255;
const DAY: i64 = 24 * 60 * 60;
const FULL: &str = "This workspace has sent as much feedback as it may in a day (FEEDBACK_PER_DAY)";
/// Bytes of metadata, written as JSON.
const MAX_METADATA: usize = 16 << 10;

fn docs() -> [Doc; 2] {
    let metadata = schema::either([
        schema::any_object().eg(json!({ "_user": "ada" })),
        schema::any_text().says("The object, written as JSON."),
        schema::nothing(),
    ]);
    let change = schema::object("FeedbackChange")
        .need("value", schema::whole(-10..=10).eg(8))
        .may("weight", schema::number(0).up_to(1).eg(1).or_null())
        .may("metadata", metadata);
    let sent = schema::object("NewFeedback")
        .may("trace_id", schema::text(1..=MAX_TRACE).eg("checkout-42").says("Also accepted as `traceID`."))
        .with(&change);
    let ids = || schema::list(schema::uuid());
    let stored = schema::object("FeedbackStored")
        .need("status", schema::fixed("success"))
        .need("message", schema::any_text().eg("Feedback stored"))
        .need("feedback_ids", ids())
        .need("feedback_id", ids().says("The same; some clients read this name."));
    let many = schema::list(sent.clone()).at_least(1).at_most(MAX_FEEDBACK);
    [
        Doc::post("/feedback", "Say what was thought of an answer")
            .details("One, or a list of them. The trace need not be known yet.")
            .body(schema::either([sent, many]))
            .answer(stored.clone())
            .also(429),
        Doc::put("/feedback/{id}", "Change a feedback").body(change).answer(stored),
    ]
}

#[derive(Deserialize)]
struct NewFeedback {
    #[serde(alias = "traceID", alias = "traceId")]
    trace_id: String,
    value: i64,
    #[serde(default)]
    weight: Option<f64>,
    #[serde(default)]
    metadata: Option<Value>,
}

#[derive(Deserialize)]
struct Opinion {
    value: i64,
    #[serde(default)]
    weight: Option<f64>,
    #[serde(default)]
    metadata: Option<Value>,
}

/// An opinion that can be stored.
struct CheckedFeedback {
    value: i32,
    weight: Option<Decimal>,
    metadata: Option<Value>,
}

impl Opinion {
    fn checked(self) -> Result<CheckedFeedback, ApiError> {
        let value = i32::try_from(self.value).ok().filter(|value| (-10..=10).contains(value));
        let value = value.ok_or_else(|| ApiError::field("value", "must be from -10 to 10"))?;
        let weight = self.weight.map(|weight| {
            let weight = Decimal::try_from(weight).ok().map(|weight| weight.round_dp(6));
            let fitting = weight.filter(|weight| (Decimal::ZERO..=Decimal::ONE).contains(weight));
            fitting.ok_or_else(|| ApiError::field("weight", "must be from 0 to 1"))
        });
        Ok(CheckedFeedback {
            value,
            weight: weight.transpose()?,
            metadata: self.metadata.map(checked_metadata).transpose()?,
        })
    }
}

/// Some clients send the object as text.
fn checked_metadata(sent: Value) -> Result<Value, ApiError> {
    const MUST: &str = "must be an object, or one written as JSON";
    let metadata: Map<String, Value> = match sent {
        Value::Null => Map::new(),
        Value::Object(fields) => fields,
        Value::String(text) if text.trim().is_empty() => Map::new(),
        Value::String(text) => match json::value(text.as_bytes()) {
            Ok(Value::Object(fields)) => fields,
            _ => return Err(ApiError::field("metadata", MUST)),
        },
        _ => return Err(ApiError::field("metadata", MUST)),
    };
    let metadata = Value::Object(metadata);
    if metadata.to_string().len() > MAX_METADATA {
        return Err(ApiError::field("metadata", format!("must not be longer than {MAX_METADATA} bytes")));
    }
    Ok(metadata)
}

/// One or many, each with its trace.
fn received(body: &[u8]) -> Result<Vec<(String, CheckedFeedback)>, ApiError> {
    let checked = |sent: NewFeedback| -> Result<_, ApiError> {
        let trace = text::sized("trace_id", sent.trace_id, 1..=MAX_TRACE)?;
        let opinion = Opinion { value: sent.value, weight: sent.weight, metadata: sent.metadata };
        Ok((trace, opinion.checked()?))
    };
    match json::value(body)? {
        Value::Array(items) if items.is_empty() || items.len() > MAX_FEEDBACK => {
            Err(ApiError::invalid(format!("The body must have 1 to {MAX_FEEDBACK} items")))
        }
        Value::Array(items) => {
            let one = |(n, item)| {
                json::parse(item).and_then(checked).map_err(|error: ApiError| error.under(&format!("[{n}]")))
            };
            items.into_iter().enumerate().map(one).collect()
        }
        one => Ok(vec![json::parse(one).and_then(checked)?]),
    }
}

async fn create(State(app): State<App>, call: Call) -> Answer {
    // The day's count goes first: where it is full nothing is stored.
    const INSERT: &str = "WITH room AS (
            INSERT INTO feedback_days (organisation_id, workspace_id, day, sent)
            SELECT $1, $2, (now() AT TIME ZONE 'UTC')::date, cardinality($5::uuid[])
            WHERE $10::int8 = 0 OR cardinality($5::uuid[]) <= $10
            ON CONFLICT (workspace_id, day) DO UPDATE SET sent = feedback_days.sent + excluded.sent
                WHERE $10 = 0 OR feedback_days.sent + excluded.sent <= $10
            RETURNING day)
        INSERT INTO feedback
            (id, organisation_id, workspace_id, api_key_id, user_id, trace_id, value, weight, metadata)
        SELECT sent.id, $1, $2, $3, $4, sent.trace_id, sent.value, sent.weight, sent.metadata
        FROM unnest($5::uuid[], $6::text[], $7::integer[], $8::numeric[], $9::jsonb[])
            AS sent (id, trace_id, value, weight, metadata)
        WHERE EXISTS (SELECT FROM room)";
    let workspace = call.caller.workspace_id().ok_or(ApiError::WrongKeyKind)?;
    let received = received(&call.origin.body)?;
    let ids: Vec<Uuid> = received.iter().map(|_| Uuid::new_v4()).collect();
    let traces: Vec<&str> = received.iter().map(|(trace, _)| trace.as_str()).collect();
    let values: Vec<i32> = received.iter().map(|(_, one)| one.value).collect();
    let weights: Vec<Decimal> = received.iter().map(|(_, one)| one.weight.unwrap_or(Decimal::ONE)).collect();
    let metadata: Vec<Value> = received.iter().map(|(_, one)| one.metadata.clone().unwrap_or(json!({}))).collect();
    let caller = &call.caller;
    let db = app.db.get().await?;
    let made = db
        .execute(
            INSERT,
            &[
                &caller.organisation_id(),
                &workspace,
                &caller.key.id,
                &caller.user_id(),
                &ids,
                &traces,
                &values,
                &weights,
                &metadata,
                &i64::from(app.feedback_per_day),
            ],
        )
        .await?;
    if made == 0 {
        return Err(ApiError::RateLimited { message: FULL, retry_after: until_tomorrow(Utc::now()) });
    }
    Ok(stored(&ids))
}

/// Seconds until the next day begins.
fn until_tomorrow(now: DateTime<Utc>) -> u64 {
    (DAY - now.timestamp().rem_euclid(DAY)).unsigned_abs()
}

/// What is not sent stays, but the value: an opinion without one is none.
async fn update(State(app): State<App>, call: Call, Path(id): Path<String>) -> Answer {
    const UPDATE: &str = "UPDATE feedback SET value = $4, weight = coalesce($5, weight),
            metadata = coalesce($6, metadata), last_updated_at = now()
        WHERE organisation_id = $1 AND workspace_id = $2 AND id = $3";
    const NONE: ApiError = ApiError::NotFound("feedback");
    let workspace = call.caller.workspace_id().ok_or(ApiError::WrongKeyKind)?;
    let opinion = call.body::<Opinion>()?.checked()?;
    let id = tenancy::id(&id).ok_or(NONE)?;
    let db = app.db.get().await?;
    let organisation = call.caller.organisation_id();
    let changed = db
        .execute(UPDATE, &[&organisation, &workspace, &id, &opinion.value, &opinion.weight, &opinion.metadata])
        .await?;
    if changed == 0 { Err(NONE) } else { Ok(stored(&[id])) }
}

fn stored(ids: &[Uuid]) -> Json<Value> {
    Json(json!({ "status": "success", "message": "Feedback stored", "feedback_ids": ids, "feedback_id": ids }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(body: Value) -> Result<usize, String> {
        received(body.to_string().as_bytes()).map(|all| all.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn one_or_many_are_read_and_faults_are_named_by_their_place() {
        let good = json!({ "traceID": "t", "value": -10, "weight": 0.5, "metadata": "{\"_user\":\"ada\"}" });
        assert_eq!(outcome(good.clone()), Ok(1));
        assert_eq!(outcome(json!([good, { "trace_id": "t", "value": 10, "metadata": { "a": 1 } }])), Ok(2));
        for (body, place) in [
            (json!({ "trace_id": "t" }), "value"),
            (json!({ "value": 1 }), "trace_id"),
            (json!({ "trace_id": "", "value": 1 }), "trace_id"),
            (json!({ "trace_id": "t", "value": 11 }), "value"),
            (json!({ "trace_id": "t", "value": i64::MIN }), "value"),
            (json!({ "trace_id": "t", "value": 1, "weight": 1.1 }), "weight"),
            (json!({ "trace_id": "t", "value": 1, "weight": -0.1 }), "weight"),
            (json!({ "trace_id": "t", "value": 1, "metadata": "ada" }), "metadata"),
            (json!({ "trace_id": "t", "value": 1, "metadata": [] }), "metadata"),
            (json!([good, { "trace_id": "t", "value": "good" }]), "[1].value"),
            (json!([good, { "trace_id": "t", "value": 1, "weight": 5 }]), "[1].weight"),
        ] {
            let refused = outcome(body.clone()).unwrap_err();
            assert!(refused.starts_with(place), "{body}: {refused}");
        }
        for body in [json!([]), json!(vec![good; MAX_FEEDBACK + 1]), json!("text"), json!(null)] {
            assert!(outcome(body.clone()).is_err(), "{body:.40}");
        }
    }
}
