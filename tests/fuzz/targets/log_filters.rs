//! Any query of logs is a filter whose every value is bound, or is refused.
#![no_main]

use admin::http::Query;
use admin::log_data::filters;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fn check(query: &Query) {
    let Ok(filter) = filters::conditions(query) else { return };
    let (sql, values) = (filter.sql(), filter.values().len());
    assert!(!sql.contains('?'), "{sql}");
    assert!((1..=values).all(|number| sql.contains(&format!("${number}"))), "{sql} of {values}");
    assert!(!sql.contains(&format!("${}", values + 1)), "{sql} of {values}");
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(query) = Query::parse(Some(text)) {
        check(&query);
    }
    if let Ok(Value::Object(json)) = serde_json::from_str(text)
        && let Ok(query) = filters::of_json(&json)
    {
        check(&query);
    }
});
