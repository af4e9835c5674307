//! Which feedback is counted: that of the workspaces in view and of the time it was given. Filters on calls hold for the calls
//! of its trace; whoever sees only their own calls sees what was said about those.

use super::period::Period;
use super::question::{LogQuestion, within};
use super::series::CountedRows;
use super::traces::SoughtTraces;
use super::{LogView, filters, row};
use crate::http::{ApiError, Query};
use rust_decimal::Decimal;
use serde_json::Value;
use shared::db::table::Filter;
use tokio_postgres::GenericClient;

const TABLE: &str = "feedback";
const THEIR_CALLS: &str = "request_logs WHERE request_logs.workspace_id = feedback.workspace_id AND request_logs.trace_id = feedback.trace_id";

/// The condition on rows of `feedback`.
pub fn filter(asked: &LogQuestion) -> Result<Filter, ApiError> {
    let (view, query) = (&asked.view, &asked.query);
    let filter = within(view.tenant_filter(), asked.period);
    let filter = match filters::feedback_bounds(query)? {
        Some(bounds) => filter.and("weighted BETWEEN (?::numeric[])[1] AND (?::numeric[])[2]", bounds),
        None => filter,
    };
    let calls = calls(view, query)?;
    Ok(if calls.is_about_all() { filter } else { filter.join(Filter::exists(THEIR_CALLS, calls)) })
}

/// The condition on the calls of its trace, whenever they were.
fn calls(view: &LogView, query: &Query) -> Result<Filter, ApiError> {
    let asked = view.checked(query).and_then(|()| filters::attributes(query))?;
    Ok(match view.user_id {
        Some(user) => asked.equals("user_id", user),
        None => asked,
    })
}

pub fn rows(filter: &Filter) -> CountedRows<'_> {
    CountedRows { from: TABLE, time: "created_at", filter, slots: None }
}

/// How often each score was given, from the lowest.
pub async fn scores(db: &impl GenericClient, filter: &Filter) -> Result<Vec<(i32, i64)>, ApiError> {
    let sql = format!("SELECT value, count(*) AS total FROM {TABLE} WHERE {} GROUP BY 1 ORDER BY 1", filter.sql());
    let rows = db.query(&sql, &filter.values()).await?;
    let read = rows.iter().map(|row| Ok((row.try_get("value")?, row.try_get("total")?)));
    read.collect::<Result<_, tokio_postgres::Error>>().map_err(ApiError::from)
}

/// One model, how often it was spoken of, and the average of what was said.
pub struct ModelFeedback {
    pub model: String,
    pub total: i64,
    pub weighted: Value,
}

/// By the models of its trace's calls; feedback on a trace of two models counts for both.
pub async fn models(db: &impl GenericClient, asked: &LogQuestion) -> Result<Vec<ModelFeedback>, ApiError> {
    let given = filter(asked)?;
    let calls = asked.view.filter().join(filters::attributes(&asked.query)?);
    let sought = SoughtTraces::find(db, &asked.view.tenant_filter(), &given, Period::always()).await?;
    let mut values = given.values();
    values.extend(calls.values());
    let columns = "workspace_id, trace_id, coalesce(ai_model, '') AS model";
    let sql = format!(
        "SELECT model, count(*) AS total, round(avg(weighted), 10) AS weighted
         FROM (SELECT weighted, workspace_id AS given_in, trace_id AS given_on FROM {TABLE} WHERE {}) AS said
         JOIN (SELECT DISTINCT * FROM ({}) AS calls) AS spoken_of ON workspace_id = given_in AND trace_id = given_on
         GROUP BY 1 ORDER BY total DESC, model LIMIT {MAX_MODELS}",
        given.sql(),
        SoughtTraces::calls(sought.as_ref(), &given.sql(), columns, &calls.sql_after(&given), values.len()),
    );
    values.extend(sought.iter().flat_map(SoughtTraces::values));
    let rows = db.query(&sql, &values).await?;
    let read = rows.iter().map(|found| {
        Ok(ModelFeedback {
            model: found.try_get("model")?,
            total: found.try_get("total")?,
            weighted: row::number(found.try_get::<_, Decimal>("weighted")?),
        })
    });
    read.collect::<Result<_, tokio_postgres::Error>>().map_err(ApiError::from)
}

const MAX_MODELS: i64 = 1000;
