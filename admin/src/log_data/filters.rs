//! Which logs are asked for: the names of the interface as conditions over `request_logs`, their values bound. Whose logs
//! is another question, which `view` answers.

use crate::http::{ApiError, Query, time};
use crate::openapi::{Doc, schema};
use chrono::{DateTime, TimeDelta, Utc};
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};
use shared::db::table::Filter;
use uuid::Uuid;

static COUNTS: &[(&str, &str)] = &[
    ("total_units_min", "total_units >= ?"),
    ("total_units_max", "total_units <= ?"),
    ("prompt_token_min", "req_units >= ?"),
    ("prompt_token_max", "req_units <= ?"),
    ("completion_token_min", "res_units >= ?"),
    ("completion_token_max", "res_units <= ?"),
    ("response_time_min", "response_time >= ?::bigint"),
    ("response_time_max", "response_time <= ?::bigint"),
    ("time_to_first_token_min", "time_to_first_token >= ?::bigint"),
    ("time_to_first_token_max", "time_to_first_token <= ?::bigint"),
];

/// In US cents.
static COSTS: &[(&str, &str)] = &[("cost_min", "cost >= ?"), ("cost_max", "cost <= ?")];

/// A comma list of texts, of which one must match; under `-name`, none may.
struct ListFilter {
    name: &'static str,
    left_out: &'static str,
    is: &'static str,
    is_not: &'static str,
    example: &'static str,
}

static LISTS: &[ListFilter] = &[
    ListFilter {
        name: "virtual_keys",
        left_out: "-virtual_keys",
        is: "virtual_key = ANY(?)",
        is_not: "(virtual_key = ANY(?)) IS NOT TRUE",
        example: "openai-main",
    },
    ListFilter {
        name: "configs",
        left_out: "-configs",
        is: "(config = ANY(?) OR config_id::text = ANY(?))",
        is_not: "(config = ANY(?) OR config_id::text = ANY(?)) IS NOT TRUE",
        example: "pc-main-1f2e3d",
    },
    ListFilter {
        name: "trace_id",
        left_out: "-trace_id",
        is: "trace_id = ANY(?)",
        is_not: "(trace_id = ANY(?)) IS NOT TRUE",
        example: "checkout-42",
    },
    ListFilter {
        name: "span_id",
        left_out: "-span_id",
        is: "span_id = ANY(?)",
        is_not: "(span_id = ANY(?)) IS NOT TRUE",
        example: "step-1",
    },
    ListFilter {
        name: "prompt_slug",
        left_out: "-prompt_slug",
        is: "prompt_slug = ANY(?)",
        is_not: "(prompt_slug = ANY(?)) IS NOT TRUE",
        example: "pp-greeting-1f2e3d",
    },
    ListFilter {
        name: "ai_org",
        left_out: "-ai_org",
        is: "ai_org = ANY(?)",
        is_not: "(ai_org = ANY(?)) IS NOT TRUE",
        example: "openai",
    },
    ListFilter {
        name: "ai_model",
        left_out: "-ai_model",
        is: "(ai_model = ANY(?) OR requested_model = ANY(?))",
        is_not: "(ai_model = ANY(?) OR requested_model = ANY(?)) IS NOT TRUE",
        example: "gpt-4o",
    },
    ListFilter {
        name: "error_code",
        left_out: "-error_code",
        is: "error_code = ANY(?)",
        is_not: "(error_code = ANY(?)) IS NOT TRUE",
        example: "AB01",
    },
    ListFilter {
        name: "request_url",
        left_out: "-request_url",
        is: "request_url = ANY(?)",
        is_not: "(request_url = ANY(?)) IS NOT TRUE",
        example: "/v1/chat/completions",
    },
    ListFilter {
        name: "source",
        left_out: "-source",
        is: "source = ANY(?)",
        is_not: "(source = ANY(?)) IS NOT TRUE",
        example: "proxy",
    },
];

/// What the cache can have done.
const CACHE_STATUSES: &[&str] = &["HIT", "SEMANTIC HIT", "MISS", "SEMANTIC MISS", "REFRESH", "DISABLED"];

const STATUS_CLASSES: &[&str] = &["2xx", "3xx", "4xx", "5xx"];

/// Lists whose items are more than texts.
const CACHE_STATUS: &str = "cache_status";
const ORG_MODEL: &str = "ai_org_model";
const STATUS_CODE: &str = "status_code";
const NOT_STATUS_CODE: &str = "-status_code";
const STATUS_CLASS: &str = "status_class";
const KEYS: &str = "api_key_ids";
const PEOPLE: &str = "user_id";

/// Whether a call succeeded.
const SUCCESS: &str = "is_success";

/// How far back a list goes that does not say how far.
pub const DEFAULT_DAYS: i64 = 30;

const MAX_PAIRS: usize = 20;
/// Items of a list.
const MAX_ITEMS: usize = 100;

/// Everything that a query asks for.
pub fn conditions(query: &Query) -> Result<Filter, ApiError> {
    let [from, until] = period(query)?;
    let mut filter = Filter::default();
    if let Some(from) = from {
        filter = filter.and("created_at >= ?", from);
    }
    if let Some(until) = until {
        filter = filter.and("created_at < ?", until);
    }
    filter = filter.join(attributes(query)?).join(with_feedback(query)?);
    Ok(match query.text("search") {
        Some(text) => filter.join(found_by(text)),
        None => filter,
    })
}

/// What a query asks of the calls themselves, whenever they were and whatever was thought of them.
pub fn attributes(query: &Query) -> Result<Filter, ApiError> {
    let mut filter = Filter::default();
    for (name, condition) in COUNTS {
        if let Some(count) = count(query, name)? {
            filter = filter.and(condition, count);
        }
    }
    for (name, condition) in COSTS {
        if let Some(cost) = decimal(query, name, Decimal::ZERO..=Decimal::MAX)? {
            filter = filter.and(condition, cost);
        }
    }
    for one in LISTS {
        for (name, condition) in [(one.name, one.is), (one.left_out, one.is_not)] {
            let named = list(query, name)?;
            if !named.is_empty() {
                filter = filter.and(condition, named);
            }
        }
    }
    if query.text(SUCCESS).is_some() {
        filter = filter.equals(SUCCESS, query.flag(SUCCESS)?);
    }
    let classes: Vec<i32> = query.choices(STATUS_CLASS, STATUS_CLASSES)?.iter().map(|class| class_of(class)).collect();
    if !classes.is_empty() {
        filter = filter.and("response_status_code / 100 = ANY(?)", classes);
    }
    let cached = query.choices(CACHE_STATUS, CACHE_STATUSES)?;
    if !cached.is_empty() {
        filter = filter.and("cache_status = ANY(?)", cached);
    }
    let models = list(query, ORG_MODEL)?;
    if !models.is_empty() {
        filter = filter.join(Filter::any(models.iter().map(|name| org_model(name))));
    }
    for (name, condition) in
        [(STATUS_CODE, "response_status_code = ANY(?)"), (NOT_STATUS_CODE, "response_status_code <> ALL(?)")]
    {
        let statuses = parsed::<i32>(query, name, "must be statuses as 200, separated by commas")?;
        if !statuses.is_empty() {
            filter = filter.and(condition, statuses);
        }
    }
    for (name, column) in [(KEYS, "api_key_id"), (PEOPLE, "user_id")] {
        let ids = parsed::<Uuid>(query, name, "must be UUIDs, separated by commas")?;
        if !ids.is_empty() {
            filter = filter.one_of(column, ids);
        }
    }
    for forms in pairs(query)? {
        filter = filter.and("metadata @> ANY(?)", forms);
    }
    Ok(filter)
}

/// Calls of whose traces something was thought.
pub fn with_feedback(query: &Query) -> Result<Filter, ApiError> {
    const HAS_FEEDBACK: &str = "EXISTS (SELECT FROM feedback f WHERE f.workspace_id = request_logs.workspace_id
        AND f.trace_id = request_logs.trace_id AND f.weighted BETWEEN (?::numeric[])[1] AND (?::numeric[])[2])";
    let bounds = feedback_bounds(query)?;
    Ok(bounds.map_or_else(Filter::default, |bounds| Filter::default().and(HAS_FEEDBACK, bounds)))
}

/// Where a list begins that names no beginning: without one it would walk through the logs of all days. Whoever names a
/// trace is led to its logs by an index, whenever they were.
pub fn default_beginning(query: &Query, now: DateTime<Utc>) -> Result<Option<DateTime<Utc>>, ApiError> {
    let [from, until] = period(query)?;
    let is_indexed = !query.list("trace_id").is_empty() || query.text("search").is_some();
    Ok((from.is_none() && !is_indexed).then(|| until.unwrap_or(now) - TimeDelta::days(DEFAULT_DAYS)))
}

/// The same names in a JSON object, as exports have them: lists may be arrays, metadata is an object, and the time may
/// stand as `created_at: {gte, lte}`.
pub fn of_json(filters: &Map<String, Value>) -> Result<Query, ApiError> {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in filters {
        match value {
            Value::Object(bounds) if name == "created_at" => {
                for (bound, alias) in [("gte", "time_of_generation_min"), ("lte", "time_of_generation_max")] {
                    if let Some(text) = bounds.get(bound).and_then(text_of) {
                        query.append_pair(alias, &text);
                    }
                }
            }
            Value::Object(_) if name == "metadata" => {
                query.append_pair(name, &value.to_string());
            }
            Value::Array(items) => {
                let items: Option<Vec<String>> = items.iter().map(text_of).collect();
                let items = items.ok_or_else(|| ApiError::field(name, "must be a list of texts or numbers"))?;
                query.append_pair(name, &items.join(","));
            }
            Value::Null => {}
            value => {
                let text = text_of(value).ok_or_else(|| ApiError::field(name, "must be a text, number or list"))?;
                query.append_pair(name, &text);
            }
        }
    }
    Query::parse(Some(&query.finish()))
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// When a log came into being: the time in its id, which is the row's `created_at`. None for ids that no log has.
pub fn time_in(id: Uuid) -> Option<DateTime<Utc>> {
    let is_ours = id.get_version_num() == 7;
    let (seconds, nanos) = id.get_timestamp().filter(|_| is_ours)?.to_unix();
    DateTime::from_timestamp(seconds.cast_signed(), nanos)
}

/// One log, found in its own partition.
pub fn by_id(id: Uuid) -> Option<Filter> {
    time_in(id).map(|time| Filter::default().equals("created_at", time).equals("id", id))
}

/// `openai__gpt-4o`. Column by column: Postgres knows how many rows have each value, and nothing about them joined.
fn org_model(name: &str) -> Filter {
    let (provider, model) = name.split_once("__").unwrap_or((name, ""));
    Filter::default().equals("ai_org", provider.to_owned()).equals("ai_model", model.to_owned())
}

/// `4xx` is 4.
fn class_of(name: &str) -> i32 {
    name.bytes().next().map_or(0, |digit| i32::from(digit) - i32::from(b'0'))
}

/// A search is for an id or a trace.
fn found_by(text: &str) -> Filter {
    let trace = Filter::default().equals("trace_id", text.to_owned());
    match text.parse().ok().and_then(by_id) {
        Some(log) => Filter::any([trace, log]),
        None => trace,
    }
}

/// Times are shown in milliseconds, so the end covers the whole of its own.
pub fn period(query: &Query) -> Result<[Option<DateTime<Utc>>; 2], ApiError> {
    let asked = |name: &str| query.text(name).map(|text| time::parsed(name, &time::with_plus(text))).transpose();
    let (from, until) = (asked("time_of_generation_min")?, asked("time_of_generation_max")?);
    if from.zip(until).is_some_and(|(from, until)| until < from) {
        return Err(ApiError::field("time_of_generation_max", "must not be before time_of_generation_min"));
    }
    Ok([from, until.map(|until| until + TimeDelta::milliseconds(1))])
}

fn count(query: &Query, name: &str) -> Result<Option<i64>, ApiError> {
    let Some(text) = query.text(name) else { return Ok(None) };
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ApiError::field(name, "must be a whole number of at least 0"));
    }
    Ok(Some(text.parse().unwrap_or(i64::MAX)))
}

fn decimal(query: &Query, name: &str, range: std::ops::RangeInclusive<Decimal>) -> Result<Option<Decimal>, ApiError> {
    let Some(text) = query.text(name) else { return Ok(None) };
    let found = Decimal::from_str_exact(text).or_else(|_| Decimal::from_scientific(text));
    match found.ok().filter(|found| range.contains(found)) {
        Some(found) => Ok(Some(found)),
        None if *range.end() == Decimal::MAX => Err(ApiError::field(name, "must be a number of at least 0")),
        None => Err(ApiError::field(name, format!("must be a number from {} to {}", range.start(), range.end()))),
    }
}

/// Every item is a condition more on every log that is looked at.
fn list(query: &Query, name: &str) -> Result<Vec<String>, ApiError> {
    let items = query.list(name);
    if items.len() > MAX_ITEMS {
        return Err(ApiError::field(name, format!("must have at most {MAX_ITEMS} items")));
    }
    Ok(items)
}

fn parsed<T: std::str::FromStr>(query: &Query, name: &str, must: &str) -> Result<Vec<T>, ApiError> {
    let found = list(query, name)?.into_iter().map(|one| one.parse());
    found.collect::<Result<_, _>>().map_err(|_| ApiError::field(name, must))
}

/// The metadata that all must match. Values may have been logged as text or not, and a query can hardly tell, so each
/// pair is looked for in both forms.
fn pairs(query: &Query) -> Result<Vec<Vec<Value>>, ApiError> {
    const MUST: &str = "must be a JSON object of texts, numbers and booleans, as {\"_user\":\"ada\"}";
    let Some(text) = query.text("metadata") else { return Ok(Vec::new()) };
    let wrong = || ApiError::field("metadata", MUST);
    let wanted: Map<String, Value> = serde_json::from_str(text).map_err(|_| wrong())?;
    if wanted.len() > MAX_PAIRS {
        return Err(ApiError::field("metadata", format!("must have at most {MAX_PAIRS} pairs")));
    }
    let is_storable = |text: &str| !text.contains('\0');
    let found = wanted.into_iter().map(|(name, value)| match &value {
        Value::String(text) if !is_storable(text) => Err(wrong()),
        Value::String(_) | Value::Number(_) | Value::Bool(_) if is_storable(&name) => Ok(forms(&name, value)),
        _ => Err(wrong()),
    });
    found.collect()
}

/// A pair of metadata as it may have been logged: as what it is, and as the text of it, or the reverse.
pub fn forms(name: &str, value: Value) -> Vec<Value> {
    let other = match &value {
        Value::String(text) => {
            serde_json::from_str(text).ok().filter(|read: &Value| read.is_number() || read.is_boolean())
        }
        Value::Number(_) | Value::Bool(_) => Some(Value::String(value.to_string())),
        _ => None,
    };
    [Some(value), other].into_iter().flatten().map(|value| json!({ name: value })).collect()
}

/// The least and the most that a feedback on the trace must weigh.
pub fn feedback_bounds(query: &Query) -> Result<Option<Vec<Decimal>>, ApiError> {
    let range = || -Decimal::TEN..=Decimal::TEN;
    let least = decimal(query, "weighted_feedback_min", range())?;
    let most = decimal(query, "weighted_feedback_max", range())?;
    Ok(match (least, most) {
        (None, None) => None,
        (least, most) => Some(vec![least.unwrap_or(-Decimal::TEN), most.unwrap_or(Decimal::TEN)]),
    })
}

/// The name of every filter that figures have.
pub fn names() -> Vec<String> {
    let names = documented_filters(Doc::get("", "")).accepts().1["properties"].clone();
    names.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

/// The parameters of a query over logs, as the document shows them.
pub fn documented(doc: Doc) -> Doc {
    let search = schema::any_text().eg("checkout-42").says("Id of a log, or of a trace.");
    documented_filters(doc).filter("search", search)
}

/// Those that figures about logs have too.
pub fn documented_filters(doc: Doc) -> Doc {
    let text = |example: &str| schema::any_text().eg(example);
    let mut doc = doc
        .filter("time_of_generation_min", schema::moment())
        .filter("time_of_generation_max", schema::moment())
        .filter(
            "workspace_slug",
            text("ws-market-3f9a01").says(
                "Slug or id, or several with commas; `*` is all, as without it. A workspace's own key always sees \
                 its own.",
            ),
        );
    for (name, _) in COUNTS {
        doc = doc.filter(name, schema::whole(0..=i64::MAX).eg(0).or_empty());
    }
    for (name, _) in COSTS {
        doc = doc.filter(name, schema::number(0).or_empty().says("In US cents."));
    }
    for name in ["weighted_feedback_min", "weighted_feedback_max"] {
        doc = doc.filter(name, schema::number(-10).up_to(10).or_empty().says("Value times weight."));
    }
    let own = [
        (CACHE_STATUS, "HIT"),
        (ORG_MODEL, "openai__gpt-4o"),
        (STATUS_CODE, "200,429"),
        (STATUS_CLASS, "4xx,5xx"),
        (KEYS, "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11"),
        (PEOPLE, "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11"),
    ];
    for (name, example) in LISTS.iter().map(|one| (one.name, one.example)).chain(own) {
        doc = doc.filter(name, text(example).says(&format!("One or several, with commas; at most {MAX_ITEMS}.")));
    }
    let left_out = LISTS.iter().map(|one| (one.left_out, one.example)).chain([(NOT_STATUS_CODE, "200")]);
    for (name, example) in left_out {
        doc = doc.filter(name, text(example).says("Leaves out what the filter of this name without `-` would find."));
    }
    let flag = text("false").says("`true`: only calls that succeeded; `false`: only those that did not.");
    doc = doc.filter(SUCCESS, flag);
    doc.filter("metadata", text("{\"_user\":\"ada\"}").says("A JSON object; all its pairs must match."))
}

#[cfg(test)]
mod tests;
