//! How the document shows several questions at once.

use super::super::docs as of_one;
use super::super::{graphs, groups, lists};
use super::sent::{CACHE, MAX_TOP, graph_names};
use super::{MAX_QUESTIONS, PATH};
use crate::log_data::dimension;
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use serde_json::Value;

pub fn docs() -> Doc {
    let period =
        schema::object("").need("from", schema::moment()).need("to", schema::moment().eg("2099-01-16T10:30:00Z"));
    let questions = schema::list(schema::either([graph(), group(), summary()])).at_least(1).at_most(MAX_QUESTIONS);
    let sent = schema::object("AnalyticsQuestions")
        .need("period", period.says("The time that all questions are about; its end is part of it."))
        .may("filters", filters())
        .may(
            "compare",
            schema::choice(&["previous"]).or_null().says("Adds the same length of time before to each answer."),
        )
        .need("questions", questions.says("What to know of those calls."));
    let answer = schema::object("AnalyticsAnswers")
        .need("object", schema::fixed("analytics-answers"))
        .need("answers", schema::list(schema::either(answers())).says("One for each question, in their order."));
    Doc::post(PATH, "Ask several questions about calls at once")
        .details(&format!(
            "Up to {MAX_QUESTIONS} questions about the same calls, answered as of one moment: `graph` is what stands behind \
             `/analytics/graphs/` in the path of an operation, `group` what stands behind `/analytics/groups/`, `summary` what \
             stands behind `/analytics/summary/`, and each answer is the one that operation gives. All of them together take \
             one turn among the searches of logs of the organisation."
        ))
        .body(sent)
        .answer(answer)
}

fn graph() -> Schema {
    let by = schema::choice(&dimension::names()).or_null();
    schema::object("AskedGraph")
        .need("graph", schema::choice(&graph_names()).says("The graph."))
        .may("group_by", by.says("Adds the graph of each value."))
}

fn group() -> Schema {
    let dimensions = dimension::names();
    let columns = schema::list(schema::choice(&groups::column_names())).or_null();
    let says = format!(
        "`users`, `ai-models`, `workspaces`, `metadata/` and a name of metadata, or one of {}.",
        dimensions.join(", ")
    );
    schema::object("AskedGroups")
        .need("group", schema::text(1..=200).eg("model").says(&says))
        .may(
            "then_by",
            schema::choice(&dimensions).eg("workspace").or_null().says("A second dimension: one row for each pair."),
        )
        .may("columns", columns.says("Columns beside the number of requests."))
        .may("top", schema::whole(1..=MAX_TOP).eg(10).or_null().says("How many groups are shown; without it 50."))
        .may("order_by", schema::text(0..=100).eg("requests").or_null().says("Any column of the answer."))
        .may("order_by_type", schema::choice(&["desc", "asc"]).or_null().says("Which end comes first."))
        .may("include_total", schema::flag().or_null().says("Adds the columns over all calls."))
}

fn summary() -> Schema {
    schema::object("AskedSummary").need("summary", schema::choice(&[CACHE]).says("The summary."))
}

/// Filters have the names that they have in a query. Lists may be arrays.
fn filters() -> Schema {
    let text = || schema::any_text();
    let number = || schema::number(i64::from(i32::MIN));
    let one_or_several = || schema::either([text(), number(), schema::list(schema::either([text(), number()]))]);
    let described = of_one::counted("", "");
    let query = described.accepts().1;
    let fields = query["properties"].as_object().into_iter().flatten();
    let none = schema::object("AnalyticsFilters");
    fields
        .filter(|(name, _)| !name.starts_with("time_of_generation"))
        .fold(none, |all, (name, field)| {
            let sent = match name.as_str() {
                "metadata" => schema::either([schema::any_object(), text()]),
                _ => one_or_several(),
            };
            let says = field["description"].as_str().unwrap_or_default();
            let sent = if says.is_empty() { sent } else { sent.says(says) };
            all.may(name, sent.eg(Value::Null).or_null())
        })
        .may("workspace_id", one_or_several().eg(Value::Null).or_null().says("As workspace_slug."))
        .or_null()
        .says("Which calls: names and values as in the query of a graph; lists may be arrays.")
        .eg(serde_json::json!({ "status_code": [429, 500] }))
}

/// Every answer that there can be.
fn answers() -> Vec<Schema> {
    let all = graphs::docs().into_iter().chain(groups::descriptions()).chain(lists::descriptions());
    // Groups stand below logs, too.
    all.filter(|doc| doc.path.starts_with("/analytics/")).map(|doc| doc.answered().clone()).collect()
}
