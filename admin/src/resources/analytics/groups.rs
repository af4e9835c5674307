//! Groups: figures by user, model, workspace, a name of metadata, or any other dimension, page by page.

use super::asked::{Asked, Question, answered_alone};
use super::docs;
use super::names::{self, ObjectName};
use crate::app::App;
use crate::crud::Routes;
use crate::http::{ApiError, FLAGS, FieldFault, PageSizes, Query, Time};
use crate::identity::Call;
use crate::log_data::analytics::csv;
use crate::log_data::dimension::{self, Dimension};
use crate::log_data::measure::{self as m, Measure};
use crate::log_data::{
    COST_UNIT, CallsAsked, GroupBy, GroupQuestion, Groups, LogData as _, LogQuestion, LogView, MAX_GROUPS, Order,
    OrderBy, PostgresLogs,
};
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use axum::extract::{Path, State};
use axum::response::Response;
use chrono::DateTime;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use tokio_postgres::Transaction;
use uuid::Uuid;

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

const BY_USERS: &str = "users";
const BY_MODELS: &str = "ai-models";
const BY_WORKSPACES: &str = "workspaces";
const BY_METADATA: &str = "metadata/";

pub fn routes() -> Routes {
    let alone =
        |name: &'static str| move |State(app): State<App>, call: Call| async move { list(&app, &call, name).await };
    Routes::default()
        .get(USERS, alone(BY_USERS))
        .get(MODELS, alone(BY_MODELS))
        .get(WORKSPACES, alone(BY_WORKSPACES))
        .get(METADATA, metadata)
        .get(ANY, any)
        .get(LOGS, any)
        .describe(descriptions())
}

async fn metadata(State(app): State<App>, call: Call, Path(name): Path<String>) -> Result<Response, ApiError> {
    list(&app, &call, &format!("{BY_METADATA}{name}")).await
}

async fn any(State(app): State<App>, call: Call, Path(by): Path<String>) -> Result<Response, ApiError> {
    let question = GroupList::by_dimension(&by, call.query())?;
    answered_alone(&app, &call, &question).await
}

async fn list(app: &App, call: &Call, name: &str) -> Result<Response, ApiError> {
    let question = GroupList::named(name, call.query())?;
    answered_alone(app, call, &question).await
}

/// A list of groups, as it was asked for.
#[derive(Debug)]
pub struct GroupList {
    by: By,
    then_by: Option<&'static Dimension>,
    fields: Vec<(&'static str, Measure)>,
    has_totals: bool,
    order: Order,
    size: i64,
    offset: i64,
}

#[derive(Debug)]
enum By {
    /// In shapes that clients of others know.
    Users,
    Models,
    Workspaces,
    Metadata(String),
    Dimension(&'static Dimension),
}

impl By {
    /// The name that the value is shown under.
    fn field(&self) -> &'static str {
        match self {
            Self::Users => "user",
            Self::Models => "ai_model",
            Self::Workspaces => "workspace",
            Self::Metadata(_) => "metadata_value",
            Self::Dimension(dimension) => dimension.name,
        }
    }

    fn grouped(&self) -> GroupBy<'_> {
        match self {
            Self::Metadata(name) => GroupBy::Metadata(name),
            Self::Users => GroupBy::Dimension(&dimension::USER),
            Self::Models => GroupBy::Dimension(&dimension::MODEL),
            Self::Workspaces => GroupBy::Dimension(&dimension::WORKSPACE),
            Self::Dimension(dimension) => GroupBy::Dimension(dimension),
        }
    }

    /// Which calls have a group at all.
    fn calls(&self) -> CallsAsked {
        if matches!(self, Self::Users) { CallsAsked::OfUsers } else { CallsAsked::All }
    }

    /// The columns of those that have always the same.
    fn fields(&self) -> Vec<(&'static str, Measure)> {
        match self {
            Self::Users | Self::Workspaces => vec![REQUESTS, COST],
            Self::Models | Self::Dimension(_) => vec![REQUESTS],
            Self::Metadata(_) => vec![
                REQUESTS,
                COST,
                ("avg_tokens", m::AVG_TOKENS),
                ("avg_weighted_feedback", m::AVG_FEEDBACK),
                ("requests_with_feedback", m::FEEDBACK_COUNT),
                LAST_SEEN,
            ],
        }
    }
}

impl GroupList {
    /// By what stands behind `groups/` in the path of the operation.
    pub fn named(name: &str, query: &Query) -> Result<Self, ApiError> {
        match name {
            BY_USERS => Self::of(By::Users, query),
            BY_MODELS => Self::of(By::Models, query),
            BY_WORKSPACES => Self::of(By::Workspaces, query),
            _ => match name.strip_prefix(BY_METADATA) {
                Some(key) if key.chars().count() > MAX_NAME || key.contains('\0') => {
                    Err(ApiError::field("metadataKey", format!("must be a name of at most {MAX_NAME} characters")))
                }
                Some(key) => Self::of(By::Metadata(key.to_owned()), query),
                None => Self::by_dimension(name, query),
            },
        }
    }

    fn by_dimension(name: &str, query: &Query) -> Result<Self, ApiError> {
        let dimension = dimension::named("groupBy", name)?;
        let then_by = second_dimension(query)?;
        if then_by == Some(dimension) {
            // Each group would have one row of the same value.
            return Err(ApiError::field(THEN_BY, format!("must be another dimension than `{name}`")));
        }
        let columns = query.choices("columns", &column_names())?;
        let asked = COLUMNS.iter().filter(|(name, _)| columns.iter().any(|asked| asked == name)).copied();
        let fields = std::iter::once(REQUESTS).chain(asked).collect();
        Self::with(By::Dimension(dimension), then_by, fields, query.flag("include_total")?, query)
    }

    fn of(by: By, query: &Query) -> Result<Self, ApiError> {
        let fields = by.fields();
        let then_by = match by {
            By::Metadata(_) => second_dimension(query)?,
            _ => None,
        };
        Self::with(by, then_by, fields, false, query)
    }

    fn with(
        by: By,
        then_by: Option<&'static Dimension>,
        fields: Vec<(&'static str, Measure)>,
        has_totals: bool,
        query: &Query,
    ) -> Result<Self, ApiError> {
        let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        let order = order(query, by.field(), then_by.map(|one| one.name), &names)?;
        let (size, offset) = query.page(PageSizes::USUAL)?;
        Ok(Self { by, then_by, fields, has_totals, order, size, offset })
    }

    /// The groups of one time, as they are shown.
    async fn listed(&self, tx: &Transaction<'_>, asked: &LogQuestion) -> Result<Map<String, Value>, ApiError> {
        let question = asked.only(self.by.calls());
        let measures: Vec<Measure> = self.fields.iter().map(|(_, measure)| *measure).collect();
        let logs = PostgresLogs(tx);
        let page = GroupQuestion {
            by: self.by.grouped(),
            then_by: self.then_by,
            measures: &measures,
            order: self.order,
            size: self.size,
            offset: self.offset,
        };
        let Groups { rows, total, is_capped } = logs.groups(&question, &page).await?;
        let totals = match self.has_totals {
            true => Some(named(&self.fields, logs.totals(&question, &measures).await?)),
            false => None,
        };
        let rows: Vec<FoundGroup> = rows
            .into_iter()
            .map(|one| FoundGroup {
                value: one.value,
                second: self.then_by.map(|by| by.name).zip(one.second),
                figures: named(&self.fields, one.figures),
            })
            .collect();
        let found = FoundGroups { rows, organisation: asked.view.organisation_id };
        let data = self.shown(&found, tx).await?;
        let mut list = Map::new();
        list.insert("total".into(), total.into());
        list.insert("total_is_capped".into(), is_capped.into());
        list.insert("data".into(), data.into());
        list.extend(totals.map(|totals| ("totals".to_owned(), Value::Object(totals))));
        Ok(list)
    }

    async fn shown(&self, found: &FoundGroups, tx: &Transaction<'_>) -> Result<Vec<Value>, ApiError> {
        let mut rows = found.rows(self.by.field());
        match self.by {
            By::Users => rows = as_texts(rows, &["requests", "cost"]),
            By::Models => rows = as_texts(rows, &["requests"]),
            By::Workspaces => {
                let names = found.names(tx, &dimension::WORKSPACE).await?;
                for row in &mut rows {
                    let name = names.get(row["workspace"].as_str().unwrap_or_default());
                    row["workspace_name"] = json!(name.map(|name| &name.name));
                    if let Some(name) = name {
                        row["workspace"] = json!(name.slug);
                    }
                }
            }
            By::Metadata(_) => self.add_names(&mut rows, None, found, tx).await?,
            By::Dimension(dimension) => self.add_names(&mut rows, Some(dimension), found, tx).await?,
        }
        Ok(rows)
    }

    /// Names of objects whose ids are values; `first` is the first dimension, if it is no name of metadata.
    async fn add_names(
        &self,
        rows: &mut [Value],
        first: Option<&'static Dimension>,
        found: &FoundGroups,
        tx: &Transaction<'_>,
    ) -> Result<(), ApiError> {
        let both = || [first, self.then_by].into_iter().flatten();
        for one in both().filter(|one| names::has_names(one)) {
            let names = found.names(tx, one).await?;
            for row in rows.iter_mut() {
                let name = names.get(row[one.name].as_str().unwrap_or_default()).map(|name| &name.name);
                let name = json!(name);
                if self.then_by.is_some() {
                    row[format!("{}_name", one.name)] = name.clone();
                }
                if first == Some(one) {
                    row["name"] = name;
                }
            }
        }
        if both().any(|one| *one == dimension::STATUS_CODE) {
            let field = dimension::STATUS_CODE.name;
            for row in rows {
                row[field] = json!(row[field].as_str().and_then(|code| code.parse::<i64>().ok()));
            }
        }
        Ok(())
    }

    fn has_costs(&self) -> bool {
        self.fields.iter().any(|(_, measure)| measure.is_money())
    }
}

impl Question for GroupList {
    fn check(&self, view: &LogView) -> Result<(), ApiError> {
        let is_of_metadata = match self.by {
            By::Users | By::Metadata(_) => true,
            By::Models | By::Workspaces => false,
            By::Dimension(dimension) => [Some(dimension), self.then_by].contains(&Some(&dimension::USER)),
        };
        if is_of_metadata { view.may_use_metadata() } else { Ok(()) }
    }

    async fn answer(&self, tx: &Transaction<'_>, asked: &Asked) -> Result<Value, ApiError> {
        let mut answer = Map::from_iter([("object".to_owned(), "list".into())]);
        answer.extend(self.listed(tx, &asked.question).await?);
        answer.insert("workspaces".into(), asked.workspaces.clone());
        if self.has_costs() {
            answer.insert("cost_unit".into(), COST_UNIT.into());
        }
        if let Some(previous) = &asked.previous {
            answer.insert("previous".into(), Value::Object(self.listed(tx, previous).await?));
        }
        Ok(Value::Object(answer))
    }

    fn sheet(&self, answer: &Value) -> Vec<Value> {
        csv::list_sheet(answer)
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
    organisation: Uuid,
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
    /// Of the objects whose ids are values of a dimension.
    async fn names(
        &self,
        tx: &Transaction<'_>,
        dimension: &Dimension,
    ) -> Result<HashMap<String, ObjectName>, ApiError> {
        let values = self.rows.iter().map(|row| match &row.second {
            Some((name, second)) if *name == dimension.name => second.as_str(),
            _ => row.value.as_str(),
        });
        names::names(tx, dimension, self.organisation, values).await
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

fn second_dimension(query: &Query) -> Result<Option<&'static Dimension>, ApiError> {
    query.text(THEN_BY).map(|name| dimension::named(THEN_BY, name)).transpose()
}

pub fn column_names() -> Vec<&'static str> {
    COLUMNS.iter().map(|(name, _)| *name).collect()
}

pub fn descriptions() -> [Doc; 6] {
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
        .need("last_seen", schema::time().or_null().says("When the last of them began."))
        .open();
    [
        described(USERS, "Calls by user", "UserGroups", user),
        described(MODELS, "Calls by model", "ModelGroups", model),
        described(WORKSPACES, "Calls by workspace", "WorkspaceGroups", workspace),
        described(METADATA, "Calls by a name of their metadata", "MetadataGroups", pair)
            .details(
                "With `then_by` each group is divided further: a row has the value of that dimension under its name, and the names \
                 of keys and workspaces as `api_key_name` and `workspace_name`.",
            )
            .filter(THEN_BY, then_by("A second dimension: one row for each pair.")),
        by_anything(ANY, "AnyGroup"),
        by_anything(LOGS, "LogGroup"),
    ]
}

fn described(path: &str, says: &str, title: &str, group: Schema) -> Doc {
    let totals = || schema::any_object().says("With `include_total`: the same columns over all calls.");
    let counted = |list: Schema| {
        list.need("total", schema::whole(0..=MAX_GROUPS).eg(1))
            .need("total_is_capped", schema::flag().says("Whether there are more groups, which are left out."))
            .need("data", schema::list(group.clone()))
    };
    let before = counted(schema::object("")).may("totals", totals());
    let list = counted(schema::object(title).need("object", schema::fixed("list")))
        .need("workspaces", docs::workspaces())
        .may("cost_unit", docs::cost_unit())
        .may("totals", totals())
        .may("previous", before.says("With `compare=previous`: the groups of that time, which may be others."));
    docs::compared(path, says)
        .pages(PageSizes::USUAL)
        .filter("order_by", schema::any_text().eg("requests").says("Any column of the answer."))
        .filter("order_by_type", schema::choice(&["asc", "desc"]).or_empty().says("Which end comes first."))
        .answer(list)
}

fn then_by(says: &str) -> Schema {
    schema::choice(&dimension::names()).or_empty().says(says)
}

fn by_anything(path: &str, title: &str) -> Doc {
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
        .filter(THEN_BY, then_by("A second dimension, other than `groupBy`: one row for each pair."))
        .filter("columns", crate::openapi::choices(&column_names()))
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
