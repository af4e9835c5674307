//! What the descriptions of these operations have in common.

use crate::analytics::csv;
use crate::logs::filters;
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};

/// An operation that counts logs, with every filter.
pub fn counted(path: &str, summary: &str) -> Doc {
    let id = schema::uuid().or_empty();
    filters::documented_filters(Doc::get(path, summary))
        .needs(&["time_of_generation_min", "time_of_generation_max"])
        .filter("saved_filter_id", id.says("Filters that were saved; what the request says itself wins."))
        .also_as(&[csv::KIND])
}

/// `/analytics/graphs/errors/rate` is `ErrorsRateGraph`.
pub fn title(path: &str, kind: &str) -> String {
    let words = path.split(['/', '-', '{', '}']).filter(|word| !word.is_empty()).skip(2);
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    words.map(capital).chain([kind.to_owned()]).collect()
}

/// A figure. Few can be negative: what people thought, and what a cache gained.
pub fn figure(name: &str) -> Schema {
    let is_signed = name.contains("feedback") || name == "avg" || name == "cache_speedup" || name == "score";
    schema::number(if is_signed { i64::from(i32::MIN) } else { 0 }).eg(0)
}
