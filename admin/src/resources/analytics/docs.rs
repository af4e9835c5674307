//! What the descriptions of these operations have in common.

use crate::log_data::analytics::csv;
use crate::log_data::{COST_UNIT, filters};
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};

const SAVED: &str = "Filters that were saved; what the request says itself wins. Both ends of the time are needed, \
                     in the request or in them.";

/// An operation that counts logs, with every filter.
pub fn counted(path: &str, summary: &str) -> Doc {
    let id = schema::uuid().or_empty();
    filters::documented_filters(Doc::get(path, summary)).filter("saved_filter_id", id.says(SAVED)).also_as(&[csv::KIND])
}

/// One that can be compared with the time before.
pub fn compared(path: &str, summary: &str) -> Doc {
    let before = schema::choice(&["previous"]).or_empty().says("Adds the same length of time before.");
    counted(path, summary).filter("compare", before)
}

/// Which workspaces an answer is about.
pub fn workspaces() -> Schema {
    let one = schema::object("")
        .need("id", schema::uuid())
        .need("slug", schema::slug().eg("ws-market-3f9a01"))
        .need("name", schema::any_text().eg("Marketing"));
    schema::list(one).or_null().says("The workspaces that it is about; null for all of the organisation.")
}

pub fn cost_unit() -> Schema {
    schema::fixed(COST_UNIT).says("What costs and savings are counted in: US cents.")
}

/// `/analytics/graphs/errors/rate` is `ErrorsRateGraph`.
pub fn title(path: &str, kind: &str) -> String {
    let words = path.split(['/', '-', '{', '}']).filter(|word| !word.is_empty()).skip(2);
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    words.map(capital).chain([kind.to_owned()]).collect()
}

/// What each figure says.
static FIGURES: &[(&str, &str)] = &[
    ("total", "All of them together."),
    ("avg", "The average."),
    ("p50", "Half were no slower."),
    ("p90", "Nine of ten were no slower."),
    ("p99", "99 of 100 were no slower."),
    ("unique", "Different users."),
    ("rate", "Their share, in percent."),
    ("simple_hits", "Answers to equal requests from the cache."),
    ("semantic_hits", "Answers to similar requests from the cache."),
    ("cumulative_simple_cache_savings", "US cents that the first kind has saved up to here."),
    ("cumulative_semantic_cache_savings", "US cents that the second kind has saved up to here."),
    ("total_errors", "Failed calls."),
    ("unique_error_codes", "Different statuses of failed calls."),
    ("retry", "Calls that a retry saved."),
    ("fallback", "Calls that another target saved."),
    ("hits", "Answers from the cache."),
    ("avg_latency", "Milliseconds of an answer from the cache."),
    ("total_requests", "All calls."),
    ("cache_speedup", "By how many percent an answer from the cache is sooner there than others."),
    ("saved_cost", "US cents that answers from the cache would have cost."),
    ("requests", "Calls of the group."),
    ("cost", "What they cost, in US cents."),
    ("avg_tokens", "Tokens of a call, on average."),
    ("avg_weighted_feedback", "What was thought of them: value times weight, on average."),
    ("requests_with_feedback", "Calls of traces that something was thought of."),
];

/// A figure. Few can be negative: what people thought, and what a cache gained.
pub fn figure(name: &str) -> Schema {
    let is_signed = name.contains("feedback") || name == "avg" || name == "cache_speedup";
    let says = FIGURES.iter().find(|(figure, _)| *figure == name).map_or("", |(_, says)| says);
    schema::number(if is_signed { i64::from(i32::MIN) } else { 0 }).eg(0).says(says)
}

/// How often.
pub fn count() -> Schema {
    schema::whole(0..=i64::MAX).eg(0).says("How many.")
}
