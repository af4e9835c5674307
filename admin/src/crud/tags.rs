//! Tags: names and values that an operator puts on objects and filters lists by.

use crate::http::{ApiError, Query, text};
use serde_json::{Map, Value};
use shared::db::table::Filter;

const MAX_TAGS: usize = 100;

/// A map of texts.
pub fn checked(sent: Map<String, Value>) -> Result<Value, ApiError> {
    if sent.len() > MAX_TAGS {
        return Err(ApiError::field("tags", format!("must be at most {MAX_TAGS}")));
    }
    for (name, value) in &sent {
        let field = || format!("tags.{}", name.chars().take(64).collect::<String>());
        text::sized(&field(), name.clone(), 1..=255)?;
        match value {
            Value::String(value) => text::sized(&field(), value.clone(), 0..=255)?,
            _ => return Err(ApiError::field(field(), "must be a string")),
        };
    }
    Ok(Value::Object(sent))
}

/// What the query asks for as `tags`: a JSON object of which everything must match.
pub fn filter(query: &Query) -> Result<Filter, ApiError> {
    let Some(text) = query.text("tags") else { return Ok(Filter::default()) };
    let wanted: Option<Map<String, Value>> = serde_json::from_str(text).ok();
    let wanted = wanted.filter(|wanted| wanted.values().all(Value::is_string));
    let wanted = wanted.ok_or_else(|| ApiError::field("tags", "must be a JSON object of strings"))?;
    Ok(Filter::default().and("tags @> ?", Value::Object(wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tags_are_texts_by_name() {
        for (sent, accepted) in [
            (json!({}), true),
            (json!({ "team": "search", "empty": "" }), true),
            (json!({ "team": 1 }), false),
            (json!({ "": "x" }), false),
            (json!({ "team": "x".repeat(256) }), false),
        ] {
            assert_eq!(checked(sent.as_object().unwrap().clone()).is_ok(), accepted, "{sent}");
        }
    }

    #[test]
    fn a_filter_is_an_object_of_texts() {
        for (query, accepted) in
            [("", true), ("tags={\"a\":\"b\"}", true), ("tags=a", false), ("tags={\"a\":1}", false)]
        {
            assert_eq!(filter(&Query::parse(Some(query)).unwrap()).is_ok(), accepted, "{query}");
        }
    }
}
