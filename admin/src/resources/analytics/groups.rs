//! Groups: figures by user, model, workspace, a name of metadata, or any other dimension, page by page.

use super::asked::Asked;
use super::docs;
use super::names::{self, ObjectName};
use crate::analytics::csv;
use crate::app::App;
use crate::crud::Routes;
use crate::http::{ApiError, FLAGS, FieldFault, PageSizes, Query, Time};
use crate::identity::Call;
use crate::log_data::dimension::{self, Dimension};
use crate::log_data::measure::{self as m, Measure};
use crate::log_data::{
    COST_UNIT, CallsAsked, GroupBy, GroupQuestion, Groups, LogData as _, MAX_GROUPS, Order, OrderBy, PostgresLogs,
    snapshot,
};
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use chrono::DateTime;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

const USERS: &str = "/analytics/groups/users";
const MODELS: &str = "/analytics/groups/ai-models";
const WORKSPACES: &str = "/analytics/groups/workspaces";
const METADATA: &str = "/analytics/groups/metadata/{metadataKey}";
const ANY: &str = "/analytics/groups/{groupBy}";
const LOGS: &str = "/logs/groups/{groupBy}";

/// Names of metadata are no longer than this where they are logged.
const MAX_NAME: usize = 128;

/// Columns that a group may have beside its number of requests.
static COLUMNS: &[(&str, Measure)] = &[
    ("cost", m::COST),
    ("total_tokens", m::TOKENS),
    ("avg_tokens", m::AVG_TOKENS),
    ("avg_input_tokens", m::AVG_INPUT_TOKENS),
    ("avg_output_tokens", m::AVG_OUTPUT_TOKENS),
    ("avg_latency", m::AVG_LATENCY),
    ("p95_latency", m::P95_LATENCY),
    ("p99_latency", m::P99_LATENCY),
    ("success_rate", m::SUCCESS_RATE),
    ("error_count", m::ERRORS),
    ("cache_hit_rate", m::HIT_RATE),
    LAST_SEEN,
    ("first_seen", m::FIRST_SEEN),
];
const THEN_BY: &str = "then_by";
const LAST_SEEN: (&str, Measure) = ("last_seen", m::LAST_SEEN);
const REQUESTS: (&str, Measure) = ("requests", m::REQUESTS);
const COST: (&str, Measure) = ("cost", m::COST);

pub fn routes() -> Routes {
    Routes::default()
        .get(USERS, users)
        .get(MODELS, models)
        .get(WORKSPACES, workspaces)
        .get(METADATA, metadata)
        .get(ANY, any)
        .get(LOGS, any)
        .describe(descriptions())
}

/// A list of groups, as it is asked for.
struct Listed<'l> {
    /// The name that the value is shown under.
    name: &'l str,
    by: GroupBy<'l>,
    then_by: Option<&'static Dimension>,
    /// Which calls have a group at all.
    calls: CallsAsked,
    fields: &'l [(&'static str, Measure)],
    has_totals: bool,
}

impl Listed<'_> {
    async fn find(&self, asked: &mut Asked<'_>) -> Result<FoundGroups, ApiError> {
        let names: Vec<&str> = self.fields.iter().map(|(name, _)| *name).collect();
        let order = order(&asked.question.query, self.name, self.then_by.map(|one| one.name), &names)?;
        let (size, offset) = asked.question.query.page(PageSizes::USUAL)?;
        let question = asked.question.only(self.calls);
        let measures: Vec<Measure> = self.fields.iter().map(|(_, measure)| *measure).collect();
        let tx = snapshot(&mut asked.db).await?;
        let logs = PostgresLogs(&tx);
        let page = GroupQuestion { by: self.by, then_by: self.then_by, measures: &measures, order, size, offset };
        let Groups { rows, total, is_capped } = logs.groups(&question, &page).await?;
        let totals = match self.has_totals {
            true => Some(named(self.fields, logs.totals(&question, &measures).await?)),
            false => None,
        };
        tx.commit().await?;
        let rows = rows.into_iter().map(|one| FoundGroup {
            value: one.value,
            second: self.then_by.map(|by| by.name).zip(one.second),
            figures: named(self.fields, one.figures),
        });
        let rows = rows.collect();
        let has_costs = self.fields.iter().any(|(_, measure)| measure.is_money());
        Ok(FoundGroups { rows, total, is_capped, totals, has_costs, workspaces: asked.workspaces.clone() })
    }
}

struct FoundGroup {
    value: String,
    /// The name of the second dimension, and its value.
    second: Option<(&'static str, String)>,
    figures: Map<String, Value>,
}

struct FoundGroups {
    rows: Vec<FoundGroup>,
    total: i64,
    is_capped: bool,
    totals: Option<Map<String, Value>>,
    has_costs: bool,
    workspaces: Value,
}

fn named(fields: &[(&str, Measure)], figures: Vec<Value>) -> Map<String, Value> {
    let named = fields.iter().zip(figures).map(|((name, measure), figure)| {
        let shown = if measure.is_time() { moment(&figure) } else { figure };
        ((*name).to_owned(), shown)
    });
    named.collect()
}

/// A time that was measured in milliseconds.
fn moment(millis: &Value) -> Value {
    let millis = millis.as_f64().filter(|millis| *millis > 0.0).map(|millis| millis as i64);
    json!(millis.and_then(DateTime::from_timestamp_millis).map(Time))
}

/// The most requests first, unless the query says otherwise.
fn order(query: &Query, value: &str, second: Option<&str>, fields: &[&str]) -> Result<Order, ApiError> {
    let is_descending = match query.text("order_by_type") {
        None | Some("desc") => true,
        Some("asc") => false,
        Some(other) => {
            return Err(ApiError::Faults(vec![FieldFault::not_among("order_by_type", other, &["asc", "desc"])]));
        }
    };
    let by = match query.text("order_by") {
        None => OrderBy::Measure(fields.iter().position(|one| *one == REQUESTS.0).unwrap_or(0)),
        Some(name) if name == value => OrderBy::Value,
        Some(name) if second == Some(name) => OrderBy::SecondValue,
        Some(name) => match fields.iter().position(|one| *one == name) {
            Some(place) => OrderBy::Measure(place),
            None => {
                let allowed: Vec<&str> = fields.iter().copied().chain([value]).chain(second).collect();
                return Err(ApiError::Faults(vec![FieldFault::not_among("order_by", name, &allowed)]));
            }
        },
    };
    Ok(Order { by, is_descending })
}

impl FoundGroups {
    fn shown(self, call: &Call, rows: Vec<Value>) -> Response {
        if csv::is_wanted(&call.origin.headers) {
            return csv::response(&csv::with_unit(rows, self.has_costs.then_some(COST_UNIT)));
        }
        let mut answer = json!({
            "object": "list", "total": self.total, "total_is_capped": self.is_capped, "data": rows,
            "workspaces": self.workspaces,
        });
        if self.has_costs {
            answer["cost_unit"] = COST_UNIT.into();
        }
        if let Some(totals) = self.totals {
            answer["totals"] = Value::Object(totals);
        }
        Json(answer).into_response()
    }

    /// Of the objects whose ids are values of a dimension.
    async fn names(&self, asked: &Asked<'_>, dimension: &Dimension) -> Result<HashMap<String, ObjectName>, ApiError> {
        let values = self.rows.iter().map(|row| match &row.second {
            Some((name, second)) if *name == dimension.name => second.as_str(),
            _ => row.value.as_str(),
        });
        names::names(&*asked.db, dimension, asked.question.view.organisation_id, values).await
    }

    /// Rows under a name of the group.
    fn rows(&self, name: &str) -> Vec<Value> {
        let shown = self.rows.iter().map(|found| {
            let mut row = Map::from_iter([(name.to_owned(), json!(found.value))]);
            if let Some((second, value)) = &found.second {
                row.insert((*second).to_owned(), json!(value));
            }
            row.extend(found.figures.clone());
            row.insert("object".into(), "analytics-group".into());
            Value::Object(row)
        });
        shown.collect()
    }
}

/// Figures as texts, as the published types of these two lists have them.
fn as_texts(rows: Vec<Value>, names: &[&str]) -> Vec<Value> {
    let text = |mut row: Value| {
        for name in names {
            row[*name] = row[*name].to_string().into();
        }
        row
    };
    rows.into_iter().map(text).collect()
}

async fn users(State(app): State<App>, call: Call) -> Result<Response, ApiError> {
    let mut asked = Asked::of(&app, &call).await?;
    asked.question.view.may_use_metadata()?;
    let listed = Listed {
        name: "user",
        by: GroupBy::Dimension(&dimension::USER),
        then_by: None,
        calls: CallsAsked::OfUsers,
        fields: &[REQUESTS, COST],
        has_totals: false,
    };
    let found = listed.find(&mut asked).await?;
    let rows = as_texts(found.rows("user"), &["requests", "cost"]);
    Ok(found.shown(&call, rows))
}

async fn models(State(app): State<App>, call: Call) -> Result<Response, ApiError> {
    let mut asked = Asked::of(&app, &call).await?;
    let listed = Listed {
        name: "ai_model",
        by: GroupBy::Dimension(&dimension::MODEL),
        then_by: None,
        calls: CallsAsked::All,
        fields: &[REQUESTS],
        has_totals: false,
    };
    let found = listed.find(&mut asked).await?;
    let rows = as_texts(found.rows("ai_model"), &["requests"]);
    Ok(found.shown(&call, rows))
}

async fn workspaces(State(app): State<App>, call: Call) -> Result<Response, ApiError> {
    let mut asked = Asked::of(&app, &call).await?;
    let listed = Listed {
        name: "workspace",
        by: GroupBy::Dimension(&dimension::WORKSPACE),
        then_by: None,
        calls: CallsAsked::All,
        fields: &[REQUESTS, COST],
        has_totals: false,
    };
    let found = listed.find(&mut asked).await?;
    let names = found.names(&asked, &dimension::WORKSPACE).await?;
    let mut rows = found.rows("workspace");
    for row in &mut rows {
        let name = names.get(row["workspace"].as_str().unwrap_or_default());
        row["workspace_name"] = json!(name.map(|name| &name.name));
        if let Some(name) = name {
            row["workspace"] = json!(name.slug);
        }
    }
    Ok(found.shown(&call, rows))
}

async fn metadata(State(app): State<App>, call: Call, Path(name): Path<String>) -> Result<Response, ApiError> {
    if name.chars().count() > MAX_NAME || name.contains('\0') {
        return Err(ApiError::field("metadataKey", format!("must be a name of at most {MAX_NAME} characters")));
    }
    let mut asked = Asked::of(&app, &call).await?;
    asked.question.view.may_use_metadata()?;
    let listed = Listed {
        name: "metadata_value",
        by: GroupBy::Metadata(&name),
        then_by: None,
        calls: CallsAsked::All,
        fields: &[
            REQUESTS,
            COST,
            ("avg_tokens", m::AVG_TOKENS),
            ("avg_weighted_feedback", m::AVG_FEEDBACK),
            ("requests_with_feedback", m::FEEDBACK_COUNT),
            LAST_SEEN,
        ],
        has_totals: false,
    };
    let found = listed.find(&mut asked).await?;
    let rows = found.rows("metadata_value");
    Ok(found.shown(&call, rows))
}

async fn any(State(app): State<App>, call: Call, Path(by): Path<String>) -> Result<Response, ApiError> {
    let dimension = dimension::named("groupBy", &by)?;
    let then_by = second_dimension(call.query(), dimension)?;
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let columns = call.query().choices("columns", &names)?;
    let fields: Vec<(&'static str, Measure)> = std::iter::once(REQUESTS)
        .chain(COLUMNS.iter().filter(|(name, _)| columns.iter().any(|asked| asked == name)).copied())
        .collect();
    let mut asked = Asked::of(&app, &call).await?;
    if [Some(dimension), then_by].contains(&Some(&dimension::USER)) {
        asked.question.view.may_use_metadata()?;
    }
    let listed = Listed {
        name: dimension.name,
        by: GroupBy::Dimension(dimension),
        then_by,
        calls: CallsAsked::All,
        fields: &fields,
        has_totals: call.query().flag("include_total")?,
    };
    let found = listed.find(&mut asked).await?;
    let mut rows = found.rows(dimension.name);
    for one in [Some(dimension), then_by].into_iter().flatten().filter(|one| names::has_names(one)) {
        let names = found.names(&asked, one).await?;
        for row in &mut rows {
            let name = names.get(row[one.name].as_str().unwrap_or_default()).map(|name| &name.name);
            let name = json!(name);
            if then_by.is_some() {
                row[format!("{}_name", one.name)] = name.clone();
            }
            if one == dimension {
                row["name"] = name;
            }
        }
    }
    if [Some(dimension), then_by].contains(&Some(&dimension::STATUS_CODE)) {
        let field = dimension::STATUS_CODE.name;
        for row in &mut rows {
            row[field] = json!(row[field].as_str().and_then(|code| code.parse::<i64>().ok()));
        }
    }
    Ok(found.shown(&call, rows))
}

/// What `then_by` asks for; the same thing twice would divide nothing.
fn second_dimension(query: &Query, first: &Dimension) -> Result<Option<&'static Dimension>, ApiError> {
    let Some(name) = query.text(THEN_BY) else { return Ok(None) };
    let second = dimension::named(THEN_BY, name)?;
    match second == first {
        true => Err(ApiError::field(THEN_BY, format!("must be another dimension than `{}`", first.name))),
        false => Ok(Some(second)),
    }
}

fn descriptions() -> [Doc; 6] {
    let text = |name: &str| schema::any_text().eg("128").says(&format!("{name}, as a text."));
    let value = || schema::any_text().eg("example").says("Empty for calls without one.");
    let group = |title: &str| schema::object(title).need("object", schema::fixed("analytics-group"));
    let user = group("UserGroup").need("user", value()).need("requests", text("Calls")).need("cost", text("US cents"));
    let model = group("ModelGroup").need("ai_model", value()).need("requests", text("Calls"));
    let workspace = group("WorkspaceGroup")
        .need("workspace", value())
        .need("workspace_name", schema::any_text().eg("Marketing").or_null().says("Its name."))
        .need("requests", docs::figure("requests"))
        .need("cost", docs::figure("cost"));
    let pair = group("MetadataGroup")
        .need("metadata_value", value())
        .need("requests", docs::figure("requests"))
        .need("cost", docs::figure("cost"))
        .need("avg_tokens", docs::figure("avg_tokens"))
        .need("avg_weighted_feedback", docs::figure("avg_weighted_feedback"))
        .need("requests_with_feedback", docs::figure("requests_with_feedback"))
        .need("last_seen", schema::time().or_null().says("When the last of them began."));
    [
        described(USERS, "Calls by user", "UserGroups", user),
        described(MODELS, "Calls by model", "ModelGroups", model),
        described(WORKSPACES, "Calls by workspace", "WorkspaceGroups", workspace),
        described(METADATA, "Calls by a name of their metadata", "MetadataGroups", pair),
        by_anything(ANY, "AnyGroup"),
        by_anything(LOGS, "LogGroup"),
    ]
}

fn described(path: &str, says: &str, title: &str, group: Schema) -> Doc {
    let list = schema::object(title)
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=MAX_GROUPS).eg(1))
        .need("total_is_capped", schema::flag().says("Whether there are more groups, which are left out."))
        .need("data", schema::list(group))
        .need("workspaces", docs::workspaces())
        .may("cost_unit", docs::cost_unit())
        .may("totals", schema::any_object().says("With `include_total`: the same columns over all calls."));
    docs::counted(path, says)
        .pages(PageSizes::USUAL)
        .filter("order_by", schema::any_text().eg("requests").says("Any column of the answer."))
        .filter("order_by_type", schema::choice(&["asc", "desc"]).or_empty().says("Which end comes first."))
        .answer(list)
}

fn by_anything(path: &str, title: &str) -> Doc {
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let group = schema::object(title)
        .need("object", schema::fixed("analytics-group"))
        .need("requests", docs::figure("requests"))
        .open();
    let dimensions = dimension::names();
    let by = dimensions.join(", ");
    described(path, "Calls by what they have in common", &format!("{title}s"), group)
        .details(&format!(
            "`groupBy` is one of {by}. Each group has its value under that name, `requests`, and the columns that are asked for. \
             With `then_by` each group is divided further: a row has both values under their names, and the names of keys and \
             workspaces as `api_key_name` and `workspace_name`. At most {} groups are listed.",
            MAX_GROUPS
        ))
        .filter(
            THEN_BY,
            schema::choice(&dimensions).or_empty().says("A second dimension, other than `groupBy`: one row for each pair."),
        )
        .filter("columns", crate::openapi::choices(&names))
        .filter("include_total", schema::choice(FLAGS).or_empty().says("Adds the columns over all calls."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_ordered_by_what_they_have() {
        let fields = ["requests", "cost"];
        let asked = |query: &str| order(&Query::parse(Some(query)).unwrap(), "user", Some("model"), &fields);
        for (query, by, is_descending) in [
            ("", OrderBy::Measure(0), true),
            ("order_by=cost", OrderBy::Measure(1), true),
            ("order_by=cost&order_by_type=asc", OrderBy::Measure(1), false),
            ("order_by=user&order_by_type=desc", OrderBy::Value, true),
            ("order_by=model", OrderBy::SecondValue, true),
        ] {
            assert_eq!(asked(query).unwrap(), Order { by, is_descending }, "{query}");
        }
        for query in ["order_by=latency", "order_by_type=up", "order_by=m0"] {
            assert_eq!(asked(query).unwrap_err().status().as_u16(), 400, "{query}");
        }
    }

    #[test]
    fn a_moment_is_a_time_or_nothing() {
        assert_eq!(moment(&json!(1_768_473_000_000_i64)), json!("2026-01-15T10:30:00.000Z"));
        assert_eq!(moment(&json!(0)), Value::Null);
    }
}
