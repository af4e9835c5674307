//! A body with several questions, turned into the queries that the operations of one question read. What these refuse is said
//! in the words of the body: `questions[3].group`, `filters.status_code`, `period.from`.

use super::super::graphs::{self, GraphQuestion};
use super::super::groups::GroupList;
use super::super::lists::{self, CacheSummary, ListGraph};
use super::{AnyQuestion, MAX_QUESTIONS};
use crate::http::{ApiError, FieldFault, Query};
use crate::log_data::filters;
use serde::Deserialize;
use serde_json::{Map, Value};

const GRAPHS: &str = "/analytics/graphs/";
/// The one summary there is.
pub const CACHE: &str = "cache";
/// Of the rows of a list.
pub const MAX_TOP: i64 = 100;

#[derive(Debug, Deserialize)]
pub struct Sent {
    period: SentPeriod,
    #[serde(default)]
    filters: Option<Map<String, Value>>,
    #[serde(default)]
    compare: Option<String>,
    questions: Vec<SentQuestion>,
}

#[derive(Debug, Deserialize)]
struct SentPeriod {
    from: String,
    to: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SentQuestion {
    graph: Option<String>,
    group: Option<String>,
    summary: Option<String>,
    group_by: Option<String>,
    then_by: Option<String>,
    columns: Option<Vec<String>>,
    top: Option<i64>,
    order_by: Option<String>,
    order_by_type: Option<String>,
    include_total: Option<bool>,
}

/// Names of the query, and where the same stands in the body. What is neither is a filter.
static PLACES: &[(&str, &str)] =
    &[("time_of_generation_min", "period.from"), ("time_of_generation_max", "period.to"), ("compare", "compare")];

/// Names of a question in a path and a query, and in the body.
static NAMES: &[(&str, &str)] = &[("groupBy", "group"), ("metadataKey", "group"), ("page_size", "top")];

/// Every graph, as it is named here.
pub fn graph_names() -> Vec<&'static str> {
    graphs::paths().chain(lists::paths()).filter_map(|path| path.strip_prefix(GRAPHS)).collect()
}

/// What is wrong with the query of the body, at its place there.
pub fn in_body(error: ApiError) -> ApiError {
    let place = |name: String| match PLACES.iter().find(|(one, _)| *one == name) {
        Some((_, place)) => (*place).to_owned(),
        None => format!("filters.{name}"),
    };
    let spoken = |text: String| PLACES.iter().fold(text, |text, (name, place)| text.replace(name, place));
    error.reworded(place, spoken)
}

impl Sent {
    pub fn questions(&self) -> Result<Vec<AnyQuestion>, ApiError> {
        if !(1..=MAX_QUESTIONS).contains(&self.questions.len()) {
            return Err(ApiError::field("questions", format!("must have 1 to {MAX_QUESTIONS} items")));
        }
        let read = self.questions.iter().enumerate().map(|(n, one)| {
            let renamed = |name: String| match NAMES.iter().find(|(one, _)| *one == name) {
                Some((_, name)) => (*name).to_owned(),
                None => name,
            };
            let read = one.read().map_err(|error| error.reworded(renamed, |text| text));
            read.map_err(|error| error.under(&format!("questions[{n}]")))
        });
        read.collect()
    }

    /// Which logs, as a query says it; a workspace may be named in the query of the request too.
    pub fn logs(&self, query: &Query) -> Result<Query, ApiError> {
        let texts = [
            ("time_of_generation_min", Some(&self.period.from)),
            ("time_of_generation_max", Some(&self.period.to)),
            ("compare", self.compare.as_ref()),
        ];
        let own = Query::of(texts.into_iter().filter_map(|(name, text)| Some((name, text?.clone()))));
        let none = Map::new();
        let filters = filters::of_json(self.filters.as_ref().unwrap_or(&none)).map_err(in_body)?;
        let workspace = query.clone().spelt("workspace_id", "workspace_slug").text("workspace_slug").map(str::to_owned);
        let workspace = Query::of(workspace.map(|name| ("workspace_slug", name)));
        Ok(own.or(filters.spelt("workspace_id", "workspace_slug")).or(workspace))
    }
}

impl SentQuestion {
    fn read(&self) -> Result<AnyQuestion, ApiError> {
        let query = self.query()?;
        if let Some(graph) = &self.graph {
            let path = format!("{GRAPHS}{graph}");
            if let Some(question) = GraphQuestion::at_path(&path, &query) {
                return question.map(AnyQuestion::Graph);
            }
            let unknown = || ApiError::Faults(vec![FieldFault::not_among("graph", graph, &graph_names())]);
            return ListGraph::at_path(&path).map(AnyQuestion::ListGraph).ok_or_else(unknown);
        }
        if let Some(group) = &self.group {
            return GroupList::named(group, &query).map(AnyQuestion::Groups);
        }
        match self.summary.as_deref() {
            Some(CACHE) => Ok(AnyQuestion::Cache(CacheSummary)),
            Some(other) => Err(ApiError::Faults(vec![FieldFault::not_among("summary", other, &[CACHE])])),
            None => Err(ApiError::field("graph", "is required, or `group`, or `summary`")),
        }
    }

    /// What a question says beside its name.
    fn query(&self) -> Result<Query, ApiError> {
        if self.top.is_some_and(|top| !(1..=MAX_TOP).contains(&top)) {
            return Err(ApiError::field("top", format!("must be from 1 to {MAX_TOP}")));
        }
        let texts = [
            ("group_by", self.group_by.clone()),
            ("then_by", self.then_by.clone()),
            ("columns", self.columns.as_ref().map(|columns| columns.join(","))),
            ("page_size", self.top.map(|top| top.to_string())),
            ("order_by", self.order_by.clone()),
            ("order_by_type", self.order_by_type.clone()),
            ("include_total", self.include_total.map(|flag| flag.to_string())),
        ];
        Ok(Query::of(texts.into_iter().filter_map(|(name, text)| Some((name, text?)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(body: Value) -> String {
        let sent: Sent = serde_json::from_value(body).unwrap();
        let found = sent.questions().map(drop).and_then(|()| {
            let logs = sent.logs(&Query::default())?;
            filters::conditions(&logs).map(drop).map_err(in_body)
        });
        found.err().map(|error| error.to_string()).unwrap_or_default()
    }

    fn asked(question: Value) -> Value {
        let period = json!({ "from": "2026-01-15T00:00:00Z", "to": "2026-01-16T00:00:00Z" });
        json!({ "period": period, "questions": [{ "graph": "cost" }, question] })
    }

    #[test]
    fn what_is_wrong_with_a_question_names_it() {
        for good in [
            json!({ "graph": "errors/stacks" }),
            json!({ "graph": "cost", "group_by": "model" }),
            json!({ "group": "metadata/plan", "top": 100, "order_by": "cost" }),
            json!({ "group": "model", "columns": ["cost", "p95_latency"], "include_total": true }),
            json!({ "summary": "cache" }),
        ] {
            assert_eq!(refused(asked(good.clone())), "", "{good}");
        }
        for (wrong, place) in [
            (json!({}), "questions[1].graph: is required"),
            (json!({ "graph": "colour" }), "questions[1].graph: "),
            (json!({ "graph": "cost", "group_by": "colour" }), "questions[1].group_by: must be one of"),
            (json!({ "graph": "feedbacks", "group_by": "model" }), "questions[1].group_by: is for graphs of calls"),
            (json!({ "group": "colour" }), "questions[1].group: must be one of"),
            (json!({ "group": "metadata" }), "questions[1].group: must be one of"),
            (json!({ "group": format!("metadata/{}", "n".repeat(200)) }), "questions[1].group: must be a name"),
            (json!({ "group": "model", "columns": ["colour"] }), "questions[1].columns: "),
            (json!({ "group": "model", "then_by": "model" }), "questions[1].then_by: must be another"),
            (json!({ "group": "model", "order_by": "cost" }), "questions[1].order_by: "),
            (json!({ "group": "model", "top": 101 }), "questions[1].top: must be from 1 to 100"),
            (json!({ "summary": "cost" }), "questions[1].summary: must be `cache`"),
        ] {
            let message = refused(asked(wrong.clone()));
            assert!(message.starts_with(place), "{wrong}: {message}");
        }
        let mut many = asked(json!({ "graph": "cost" }));
        many["questions"] = vec![json!({ "graph": "cost" }); MAX_QUESTIONS + 1].into();
        assert_eq!(refused(many), "questions: must have 1 to 12 items");
    }

    #[test]
    fn what_is_wrong_with_the_logs_that_are_asked_about_is_said_where_it_stands() {
        for (name, value, place) in [
            (
                "period",
                json!({ "from": "2026-01-16", "to": "2026-01-15" }),
                "period.to: must not be before period.from",
            ),
            ("period", json!({ "from": "x", "to": "2026-01-15" }), "period.from: "),
            ("filters", json!({ "status_code": "x" }), "filters.status_code: "),
            ("filters", json!({ "status_code": true }), "filters.status_code: "),
        ] {
            let mut body = asked(json!({ "graph": "cost" }));
            body[name] = value;
            let message = refused(body);
            assert!(message.starts_with(place), "{message}");
        }
    }

    #[test]
    fn a_workspace_is_named_in_the_filters_or_in_the_query() {
        let mut body = asked(json!({ "graph": "cost" }));
        let named = |body: &Value, query: &str| {
            let sent: Sent = serde_json::from_value(body.clone()).unwrap();
            let logs = sent.logs(&Query::parse(Some(query)).unwrap()).unwrap();
            logs.text("workspace_slug").map(str::to_owned)
        };
        assert_eq!(named(&body, ""), None);
        assert_eq!(named(&body, "workspace_id=a").as_deref(), Some("a"));
        body["filters"] = json!({ "workspace_id": ["b", "c"] });
        assert_eq!(named(&body, "workspace_id=a").as_deref(), Some("b,c"));
    }
}
