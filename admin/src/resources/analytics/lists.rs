//! Graphs whose points are no plain figures: status codes, scores, retries, models; and the summary of the cache.

use super::asked::{Asked, Question, answered_alone};
use super::docs;
use crate::app::App;
use crate::crud::Routes;
use crate::http::{ApiError, Time};
use crate::identity::Call;
use crate::log_data::analytics::csv;
use crate::log_data::measure::{self as m, Measure};
use crate::log_data::{
    COST_UNIT, CallsAsked, ERROR_CODES, GroupBy, GroupQuestion, Groups, LogData, LogQuestion, LogView, Order, OrderBy,
    PostgresLogs, RETRIES, Series, dimension, row,
};
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use axum::extract::State;
use rust_decimal::Decimal;
use serde_json::{Value, json};
use tokio_postgres::Transaction;

const STACKS: &str = "/analytics/graphs/errors/stacks";
const STATUS_CODES: &str = "/analytics/graphs/errors/status-codes";
const RESCUED: &str = "/analytics/graphs/requests/rescued";
const SCORES: &str = "/analytics/graphs/feedbacks/scores";
const MODELS: &str = "/analytics/graphs/feedbacks/ai-models";
const CACHE: &str = "/analytics/summary/cache";

/// Codes of errors there can be.
const MAX_CODES: i64 = 1000;

static GRAPHS: &[(&str, ListGraph)] = &[
    (STACKS, ListGraph::Stacks),
    (STATUS_CODES, ListGraph::StatusCodes),
    (RESCUED, ListGraph::Rescued),
    (SCORES, ListGraph::Scores),
    (MODELS, ListGraph::Models),
];

pub fn routes() -> Routes {
    let graphs = GRAPHS.iter().fold(Routes::default(), |routes, (path, graph)| {
        let draw = move |State(app): State<App>, call: Call| async move { answered_alone(&app, &call, graph).await };
        routes.get(path, draw)
    });
    let cache = |State(app): State<App>, call: Call| async move { answered_alone(&app, &call, &CacheSummary).await };
    graphs.get(CACHE, cache).describe(descriptions())
}

pub fn paths() -> impl Iterator<Item = &'static str> {
    GRAPHS.iter().map(|(path, _)| *path)
}

/// Graphs whose points have lists in them, or no time.
#[derive(Debug, Clone, Copy)]
pub enum ListGraph {
    Stacks,
    StatusCodes,
    Rescued,
    Scores,
    Models,
}

/// What a graph shows of a time.
struct Drawn {
    summary: Value,
    points: Vec<Value>,
}

impl Question for ListGraph {
    fn check(&self, _: &LogView) -> Result<(), ApiError> {
        Ok(())
    }

    async fn answer(&self, tx: &Transaction<'_>, asked: &Asked) -> Result<Value, ApiError> {
        let logs = PostgresLogs(tx);
        let Drawn { summary, points } = self.found(&logs, &asked.question).await?;
        let mut answer = json!({
            "summary": summary, "data_points": points, "object": "analytics-graph", "workspaces": asked.workspaces,
        });
        if let Some(previous) = &asked.previous {
            let Drawn { summary, points } = self.found(&logs, previous).await?;
            answer["previous"] = json!({ "summary": summary, "data_points": points });
        }
        Ok(answer)
    }

    fn sheet(&self, answer: &Value) -> Vec<Value> {
        csv::sheet(answer)
    }
}

impl ListGraph {
    pub fn at_path(path: &str) -> Option<Self> {
        GRAPHS.iter().find(|(one, _)| *one == path).map(|(_, graph)| *graph)
    }

    async fn found(self, logs: &impl LogData, asked: &LogQuestion) -> Result<Drawn, ApiError> {
        match self {
            Self::Stacks => stacks_of(logs, asked).await,
            Self::StatusCodes => status_codes_of(logs, asked).await,
            Self::Rescued => rescued_of(logs, asked).await,
            Self::Scores => scores_of(logs, asked).await,
            Self::Models => models_of(logs, asked).await,
        }
    }
}

async fn stacks_of(logs: &impl LogData, asked: &LogQuestion) -> Result<Drawn, ApiError> {
    let codes = logs.occurrences(asked, ERROR_CODES).await?;
    let total: i64 = codes.values().flatten().map(|(_, count)| count).sum();
    let points = asked.period.slots(asked.period.step()).map(|slot| {
        let stats = codes.get(&slot).into_iter().flatten();
        let stats: Vec<Value> =
            stats.map(|(code, count)| json!({ "response_status_code": code, "count": count })).collect();
        json!({ "timestamp": Time(slot), "stats": stats })
    });
    Ok(Drawn { summary: json!({ "total": total }), points: points.collect() })
}

async fn status_codes_of(logs: &impl LogData, asked: &LogQuestion) -> Result<Drawn, ApiError> {
    let failed = asked.only(CallsAsked::Failed);
    let by_code = GroupQuestion {
        by: GroupBy::Dimension(&dimension::STATUS_CODE),
        then_by: None,
        measures: &[m::REQUESTS],
        order: Order { by: OrderBy::Measure(0), is_descending: true },
        size: MAX_CODES,
        offset: 0,
    };
    let Groups { rows, .. } = logs.groups(&failed, &by_code).await?;
    let whole = logs.totals(&failed, &[m::ERRORS, m::ERROR_CODES]).await?;
    let points = rows.iter().map(|one| json!({ "status_code": number(&one.value), "count": first(&one.figures) }));
    let summary = json!({ "total_errors": first(&whole), "unique_error_codes": whole.get(1) });
    Ok(Drawn { summary, points: points.collect() })
}

async fn rescued_of(logs: &impl LogData, asked: &LogQuestion) -> Result<Drawn, ApiError> {
    let Series { whole, slots } = logs.series(asked, &[m::RESCUED_BY_RETRY, m::RESCUED_BY_FALLBACK]).await?;
    let retries = logs.occurrences(asked, RETRIES).await?;
    let points = asked.period.slots(asked.period.step()).map(|slot| {
        let retry = retries.get(&slot).into_iter().flatten();
        let retry: Vec<Value> =
            retry.map(|(retries, count)| json!({ "retry_success_count": retries, "count": count })).collect();
        let fallback = slots.get(&slot).and_then(|figures| figures.get(1)).cloned().unwrap_or_else(|| 0.into());
        json!({ "timestamp": Time(slot), "retry": retry, "fallback": fallback })
    });
    let summary = json!({ "retry": first(&whole), "fallback": whole.get(1) });
    Ok(Drawn { summary, points: points.collect() })
}

async fn scores_of(logs: &impl LogData, asked: &LogQuestion) -> Result<Drawn, ApiError> {
    let found = logs.scores(asked).await?;
    let total: i64 = found.iter().map(|(_, total)| total).sum();
    let points = found.iter().map(|(score, total)| json!({ "score": score, "total": total })).collect();
    Ok(Drawn { summary: json!({ "total": total }), points })
}

async fn models_of(logs: &impl LogData, asked: &LogQuestion) -> Result<Drawn, ApiError> {
    let found = logs.models_spoken_of(asked).await?;
    let points = found
        .iter()
        .map(|one| json!({ "ai_model": one.model, "total": one.total, "avg_weighted_feedback": one.weighted }));
    Ok(Drawn { summary: json!({}), points: points.collect() })
}

/// What the cache did.
#[derive(Debug)]
pub struct CacheSummary;

impl Question for CacheSummary {
    fn check(&self, _: &LogView) -> Result<(), ApiError> {
        Ok(())
    }

    async fn answer(&self, tx: &Transaction<'_>, asked: &Asked) -> Result<Value, ApiError> {
        let logs = PostgresLogs(tx);
        let mut answer =
            json!({ "summary": summary_of_cache(&logs, &asked.question).await?, "object": "analytics-summary" });
        answer["workspaces"] = asked.workspaces.clone();
        answer["cost_unit"] = COST_UNIT.into();
        if let Some(previous) = &asked.previous {
            answer["previous"] = json!({ "summary": summary_of_cache(&logs, previous).await? });
        }
        Ok(answer)
    }

    fn sheet(&self, answer: &Value) -> Vec<Value> {
        csv::summary_sheet(answer)
    }
}

async fn summary_of_cache(logs: &impl LogData, asked: &LogQuestion) -> Result<Value, ApiError> {
    const MEASURES: &[Measure] = &[m::HITS, m::HIT_LATENCY, m::REQUESTS, m::OTHER_LATENCY, m::SAVED_COST];
    let figures = logs.totals(asked, MEASURES).await?;
    let [hits, with, requests, without, saved] = [0, 1, 2, 3, 4].map(|n| figures.get(n).cloned().unwrap_or_default());
    Ok(json!({
        "hits": hits, "avg_latency": with, "total_requests": requests, "cache_speedup": speedup(&hits, &with, &without),
        "saved_cost": saved,
    }))
}

/// By how many percent answers from the cache are sooner there than others; 0 where one of them is missing.
fn speedup(hits: &Value, with: &Value, without: &Value) -> Value {
    let [hits, with, without] = [hits, with, without].map(|value| value.as_f64().unwrap_or_default());
    if hits == 0.0 || without == 0.0 {
        return 0.into();
    }
    let percent = Decimal::from_f64_retain((without - with) / without * 100.0).unwrap_or_default();
    row::number(percent.round_dp(2))
}

fn first(figures: &[Value]) -> Value {
    figures.first().cloned().unwrap_or_else(|| 0.into())
}

fn number(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| text.into(), Value::from)
}

pub fn descriptions() -> [Doc; 6] {
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
    let summary = || names.iter().fold(schema::object(""), |all, name| all.need(name, docs::figure(name)));
    let before = schema::object("").need("summary", summary()).says("With `compare=previous`.");
    let of_cache = schema::object("CacheSummary")
        .need("summary", summary().says("Of the whole time."))
        .need("object", schema::fixed("analytics-summary"))
        .need("workspaces", docs::workspaces())
        .need("cost_unit", docs::cost_unit())
        .may("previous", before);
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
        docs::compared(CACHE, "What the cache did").answer(of_cache),
    ]
}

fn described(path: &str, says: &str, summary: &[&str], point: Schema) -> Doc {
    let drawn = |title: &str| {
        let figures = summary.iter().fold(schema::object(""), |all, name| all.need(name, docs::figure(name)));
        let points = schema::list(point.clone()).says("One for each slot of the time, or for each value.");
        schema::object(title).need("summary", figures.says("Of the whole time.")).need("data_points", points)
    };
    let answer = drawn(&docs::title(path, "Graph"))
        .need("object", schema::fixed("analytics-graph"))
        .need("workspaces", docs::workspaces())
        .may("previous", drawn("").says("With `compare=previous`."));
    docs::compared(path, says).answer(answer)
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
