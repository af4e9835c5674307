//! Graphs whose points are no plain figures: status codes, scores, retries, models; and the summary of the cache.

use super::asked::Asked;
use super::docs;
use crate::analytics::groups::{self, GroupQuery, Groups, Order, OrderBy};
use crate::analytics::measure::{self as m, Measure};
use crate::analytics::series::{self, CountedRows, Occurring, Series};
use crate::analytics::slots::Slots;
use crate::analytics::{csv, dimension, feedback};
use crate::app::App;
use crate::crud::Routes;
use crate::http::{ApiError, Time};
use crate::identity::Call;
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use shared::db::table::Filter;
use tokio_postgres::{IsolationLevel, Transaction};

const STACKS: &str = "/analytics/graphs/errors/stacks";
const STATUS_CODES: &str = "/analytics/graphs/errors/status-codes";
const RESCUED: &str = "/analytics/graphs/requests/rescued";
const SCORES: &str = "/analytics/graphs/feedbacks/scores";
const MODELS: &str = "/analytics/graphs/feedbacks/ai-models";
const CACHE: &str = "/analytics/summary/cache";

/// Codes of errors there can be.
const MOST_CODES: i64 = 1000;

pub fn routes() -> Routes {
    Routes::default()
        .get(STACKS, stacks)
        .get(STATUS_CODES, status_codes)
        .get(RESCUED, rescued)
        .get(SCORES, scores)
        .get(MODELS, models)
        .get(CACHE, cache)
        .describe(descriptions())
}

/// Of one moment, whatever is stored meanwhile.
async fn begin<'t>(asked: &'t mut Asked<'_>) -> Result<Transaction<'t>, ApiError> {
    let tx = asked.db.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    Ok(tx.start().await?)
}

async fn stacks(State(app): State<App>, call: Call) -> Result<Response, ApiError> {
    let mut asked = Asked::of(&app, &call).await?;
    let (filter, slots) = occurring(&asked, series::ERROR_CODES)?;
    let period = asked.period;
    let tx = begin(&mut asked).await?;
    let rows = CountedRows::logs(&filter, slots.as_ref());
    let codes = series::occurrences(&tx, &rows, period.step(), series::ERROR_CODES).await?;
    let total: i64 = codes.values().flatten().map(|(_, count)| count).sum();
    let points = period.slots(period.step()).map(|slot| {
        let stats = codes.get(&slot).into_iter().flatten();
        let stats: Vec<Value> =
            stats.map(|(code, count)| json!({ "response_status_code": code, "count": count })).collect();
        json!({ "timestamp": Time(slot), "stats": stats })
    });
    drawn(&call, json!({ "total": total }), points.collect())
}

/// The logs, and the slots, that have such a number.
fn occurring(asked: &Asked<'_>, number: Occurring) -> Result<(Filter, Option<Slots>), ApiError> {
    let slots = asked.slots().map(|slots| slots.holding(number.condition));
    Ok((asked.filter()?.holds(number.which), slots))
}

async fn status_codes(State(app): State<App>, call: Call) -> Result<Response, ApiError> {
    let mut asked = Asked::of(&app, &call).await?;
    let (errors, slots) = occurring(&asked, series::ERROR_CODES)?;
    let tx = begin(&mut asked).await?;
    let Groups { rows, .. } = groups::groups(&tx, &by_code(&errors, slots.as_ref())).await?;
    let counted = CountedRows::logs(&errors, slots.as_ref());
    let whole = groups::totals(&tx, &counted, &[m::ERRORS, m::ERROR_CODES]).await?;
    let points = rows.iter().map(|(code, figures)| json!({ "status_code": number(code), "count": first(figures) }));
    let points = points.collect();
    drawn(&call, json!({ "total_errors": first(&whole), "unique_error_codes": whole.get(1) }), points)
}

fn by_code<'f>(filter: &'f Filter, slots: Option<&'f Slots>) -> GroupQuery<'f> {
    GroupQuery {
        value: dimension::STATUS_CODE.sql,
        from: dimension::STATUS_CODE.from,
        filter,
        slots: slots.zip(dimension::STATUS_CODE.slots),
        further: Vec::new(),
        measures: &[m::REQUESTS],
        order: Order { by: OrderBy::Measure(0), is_descending: true },
        size: MOST_CODES,
        offset: 0,
    }
}

async fn rescued(State(app): State<App>, call: Call) -> Result<Response, ApiError> {
    const MEASURES: &[Measure] = &[m::RESCUED_BY_RETRY, m::RESCUED_BY_FALLBACK];
    let mut asked = Asked::of(&app, &call).await?;
    let (filter, of_all, period) = (asked.filter()?, asked.slots(), asked.period);
    let (retried, of_retried) = occurring(&asked, series::RETRIES)?;
    let step = period.step();
    let tx = begin(&mut asked).await?;
    let rows = CountedRows::logs(&filter, of_all.as_ref());
    let Series { whole, slots } = series::series(&tx, &rows, step, MEASURES).await?;
    let rows = CountedRows::logs(&retried, of_retried.as_ref());
    let retries = series::occurrences(&tx, &rows, step, series::RETRIES).await?;
    let points = period.slots(step).map(|slot| {
        let retry = retries.get(&slot).into_iter().flatten();
        let retry: Vec<Value> =
            retry.map(|(retries, count)| json!({ "retry_success_count": retries, "count": count })).collect();
        let fallback = slots.get(&slot).and_then(|figures| figures.get(1)).cloned().unwrap_or_else(|| 0.into());
        json!({ "timestamp": Time(slot), "retry": retry, "fallback": fallback })
    });
    drawn(&call, json!({ "retry": first(&whole), "fallback": whole.get(1) }), points.collect())
}

async fn scores(State(app): State<App>, call: Call) -> Result<Response, ApiError> {
    let asked = Asked::of(&app, &call).await?;
    let given = feedback::filter(&asked.view, &asked.query, asked.period)?;
    let found = feedback::scores(&*asked.db, &given).await?;
    let total: i64 = found.iter().map(|(_, total)| total).sum();
    let points = found.iter().map(|(score, total)| json!({ "score": score, "total": total })).collect();
    drawn(&call, json!({ "total": total }), points)
}

async fn models(State(app): State<App>, call: Call) -> Result<Response, ApiError> {
    let asked = Asked::of(&app, &call).await?;
    let given = feedback::filter(&asked.view, &asked.query, asked.period)?;
    let found = feedback::models(&*asked.db, &asked.view, &asked.query, &given).await?;
    let points = found
        .iter()
        .map(|one| json!({ "ai_model": one.model, "total": one.total, "avg_weighted_feedback": one.weighted }));
    drawn(&call, json!({}), points.collect())
}

async fn cache(State(app): State<App>, call: Call) -> Result<Response, ApiError> {
    const MEASURES: &[Measure] = &[m::HITS, m::HIT_LATENCY, m::REQUESTS, m::OTHER_LATENCY, m::SAVED_COST];
    let mut asked = Asked::of(&app, &call).await?;
    let (filter, slots) = (asked.filter()?, asked.slots());
    let tx = begin(&mut asked).await?;
    let figures = groups::totals(&tx, &CountedRows::logs(&filter, slots.as_ref()), MEASURES).await?;
    let [hits, with, requests, without, saved] = [0, 1, 2, 3, 4].map(|n| figures.get(n).cloned().unwrap_or_default());
    let summary = json!({
        "hits": hits, "avg_latency": with, "total_requests": requests, "cache_speedup": speedup(&hits, &with, &without),
        "saved_cost": saved,
    });
    if csv::is_wanted(&call.origin.headers) {
        return Ok(csv::response(&[summary]));
    }
    Ok(Json(json!({ "summary": summary, "object": "analytics-summary" })).into_response())
}

/// By how many percent answers from the cache are sooner there than others; 0 where one of them is missing.
fn speedup(hits: &Value, with: &Value, without: &Value) -> Value {
    let [hits, with, without] = [hits, with, without].map(|value| value.as_f64().unwrap_or_default());
    if hits == 0.0 || without == 0.0 {
        return 0.into();
    }
    let percent = Decimal::from_f64_retain((without - with) / without * 100.0).unwrap_or_default();
    crate::logs::row::number(percent.round_dp(2))
}

fn drawn(call: &Call, summary: Value, points: Vec<Value>) -> Result<Response, ApiError> {
    if csv::is_wanted(&call.origin.headers) {
        return Ok(csv::response(&points));
    }
    Ok(Json(json!({ "summary": summary, "data_points": points, "object": "analytics-graph" })).into_response())
}

fn first(figures: &[Value]) -> Value {
    figures.first().cloned().unwrap_or_else(|| 0.into())
}

fn number(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| text.into(), Value::from)
}

fn descriptions() -> [Doc; 6] {
    let count = docs::count;
    let point = || schema::object("");
    let timed = || point().need("timestamp", schema::time().says("When its slot begins."));
    let code = || schema::whole(0..=i64::MAX).eg(429).says("Status of the calls.");
    let stat = point().need("response_status_code", code()).need("count", count());
    let tries = schema::whole(0..=i64::MAX).eg(1).says("Retries that it took.");
    let retry = point().need("retry_success_count", tries).need("count", count());
    let score = point().need("score", schema::whole(-10..=10).eg(8).says("The value.")).need("total", count());
    let model = point()
        .need("ai_model", schema::any_text().eg("gpt-4o").says("As the answers name it."))
        .need("total", count())
        .need("avg_weighted_feedback", docs::figure("avg_weighted_feedback"));
    let names = ["hits", "avg_latency", "total_requests", "cache_speedup", "saved_cost"];
    let summary = names.iter().fold(schema::object(""), |all, name| all.need(name, docs::figure(name)));
    let summary = summary.says("Of the whole time.");
    let of_cache =
        schema::object("CacheSummary").need("summary", summary).need("object", schema::fixed("analytics-summary"));
    [
        described(
            STACKS,
            "Failed calls over time, by status",
            &["total"],
            timed().need("stats", schema::list(stat).says("Its statuses.")),
        ),
        described(
            STATUS_CODES,
            "Failed calls by status, the commonest first",
            &["total_errors", "unique_error_codes"],
            point().need("status_code", code()).need("count", count()),
        ),
        described(
            RESCUED,
            "Calls over time that a retry or a fallback saved",
            &["retry", "fallback"],
            timed()
                .need("retry", schema::list(retry).says("By number of retries."))
                .need("fallback", docs::figure("fallback")),
        ),
        described(SCORES, "Feedback by score", &["total"], score),
        described(MODELS, "Feedback by model, the most spoken of first", &[], model),
        docs::counted(CACHE, "What the cache did").answer(of_cache),
    ]
}

fn described(path: &str, says: &str, summary: &[&str], point: Schema) -> Doc {
    let figures = summary.iter().fold(schema::object(""), |all, name| all.need(name, docs::figure(name)));
    let answer = schema::object(&docs::title(path, "Graph"))
        .need("summary", figures.says("Of the whole time."))
        .need("data_points", schema::list(point).says("One for each slot of the time, or for each value."))
        .need("object", schema::fixed("analytics-graph"));
    docs::counted(path, says).answer(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_quicker_by_percent() {
        for (hits, with, without, expected) in [
            (3, json!(50), json!(200), json!(75)),
            (3, json!(300), json!(200), json!(-50)),
            (0, json!(0), json!(200), json!(0)),
            (3, json!(50), json!(0), json!(0)),
            (3, json!(1), json!(3), json!(66.67)),
        ] {
            assert_eq!(speedup(&json!(hits), &with, &without), expected, "{hits} {with} {without}");
        }
    }
}
