//! Graphs: a summary of a time, and a point for each slot of it. Each is a row of a table that names what is measured.

use super::asked::{Asked, Question, answered_alone};
use super::docs;
use super::names;
use crate::app::App;
use crate::crud::Routes;
use crate::http::{ApiError, Query, Time};
use crate::identity::Call;
use crate::log_data::analytics::csv;
use crate::log_data::dimension::{self, Dimension};
use crate::log_data::measure::{self as m, Measure};
use crate::log_data::period::Period;
use crate::log_data::{COST_UNIT, LogData, LogQuestion, LogView, PostgresLogs, Series, running_sums};
use crate::openapi::{Doc, schema};
use axum::extract::State;
use serde_json::{Map, Value, json};
use tokio_postgres::Transaction;

#[derive(Debug)]
struct Graph {
    path: &'static str,
    says: &'static str,
    of: GraphOf,
    summary: &'static [(&'static str, Measure)],
    points: &'static [(&'static str, Measure)],
    /// Points that add up from slot to slot.
    running: &'static [(&'static str, Measure)],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GraphOf {
    Calls,
    Feedback,
}

const fn graph(
    path: &'static str,
    says: &'static str,
    summary: &'static [(&'static str, Measure)],
    points: &'static [(&'static str, Measure)],
) -> Graph {
    Graph { path, says, of: GraphOf::Calls, summary, points, running: &[] }
}

const TOTAL: &[(&str, Measure)] = &[("total", m::REQUESTS)];
const COST: &[(&str, Measure)] = &[("total", m::COST), ("avg", m::AVG_COST)];
const TOKENS: &[(&str, Measure)] = &[("total", m::TOKENS), ("avg", m::AVG_TOKENS)];
const LATENCY: &[(&str, Measure)] =
    &[("avg", m::AVG_LATENCY), ("p50", m::P50_LATENCY), ("p90", m::P90_LATENCY), ("p99", m::P99_LATENCY)];

static GRAPHS: &[Graph] = &[
    graph("/analytics/graphs/requests", "Calls over time", TOTAL, TOTAL),
    graph("/analytics/graphs/cost", "Cost over time, in US cents", COST, COST),
    graph("/analytics/graphs/latency", "Response times over time, in milliseconds", LATENCY, LATENCY),
    graph("/analytics/graphs/tokens", "Tokens over time", TOKENS, TOKENS),
    graph("/analytics/graphs/users", "Different users over time", &[("total", m::USERS)], &[("total", m::USERS)]),
    graph(
        "/analytics/graphs/users/requests",
        "Calls of a user over time",
        &[("total", m::USERS_REQUESTS), ("unique", m::USERS), ("avg", m::REQUESTS_PER_USER)],
        &[("avg", m::REQUESTS_PER_USER)],
    ),
    graph("/analytics/graphs/errors", "Failed calls over time", &[("total", m::ERRORS)], &[("total", m::ERRORS)]),
    graph(
        "/analytics/graphs/errors/rate",
        "Share of failed calls over time, in percent",
        &[("rate", m::ERROR_RATE)],
        &[("rate", m::ERROR_RATE)],
    ),
    Graph {
        running: &[
            ("cumulative_simple_cache_savings", m::SIMPLE_SAVINGS),
            ("cumulative_semantic_cache_savings", m::SEMANTIC_SAVINGS),
        ],
        ..graph(
            "/analytics/graphs/cache/hit-rate",
            "Answers from the cache over time, and the US cents they saved",
            &[("total", m::HITS), ("rate", m::HIT_RATE)],
            &[("simple_hits", m::SIMPLE_HITS), ("semantic_hits", m::SEMANTIC_HITS), ("rate", m::HIT_RATE)],
        )
    },
    graph(
        "/analytics/graphs/cache/latency",
        "Response times of answers from the cache over time, in milliseconds",
        &[],
        &[("avg", m::HIT_LATENCY)],
    ),
    Graph {
        of: GraphOf::Feedback,
        ..graph(
            "/analytics/graphs/feedbacks",
            "Feedback over time",
            &[("total", m::FEEDBACKS)],
            &[("total", m::FEEDBACKS)],
        )
    },
    Graph {
        of: GraphOf::Feedback,
        ..graph(
            "/analytics/graphs/feedbacks/weighted",
            "What was thought of answers over time: value times weight",
            &[("avg", m::WEIGHTED)],
            &[("avg", m::WEIGHTED)],
        )
    },
];

/// A graph as it was asked for.
#[derive(Debug)]
pub struct GraphQuestion {
    graph: &'static Graph,
    group_by: Option<&'static Dimension>,
}

pub fn routes() -> Routes {
    GRAPHS.iter().fold(Routes::default(), |routes, graph| {
        let draw = move |State(app): State<App>, call: Call| async move {
            let question = GraphQuestion::asked(graph, call.query())?;
            answered_alone(&app, &call, &question).await
        };
        routes.get(graph.path, draw).describe([graph.docs()])
    })
}

pub fn docs() -> Vec<Doc> {
    GRAPHS.iter().map(Graph::docs).collect()
}

pub fn paths() -> impl Iterator<Item = &'static str> {
    GRAPHS.iter().map(|graph| graph.path)
}

impl GraphQuestion {
    /// None for a path that has another kind of graph, or none.
    pub fn at_path(path: &str, query: &Query) -> Option<Result<Self, ApiError>> {
        GRAPHS.iter().find(|graph| graph.path == path).map(|graph| Self::asked(graph, query))
    }

    fn asked(graph: &'static Graph, query: &Query) -> Result<Self, ApiError> {
        let group_by = match query.text("group_by") {
            Some(name) => Some(graph.divisible(dimension::named("group_by", name)?)?),
            None => None,
        };
        Ok(Self { graph, group_by })
    }
}

impl Question for GraphQuestion {
    fn check(&self, view: &LogView) -> Result<(), ApiError> {
        match self.group_by {
            Some(dimension) if *dimension == dimension::USER => view.may_use_metadata(),
            _ => Ok(()),
        }
    }

    async fn answer(&self, tx: &Transaction<'_>, asked: &Asked) -> Result<Value, ApiError> {
        let (graph, logs, question) = (self.graph, PostgresLogs(tx), &asked.question);
        let mut answer = json!({ "object": "analytics-graph", "workspaces": asked.workspaces });
        if graph.has_costs() {
            answer["cost_unit"] = COST_UNIT.into();
        }
        graph.show(&graph.found(&logs, question).await?, question.period, &mut answer);
        if let Some(previous) = &asked.previous {
            answer["previous"] = json!({});
            graph.show(&graph.found(&logs, previous).await?, previous.period, &mut answer["previous"]);
        }
        if let Some(dimension) = self.group_by {
            let mut groups = graph.groups(&logs, question, dimension).await?;
            if names::has_names(dimension) {
                let values = groups.iter().filter_map(|group| group["value"].as_str());
                let names = names::names(tx, dimension, question.view.organisation_id, values).await?;
                for group in &mut groups {
                    let name = group["value"].as_str().and_then(|value| names.get(value));
                    group["name"] = json!(name.map(|name| &name.name));
                }
            }
            answer["groups"] = groups.into();
        }
        Ok(answer)
    }

    fn sheet(&self, answer: &Value) -> Vec<Value> {
        csv::sheet(answer)
    }
}

impl Graph {
    async fn found(&self, logs: &impl LogData, asked: &LogQuestion) -> Result<Series, ApiError> {
        match self.of {
            GraphOf::Calls => logs.series(asked, &self.measures()).await,
            GraphOf::Feedback => logs.feedback(asked, &self.measures()).await,
        }
    }

    async fn groups(
        &self,
        logs: &impl LogData,
        asked: &LogQuestion,
        dimension: &Dimension,
    ) -> Result<Vec<Value>, ApiError> {
        let divided = logs.divided(asked, &self.measures(), dimension).await?;
        let shown = divided.iter().map(|(value, found)| {
            let mut group = json!({ "value": value, "is_rest": value.is_none() });
            self.show(found, asked.period, &mut group);
            group
        });
        Ok(shown.collect())
    }

    /// What is said of feedback is not said of one call.
    fn divisible(&self, dimension: &'static Dimension) -> Result<&'static Dimension, ApiError> {
        match self.of {
            GraphOf::Calls => Ok(dimension),
            GraphOf::Feedback => Err(ApiError::field("group_by", "is for graphs of calls, which this is not")),
        }
    }

    fn has_costs(&self) -> bool {
        self.fields().any(|(_, measure)| measure.is_money())
    }

    fn fields(&self) -> impl Iterator<Item = &'static (&'static str, Measure)> {
        self.summary.iter().chain(self.points).chain(self.running)
    }

    /// Each once.
    fn measures(&self) -> Vec<Measure> {
        let mut measures: Vec<Measure> = Vec::new();
        for (_, measure) in self.fields() {
            if !measures.contains(measure) {
                measures.push(*measure);
            }
        }
        measures
    }

    fn show(&self, found: &Series, period: Period, into: &mut Value) {
        let measures = self.measures();
        let step = period.step();
        let value = |values: &[Value], measure: &Measure| {
            let place = measures.iter().position(|one| one == measure);
            place.and_then(|place| values.get(place)).cloned().unwrap_or_else(|| 0.into())
        };
        let named = |values: &[Value], fields: &[(&str, Measure)]| -> Map<String, Value> {
            fields.iter().map(|(name, measure)| ((*name).to_owned(), value(values, measure))).collect()
        };
        let slots: Vec<(Time, Vec<Value>)> =
            period.slots(step).map(|slot| (Time(slot), found.slot(slot, measures.len()))).collect();
        let mut points: Vec<Map<String, Value>> = slots
            .iter()
            .map(|(time, values)| {
                let mut point = named(values, self.points);
                point.insert("timestamp".into(), json!(time));
                point
            })
            .collect();
        for (name, measure) in self.running {
            let sums = running_sums(slots.iter().map(|(_, values)| value(values, measure)));
            for (point, sum) in points.iter_mut().zip(sums) {
                point.insert((*name).to_owned(), sum);
            }
        }
        into["summary"] = Value::Object(named(&found.whole, self.summary));
        into["data_points"] = points.into_iter().map(Value::Object).collect();
    }

    fn docs(&self) -> Doc {
        let of = |fields: &[(&str, Measure)]| {
            fields.iter().fold(schema::object(""), |all, (name, _)| all.need(name, docs::figure(name)))
        };
        let points: Vec<_> = self.points.iter().chain(self.running).copied().collect();
        let drawn = |title: &str| {
            let point = of(&points).need("timestamp", schema::time().says("When its slot begins."));
            schema::object(title)
                .need("summary", of(self.summary).says("Of the whole time."))
                .need("data_points", schema::list(point).says("One for each slot of the time."))
        };
        let group = drawn("")
            .need("value", schema::any_text().or_null().says("Null for all other values together."))
            .may("name", schema::any_text().eg("Marketing").or_null().says("Of a workspace or a key: its name."))
            .need("is_rest", schema::flag().says("Whether these are all other values."));
        let answer = drawn(&docs::title(self.path, "Graph"))
            .need("object", schema::fixed("analytics-graph"))
            .need("workspaces", docs::workspaces())
            .may("cost_unit", docs::cost_unit())
            .may("previous", drawn("").says("With `compare=previous`."))
            .may("groups", schema::list(group).says("With `group_by`: the ten commonest values, and all others."));
        docs::compared(self.path, self.says)
            .details(
                "Slots are the narrowest of 1, 5 and 30 minutes, 1 and 6 hours, a day and 7 days that are at most 60, aligned \
                 to UTC. Slots without calls are there with zeros. Percentiles are within 1 %.",
            )
            .filter("group_by", schema::choice(&dimension::names()).or_empty().says("Adds the graph of each value."))
            .answer(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measure_is_asked_for_once() {
        for graph in GRAPHS {
            let measures = graph.measures();
            let repeated = measures.iter().enumerate().find(|(n, one)| measures[..*n].contains(one));
            assert!(repeated.is_none() && graph.fields().all(|(_, one)| measures.contains(one)), "{}", graph.path);
        }
    }
}
